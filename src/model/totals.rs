//! Counts of a run: a pure fold of events, or of what the store holds.

use std::collections::BTreeMap;

use crate::base::Money;
use crate::model::{AttemptFact, EventKind, Reason, Status, Turn, Usage};

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
    /// Rows that ended in earlier executions of the run and are not counted in `status`.
    pub passed: u64,
    /// Finished rows by status. `skipped` is counted at the end only.
    pub status: StatusCounts,
    /// Finished rows by reason.
    pub reason: ReasonCounts,
    /// Requests sent.
    pub attempts: u64,
    /// Requests that were neither first tries, nor throttled, nor repairs.
    pub retries: u64,
    /// Requests that asked again after an invalid answer, carrying it.
    pub repairs: u64,
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
    /// These counts and those of other executions of the run, as one.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.passed += other.passed;
        for status in Status::ALL {
            *sum.status.slot(status) += other.status.get(status);
        }
        for (reason, count) in &other.reason {
            *sum.reason.entry(*reason).or_default() += count;
        }
        sum.attempts += other.attempts;
        sum.retries += other.retries;
        sum.repairs += other.repairs;
        sum.throttled += other.throttled;
        sum.replayed += other.replayed;
        sum.tokens += other.tokens;
        sum.spent += other.spent;
        sum.estimated += other.estimated;
        sum.unpriced |= other.unpriced;
        sum
    }

    /// Takes one fact in.
    pub fn fold(&mut self, kind: &EventKind) {
        match kind {
            EventKind::RowsPassed { count } => self.passed += count,
            EventKind::AttemptFinished(fact) => self.add_attempt(fact),
            EventKind::SampleReplayed { .. } => self.replayed += 1,
            EventKind::RowFinished { status, reason, .. } => self.add_row(*status, *reason),
            EventKind::KeyWaits { .. }
            | EventKind::KeyCools { .. }
            | EventKind::KeyOut { .. }
            | EventKind::OutageBegins { .. }
            | EventKind::OutageEnds
            | EventKind::Learned { .. }
            | EventKind::Failed { .. }
            | EventKind::Stopping { .. } => {}
        }
    }

    /// Counts a request.
    pub fn add_attempt(&mut self, fact: &AttemptFact) {
        self.attempts += 1;
        self.retries += u64::from(fact.turn == Turn::Retry);
        self.repairs += u64::from(fact.turn == Turn::Repair);
        self.throttled += u64::from(fact.throttled);
        if let Some(usage) = fact.usage {
            self.tokens += usage;
        }
        match fact.cost {
            Some(cost) => {
                self.spent += cost;
                if fact.estimated {
                    self.estimated += cost;
                }
            }
            None => self.unpriced |= fact.usage.is_some(),
        }
    }

    /// Counts a finished row.
    pub fn add_row(&mut self, status: Status, reason: Reason) {
        self.status.add(status);
        *self.reason.entry(reason).or_default() += 1;
    }
}
