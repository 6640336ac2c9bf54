//! What the ceiling lets go.

use crate::base::Money;
use crate::policy::budget::{Budget, Ceiling, Claim, Settlement};
use crate::policy::consensus::SampleState;
use crate::policy::scheduler::machine::Scheduler;
use crate::policy::scheduler::plan::{Halt, Notice};
use crate::policy::scheduler::window::{RowPhase, UnitPhase};

type UnitId = (u64, u16);

impl Scheduler {
    /// The next sample that the ceiling has room for: the wanted one, else the lowest that is ready. A new row that
    /// does not fit waits, and every later one with it, while anything is unsettled; rows that have begun go on.
    pub(super) fn affordable(&mut self, wanted: Option<UnitId>) -> Option<UnitId> {
        let first = wanted.or_else(|| self.ready.first().copied())?;
        let Err(ceiling) = self.room_for(first) else { return Some(first) };
        let begun = |unit: &UnitId| self.rows.get(&unit.0).is_some_and(|row| row.held.is_some());
        let other = self.ready.iter().copied().find(|unit| begun(unit) && self.room_for(*unit).is_ok());
        if other.is_none() && self.in_flight == 0 && self.timers.is_empty() && self.kept_back.is_empty() {
            self.give_up(first, ceiling);
            // One row less: the next lowest may fit, or fail to in its turn.
            return if self.broke.is_some() { None } else { self.affordable(None) };
        }
        other
    }

    /// The most that the next request of a sample can cost; `None` where the price is unknown.
    pub(super) fn bound_of(&self, unit: UnitId) -> Option<Money> {
        let row = self.rows.get(&unit.0)?;
        let extra =
            usize::from(unit.1).checked_sub(1).and_then(|at| row.units.get(at)).map(|unit| unit.extra);
        Some(row.bound? + extra.unwrap_or(Money::ZERO))
    }

    fn room_for(&self, unit: UnitId) -> Result<(), Ceiling> {
        let (Some(budget), Some(row)) = (&self.budget, self.rows.get(&unit.0)) else { return Ok(()) };
        let one = Claim::of(self.bound_of(unit).unwrap_or(Money::ZERO), 1);
        match row.held {
            Some(held) => budget.fits(one.beyond(held)),
            None => budget.fits(self.admission(unit.0)),
        }
    }

    /// What a row must hold to begin: one request for each sample that it plans and lacks.
    fn admission(&self, number: u64) -> Claim {
        let Some(row) = self.rows.get(&number) else { return Claim::default() };
        let open = row.units.iter().filter(|unit| matches!(unit.state, SampleState::Open)).count();
        Claim::of(row.bound.unwrap_or(Money::ZERO), u64::try_from(open).unwrap_or(u64::MAX))
    }

    /// Claims what a request may cost, in the same step as its permit. `false`: the lease on disk must grow first.
    pub(super) fn claim(&mut self, unit: UnitId, bound: Option<Money>) -> bool {
        let admission = self.admission(unit.0);
        let (Some(budget), Some(row)) = (&mut self.budget, self.rows.get_mut(&unit.0)) else { return true };
        let bound = bound.unwrap_or(Money::ZERO);
        let lease = budget.wants_lease(bound);
        if let Some(lease) = lease {
            self.notices.push_back(Notice::Lease(lease));
        }
        if !budget.is_leased(bound) {
            return false;
        }
        let held = row.held.unwrap_or_else(|| {
            budget.hold(admission);
            admission
        });
        row.held = Some(budget.draw(bound, held));
        true
    }

    /// What a request has not cost stays with its row, for a retry or a repair, until the row ends.
    pub(super) fn keep_leftover(&mut self, number: u64, bound: Money, settlement: Settlement) {
        let leftover = Budget::unspent(bound, settlement);
        self.unspent = (number, leftover);
        if let (Some(budget), Some(row)) = (&mut self.budget, self.rows.get_mut(&number))
            && let Some(held) = &mut row.held
        {
            budget.hold(leftover);
            *held = held.plus(leftover);
        }
    }

    /// An attempt has come and is not in the store yet. Until [`Scheduler::on_kept`] it holds its slot, so that a
    /// process that is killed loses no more than what a server can have in flight; and what it has not cost of its bound
    /// is kept back, also from its own row, because its bound is all that another execution would know of it.
    pub fn on_unkept(&mut self) {
        self.unkept = self.unkept.saturating_add(1);
        let (number, claim) = std::mem::take(&mut self.unspent);
        let Some(budget) = &mut self.budget else { return };
        if let Some(held) = self.rows.get_mut(&number).and_then(|row| row.held.as_mut()) {
            budget.release(claim);
            *held = held.beyond(claim);
        }
        budget.keep_back(claim);
        self.kept_back.push_back((number, claim));
    }

    /// So many attempts are in the store, in the order in which they came.
    pub fn on_kept(&mut self, attempts: u32) {
        self.unkept = self.unkept.saturating_sub(attempts);
        for _ in 0..attempts {
            let (Some(budget), Some((number, claim))) = (&mut self.budget, self.kept_back.pop_front()) else {
                break;
            };
            budget.on_kept(claim);
            if let Some(held) = self.rows.get_mut(&number).and_then(|row| row.held.as_mut()) {
                budget.hold(claim);
                *held = held.plus(claim);
            }
        }
    }

    /// A row needs nothing any more.
    pub(super) fn release_money(&mut self, number: u64) {
        if let (Some(budget), Some(row)) = (&mut self.budget, self.rows.get_mut(&number))
            && let Some(held) = row.held.take()
        {
            budget.release(held);
        }
    }

    /// Nothing is unsettled, and this sample does not fit. A row that has begun is skipped alone; a new one ends the
    /// asking: it and every later row that needs a request are skipped.
    fn give_up(&mut self, unit: UnitId, which: Ceiling) {
        let held = self.rows.get(&unit.0).and_then(|row| row.held);
        let needed = match held {
            Some(held) => Claim::of(self.bound_of(unit).unwrap_or_default(), 1).beyond(held),
            None => self.admission(unit.0),
        };
        let left = self.budget.as_ref().map(Budget::left).unwrap_or_default();
        let halt = Halt::Ceiling { which, needed, left };
        if held.is_some() {
            self.skip(unit.0);
            if self.short.is_none() {
                self.notices.push_back(Notice::Stopping(halt.clone()));
                self.short = Some(halt);
            }
            return;
        }
        self.broke = Some(halt.clone());
        self.notices.push_back(Notice::Stopping(halt));
        self.finish_held();
        self.ready.clear();
        self.rows.retain(|_, row| row.phase == RowPhase::Finishing);
    }

    /// Takes a row that has begun out of the window, unfinished. Rows that ask the same ask for themselves.
    fn skip(&mut self, number: u64) {
        self.release_money(number);
        let Some(row) = self.rows.remove(&number) else { return };
        for (unit, sample) in row.units.iter().zip(1_u16..) {
            if unit.phase != UnitPhase::Closed {
                self.ready.remove(&(number, sample));
                self.keys.release((number, sample));
            }
        }
        if let Some(group) = row.group {
            let nothing = row.units.iter().map(|_| (SampleState::Open, None)).collect();
            for follower in self.groups.abandon(group, number) {
                self.adopt(follower, group, &nothing);
            }
        }
    }
}
