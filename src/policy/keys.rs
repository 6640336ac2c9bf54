//! The provider credentials: which one the next request takes, and which ones rest.

use std::collections::HashMap;
use std::time::Duration;

use crate::base::{Moment, Ticket};
use crate::model::KeyFault;
use crate::policy::limiter::{Aimd, Pace, Pressure, Smoother};

/// What is known of a key when the run starts.
#[derive(Debug, Clone)]
pub struct KeyConfig {
    /// The most requests in flight at once with this key, at least 1.
    pub concurrency: u32,
    /// Whether the concurrency follows what the server bears; else it is the fixed size of a pool.
    pub adaptive: bool,
    /// Requests a minute; 0 for no limit.
    pub requests_a_minute: u64,
    /// Tokens a minute; 0 for no limit.
    pub tokens_a_minute: u64,
    /// When an earlier execution may have sent its last request, at the latest.
    pub sent_before: Option<Moment>,
    /// Whether a reply with content has come for this endpoint, model and key, in this store.
    pub answered: bool,
    /// Until when the server asked it to wait, from an earlier execution.
    pub waits_until: Option<Moment>,
}

impl KeyConfig {
    /// A key of which nothing is known: a fixed pool, no limits of a minute.
    pub fn fresh(concurrency: u32) -> Self {
        Self {
            concurrency,
            adaptive: false,
            requests_a_minute: 0,
            tokens_a_minute: 0,
            sent_before: None,
            answered: false,
            waits_until: None,
        }
    }
}

/// The state of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// In use.
    Open,
    /// It failed after it had worked: it rests until then, and has one retry.
    Cooling {
        /// The end of the rest.
        until: Moment,
    },
    /// Its one retry is under way.
    Retrying,
    /// Used no more.
    Out(KeyFault),
}

/// What a key's fault means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultRuling {
    /// The key rests and is tried once more.
    Cools,
    /// The key is out, as of now.
    Out,
    /// Nothing new: the request was sent before the fault was known.
    Known,
}

#[derive(Debug, Clone)]
struct Key {
    cap: u32,
    /// `None` for a fixed pool.
    limiter: Option<Aimd>,
    pace: Pace,
    smoother: Smoother,
    /// The limiter's and the pace's numbers of the requests in flight, and when they went.
    numbers: HashMap<Ticket, (u64, u64, Moment)>,
    in_flight: u32,
    state: KeyState,
    waits_until: Option<Moment>,
    /// Whether it has answered in this execution.
    worked: bool,
    /// The first request goes alone until a reply with content has come.
    canary: Canary,
    retry_ticket: Option<Ticket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Canary {
    /// The next request is the canary; if one is named, no other sample may be it.
    Needed(Option<(u64, u16)>),
    Flying(Ticket),
    Passed,
}

/// All keys of a run.
#[derive(Debug, Clone)]
pub struct Keys {
    keys: Vec<Key>,
    cooldown: Duration,
    max_wait: Duration,
    /// Rotates among keys of equal headroom.
    turn: usize,
}

impl Keys {
    /// How long a key that had worked rests after a fault.
    pub const COOLDOWN: Duration = Duration::from_secs(30);

    /// Keys in the order of the configuration; `max_wait` is the longest wait that a run sits out.
    pub fn new(configs: &[KeyConfig], max_wait: Duration) -> Self {
        let keys = configs
            .iter()
            .map(|config| Key {
                cap: config.concurrency.max(1),
                limiter: config.adaptive.then(|| Aimd::new(config.concurrency)),
                pace: Pace::new(config.requests_a_minute, config.tokens_a_minute, config.sent_before),
                smoother: Smoother::default(),
                numbers: HashMap::new(),
                in_flight: 0,
                state: KeyState::Open,
                waits_until: config.waits_until,
                worked: false,
                canary: if config.answered { Canary::Passed } else { Canary::Needed(None) },
                retry_ticket: None,
            })
            .collect();
        Self { keys, cooldown: Self::COOLDOWN, max_wait, turn: 0 }
    }

    /// The key for this sample now: among those that may send, the one with the most headroom, in turn among
    /// equals. `None` where every key waits, rests, is full or is out.
    pub fn pick(&mut self, now: Moment, unit: (u64, u16), tokens: u64) -> Option<usize> {
        let count = self.keys.len();
        let mut best: Option<(u32, usize)> = None;
        for step in 0..count {
            let index = (self.turn + step) % count;
            let key = &self.keys[index];
            if !key.may_send(now, unit, tokens) {
                continue;
            }
            let headroom = key.limit().saturating_sub(key.in_flight);
            if best.is_none_or(|(most, _)| headroom > most) {
                best = Some((headroom, index));
            }
        }
        best.map(|(_, index)| index)
    }

