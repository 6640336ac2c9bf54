//! What the store holds of a row.

use crate::base::AttemptKey;
use crate::model::AttemptRecord;

/// All that is stored of a row of a run; what became of the row is computed from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowHistory {
    /// The row.
    pub row: u64,
    /// Its attempts in this run, by sample and attempt.
    pub attempts: Vec<AttemptRecord>,
    /// Samples that were replayed, by sample.
    pub replays: Vec<Replayed>,
    /// Why it cannot be asked about, if it cannot.
    pub bad_input: Option<String>,
}

/// A sample that takes the answer, or the final failure, of another attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replayed {
    /// The sample.
    pub sample: u16,
    /// The attempt that it is taken from.
    pub from: AttemptKey,
    /// That attempt; `None` if it has been deleted.
    pub source: Option<AttemptRecord>,
}
