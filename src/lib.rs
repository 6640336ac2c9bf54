//! `verify`: a batch runner for LLM prompts.
//!
//! The crate is the program; `main.rs` only calls [`cli::main`]. Folders are floors, and a room may use any floor
//! beneath its own, never a sibling and never a floor above (`tests/architecture.rs` holds this):
//!
//! | Floor | Rooms |
//! |---|---|
//! | 0 | [`base`]: words without a domain |
//! | 1 | [`model`]: the nouns, plain data |
//! | 2 | [`policy`]: pure deciders, which take `now` as an argument |
//! | 3 | [`dataset`] [`prompt`] [`provider`] [`answer`] [`transport`] [`mock`] [`store`] [`output`] [`report`]: each touches one part of the world, or translates one language, and decides nothing |
//! | 4 | [`run`]: the only place where rooms meet and time passes |
//! | 5 | [`cli`]: what a person types and reads |

pub mod base;
pub mod model;
pub mod policy;

pub mod answer;
pub mod dataset;
pub mod mock;
pub mod output;
pub mod prompt;
pub mod provider;
pub mod report;
pub mod store;
pub mod transport;

pub mod run;

pub mod cli;