    /// The samples for which free keys are held: each is a canary that is to be tried again before anything else.
    pub fn held_units(&self, now: Moment) -> impl Iterator<Item = (u64, u16)> + '_ {
        self.keys.iter().filter(move |key| key.is_free(now)).filter_map(|key| match key.canary {
            Canary::Needed(held) => held,
            _ => None,
        })
    }

    /// A request goes with this key, and counts for `tokens` until its usage is known.
    pub fn on_send(&mut self, index: usize, ticket: Ticket, now: Moment, tokens: u64) {
        self.turn = (index + 1) % self.keys.len().max(1);
        let key = &mut self.keys[index];
        key.in_flight += 1;
        let limited = key.limiter.as_mut().map_or(0, |limiter| limiter.on_send(key.in_flight));
        let paced = if key.pace.is_limited() { key.pace.on_send(now, tokens) } else { 0 };
        key.smoother.on_send(now, key.limit());
        key.numbers.insert(ticket, (limited, paced, now));
        if matches!(key.canary, Canary::Needed(_)) {
            key.canary = Canary::Flying(ticket);
        }
        if matches!(key.state, KeyState::Cooling { .. }) {
            key.state = KeyState::Retrying;
            key.retry_ticket = Some(ticket);
        }
    }

    /// A request with this key has ended, in whatever way. Called once for each, before the other reports.
    /// `pressure` is `None` if it says nothing of the server, `tokens` is what it used, where that is known.
    pub fn on_end(
        &mut self,
        now: Moment,
        index: usize,
        ticket: Ticket,
        pressure: Option<Pressure>,
        tokens: Option<u64>,
    ) {
        let key = &mut self.keys[index];
        key.in_flight = key.in_flight.saturating_sub(1);
        let Some((limited, paced, sent)) = key.numbers.remove(&ticket) else { return };
        if let (Some(limiter), Some(pressure)) = (&mut key.limiter, pressure) {
            limiter.on_reply(limited, pressure);
            match pressure {
                Pressure { throttled: true, .. } => key.smoother.on_throttled(),
                Pressure { strained: false, .. } => key.smoother.on_answer(now.since(sent)),
                Pressure { .. } => {}
            }
        }
        if let Some(tokens) = tokens {
            key.pace.settle(paced, tokens);
        }
    }

    /// A reply with content came with this key. Returns whether it was the first in this store.
    pub fn on_content(&mut self, index: usize) -> bool {
        let key = &mut self.keys[index];
        key.worked = true;
        let first = key.canary != Canary::Passed;
        key.canary = Canary::Passed;
        if key.state == KeyState::Retrying {
            key.state = KeyState::Open;
            key.retry_ticket = None;
        }
        first
    }

    /// The request ended without content. `again`: the same sample will be tried again, and as a canary nothing
    /// else goes before it; otherwise the next sample goes, alone.
    pub fn on_no_content(&mut self, index: usize, ticket: Ticket, again: bool) {
        let key = &mut self.keys[index];
        if key.canary == Canary::Flying(ticket) {
            key.canary = Canary::Needed(again.then_some((ticket.row, ticket.sample)));
        }
        if key.state == KeyState::Retrying && key.retry_ticket == Some(ticket) {
            // The retry said nothing about the credential: it is tried once more, at once.
            key.state = KeyState::Cooling { until: Moment::ORIGIN };
            key.retry_ticket = None;
        }
    }

    /// No key is held for this sample any more: it goes with another key, or not at all.
    pub fn release(&mut self, unit: (u64, u16)) {
        for key in &mut self.keys {
            if key.canary == Canary::Needed(Some(unit)) {
                key.canary = Canary::Needed(None);
            }
        }
    }

    /// The server asked this key to wait.
    pub fn on_wait(&mut self, index: usize, now: Moment, wait: Duration) -> Moment {
        let key = &mut self.keys[index];
        let until = now.after(wait);
        let until = key.waits_until.map_or(until, |have| have.max(until));
        key.waits_until = Some(until);
        until
    }

