//! Files into rows.
//!
//! What it is for: [`Source`] reads a CSV or JSONL file as a stream. [`Source::check`] is the first pass: it reads to
//! the last selected row, finds what is malformed and takes size, time and digest. [`Source::rows`] is every later
//! pass: the same rows again, as long as the file is the same. Bytes come through a chain of `Read`s: file, digest,
//! decompressor, decoder, feed; records are cut out of the feed's one buffer.
//!
//! It uses `base` and `model`. Record boundaries of CSV are `csv-core`'s, JSON syntax is `serde_json`'s, other
//! encodings are `encoding_rs`'s, compressed files are `flate2`'s and `zstd`'s.
//!
//! What never happens here: a file is held in memory, however many rows it has (one record is, up to `max_record`);
//! a value is changed, trimmed or interpreted; a template, a schema or an output is known. All that is
//! written is the copy of standard input that [`spool`] makes, and a temporary index while ids are checked.

mod ahead;
mod checked;
mod csv;
mod encoding;
mod error;
mod feed;
mod format;
mod ids;
mod jsonl;
mod records;
mod rows;
mod select;
mod source;
mod spool;
#[cfg(test)]
mod tests;
mod unpack;

pub use checked::{Checked, Problem, Problems};
pub use error::DatasetError;
pub use format::format_of;
pub use rows::Rows;
pub use select::{RangesError, parse_ranges};
pub use source::Source;
pub use spool::{spool, sweep_spools};
