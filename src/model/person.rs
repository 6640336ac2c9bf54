//! A person's word on a row.

use crate::base::WallTime;

/// What a person has decided about a content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonDecision {
    /// Whether it passes.
    pub positive: bool,
    /// Who decided; empty where nobody said.
    pub reviewer: String,
    /// Why; empty where nobody said.
    pub note: String,
    /// The id of the run in which it was to be reviewed.
    pub run: String,
    /// The row of that run.
    pub row: u64,
    /// When it was imported.
    pub decided: WallTime,
}

impl PersonDecision {
    /// The word in files: `pass` or `fail`.
    pub const fn word(&self) -> &'static str {
        if self.positive { "pass" } else { "fail" }
    }

    /// Whether it says the same, whenever and wherever it was said.
    pub fn says_as(&self, other: &Self) -> bool {
        (self.positive, &self.reviewer, &self.note) == (other.positive, &other.reviewer, &other.note)
    }
}
