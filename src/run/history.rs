//! What the store's record of a row means.

use std::collections::BTreeSet;

use crate::answer::Reader;
use crate::base::AttemptKey;
use crate::model::{Answer, AnswerSettings, AttemptRecord, Ending, Ensemble, Reason};
use crate::policy::{Decision, SampleState, decide};
use crate::store::RowHistory;

/// Which rows of a continued run count as unfinished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    reasons: BTreeSet<Reason>,
    skipped: bool,
}

impl Retry {
    /// Operational errors and skipped rows: what continuing asks again without further words.
    pub fn operational() -> Self {
        let reasons = Reason::ALL.iter().copied().filter(|reason| reason.is_operational()).collect();
        Self { reasons, skipped: true }
    }

    /// Reads `none`, `operational`, `final`, `all`, or reasons between commas.
    pub fn parse(text: &str) -> Result<Self, String> {
        let finals = || Ending::REASONS.iter().copied().filter(|reason| !reason.is_operational());
        match text {
            "none" => Ok(Self { reasons: BTreeSet::new(), skipped: false }),
            "operational" => Ok(Self::operational()),
            "final" => Ok(Self { reasons: finals().collect(), skipped: false }),
            "all" => Ok(Self { reasons: Ending::REASONS.into_iter().collect(), skipped: true }),
            list => {
                let mut retry = Self { reasons: BTreeSet::new(), skipped: false };
                for word in list.split(',').map(str::trim) {
                    match Reason::from_word(word) {
                        Some(Reason::Budget | Reason::Deadline | Reason::Interrupted | Reason::Stopped) => {
                            retry.skipped = true;
                        }
                        Some(reason) if Ending::REASONS.contains(&reason) => {
                            retry.reasons.insert(reason);
                        }
                        _ => {
                            return Err(format!(
                                "`{word}` is no reason to retry: give none, operational, final, all, or reasons such as truncated,timeout"
                            ));
                        }
                    }
                }
                Ok(retry)
            }
        }
    }

    /// Adds a reason.
    #[must_use]
    pub fn with(mut self, reason: Reason) -> Self {
        self.reasons.insert(reason);
        self
    }

    /// Whether a sample that failed for this reason is asked again.
    pub fn reopens(&self, reason: Reason) -> bool {
        self.reasons.contains(&reason)
    }

    /// Whether rows that were never finished are asked.
    pub fn includes_skipped(&self) -> bool {
        self.skipped
    }
}

/// Reads rows out of the store: which samples are closed, with what, and what they decide.
#[derive(Debug)]
pub struct RowJudge {
    reader: Reader,
    ensemble: Ensemble,
    has_verdict: bool,
    has_confidence: bool,
}

/// A sample as the store knows it.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) state: SampleState,
    /// The attempt that closed it.
    pub(super) source: Option<AttemptKey>,
    pub(super) answer: Option<Answer>,
    pub(super) error: Option<String>,
    pub(super) next_attempt: u32,
}

impl RowJudge {
    /// A judge for these settings; `reader` checks answers against their schema.
    pub fn new(reader: Reader, answer: &AnswerSettings, ensemble: &Ensemble) -> Self {
        Self {
            reader,
            ensemble: ensemble.clone(),
            has_verdict: answer.verdict.is_some(),
            has_confidence: answer.confidence.is_some(),
        }
    }

    /// The top-level properties of an answer, which become columns of a CSV.
    pub fn schema_properties(&self) -> &[String] {
        self.reader.schema().properties()
    }

