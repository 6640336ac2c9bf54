//! What a person's decision makes of a row.

use crate::model::{Reason, SampleCounts, Status};
use crate::policy::consensus::{Decision, SampleState};

/// The decision of a row that a person has decided. `judged` is what its samples decide, `None` while some are
/// missing; they are not asked for.
///
/// The answer is that of the lowest sample that says what the person says; of the lowest valid one where none does.
pub fn reviewed(judged: Option<&Decision>, positive: bool, samples: &[SampleState]) -> Decision {
    let place = |wanted: &dyn Fn(&SampleState) -> bool| {
        let at = samples.iter().position(wanted)?;
        u16::try_from(at + 1).ok()
    };
    let agrees =
        |state: &SampleState| matches!(state, SampleState::Valid(vote) if vote.positive == Some(positive));
    let is_valid = |state: &SampleState| matches!(state, SampleState::Valid(_));
    let count = |wanted: &dyn Fn(&SampleState) -> bool| {
        u16::try_from(samples.iter().filter(|state| wanted(state)).count()).unwrap_or(u16::MAX)
    };
    Decision {
        status: if positive { Status::Pass } else { Status::Fail },
        reason: Reason::Reviewed,
        answer_sample: place(&agrees).or_else(|| place(&is_valid)),
        confidence: judged.and_then(|judged| judged.confidence),
        agreement: judged.and_then(|judged| judged.agreement),
        counts: judged.map_or_else(
            || SampleCounts {
                planned: u16::try_from(samples.len()).unwrap_or(u16::MAX),
                made: count(&|state| !matches!(state, SampleState::Open)),
                valid: count(&is_valid),
            },
            |judged| judged.counts,
        ),
        error_sample: None,
    }
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;

    use super::*;
    use crate::model::{Ensemble, Rule, Vote};
    use crate::policy::consensus::decide;

    fn vote(positive: bool, tenths: i64) -> SampleState {
        SampleState::Valid(Vote {
            positive: Some(positive),
            confidence: Some(Decimal::new(tenths, 1)),
            agree_on: None,
        })
    }

    #[test]
    fn the_person_decides_and_the_samples_still_speak() {
        let rules = Ensemble {
            samples: 3,
            rule: Rule::Unanimous,
            auto_pass: Decimal::new(8, 1),
            auto_fail: Decimal::new(8, 1),
            early_stop: false,
            concurrent_samples: false,
        };
        let samples = [vote(true, 9), vote(false, 7), vote(true, 8)];
        let judged = decide(&rules, true, true, &samples);
        for (positive, status, sample) in [(true, Status::Pass, 1), (false, Status::Fail, 2)] {
            let decision = reviewed(judged.as_ref(), positive, &samples);
            assert_eq!((decision.status, decision.reason), (status, Reason::Reviewed));
            assert_eq!(decision.answer_sample, Some(sample));
            assert_eq!(decision.confidence, Some(Decimal::new(8, 1)));
            assert_eq!(decision.counts, SampleCounts { planned: 3, made: 3, valid: 3 });
        }
    }

    #[test]
    fn missing_and_failed_samples_stay_so() {
        let samples = [SampleState::Failed(Reason::Refused), vote(true, 2), SampleState::Open];
        let decision = reviewed(None, false, &samples);
        assert_eq!((decision.status, decision.answer_sample), (Status::Fail, Some(2)));
        assert_eq!((decision.confidence, decision.agreement, decision.error_sample), (None, None, None));
        assert_eq!(decision.counts, SampleCounts { planned: 3, made: 2, valid: 1 });
        let nothing = reviewed(None, true, &[SampleState::Open]);
        assert_eq!((nothing.status, nothing.answer_sample), (Status::Pass, None));
    }
}
