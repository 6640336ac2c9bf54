//! From a model's text to a checked answer.
//!
//! What it is for: the schema of the answers, compiled once; the reader that finds the one JSON value in a text,
//! checks it and says what it contributes to its row; the short notation for columns from which a schema is made;
//! and examples of answers, for estimates.
//! It uses `model`, and the crates `serde_json`, `jsonschema` and `rust_decimal`.
//! What never happens here: nothing is coerced, repaired or guessed; a number text, an escape or a key order is never
//! changed; nothing is fetched, whatever a schema refers to; no text, however long or deep, overflows the stack or
//! takes more than linear time to search.

mod columns;
mod error;
mod example;
mod extract;
mod json;
mod reader;
mod schema;

pub use columns::{ColumnType, Preset, parse_column, preset_verdict, schema_of_columns};
pub use error::{AnswerError, ColumnError};
pub use example::{shortest, usual};
pub use reader::{Reader, Unread};
pub use schema::Schema;
