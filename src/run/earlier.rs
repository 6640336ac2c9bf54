//! What the earlier executions of a run have done, as it is shown while the run goes on.

use crate::model::{Reason, Totals};
use crate::report::Snapshot;
use crate::run::feed::FinishedRows;
use crate::run::resume::Opened;

/// The part of a run that lies before this execution. The counts come from the last snapshot: after a crash they lack
/// what came in its last second, and they know nothing of decisions made since. At the end of the execution all is
/// counted anew.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// Rows that have ended and are not asked again.
    pub(super) done: u64,
    /// Their counts, and the requests and money of the run.
    pub(super) totals: Totals,
}

impl Earlier {
    /// What went before the execution that has been opened. `finished`: the rows that it passes over.
    pub(super) fn of(opened: &Opened, finished: &FinishedRows) -> Self {
        let record = Some(&opened.record).filter(|_| opened.continued);
        let stored = record.and_then(|record| record.progress.as_deref());
        let Some(last) = stored.and_then(|json| Snapshot::from_store_json(json).ok()) else {
            return Self { done: finished.count(), totals: Totals::default() };
        };
        let mut totals = Totals {
            attempts: last.attempts,
            retries: last.retries,
            repairs: last.repairs,
            throttled: last.throttled,
            replayed: last.replayed,
            tokens: last.tokens,
            // To the last unit, whatever the snapshot has missed.
            spent: opened.book.spent,
            unpriced: last.spent.is_none(),
            status: last.status,
            reason: last.reason,
            ..Totals::default()
        };
        totals.status.skipped = 0;
        let error = &mut totals.status.error;
        totals.reason.retain(|reason, count| {
            // These end once more in this execution: they are asked again, or found to be unusable again.
            let again = opened.retry.reopens(*reason) || *reason == Reason::BadInput;
            if again {
                *error = error.saturating_sub(*count);
            }
            !again && !reason.is_skipped()
        });
        Self { done: finished.count(), totals }
    }
}
