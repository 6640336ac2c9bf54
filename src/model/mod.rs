//! The nouns: plain data that every room passes to the next.
//!
//! What it is for: rows, requests, replies, attempts, statuses, settings, events and the totals folded from them.
//! It uses `base` only.
//! What never happens here: nothing decides, nothing waits, nothing is read or written. A method here answers a
//! question about its own data.

mod answer;
mod attempt;
mod event;
mod failure;
mod person;
mod reply;
mod request;
mod result;
mod row;
mod settings;
mod status;
mod tier;
mod totals;
mod usage;

pub use answer::{Answer, Vote};
pub use attempt::{AttemptRecord, Ending, StoredAnswer};
pub use event::{AttemptFact, Event, EventKind, Turn};
pub use failure::{Failure, FailureClass, KeyFault, Lesson};
pub use person::PersonDecision;
pub use reply::{Decoded, HttpReply, ReplyContent};
pub use request::{Learned, Prompt, Repair};
pub use result::{RowResult, RowUsage, SampleCounts};
pub use row::{Header, InputRow, LineEnd, RowContent};
pub use settings::{
    AnswerSettings, BadRows, CallSettings, Encoding, Ensemble, GateSettings, InputFormat, InputPath,
    InputSettings, KeySettings, KeySource, Limits, OutputFormat, OutputOrder, OutputSettings, PromptSettings,
    ProviderKind, Ragged, RetrySettings, Rule, Sampling, Selection, Settings, Share, Structured,
};
pub use status::{Reason, Status};
pub use tier::ServiceTier;
pub use totals::{ReasonCounts, StatusCounts, Totals};
pub use usage::Usage;
