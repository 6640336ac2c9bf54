//! stub
#![expect(missing_docs, reason = "stub")]
use crate::model::{Ensemble, Reason, SampleCounts, Status, Vote};
use rust_decimal::Decimal;
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleState {
    Open,
    Valid(Vote),
    Failed(Reason),
}
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub status: Status,
    pub reason: Reason,
    pub answer_sample: Option<u16>,
    pub confidence: Option<Decimal>,
    pub agreement: Option<Decimal>,
    pub counts: SampleCounts,
    pub error_sample: Option<u16>,
}
pub fn decide(_rules: &Ensemble, _v: bool, _c: bool, samples: &[SampleState]) -> Option<Decision> {
    let mut d = Decision {
        status: Status::Pass,
        reason: Reason::Valid,
        answer_sample: Some(1),
        confidence: None,
        agreement: None,
        counts: SampleCounts::default(),
        error_sample: None,
    };
    for s in samples {
        match s {
            SampleState::Open => return None,
            SampleState::Valid(_) => {}
            SampleState::Failed(r) => {
                d.status = Status::Error;
                d.reason = *r;
            }
        }
    }
    Some(d)
}
