//! The input again, in order, joined with what the store holds of each row.

use std::collections::VecDeque;
use std::io::Write;

use crate::dataset::{Rows, Source};
use crate::model::{
    AttemptFact, Ending, Header, InputRow, Reason, RowResult, RowUsage, SampleCounts, Status, Totals,
};
use crate::output::{OutputError, OutputWriter};
use crate::policy::{Decision, SampleState};
use crate::report::FailureGroups;
use crate::run::error::RunError;
use crate::run::history::{RowJudge, Sample};
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
    pub(super) planned: u16,
}

/// What the rows of a run have become, from the store.
#[derive(Debug, Default)]
pub(super) struct Joined {
    pub(super) totals: Totals,
    pub(super) failures: FailureGroups,
    /// Rows that continuing would ask again.
    pub(super) open: u64,
    /// Whether a request was sent that brought no complete reply.
    pub(super) unanswered: bool,
    /// An error of the output, after which the remaining rows were counted and not written.
    pub(super) output: Option<OutputError>,
}

const PAGE: usize = 256;

impl Join<'_> {
    /// Goes through all rows in order, counts them, and writes them where there is a writer.
    pub(super) fn run<W: Write>(
        &self,
        rows: Rows,
        mut store: Reader,
        mut writer: Option<OutputWriter<W>>,
    ) -> Result<Joined, RunError> {
        let mut joined = Joined::default();
        let mut page: VecDeque<RowHistory> = VecDeque::new();
        let mut asked_after = 0;
        let mut exhausted = false;
        for row in rows {
            let row = row?;
            while page.front().is_none_or(|history| history.row < row.number) {
                page.pop_front();
                if page.is_empty() {
                    if exhausted {
                        break;
                    }
                    // Rows before this one that have something stored are of no interest.
                    asked_after = asked_after.max(row.number - 1);
                    page = store.rows_after(self.run, asked_after, PAGE)?.into();
                    exhausted = page.len() < PAGE;
                    if let Some(last) = page.back() {
                        asked_after = last.row;
                    }
                    if page.is_empty() {
                        break;
                    }
                }
            }
            let history = match page.front() {
                Some(history) if history.row == row.number => page.pop_front(),
                _ => None,
            };
            let result = self.result(&row, history.unwrap_or_default(), &mut joined);
            if let Some(out) = &mut writer
                && let Err(error) = out.write(&row, &result)
            {
                joined.output = Some(error);
                writer = None;
            }
        }
        if let Some(writer) = writer
            && let Err(error) = writer.finish()
        {
            joined.output = Some(error);
        }
        Ok(joined)
    }

    fn result(&self, row: &InputRow, history: RowHistory, joined: &mut Joined) -> RowResult {
        let mut usage = self.count(&history, &mut joined.totals);
        let samples = self.judge.samples(self.run, &history);
        let decision = self.judge.decide(&samples);
        let from_other_runs = |sample: &Sample| sample.source.is_some_and(|key| key.run() != self.run);
        let replayed = samples.iter().any(from_other_runs);
        usage.cached = replayed && samples.iter().all(|sample| sample.source.is_none() || from_other_runs(sample));
        usage.cached &= history.attempts.is_empty();
        joined.unanswered |= history.attempts.iter().any(|attempt| attempt.http_status.is_none());
        joined.totals.replayed += history.replays.len() as u64;
        let result = match decision {
            Some(decision) => self.decided(row, decision, &samples, usage),
            None => self.skipped(row, &samples, usage),
        };
        joined.totals.add_row(result.status, result.reason);
        if result.status == Status::Skipped || result.reason.is_operational() {
            joined.open += 1;
        }
        if matches!(result.status, Status::Error | Status::Review) {
            joined.failures.add(row.number, result.reason, result.error.as_deref().unwrap_or_default());
        }
        result
    }

    /// Adds the attempts of a row to the totals and returns what the row took.
    fn count(&self, history: &RowHistory, totals: &mut Totals) -> RowUsage {
        let mut usage = RowUsage::default();
        let mut tried = None;
        for attempt in &history.attempts {
            let throttled = attempt.ending == Ending::Throttled;
            let is_first = tried != Some(attempt.ticket.sample);
            let is_retry = !is_first && !throttled && !attempt.repair;
            if !throttled {
                tried = Some(attempt.ticket.sample);
            }
            let fact = AttemptFact {
                ticket: attempt.ticket,
                ending: attempt.ending,
                took: std::time::Duration::from_millis(attempt.millis),
                usage: attempt.usage,
                estimated: attempt.estimated,
                cost: attempt.cost,
                replied: attempt.http_status.is_some(),
                is_retry,
            };
            totals.add_attempt(&fact);
            if !attempt.is_answered() {
                continue;
            }
            usage.attempts += 1;
            usage.estimated |= attempt.estimated;
            if let Some(tokens) = attempt.usage {
                usage.input += tokens.input;
                usage.cached_input += tokens.cached_input;
                usage.output += tokens.output;
            }
            usage.cost = match (usage.cost, attempt.cost) {
                (Some(sum), Some(cost)) => Some(sum + cost),
                _ => None,
            };
        }
        usage
    }

    fn decided(&self, row: &InputRow, decision: Decision, samples: &[Sample], usage: RowUsage) -> RowResult {
        let sample = |number: Option<u16>| number.and_then(|number| samples.get(usize::from(number) - 1));
        let answer = sample(decision.answer_sample).and_then(|sample| sample.answer.clone());
        let error = sample(decision.error_sample)
            .and_then(|sample| sample.error.clone())
            .or_else(|| self.failed_sample(&decision, samples));
        RowResult {
            row: row.number,
            id: self.source.id_of(row, self.header),
            status: decision.status,
            reason: decision.reason,
            answer,
            confidence: decision.confidence,
            agreement: decision.agreement,
            samples: decision.counts,
            model: self.model.clone(),
            error,
            usage,
        }
    }

    /// For a row to review because a sample failed: what went wrong with the first of those.
    fn failed_sample(&self, decision: &Decision, samples: &[Sample]) -> Option<String> {
        if decision.reason != Reason::SampleFailed {
            return None;
        }
        samples.iter().find(|sample| matches!(sample.state, SampleState::Failed(_)))?.error.clone()
    }

    fn skipped(&self, row: &InputRow, samples: &[Sample], usage: RowUsage) -> RowResult {
        let count = |wanted: fn(&SampleState) -> bool| {
            u16::try_from(samples.iter().filter(|sample| wanted(&sample.state)).count()).unwrap_or(u16::MAX)
        };
        RowResult {
            row: row.number,
            id: self.source.id_of(row, self.header),
            status: Status::Skipped,
            reason: self.skipped,
            answer: None,
            confidence: None,
            agreement: None,
            samples: SampleCounts {
                planned: self.planned,
                made: count(|state| !matches!(state, SampleState::Open)),
                valid: count(|state| matches!(state, SampleState::Valid(_))),
            },
            model: self.model.clone(),
            error: None,
            usage,
        }
    }
}
