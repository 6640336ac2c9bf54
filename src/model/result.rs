//! What the output says of a row.

use rust_decimal::Decimal;

use crate::base::Money;
use crate::model::{Answer, Reason, Status};

/// Everything that the output adds to an input row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowResult {
    /// Row number, from 1.
    pub row: u64,
    /// The value of the id column as JSON text: a JSON string for CSV, as it stands for JSONL. `None`: no such column.
    pub id: Option<String>,
    /// The status.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// The answer, if there is one. `error` and `skipped` rows have none.
    pub answer: Option<Answer>,
    /// Mean confidence, exact.
    pub confidence: Option<Decimal>,
    /// Share of the samples that agree, exact.
    pub agreement: Option<Decimal>,
    /// Samples planned, made and valid.
    pub samples: SampleCounts,
    /// The configured model; `None` where none is configured.
    pub model: Option<String>,
    /// What went wrong: a fixed sentence or the server's text without ids, at most 300 characters.
    pub error: Option<String>,
    /// What it took. Left out with `accounting = false`.
    pub usage: RowUsage,
}

/// Samples of a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleCounts {
    /// Asked for.
    pub planned: u16,
    /// That ended, with an answer or finally without.
    pub made: u16,
    /// With a valid answer.
    pub valid: u16,
}

/// What a row took in this run, whichever execution made the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowUsage {
    /// Complete replies of any status but 429.
    pub attempts: u32,
    /// Whether no sample was bought in this run.
    pub cached: bool,
    /// All input tokens.
    pub input: u64,
    /// Those of them that were read from a cache.
    pub cached_input: u64,
    /// Output tokens.
    pub output: u64,
    /// The cost; `None` where it is unknown.
    pub cost: Option<Money>,
    /// Whether a count is our estimate.
    pub estimated: bool,
}

impl Default for RowUsage {
    fn default() -> Self {
        Self {
            attempts: 0,
            cached: false,
            input: 0,
            cached_input: 0,
            output: 0,
            cost: Some(Money::ZERO),
            estimated: false,
        }
    }
}
