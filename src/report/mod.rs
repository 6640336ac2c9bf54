//! What people and pipelines read of a run: the final summary, the progress lines, the status, one row's story.
//!
//! What it is for: turning plain data into text and JSON. [`Summary`] is the end of a run, [`Snapshot`] a moment of
//! it, [`StatusView`] what `verify status` says, [`ShowRow`] what `verify show` says. [`FailureGroups`], [`Latencies`]
//! and [`Rate`] collect, in bounded memory, what those need. [`Bar`] is the one thing here that touches the world: it
//! draws on stderr, and only if that is a terminal.
//! It uses `policy`, `model` and `base` only, and the shapes of its JSON are written down in
//! `docs/summary.schema.json` and `docs/show.schema.json`.
//! What never happens here: a clock, a file or the store is read; anything is decided (the exit code and its reason
//! arrive as data); a control character that came from data, an answer or a server reaches a line of text raw.

mod agreement;
mod bar;
mod estimate;
mod failures;
mod github;
mod hint;
mod json;
mod jsonlog;
mod junit;
mod latency;
mod layout;
mod measure;
mod printable;
mod progress;
mod rate;
mod runs;
mod show;
mod status;
mod summary;

pub use agreement::AgreementView;
pub use bar::Bar;
pub use estimate::{CostRange, Estimate};
pub use failures::{FailureGroup, FailureGroups};
pub use github::{Annotations, markdown};
pub use hint::hint;
pub use jsonlog::event_json;
pub use junit::{JUNIT_TAIL, junit_case, junit_head};
pub use latency::Latencies;
pub use measure::{eta_text, latency_text};
pub use printable::{is_obeyed, printable};
pub use progress::{KeyLine, Snapshot, SnapshotError, json_line, plain_line};
pub use rate::Rate;
pub use runs::{RunLine, runs_json, runs_text};
pub use show::{ShowRow, ShowSample, outcome_word};
pub use status::{RunState, StatusView, status_text};
pub use summary::{Cost, Exit, Input, Latency, Summary};
