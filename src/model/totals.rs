//! Counts of a run: a pure fold of events, or of what the store holds.

use std::collections::BTreeMap;

use crate::base::Money;
use crate::model::{Reason, Status, Usage};

/// Rows by status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StatusCounts {
    /// `pass` rows.
    pub pass: u64,
    /// `fail` rows.
    pub fail: u64,
    /// `review` rows.
    pub review: u64,
    /// `error` rows.
    pub error: u64,
    /// `skipped` rows.
    pub skipped: u64,
}

impl StatusCounts {
    /// Counts a row.
    pub fn add(&mut self, status: Status) {
        *self.slot(status) += 1;
    }

    /// The count of one status.
    pub fn get(&self, status: Status) -> u64 {
        match status {
            Status::Pass => self.pass,
            Status::Fail => self.fail,
            Status::Review => self.review,
            Status::Error => self.error,
            Status::Skipped => self.skipped,
        }
    }

    /// All rows.
    pub fn total(&self) -> u64 {
        Status::ALL.iter().map(|&status| self.get(status)).sum()
    }

    fn slot(&mut self, status: Status) -> &mut u64 {
        match status {
            Status::Pass => &mut self.pass,
            Status::Fail => &mut self.fail,
            Status::Review => &mut self.review,
            Status::Error => &mut self.error,
            Status::Skipped => &mut self.skipped,
        }
    }
}

/// Rows by reason.
pub type ReasonCounts = BTreeMap<Reason, u64>;

/// What a run has done so far, over all its executions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Finished rows by status. `skipped` is counted at the end only.
    pub status: StatusCounts,
    /// Finished rows by reason.
    pub reason: ReasonCounts,
    /// Requests sent.
    pub attempts: u64,
    /// Requests that were neither first tries, nor throttled, nor repairs.
    pub retries: u64,
    /// Replies of status 429.
    pub throttled: u64,
    /// Samples that were replayed from stored answers.
    pub replayed: u64,
    /// Tokens.
    pub tokens: Usage,
    /// Exact cost.
    pub spent: Money,
    /// Cost of attempts whose usage is our estimate; part of `spent`.
    pub estimated: Money,
    /// Whether an attempt's cost is unknown, so that `spent` says too little.
    pub unpriced: bool,
}

impl Totals {
    /// Counts a finished row.
    pub fn add_row(&mut self, status: Status, reason: Reason) {
        self.status.add(status);
        *self.reason.entry(reason).or_default() += 1;
    }
}
