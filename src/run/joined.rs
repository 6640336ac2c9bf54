//! What the rows of a run have become, added up.

use crate::base::Money;
use crate::model::{AttemptFact, AttemptRecord, RowResult, Status, Totals, Turn};
use crate::output::OutputError;
use crate::report::FailureGroups;
use crate::store::RowHistory;

/// What the rows of a run have become, from the store.
#[derive(Debug, Default)]
pub(super) struct Joined {
    pub(super) totals: Totals,
    pub(super) failures: FailureGroups,
    /// Rows that continuing would ask again.
    pub(super) open: u64,
    /// Whether a request was sent that brought no complete reply and whose worst case is not known.
    pub(super) unanswered: bool,
    /// The worst case of requests that brought no complete reply.
    pub(super) possible: Money,
    /// An error of the output, after which the remaining rows were counted and not written.
    pub(super) output: Option<OutputError>,
}

impl Joined {
    /// Counts a row: what is stored of it, and what that makes of it. Rows may come in any order.
    pub(super) fn add(&mut self, history: &RowHistory, result: &RowResult) {
        count(history, &mut self.totals);
        let lost = |attempt: &AttemptRecord| {
            attempt.http_status.is_none() && attempt.cost.is_none() && attempt.possible.is_none()
        };
        self.unanswered |= history.attempts.iter().any(lost);
        self.possible += history.attempts.iter().filter_map(|attempt| attempt.possible).sum::<Money>();
        self.totals.add_row(result.status, result.reason);
        if result.status == Status::Skipped || result.reason.is_operational() {
            self.open += 1;
        }
        if matches!(result.status, Status::Error | Status::Review) {
            self.failures.add(result.row, result.reason, result.error.as_deref().unwrap_or_default());
        }
    }
}

/// Adds what is stored of a row to the totals.
fn count(history: &RowHistory, totals: &mut Totals) {
    totals.replayed += history.replays.len() as u64;
    let mut tried = None;
    for attempt in &history.attempts {
        let throttled = attempt.is_throttled();
        let is_first = tried != Some(attempt.ticket.sample);
        if !throttled {
            tried = Some(attempt.ticket.sample);
        }
        totals.add_attempt(&AttemptFact {
            ticket: attempt.ticket,
            ending: attempt.ending,
            took: std::time::Duration::from_millis(attempt.millis),
            usage: attempt.usage,
            estimated: attempt.estimated,
            cost: attempt.cost,
            replied: attempt.http_status.is_some(),
            throttled,
            turn: Turn::of(throttled, attempt.repair, !is_first),
        });
    }
}
