//! The state machine: what to do next.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use crate::base::{Moment, Money, Ticket};
use crate::policy::breaker::Breaker;
use crate::policy::budget::{Budget, Claim};
use crate::policy::keys::Keys;
use crate::policy::limiter::Pace;
use crate::policy::scheduler::plan::{Assignment, FinishedRow, Halt, Notice, RowPlan, SchedulerConfig, Step};
use crate::policy::scheduler::sharing::{Found, Groups};
use crate::policy::scheduler::window::{Row, RowPhase, UnitPhase};

/// Decides what is sent when. See the page of its folder.
#[derive(Debug)]
pub struct Scheduler {
    pub(super) config: SchedulerConfig,
    pub(super) rows: BTreeMap<u64, Row>,
    /// Samples that may go, the lowest row first: so a started row is finished before a new one begins.
    pub(super) ready: BTreeSet<(u64, u16)>,
    /// Samples that back off, by the moment at which they may go.
    pub(super) timers: BTreeSet<(Moment, u64, u16)>,
    pub(super) held: BTreeSet<u64>,
    pub(super) keys: Keys,
    pub(super) breaker: Breaker,
    /// Numbers the answers, so that tries since the last one can be taken back.
    pub(super) answers: u64,
    pub(super) throttled_since: Option<Moment>,
    pub(super) notices: VecDeque<Notice>,
    pub(super) in_flight: u32,
    /// Attempts that have come and are not in the store yet: each still holds its slot.
    pub(super) unkept: u32,
    /// The minute of the whole run, and its numbers of the requests in flight.
    pub(super) pace: Pace,
    pub(super) paced: HashMap<Ticket, u64>,
    pub(super) budget: Option<Budget>,
    /// What the request that ended last has not cost of its bound, with its row; and the same of each attempt that is not
    /// in the store yet, the oldest first.
    pub(super) unspent: (u64, Claim),
    pub(super) kept_back: VecDeque<(u64, Claim)>,
    /// What each request in flight may cost.
    pub(super) bounds: HashMap<Ticket, Money>,
    /// The ceiling that ended the asking.
    pub(super) broke: Option<Halt>,
    /// The ceiling that left no room for the retry of a row that had begun.
    pub(super) short: Option<Halt>,
    pub(super) finishing: VecDeque<FinishedRow>,
    pub(super) undurable: usize,
    pub(super) groups: Groups,
    loads: u64,
    load_outstanding: bool,
    exhausted: bool,
    /// [`Notice::LastReplies`] was given.
    is_ebbing: bool,
    pub(super) stopping: Option<Stopping>,
    /// A reason to stop that an outcome gave; taken at the next poll, which knows the time.
    pub(super) due: Option<Halt>,
    pub(super) opening: Opening,
}

#[derive(Debug)]
pub(super) struct Stopping {
    halt: Halt,
    hard_at: Moment,
    aborted: bool,
}

/// The most rows of a load: the first requests go while the next rows are read.
const MOST_A_LOAD: usize = 256;

/// The first rows of an execution: are they all rejected in the same way?
#[derive(Debug)]
pub(super) enum Opening {
    Watching { same: Option<(String, u64)> },
    Over,
}

impl Scheduler {
    /// A scheduler without rows.
    pub fn new(config: SchedulerConfig) -> Self {
        Self {
            keys: Keys::new(&config.keys, config.retry.max_wait),
            breaker: Breaker::new(config.retry.outage_patience),
            pace: Pace::new(config.requests_a_minute, config.tokens_a_minute, config.sent_before),
            paced: HashMap::new(),
            budget: config
                .budget
                .map(|budget| Budget::new(budget, Claim::of(Money::ZERO, u64::from(config.concurrency) * 4))),
            unspent: (0, Claim::default()),
            kept_back: VecDeque::new(),
            bounds: HashMap::new(),
            broke: None,
            short: None,
            config,
            rows: BTreeMap::new(),
            ready: BTreeSet::new(),
            timers: BTreeSet::new(),
            held: BTreeSet::new(),
            answers: 0,
            throttled_since: None,
            notices: VecDeque::new(),
            in_flight: 0,
            unkept: 0,
            finishing: VecDeque::new(),
            undurable: 0,
            groups: Groups::default(),
            loads: 0,
            load_outstanding: false,
            exhausted: false,
            is_ebbing: false,
            stopping: None,
            due: None,
            opening: Opening::Watching { same: None },
        }
    }

