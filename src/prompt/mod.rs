//! From a template and a row to a prompt.
//!
//! What it is for: compiling the two templates of a run, telling which fields they need and whether the input has
//! them, and rendering a row. A value prints as it stands in the input: a string as itself, everything else as its
//! JSON text; a number is no number to the template until it has passed `|int` or `|float`.
//! It uses `model`, and the crates `minijinja`, `serde_json` and `strsim`.
//! What never happens here: a template reads no file and no other template; a value is never expanded as a template;
//! nothing is escaped; an undefined field never becomes an empty text; the work of a template is bounded.

mod analysis;
mod check;
mod edit;
mod engine;
mod error;
mod field;
mod json;
mod print;
mod record;
mod template;
mod tokens;

pub use check::{FieldCheck, FieldReport, PartialField};
pub use error::{PromptError, RenderError};
pub use field::{FieldPath, Step};
pub use template::Template;
pub use tokens::TokenCounter;
