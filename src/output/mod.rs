//! Rows and results into bytes.
//!
//! What it is for: [`OutputWriter`] joins an input row with its result and writes a JSONL line or a CSV record;
//! [`Target`] is where the bytes go, a file that appears whole or a stream; [`check_names`], [`has_member`] and
//! [`ColumnCollector`] answer, before anything is sent, which columns an output will have and whether they collide.
//!
//! It uses `base` and `model`.
//!
//! What never happens here: a row is read, reordered or decided; a value of the input or of an answer is
//! interpreted, so key order and number texts stay. A finished file is never half-written under its own name: bytes
//! go to a temporary file beside it, which is renamed.

mod columns;
mod csv;
mod error;
mod jsonl;
mod members;
mod name;
mod review;
mod sink;
mod target;
mod temporary;
#[cfg(test)]
mod tests;
mod value;
mod whole;
mod writer;

pub use columns::{ColumnCollector, check_names};
pub use csv::CsvWriter;
pub use error::OutputError;
pub use jsonl::JsonlWriter;
pub use members::has_member;
pub use name::{default_output, output_format_for};
pub use review::{ReviewRow, ReviewSample, ReviewWriter};
pub use sink::Sink;
pub use target::Target;
pub use whole::write_whole;
pub use writer::OutputWriter;