    /// The credential was at fault.
    pub fn on_fault(&mut self, index: usize, ticket: Ticket, fault: KeyFault, now: Moment) -> FaultRuling {
        let cooldown = self.cooldown;
        let key = &mut self.keys[index];
        let is_retry = key.retry_ticket == Some(ticket);
        match key.state {
            KeyState::Out(_) => FaultRuling::Known,
            _ if fault == KeyFault::Quota => key.out(fault),
            KeyState::Cooling { .. } => FaultRuling::Known,
            KeyState::Retrying if !is_retry => FaultRuling::Known,
            KeyState::Open if key.worked => {
                key.state = KeyState::Cooling { until: now.after(cooldown) };
                FaultRuling::Cools
            }
            KeyState::Open | KeyState::Retrying => key.out(fault),
        }
    }

    /// Whether every key is out.
    pub fn all_out(&self) -> bool {
        self.keys.iter().all(|key| matches!(key.state, KeyState::Out(_)))
    }

    /// If every key that is not out waits for longer than the run sits out: the earliest end of those waits.
    pub fn all_parked(&self, now: Moment) -> Option<Moment> {
        let mut earliest: Option<Moment> = None;
        for key in self.keys.iter().filter(|key| !matches!(key.state, KeyState::Out(_))) {
            let until = key.waits_until.filter(|until| until.since(now) > self.max_wait)?;
            earliest = Some(earliest.map_or(until, |have| have.min(until)));
        }
        earliest
    }

    /// When the next key that waits, rests or keeps its pace may send a request of `tokens`, if there is one.
    pub fn wakes_at(&self, now: Moment, tokens: u64) -> Option<Moment> {
        self.keys.iter().filter_map(|key| key.opens_at(now, tokens)).min()
    }

    /// The state of a key.
    pub fn state(&self, index: usize) -> KeyState {
        self.keys[index].state
    }

    /// Until when a key waits, if it does.
    pub fn waits_until(&self, index: usize) -> Option<Moment> {
        self.keys[index].waits_until
    }

    /// Requests that may be in flight with a key now.
    pub fn limit(&self, index: usize) -> u32 {
        self.keys[index].limit()
    }

    /// Requests in flight with a key.
    pub fn in_flight(&self, index: usize) -> u32 {
        self.keys[index].in_flight
    }
}

impl Key {
    fn out(&mut self, fault: KeyFault) -> FaultRuling {
        self.state = KeyState::Out(fault);
        FaultRuling::Out
    }

    fn limit(&self) -> u32 {
        self.limiter.as_ref().map_or(self.cap, Aimd::limit)
    }

    fn is_free(&self, now: Moment) -> bool {
        let rested = match self.state {
            KeyState::Open => true,
            // The one retry goes alone.
            KeyState::Cooling { until } => until <= now && self.in_flight == 0,
            KeyState::Retrying | KeyState::Out(_) => false,
        };
        let alone = match self.canary {
            Canary::Passed => true,
            Canary::Needed(_) => self.in_flight == 0,
            Canary::Flying(_) => false,
        };
        rested && alone && self.in_flight < self.limit() && self.waits_until.is_none_or(|until| until <= now)
    }

    fn may_send(&self, now: Moment, unit: (u64, u16), tokens: u64) -> bool {
        self.is_free(now)
            && self.pace.opens_at(tokens) <= now
            && self.smoother.opens_at().is_none_or(|at| at <= now)
            && match self.canary {
                Canary::Needed(Some(held)) => held == unit,
                _ => true,
            }
    }

