//! The rows that are loaded and not yet finished on disk.

use crate::base::{AttemptKey, Money};
use crate::model::{Reason, Vote};
use crate::policy::budget::Claim;
use crate::policy::consensus::{self, Decision, SampleState};
use crate::policy::review::reviewed;
use crate::policy::scheduler::plan::{RowPlan, SchedulerConfig};

/// A loaded row.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) group: Option<[u8; 16]>,
    pub(super) tokens: u64,
    /// The most that one of its requests can cost; nothing where the price is unknown.
    pub(super) bound: Option<Money>,
    /// What it holds of the budget once it is admitted.
    pub(super) held: Option<Claim>,
    pub(super) units: Vec<Unit>,
    pub(super) phase: RowPhase,
    /// What a person has decided.
    pub(super) decided: Option<bool>,
    /// Whether a request was made for it in this execution.
    pub(super) asked: bool,
    /// How it was rejected, if it was.
    pub(super) rejection: Option<String>,
}

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowPhase {
    /// Its samples are asked for.
    Live,
    /// It waits for a row that asks the same.
    Following,
    /// It failed for an operational reason while the service is in doubt: the next few outcomes decide whether
    /// this was the row's failure or an outage.
    Held,
    /// Its outcome is certain and on its way to the disk.
    Finishing,
}

/// A sample of a loaded row.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) phase: UnitPhase,
    pub(super) state: SampleState,
    /// The stored attempt that `state` comes from, if it is closed.
    pub(super) source: Option<AttemptKey>,
    /// Whether `source` is an attempt of this row in this run.
    pub(super) own: bool,
    pub(super) next_attempt: u32,
    /// Tries that count, and how many of them there were at the last answer.
    pub(super) tries: u32,
    pub(super) tries_at_answer: u32,
    /// The answer before which `tries_at_answer` was taken.
    pub(super) answer_epoch: u64,
    pub(super) timeouts: u32,
    pub(super) empties: u32,
    pub(super) repairs: u32,
    /// 429s in a row without a hint.
    pub(super) throttles: u32,
    pub(super) repair_next: bool,
    /// By how much its next request may cost more than a first one.
    pub(super) extra: Money,
}

/// Where a sample is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnitPhase {
    /// Not asked for yet.
    Idle,
    /// In the ready queue.
    Ready,
    /// Under way.
    InFlight,
    /// Backs off.
    Waiting,
    /// Has its answer or final failure.
    Closed,
}

impl Row {
    pub(super) fn new(run: u64, plan: RowPlan) -> Self {
        let (number, decided) = (plan.row, plan.decided);
        let is_own = |key: AttemptKey| key.run() == run && key.ticket().row == number;
        let units = plan
            .samples
            .into_iter()
            .map(|sample| Unit {
                phase: if matches!(sample.state, SampleState::Open) {
                    UnitPhase::Idle
                } else {
                    UnitPhase::Closed
                },
                state: sample.state,
                own: sample.source.is_none_or(is_own),
                source: sample.source,
                next_attempt: sample.next_attempt.max(1),
                tries: 0,
                tries_at_answer: 0,
                answer_epoch: 0,
                timeouts: 0,
                empties: 0,
                repairs: 0,
                throttles: 0,
                repair_next: false,
                extra: Money::ZERO,
            })
            .collect();
        Self {
            group: plan.group,
            tokens: plan.tokens,
            bound: plan.bound,
            held: None,
            units,
            phase: RowPhase::Live,
            decided,
            asked: false,
            rejection: None,
        }
    }

    /// The row's outcome, if it is certain.
    pub(super) fn decide(&self, config: &SchedulerConfig) -> Option<Decision> {
        let states = self.states();
        let judged = consensus::decide(&config.ensemble, config.has_verdict, config.has_confidence, &states);
        match self.decided {
            Some(positive) => Some(reviewed(judged.as_ref(), positive, &states)),
            None => judged,
        }
    }

    pub(super) fn states(&self) -> Vec<SampleState> {
        self.units.iter().map(|unit| unit.state.clone()).collect()
    }

    pub(super) fn in_flight(&self) -> bool {
        self.units.iter().any(|unit| unit.phase == UnitPhase::InFlight)
    }

    pub(super) fn unit(&mut self, sample: u16) -> Option<&mut Unit> {
        self.units.get_mut(usize::from(sample).checked_sub(1)?)
    }
}

impl Unit {
    pub(super) fn close_valid(&mut self, vote: Vote, source: AttemptKey) {
        self.phase = UnitPhase::Closed;
        self.state = SampleState::Valid(vote);
        self.source = Some(source);
        self.own = true;
    }

    pub(super) fn close_failed(&mut self, reason: Reason, source: AttemptKey) {
        self.phase = UnitPhase::Closed;
        self.state = SampleState::Failed(reason);
        self.source = Some(source);
        self.own = true;
    }

    /// Counts a try that failed. `epoch` numbers the answers of the run: tries since the last answer are taken
    /// back when an outage is found.
    pub(super) fn count_try(&mut self, epoch: u64) {
        if self.answer_epoch != epoch {
            self.answer_epoch = epoch;
            self.tries_at_answer = self.tries;
        }
        self.tries += 1;
    }

    /// Takes back the tries since the last answer.
    pub(super) fn forgive(&mut self, epoch: u64) {
        if self.answer_epoch == epoch {
            self.tries = self.tries_at_answer;
        } else {
            self.answer_epoch = epoch;
            self.tries_at_answer = self.tries;
        }
        self.timeouts = 0;
    }
}
