//! What the output says of a row, from what the store holds of it.

use crate::model::{Reason, RowResult, RowUsage, SampleCounts, Status};
use crate::policy::{SampleState, reviewed};
use crate::run::history::{RowJudge, Sample};
use crate::store::RowHistory;

/// A row of which the result is wanted.
#[derive(Debug)]
pub struct RowFacts<'a> {
    /// Number of the run in the store.
    pub run: u64,
    /// Row number.
    pub row: u64,
    /// The value of its id column, as JSON text.
    pub id: Option<String>,
    /// The configured model, if one is.
    pub model: Option<String>,
    /// What is stored of it.
    pub history: &'a RowHistory,
    /// Why it is not finished, should it not be.
    pub skipped: Reason,
    /// What a person has decided of it, whether it passes.
    pub decided: Option<bool>,
}

impl RowJudge {
    /// The result of a row: what its samples decide, or `skipped`.
    pub fn result(&self, facts: RowFacts<'_>) -> RowResult {
        let samples = self.samples(facts.run, facts.history);
        let usage = usage(&facts, &samples);
        let judged = self.decide(&samples);
        let decision = match facts.decided {
            Some(positive) => {
                let states: Vec<_> = samples.iter().map(|sample| sample.state.clone()).collect();
                Some(reviewed(judged.as_ref(), positive, &states))
            }
            None => judged,
        };
        let Some(decision) = decision else { return self.skipped(facts, &samples, usage) };
        let sample = |number: Option<u16>| number.and_then(|number| samples.get(usize::from(number) - 1));
        let error = sample(decision.error_sample).and_then(|sample| sample.error.clone()).or_else(|| {
            // A row to review because a sample failed says what went wrong with the first of those.
            let failed = |sample: &&Sample| matches!(sample.state, SampleState::Failed(_));
            samples.iter().find(failed).filter(|_| decision.reason == Reason::SampleFailed)?.error.clone()
        });
        let mut counts = decision.counts;
        if facts.history.bad_input.is_some() {
            // It could not even be asked.
            counts.made = 0;
        }
        RowResult {
            row: facts.row,
            id: facts.id,
            status: decision.status,
            reason: decision.reason,
            answer: sample(decision.answer_sample).and_then(|sample| sample.answer.clone()),
            confidence: decision.confidence,
            agreement: decision.agreement,
            samples: counts,
            model: facts.model,
            error,
            usage,
        }
    }

    fn skipped(&self, facts: RowFacts<'_>, samples: &[Sample], usage: RowUsage) -> RowResult {
        let count = |wanted: fn(&SampleState) -> bool| {
            u16::try_from(samples.iter().filter(|sample| wanted(&sample.state)).count()).unwrap_or(u16::MAX)
        };
        RowResult {
            row: facts.row,
            id: facts.id,
            status: Status::Skipped,
            reason: facts.skipped,
            answer: None,
            confidence: None,
            agreement: None,
            samples: SampleCounts {
                planned: self.planned(),
                made: count(|state| !matches!(state, SampleState::Open)),
                valid: count(|state| matches!(state, SampleState::Valid(_))),
            },
            model: facts.model,
            error: None,
            usage,
        }
    }
}

/// What a row took in this run: complete replies of any status but 429, whichever execution got them.
fn usage(facts: &RowFacts<'_>, samples: &[Sample]) -> RowUsage {
    let from_other_runs = |sample: &Sample| sample.source.is_some_and(|key| key.run() != facts.run);
    let is_foreign = |sample: &Sample| sample.source.is_none() || from_other_runs(sample);
    let mut usage = RowUsage {
        cached: facts.history.attempts.is_empty()
            && samples.iter().any(from_other_runs)
            && samples.iter().all(is_foreign),
        ..RowUsage::default()
    };
    for attempt in facts.history.attempts.iter().filter(|attempt| attempt.is_answered()) {
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