    fn opens_at(&self, now: Moment, tokens: u64) -> Option<Moment> {
        let rest = match self.state {
            KeyState::Cooling { until } => Some(until),
            KeyState::Open => None,
            KeyState::Retrying | KeyState::Out(_) => return None,
        };
        let pace = self.pace.is_limited().then(|| self.pace.opens_at(tokens));
        self.waits_until.max(rest).max(pace).max(self.smoother.opens_at()).filter(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn keys(count: usize, answered: bool) -> Keys {
        let config = KeyConfig { answered, ..KeyConfig::fresh(16) };
        Keys::new(&vec![config; count], 120 * SECOND)
    }

    fn ticket(row: u64) -> Ticket {
        Ticket { row, sample: 1, attempt: 1 }
    }

    #[test]
    fn the_first_request_of_a_key_goes_alone_until_content_comes() {
        let mut keys = keys(1, false);
        let now = Moment::ORIGIN;
        assert_eq!(keys.pick(now, (1, 1), 0), Some(0));
        keys.on_send(0, ticket(1), Moment::ORIGIN, 0);
        assert_eq!(keys.pick(now, (2, 1), 0), None);
        keys.on_end(Moment::ORIGIN, 0, ticket(0), None, None);
        keys.on_no_content(0, ticket(1), true);
        assert_eq!(keys.pick(now, (2, 1), 0), None, "the canary itself is tried again");
        assert_eq!(keys.pick(now, (1, 1), 0), Some(0));
        keys.on_send(0, ticket(1), Moment::ORIGIN, 0);
        keys.on_end(Moment::ORIGIN, 0, ticket(0), None, None);
        keys.on_no_content(0, ticket(1), false);
        assert_eq!(keys.pick(now, (2, 1), 0), Some(0), "a row-final reply lets the next one go");
        keys.on_send(0, ticket(2), Moment::ORIGIN, 0);
        keys.on_end(Moment::ORIGIN, 0, ticket(0), None, None);
        assert!(keys.on_content(0));
        assert_eq!(keys.pick(now, (3, 1), 0), Some(0));
    }

    #[test]
    fn a_dead_key_is_out_at_once_and_one_that_worked_has_one_retry() {
        let mut keys = keys(2, true);
        keys.on_send(0, ticket(1), Moment::ORIGIN, 0);
        keys.on_end(Moment::ORIGIN, 0, ticket(0), None, None);
        assert_eq!(keys.on_fault(0, ticket(1), KeyFault::Unauthorized, Moment::ORIGIN), FaultRuling::Out);
        assert_eq!(keys.pick(Moment::ORIGIN, (2, 1), 0), Some(1));
        keys.on_content(1);
        keys.on_send(1, ticket(2), Moment::ORIGIN, 0);
        keys.on_send(1, ticket(3), Moment::ORIGIN, 0);
        keys.on_end(Moment::ORIGIN, 1, ticket(0), None, None);
        assert_eq!(keys.on_fault(1, ticket(2), KeyFault::Unauthorized, Moment::ORIGIN), FaultRuling::Cools);
        keys.on_end(Moment::ORIGIN, 1, ticket(0), None, None);
        assert_eq!(keys.on_fault(1, ticket(3), KeyFault::Unauthorized, Moment::ORIGIN), FaultRuling::Known);
        assert_eq!(keys.pick(Moment::ORIGIN.after(29 * SECOND), (2, 1), 0), None);
        assert_eq!(keys.wakes_at(Moment::ORIGIN, 0), Some(Moment::ORIGIN.after(30 * SECOND)));
        let later = Moment::ORIGIN.after(30 * SECOND);
        assert_eq!(keys.pick(later, (2, 1), 0), Some(1));
        keys.on_send(1, ticket(2), Moment::ORIGIN, 0);
        assert_eq!(keys.pick(later, (3, 1), 0), None, "the retry goes alone");
        keys.on_end(Moment::ORIGIN, 1, ticket(0), None, None);
        assert_eq!(keys.on_fault(1, ticket(2), KeyFault::Unauthorized, later), FaultRuling::Out);
        assert!(keys.all_out());
    }

    #[test]
    fn a_quota_fault_is_final_even_for_a_key_that_worked() {
        let mut keys = keys(1, true);
        keys.on_content(0);
        keys.on_send(0, ticket(1), Moment::ORIGIN, 0);
        keys.on_end(Moment::ORIGIN, 0, ticket(0), None, None);
        assert_eq!(keys.on_fault(0, ticket(1), KeyFault::Quota, Moment::ORIGIN), FaultRuling::Out);
    }

    #[test]
    fn waits_hold_the_key_and_long_ones_park_the_run() {
        let mut keys = keys(2, true);
        keys.on_wait(0, Moment::ORIGIN, 200 * SECOND);
        assert_eq!(keys.all_parked(Moment::ORIGIN), None);
        assert_eq!(keys.pick(Moment::ORIGIN, (1, 1), 0), Some(1));
        keys.on_wait(1, Moment::ORIGIN, 300 * SECOND);
        assert_eq!(keys.all_parked(Moment::ORIGIN), Some(Moment::ORIGIN.after(200 * SECOND)));
        keys.on_wait(1, Moment::ORIGIN, SECOND);
        assert_eq!(
            keys.waits_until(1),
            Some(Moment::ORIGIN.after(300 * SECOND)),
            "a wait is never shortened"
        );
    }

    #[test]
    fn equal_keys_take_turns() {
        let mut keys = keys(3, true);
        let mut used = [0; 3];
        for row in 1..=30 {
            let index = keys.pick(Moment::ORIGIN, (row, 1), 0).unwrap();
            keys.on_send(index, ticket(row), Moment::ORIGIN, 0);
            keys.on_end(Moment::ORIGIN, index, ticket(0), None, None);
            used[index] += 1;
        }
        assert_eq!(used, [10, 10, 10]);
    }
}
