//! From a sample's end to its row's end, and to the rows that ask the same.

use crate::model::{Reason, Status};
use crate::policy::consensus::{self, Decision, SampleState};
use crate::policy::scheduler::machine::{Opening, Scheduler};
use crate::policy::scheduler::plan::{FinishedRow, Halt, Notice};
use crate::policy::scheduler::sharing::{Found, Shared};
use crate::policy::scheduler::window::{Row, RowPhase, UnitPhase};

/// The most rows after which an identical rejection stops the run.
const SAME_REJECTIONS: u64 = 10;

impl Scheduler {
    pub(super) fn decide(&self, row: &Row) -> Option<Decision> {
        row.decide(&self.config)
    }

    pub(super) fn set_phase(&mut self, number: u64, phase: RowPhase) {
        if let Some(row) = self.rows.get_mut(&number) {
            row.phase = phase;
        }
    }

    /// Moves a row on after something about it became known: finishes it, or asks for what it still needs.
    pub(super) fn advance(&mut self, number: u64) {
        let Some(row) = self.rows.get(&number) else { return };
        if !matches!(row.phase, RowPhase::Live | RowPhase::Held) {
            return;
        }
        if let Some(decision) = self.decide(row) {
            self.drop_waiting(number);
            // What is under way is paid for: the row ends when it has come.
            if self.rows.get(&number).is_some_and(|row| !row.in_flight()) {
                self.settle(number, decision);
            }
            return;
        }
        if self.stopping.is_some() {
            return;
        }
        let concurrent = self.config.ensemble.concurrent_samples;
        let busy = row.units.iter().any(|unit| !matches!(unit.phase, UnitPhase::Idle | UnitPhase::Closed));
        if busy && !concurrent {
            return;
        }
        let needed = consensus::next_needed(
            &self.config.ensemble,
            self.config.has_verdict,
            self.config.has_confidence,
            &row.states(),
        );
        let is_idle = |sample: &u16| {
            row.units.get(usize::from(*sample) - 1).is_some_and(|unit| unit.phase == UnitPhase::Idle)
        };
        let most = if concurrent { usize::MAX } else { 1 };
        let wanted: Vec<u16> = needed.into_iter().filter(is_idle).take(most).collect();
        for sample in wanted {
            self.make_ready(number, sample);
        }
    }

    /// Takes back the requests of a decided row that have not been sent.
    fn drop_waiting(&mut self, number: u64) {
        let Some(row) = self.rows.get_mut(&number) else { return };
        for (unit, sample) in row.units.iter_mut().zip(1_u16..) {
            if matches!(unit.phase, UnitPhase::Ready | UnitPhase::Waiting) {
                unit.phase = UnitPhase::Idle;
                self.ready.remove(&(number, sample));
                self.timers.retain(|&(_, row, waiting)| (row, waiting) != (number, sample));
                self.keys.release((number, sample));
            }
        }
    }

    /// A row's outcome is certain: it goes to the disk, unless an outage may be behind it.
    fn settle(&mut self, number: u64, decision: Decision) {
        let operational = decision.status == Status::Error && decision.reason.is_operational();
        if operational && self.breaker.is_doubtful() && self.stopping.is_none() {
            self.set_phase(number, RowPhase::Held);
            self.held.insert(number);
            return;
        }
        self.finish(number, decision);
    }

    fn finish(&mut self, number: u64, decision: Decision) {
        self.release_money(number);
        let Some(row) = self.rows.get_mut(&number) else { return };
        row.phase = RowPhase::Finishing;
        let shared: Shared = row
            .units
            .iter()
            .map(|unit| match &unit.state {
                SampleState::Failed(reason) if reason.is_operational() => (SampleState::Open, None),
                state => (state.clone(), unit.source),
            })
            .collect();
        let replays = row
            .units
            .iter()
            .zip(1_u16..)
            .filter(|(unit, _)| !unit.own && unit.phase == UnitPhase::Closed)
            .filter_map(|(unit, sample)| unit.source.map(|source| (sample, source)))
            .collect();
        let (asked, rejection, group) = (row.asked, row.rejection.take(), row.group);
        if asked {
            self.watch_opening(decision.reason, rejection);
        }
        self.undurable += 1;
        self.finishing.push_back(FinishedRow { row: number, decision, replays });
        if let Some(group) = group {
            for follower in self.groups.finish(group, number, shared.clone()) {
                self.adopt(follower, group, &shared);
            }
        }
    }

    /// A row takes what a row with the same request has, and leads the group if something is left open.
    pub(super) fn adopt(&mut self, number: u64, group: [u8; 16], shared: &Shared) {
        let Some(row) = self.rows.get_mut(&number) else { return };
        for (unit, (state, source)) in row.units.iter_mut().zip(shared) {
            if unit.phase != UnitPhase::Closed && source.is_some() {
                unit.phase = UnitPhase::Closed;
                unit.state = state.clone();
                unit.source = *source;
                unit.own = false;
            }
        }
        row.phase = RowPhase::Live;
        let decided = self.rows.get(&number).is_some_and(|row| self.decide(row).is_some());
        if !decided {
            match self.groups.join(group, number) {
                Found::Follows => return self.set_phase(number, RowPhase::Following),
                Found::Leads | Found::Done(_) => self.groups.lead(group, number),
            }
        }
        self.advance(number);
    }

    /// Rows that failed for an operational reason failed on their own account after all.
    pub(super) fn finish_held(&mut self) {
        for number in std::mem::take(&mut self.held) {
            if let Some(decision) = self.rows.get(&number).and_then(|row| self.decide(row)) {
                self.finish(number, decision);
            }
        }
    }

    /// An outage was found: rows that failed because of it are taken up again, and tries since the last answer do
    /// not count.
    pub(super) fn reopen_held(&mut self) {
        let epoch = self.answers;
        for row in self.rows.values_mut() {
            for unit in &mut row.units {
                unit.forgive(epoch);
            }
        }
        let mut attempts = Vec::new();
        for number in std::mem::take(&mut self.held) {
            let Some(row) = self.rows.get_mut(&number) else { continue };
            row.phase = RowPhase::Live;
            for unit in &mut row.units {
                if matches!(&unit.state, SampleState::Failed(reason) if reason.is_operational()) {
                    unit.state = SampleState::Open;
                    attempts.extend(unit.source.take().filter(|_| unit.own));
                    unit.phase = UnitPhase::Idle;
                }
            }
            self.advance(number);
        }
        if !attempts.is_empty() {
            self.notices.push_back(Notice::TakenUp(attempts));
        }
    }

    fn watch_opening(&mut self, reason: Reason, rejection: Option<String>) {
        let Opening::Watching { same } = &mut self.opening else { return };
        let rejection = rejection.filter(|_| reason == Reason::Rejected && !self.breaker.has_answered());
        let count = match (rejection, same.take()) {
            (Some(new), None) => Some((new, 1)),
            (Some(new), Some((old, count))) if old == new => Some((new, count + 1)),
            _ => None,
        };
        match count {
            None => self.opening = Opening::Over,
            Some((message, rows)) => {
                *same = Some((message.clone(), rows));
                if rows >= self.config.selected.clamp(1, SAME_REJECTIONS) {
                    self.opening = Opening::Over;
                    self.due = Some(Halt::SameRejection { message, rows });
                }
            }
        }
    }
}
