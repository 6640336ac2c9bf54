//! How many requests a key bears at once, and how many a minute.
//!
//! What it is for: [`Aimd`] finds the highest concurrency that hurts nobody from what comes back; [`Smoother`] keeps the
//! requests of a throttled key apart; [`Pace`] keeps the requests and tokens of a minute under limits that a person has
//! set. Each key has its own.
//! It uses `base` only.
//! What never happens here: a key is picked, a row is known, or latency is taken for congestion (an LLM's latency
//! grows with the length of its answer).

mod aimd;
mod pace;
mod smoother;

pub use aimd::{Aimd, Pressure};
pub use pace::Pace;
pub use smoother::Smoother;