    /// What to do next. Poll until it says [`Step::Wait`] or [`Step::Finished`].
    pub fn poll(&mut self, now: Moment) -> Step {
        if let Some(notice) = self.notices.pop_front() {
            return Step::Notice(notice);
        }
        if let Some(row) = self.finishing.pop_front() {
            return Step::Finish(row);
        }
        if let Some(halt) = self.must_halt(now) {
            self.stop(now, halt);
            return self.poll(now);
        }
        if self.stopping.is_some() {
            return self.poll_stopping(now);
        }
        self.wake(now);
        if let Some(assignment) = self.assign(now) {
            return Step::Send(assignment);
        }
        if !self.notices.is_empty() {
            return self.poll(now);
        }
        if let Some(count) = self.room() {
            self.loads += 1;
            self.load_outstanding = true;
            return Step::Load(count);
        }
        if self.exhausted && self.rows.is_empty() {
            return Step::Finished;
        }
        if self.only_held_rows_are_left() {
            self.finish_held();
            return self.poll(now);
        }
        if !self.is_ebbing && self.only_replies_are_missing() {
            self.is_ebbing = true;
            return Step::Notice(Notice::LastReplies);
        }
        Step::Wait(self.wakes_at(now))
    }

    /// The rows of the load that was asked for. `exhausted`: there are no more.
    pub fn on_rows(&mut self, plans: Vec<RowPlan>, exhausted: bool) {
        for plan in plans {
            let (number, group) = (plan.row, plan.group);
            self.rows.insert(number, Row::new(self.config.run, plan));
            let decided = self.rows.get(&number).is_some_and(|row| self.decide(row).is_some());
            if !decided && self.broke.is_some() {
                self.rows.remove(&number);
                continue;
            }
            if let Some(group) = group.filter(|_| !decided) {
                match self.groups.join(group, number) {
                    Found::Leads => self.advance(number),
                    Found::Follows => self.set_phase(number, RowPhase::Following),
                    Found::Done(shared) => self.adopt(number, group, &shared),
                }
            } else {
                self.advance(number);
            }
        }
        self.load_outstanding = false;
        self.exhausted |= exhausted;
        self.groups.loaded(self.loads);
    }

    /// A row that [`Step::Finish`] named is on disk.
    pub fn on_durable(&mut self, number: u64) {
        let Some(row) = self.rows.get(&number).filter(|row| row.phase == RowPhase::Finishing) else { return };
        if let Some(group) = row.group {
            self.groups.durable(group, number, self.loads, self.load_outstanding);
        }
        self.rows.remove(&number);
        self.undurable = self.undurable.saturating_sub(1);
    }

    /// Stops: nothing more is sent, requests in flight may go on for `grace`. A second call shortens the time.
    pub fn on_stop(&mut self, now: Moment, grace: Duration) {
        self.stop(now, Halt::Requested);
        if let Some(stopping) = &mut self.stopping {
            stopping.hard_at = stopping.hard_at.min(now.after(grace));
        }
    }

    /// Why it stopped, if it did.
    pub fn halted(&self) -> Option<&Halt> {
        self.stopping
            .as_ref()
            .map(|stopping| &stopping.halt)
            .max(self.broke.as_ref())
            .max(self.short.as_ref())
    }

    /// What a request in flight may cost.
    pub fn bound(&self, ticket: Ticket) -> Money {
        self.bounds.get(&ticket).copied().unwrap_or_default()
    }

    /// A lease is on disk.
    pub fn on_lease(&mut self, lease: Claim) {
        if let Some(budget) = &mut self.budget {
            budget.on_lease(lease);
        }
    }

