//! What the writer is given.

use crate::base::{AttemptKey, Money, WallTime};
use crate::model::{AttemptRecord, Learned};
use crate::store::record::LONGEST_INLINE;

/// One thing to keep. `run` is the run's number in the store, at most [`AttemptKey::MAX_RUN`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all entries are attempts: a box would be one allocation each"
)]
pub enum Entry {
    /// An attempt that has ended.
    Attempt {
        /// The run.
        run: u64,
        /// The attempt.
        record: AttemptRecord,
    },
    /// An attempt that ended its sample, and was not the end after all: it counts as one that was tried again.
    TakenUp {
        /// The attempt.
        attempt: AttemptKey,
    },
    /// A sample that takes the answer, or the final failure, of another attempt. A later one for the same sample
    /// takes its place.
    Replay {
        /// The run.
        run: u64,
        /// The row.
        row: u64,
        /// The sample.
        sample: u16,
        /// The attempt that it is taken from, of any run.
        from: AttemptKey,
    },
    /// A row that cannot be asked about. A later one for the same row takes its place.
    BadInput {
        /// The run.
        run: u64,
        /// The row.
        row: u64,
        /// Why, fit for the output.
        error: String,
    },
    /// What refusals have taught about a model at an endpoint, in place of what was known.
    Learned {
        /// The endpoint.
        endpoint: String,
        /// The model.
        model: String,
        /// All that is known now.
        learned: Learned,
    },
    /// A reply with content has come: the canary's fact.
    Answered {
        /// The endpoint.
        endpoint: String,
        /// The model.
        model: String,
        /// The label of the key.
        key_label: String,
    },
    /// A key must wait, or need not any more.
    KeyWait {
        /// The endpoint.
        endpoint: String,
        /// The label of the key.
        key_label: String,
        /// Now.
        noted: WallTime,
        /// Until when; `None` ends the wait.
        until: Option<WallTime>,
    },
    /// What the execution may spend and send in all, on disk before it does.
    Lease {
        /// The run.
        run: u64,
        /// Money, over all executions.
        money: Money,
        /// Requests, over all executions.
        calls: u64,
    },
    /// Nothing to write: its token comes back when all that was pushed before is on disk.
    RowDone,
    /// The newest counts of a run; only the last one of a commit is written.
    Progress {
        /// The run.
        run: u64,
        /// The counts as JSON.
        json: String,
    },
}

impl Entry {
    /// Whether it is an attempt.
    pub(super) fn is_attempt(&self) -> bool {
        matches!(self, Self::Attempt { .. })
    }

    /// Bytes of a body that has a place of its own.
    pub(super) fn long_bytes(&self) -> usize {
        match self {
            Self::Attempt { record, .. } if record.raw.len() > LONGEST_INLINE => record.raw.len(),
            _ => 0,
        }
    }
}
