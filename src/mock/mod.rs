//! The mock provider: answers made up from a seed, in process or behind HTTP.
//!
//! What it is for: rehearsing a run without a provider and without a bill, and measuring the program against a server
//! whose book is known. [`MockModel`] is the pure part, a function of (seed, prompt, schema, sample); [`serve`] puts
//! it behind the two wire formats, with latency, limits, errors and a book of what was asked.
//! It uses `base` and `model`, and the tokenizer only behind HTTP.
//! What never happens here: a reply that depends on the time, on another request's answer or on a random source
//! other than the seed. The book and the limits belong to the server and never change what an answer says.

mod answers;
mod bad;
mod book;
mod bucket;
mod delivery;
mod desk;
mod error;
mod first;
mod generator;
mod merge;
mod noted;
mod number;
mod pattern;
mod reply;
mod request;
mod server;
mod settings;
mod tokens;
mod words;

pub use answers::MockModel;
pub use error::MockError;
pub use server::{load_tokenizer, serve};
pub use settings::{MockPrice, MockSettings, RateLimit};
