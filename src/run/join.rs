//! The input again, in order, joined with what the store holds of each row.

use crate::dataset::{Rows, Source};
use crate::model::{
    AttemptFact, AttemptRecord, Ending, Header, InputRow, Reason, RowResult, Status, Totals, Turn,
};
use crate::output::{OutputError, OutputWriter, Sink};
use crate::report::FailureGroups;
use crate::run::decisions::Decisions;
use crate::run::error::RunError;
use crate::run::feed::FinishedRows;
use crate::run::histories::Histories;
use crate::run::history::RowJudge;
use crate::run::result::RowFacts;
use crate::store::{Reader, RowHistory};

/// What the join works with.
pub(super) struct Join<'a> {
    pub(super) source: &'a Source,
    pub(super) header: Option<&'a Header>,
    pub(super) judge: &'a RowJudge,
    /// Number of the run in the store.
    pub(super) run: u64,
    /// The configured model, if one is.
    pub(super) model: Option<String>,
    /// Why unfinished rows are not finished.
    pub(super) skipped: Reason,
    /// What people have decided, if there is any of that.
    pub(super) decisions: Option<&'a Decisions>,
}

/// What the rows of a run have become, from the store.
#[derive(Debug, Default)]
pub(super) struct Joined {
    pub(super) totals: Totals,
    pub(super) failures: FailureGroups,
    /// Rows that continuing would ask again.
    pub(super) open: u64,
    /// Whether a request was sent that brought no complete reply and whose worst case is not known.
    pub(super) unanswered: bool,
    /// An error of the output, after which the remaining rows were counted and not written.
    pub(super) output: Option<OutputError>,
}

impl Join<'_> {
    /// Goes through all rows in order, counts them, shows each to `each`, and writes those that are not `written` where there is
    /// a writer.
    pub(super) fn run(
        &self,
        rows: Rows,
        store: Reader,
        mut writer: Option<OutputWriter<Sink>>,
        written: &FinishedRows,
        each: &mut dyn FnMut(&InputRow, &RowResult),
    ) -> Result<Joined, RunError> {
        let mut joined = Joined::default();
        let mut histories = Histories::new(store, self.run);
        for row in rows {
            let row = row?;
            let history = histories.of(row.number)?;
            let decided = match self.decisions {
                Some(decisions) => decisions.on_row(&row, self.header)?,
                None => None,
            };
            let result = self.result(&row, &history, decided, &mut joined);
            each(&row, &result);
            if !written.contains(row.number)
                && let Some(out) = &mut writer
                && let Err(error) = out.write(&row, &result)
            {
                joined.output = Some(error);
                writer = None;
            }
        }
        if let Some(writer) = writer
            && let Err(error) = writer.close()
        {
            joined.output = Some(error);
        }
        Ok(joined)
    }

    fn result(
        &self,
        row: &InputRow,
        history: &RowHistory,
        decided: Option<bool>,
        joined: &mut Joined,
    ) -> RowResult {
        count(history, &mut joined.totals);
        let lost = |attempt: &AttemptRecord| {
            attempt.http_status.is_none() && attempt.cost.is_none() && attempt.possible.is_none()
        };
        joined.unanswered |= history.attempts.iter().any(lost);
        let result = self.judge.result(RowFacts {
            run: self.run,
            row: row.number,
            id: self.source.id_of(row, self.header),
            model: self.model.clone(),
            history,
            skipped: self.skipped,
            decided,
        });
        joined.totals.add_row(result.status, result.reason);
        if result.status == Status::Skipped || result.reason.is_operational() {
            joined.open += 1;
        }
        if matches!(result.status, Status::Error | Status::Review) {
            joined.failures.add(row.number, result.reason, result.error.as_deref().unwrap_or_default());
        }
        result
    }
}

/// Adds what is stored of a row to the totals.
fn count(history: &RowHistory, totals: &mut Totals) {
    totals.replayed += history.replays.len() as u64;
    let mut tried = None;
    for attempt in &history.attempts {
        let throttled = attempt.ending == Ending::Throttled;
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
            turn: Turn::of(throttled, attempt.repair, !is_first),
        });
    }
}
