//! Words without a domain: time, ids, money, digests, dice, secrets.
//!
//! What it is for: the few types that every other floor speaks in.
//! It uses the standard library and small crates only, and nothing of this crate.
//! What never happens here: a file, a socket or a setting is read. `clock.rs` is the one place that reads the time.

mod clock;
mod crash_point;
mod dice;
mod digest;
mod duration;
mod ids;
pub mod json_text;
mod money;
mod secret;

pub use clock::{Clock, ManualClock, Moment, SystemClock, WallTime};
pub use crash_point::CrashPoint;
pub use dice::Dice;
pub use digest::{Digest, DigestBuilder};
pub use duration::{DurationError, format_duration, parse_duration};
pub use ids::{AttemptKey, AttemptKeyError, RunId, Ticket};
pub use money::Money;
pub use secret::{Redactor, Secret};
