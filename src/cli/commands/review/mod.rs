//! `verify review`: rows that a person must decide.
//!
//! What it is for: listing such rows, writing them to a file with room for decisions, and taking decisions from one.
//! It uses every floor beneath `cli`.
//! What never happens here: a decision is judged. What becomes of a decided row is `policy`'s to say.

mod desk;
mod export;
mod import;
mod list;

pub(super) use desk::run;