    /// The book, if there is a ceiling.
    pub fn budget(&self) -> Option<&Budget> {
        self.budget.as_ref()
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Rows that are loaded and not finished on disk.
    pub fn loaded(&self) -> usize {
        self.rows.len()
    }

    /// When the next request may go, if nothing may go now.
    pub fn next_permit(&self, now: Moment) -> Option<Moment> {
        let tokens = self.ready.first().map(|&(row, _)| self.tokens_of(row))?;
        let pace = Some(self.pace.opens_at(tokens)).filter(|at| *at > now);
        self.keys.wakes_at(now, tokens).max(pace)
    }

    /// The keys, to show their state.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Whether the run is paused by an outage.
    pub fn is_paused(&self) -> bool {
        self.breaker.is_open()
    }

    fn must_halt(&self, now: Moment) -> Option<Halt> {
        if self.stopping.is_some() {
            return None;
        }
        if self.due.is_some() {
            return self.due.clone();
        }
        if self.keys.all_out() {
            return Some(Halt::KeysOut);
        }
        if let Some(until) = self.keys.all_parked(now) {
            return Some(Halt::KeysParked { until });
        }
        if self.breaker.is_exhausted(now) {
            return Some(Halt::Outage { message: String::new() });
        }
        if self.throttle_ends().is_some_and(|end| end <= now) {
            return Some(Halt::Throttled);
        }
        self.config.deadline.filter(|end| *end <= now).map(|_| Halt::Deadline)
    }

    /// When patience with throttling ends. Patience of zero ends rows, not the run.
    fn throttle_ends(&self) -> Option<Moment> {
        let patience = self.config.retry.throttle_patience;
        self.throttled_since.filter(|_| !patience.is_zero()).map(|since| since.after(patience))
    }

    pub(super) fn stop(&mut self, now: Moment, halt: Halt) {
        let hard_at = now.after(self.config.grace);
        match &mut self.stopping {
            Some(stopping) => {
                if halt > stopping.halt {
                    stopping.halt = halt;
                }
                return;
            }
            None => self.stopping = Some(Stopping { halt: halt.clone(), hard_at, aborted: false }),
        }
        self.notices.push_back(Notice::Stopping(halt));
        self.ready.clear();
        self.timers.clear();
        self.finish_held();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    fn poll_stopping(&mut self, now: Moment) -> Step {
        let Some(stopping) = &mut self.stopping else { return Step::Finished };
        if self.in_flight > 0 {
            if stopping.aborted {
                return Step::Wait(None);
            }
            if stopping.hard_at <= now {
                stopping.aborted = true;
                return Step::Abort;
            }
            return Step::Wait(Some(stopping.hard_at));
        }
        if self.undurable > 0 { Step::Wait(None) } else { Step::Finished }
    }

    /// Samples whose backoff is over become ready.
    fn wake(&mut self, now: Moment) {
        while let Some(&(due, row, sample)) = self.timers.first() {
            if due > now {
                break;
            }
            self.timers.pop_first();
            self.make_ready(row, sample);
        }
    }

    pub(super) fn make_ready(&mut self, row: u64, sample: u16) {
        if let Some(unit) = self.rows.get_mut(&row).and_then(|row| row.unit(sample)) {
            unit.phase = UnitPhase::Ready;
            self.ready.insert((row, sample));
        }
    }

    fn assign(&mut self, now: Moment) -> Option<Assignment> {
        if self.in_flight + self.unkept >= self.config.concurrency
            || self.ready.is_empty()
            || !self.breaker.may_send(now)
        {
            return None;
        }
        // A canary that is to be tried again goes before anything else on its key; after that all are alike.
        let held = self.keys.held_units(now).find(|unit| self.ready.contains(unit));
        let unit = self.affordable(held)?;
        let tokens = self.tokens_of(unit.0);
        if self.pace.opens_at(tokens) > now {
            return None;
        }
        let key = self.keys.pick(now, unit, tokens)?;
        let bound = self.bound_of(unit);
        if !self.claim(unit, bound) {
            return None;
        }
        self.ready.remove(&unit);
        let row = self.rows.get_mut(&unit.0)?;
        row.asked = true;
        let sample = row.unit(unit.1)?;
        sample.phase = UnitPhase::InFlight;
        let ticket = Ticket { row: unit.0, sample: unit.1, attempt: sample.next_attempt };
        let repair = std::mem::take(&mut sample.repair_next);
        self.keys.release(unit);
        self.keys.on_send(key, ticket, now, tokens);
        if self.pace.is_limited() {
            self.paced.insert(ticket, self.pace.on_send(now, tokens));
        }
        self.breaker.on_send();
        if let Some(bound) = bound {
            self.bounds.insert(ticket, bound);
        }
        self.in_flight += 1;
        Some(Assignment { ticket, key, repair })
    }

    fn tokens_of(&self, row: u64) -> u64 {
        self.rows.get(&row).map_or(0, |row| row.tokens)
    }

    /// How many rows to load, if it is worth a batch.
    fn room(&self) -> Option<usize> {
        if self.exhausted || self.load_outstanding {
            return None;
        }
        let window = self.config.window();
        let room = window.saturating_sub(self.rows.len());
        (room >= (window / 4).clamp(1, 64)).then_some(room.min(MOST_A_LOAD))
    }

    fn only_held_rows_are_left(&self) -> bool {
        self.exhausted
            && !self.held.is_empty()
            && self.in_flight == 0
            && self.ready.is_empty()
            && self.timers.is_empty()
            && self.undurable == 0
    }

    fn only_replies_are_missing(&self) -> bool {
        self.exhausted
            && self.in_flight > 0
            && self.unkept == 0
            && self.ready.is_empty()
            && self.timers.is_empty()
    }

    fn wakes_at(&self, now: Moment) -> Option<Moment> {
        let timer = self.timers.first().map(|&(due, ..)| due);
        // Keys and paces matter only while something could go.
        let first = self.ready.first().map(|&(row, _)| self.tokens_of(row));
        let key = first.and_then(|tokens| self.keys.wakes_at(now, tokens));
        let pace = first.filter(|_| self.pace.is_limited()).map(|tokens| self.pace.opens_at(tokens));
        let all = [timer, key, pace, self.breaker.wakes_at(), self.throttle_ends(), self.config.deadline];
        all.into_iter().flatten().filter(|moment| *moment > now).min()
    }
}
