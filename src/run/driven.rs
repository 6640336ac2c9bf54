//! What the driver leaves behind.

use crate::model::Totals;
use crate::policy::StopCause;
use crate::report::{Latencies, Snapshot};

/// What an execution leaves behind.
pub(super) struct Driven {
    /// What stopped it, if something did.
    pub(super) cause: Option<StopCause>,
    pub(super) latencies: Latencies,
    /// Rows that it finished.
    pub(super) finished: u64,
    /// Requests that it sent.
    pub(super) sent: u64,
    /// What the next row would have needed, if a ceiling ended the asking.
    pub(super) needed: Option<String>,
    /// The last state that observers were told.
    pub(super) last: Snapshot,
}

impl Driven {
    /// The last state for the store, with the counts of the whole run.
    pub(super) fn snapshot(&self, totals: &Totals) -> String {
        let mut last = self.last.clone();
        last.in_flight = 0;
        last.done = totals.status.total() - totals.status.skipped;
        last.status = totals.status;
        last.reason.clone_from(&totals.reason);
        last.replayed = totals.replayed;
        last.tokens = totals.tokens;
        last.attempts = totals.attempts;
        last.retries = totals.retries;
        last.repairs = totals.repairs;
        last.throttled = totals.throttled;
        last.spent = (!totals.unpriced).then_some(totals.spent);
        last.to_store_json()
    }
}
