//! (page to be written)

mod consensus;
mod gate;

pub use consensus::{Decision, SampleState, decide, is_settled, next_needed};
pub use gate::{Exit, ShareError, Signal, StopCause, exit, parse_share};