    pub(super) fn planned(&self) -> u16 {
        self.ensemble.samples
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Samples that nothing is known of.
    pub(super) fn blank(&self) -> Vec<Sample> {
        let open =
            Sample { state: SampleState::Open, source: None, answer: None, error: None, next_attempt: 1 };
        vec![open; usize::from(self.ensemble.samples)]
    }

    /// The samples of a row of run number `run`.
    pub(super) fn samples(&self, run: u64, history: &RowHistory) -> Vec<Sample> {
        let mut samples = self.blank();
        for attempt in &history.attempts {
            let Some(sample) =
                usize::from(attempt.ticket.sample).checked_sub(1).and_then(|at| samples.get_mut(at))
            else {
                continue;
            };
            sample.next_attempt = sample.next_attempt.max(attempt.ticket.attempt + 1);
            if let Ok(key) = AttemptKey::new(run, attempt.ticket) {
                self.close(sample, attempt, key);
            }
        }
        for replay in &history.replays {
            let Some(sample) = usize::from(replay.sample).checked_sub(1).and_then(|at| samples.get_mut(at))
            else {
                continue;
            };
            let Some(source) = &replay.source else { continue };
            // An own answer stays. Of two failures the later one counts; an answer is taken over when a failure is
            // asked again, so it comes after that.
            let own = history.attempts.iter().rev().find(|own| own.ticket.sample == replay.sample);
            let superseded = match &sample.state {
                SampleState::Valid(_) => true,
                SampleState::Failed(_) => {
                    source.ending != Ending::Valid && own.is_some_and(|own| own.started > source.started)
                }
                SampleState::Open => false,
            };
            if !superseded {
                self.close(sample, source, replay.from);
            }
        }
        if let Some(error) = &history.bad_input {
            for sample in &mut samples {
                sample.state = SampleState::Failed(Reason::BadInput);
                sample.error = Some(error.clone());
            }
        }
        samples
    }

    /// What the samples of a row of run number `run` say.
    pub fn states(&self, run: u64, history: &RowHistory) -> Vec<SampleState> {
        self.samples(run, history).into_iter().map(|sample| sample.state).collect()
    }

    fn close(&self, sample: &mut Sample, attempt: &AttemptRecord, key: AttemptKey) {
        match attempt.ending {
            Ending::Valid => {
                if let Some((answer, state)) =
                    attempt.answer.as_deref().and_then(|text| self.valid(text, attempt.extracted))
                {
                    sample.state = state;
                    sample.answer = Some(answer);
                    sample.source = Some(key);
                    sample.error = None;
                }
            }
            // A failure never hides an answer that was bought.
            Ending::Failed(reason) if !matches!(sample.state, SampleState::Valid(_)) => {
                sample.state = SampleState::Failed(reason);
                sample.source = Some(key);
                sample.error.clone_from(&attempt.error);
            }
            _ => {}
        }
    }

    /// A stored answer, read again. The schema is part of its request's digest, so it satisfies it; one that does
    /// not is as good as none.
    pub(super) fn valid(&self, text: &str, extracted: bool) -> Option<(Answer, SampleState)> {
        let text_of_free =
            self.reader.schema().is_free_text().then(|| serde_json::from_str::<String>(text).ok());
        let (mut answer, vote) = match text_of_free {
            Some(plain) => self.reader.read(&plain?).ok()?,
            None => self.reader.read(text).ok()?,
        };
        answer.extracted = extracted;
        Some((answer, SampleState::Valid(vote)))
    }

    /// Whether these samples decide their row, open ones left out.
    pub(super) fn decides(&self, states: &[SampleState]) -> bool {
        decide(&self.ensemble, self.has_verdict, self.has_confidence, states).is_some()
    }

    pub(super) fn decide(&self, samples: &[Sample]) -> Option<Decision> {
        let states: Vec<_> = samples.iter().map(|sample| sample.state.clone()).collect();
        decide(&self.ensemble, self.has_verdict, self.has_confidence, &states)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_reads_words_and_reasons() {
        let operational = Retry::parse("operational").unwrap();
        assert!(operational.reopens(Reason::Timeout) && !operational.reopens(Reason::Truncated));
        assert!(operational.includes_skipped());
        let finals = Retry::parse("final").unwrap();
        assert!(finals.reopens(Reason::Rejected) && !finals.reopens(Reason::Timeout));
        assert!(!finals.includes_skipped());
        let list = Retry::parse("truncated, budget").unwrap();
        assert!(list.reopens(Reason::Truncated) && list.includes_skipped() && !list.reopens(Reason::Empty));
        assert!(Retry::parse("agreed").is_err() && Retry::parse("nonsense").is_err());
        assert!(!Retry::parse("none").unwrap().includes_skipped());
    }
}
