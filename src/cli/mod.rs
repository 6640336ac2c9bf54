//! What a person types and what a person reads.
//!
//! What it is for: arguments, environment and configuration file become [`crate::model::Settings`]; a command calls
//! [`crate::run`] or reads the store; errors become one message and an exit code in [`Failure`].
//! It uses every floor beneath. `environment` is the one file that reads variables, `terminal` the one that writes
//! to the screen.
//! What never happens here: a rule of the product. What a row becomes, when a request goes and what an exit code
//! means is decided beneath.

mod args;
mod commands;
mod environment;
mod failure;
mod keys;
mod program;
mod settings;
mod signals;
mod terminal;

pub use failure::Failure;
pub use program::main;
