//! What is known of a run while it goes on, and who is told.

use std::collections::HashSet;
use std::time::Duration;

use crate::base::{Clock, Moment, SystemClock};
use crate::model::{Event, EventKind, Limits, Totals};
use crate::policy::{KeyState, Scheduler};
use crate::report::{KeyLine, Latencies, Rate, Snapshot, eta_text};
use crate::run::earlier::Earlier;

/// The most failures that are told with their whole text.
const MOST_TOLD: usize = 50;
/// The most bytes of such a text.
const MOST_TEXT: usize = 65_536;

/// Who watches a run. Both calls must be quick: they are made between two requests.
pub trait Observer {
    /// Each fact, in order, none left out.
    fn event(&mut self, event: &Event);
    /// How things stand, a few times a second.
    fn tick(&mut self, now: Moment, snapshot: &Snapshot);
}

/// Folds facts into counts and tells observers.
pub(super) struct Bus<'o> {
    observer: &'o mut dyn Observer,
    seq: u64,
    /// Counts of this execution.
    pub(super) totals: Totals,
    /// What went before it.
    earlier: Earlier,
    pub(super) latency: Latencies,
    /// What failed last, for an outage's reason.
    pub(super) last_failure: String,
    /// Failures whose whole text has been told.
    told: HashSet<String>,
    rate: Rate,
    total: u64,
}

impl<'o> Bus<'o> {
    pub(super) fn new(observer: &'o mut dyn Observer, total: u64, earlier: Earlier) -> Self {
        Self {
            observer,
            seq: 0,
            totals: Totals::default(),
            earlier,
            latency: Latencies::new(),
            last_failure: String::new(),
            told: HashSet::new(),
            rate: Rate::new(Duration::from_secs(30)),
            total,
        }
    }

    pub(super) fn emit(&mut self, at: Moment, kind: EventKind) {
        self.totals.fold(&kind);
        if let EventKind::AttemptFinished(fact) = &kind
            && fact.replied
        {
            self.latency.record(fact.took);
        }
        self.seq += 1;
        self.observer.event(&Event { seq: self.seq, at, kind });
    }

    /// A request has failed. Of equal failures the first is told with the whole reply, so that a long one is kept once
    /// and not for every row.
    pub(super) fn fail(&mut self, at: Moment, row: u64, message: &str, reply: &[u8]) {
        message.clone_into(&mut self.last_failure);
        if self.told.len() < MOST_TOLD && !self.told.contains(message) {
            self.told.insert(message.to_owned());
            let text = String::from_utf8_lossy(reply.get(..MOST_TEXT).unwrap_or(reply)).into_owned();
            self.emit(at, EventKind::Failed { row, message: message.to_owned(), text });
        }
    }

    pub(super) fn tick(&mut self, now: Moment, snapshot: &Snapshot) {
        self.observer.tick(now, snapshot);
    }

    /// The state of everything at `now`.
    pub(super) fn snapshot(
        &mut self,
        clock: &SystemClock,
        now: Moment,
        scheduler: &Scheduler,
        labels: &[String],
        limits: &Limits,
        oldest_sent: Option<Moment>,
    ) -> Snapshot {
        let here = self.totals.status.total();
        let done = self.earlier.done + here;
        // What earlier executions finished says nothing of the pace of this one.
        self.rate.record(now, here);
        let totals = self.earlier.totals.plus(&self.totals);
        let keys: Vec<KeyLine> = labels
            .iter()
            .enumerate()
            .map(|(index, label)| KeyLine {
                label: label.clone(),
                in_flight: scheduler.keys().in_flight(index),
                limit: scheduler.keys().limit(index),
                state: key_state(scheduler, index, now),
            })
            .collect();
        let in_flight = scheduler.in_flight();
        let limit = keys.iter().fold(0_u32, |sum, key| sum.saturating_add(key.limit)).min(limits.concurrency);
        let all_wait = !keys.is_empty() && keys.iter().all(|key| !key.state.is_empty());
        let next_permit = scheduler.next_permit(now).filter(|_| all_wait || in_flight == 0);
        Snapshot {
            at: clock.wall(),
            done,
            total: self.total,
            status: totals.status,
            reason: totals.reason,
            replayed: totals.replayed,
            tokens: totals.tokens,
            attempts: totals.attempts,
            retries: totals.retries,
            repairs: totals.repairs,
            throttled: totals.throttled,
            in_flight,
            limit,
            spent: (!totals.unpriced).then_some(totals.spent),
            possible: scheduler.budget().filter(|_| limits.max_cost.is_some()).map(|budget| budget.book().1),
            ceiling: limits.max_cost,
            rows_per_minute: self.rate.per_minute(now),
            eta: self.rate.eta(now, self.total.saturating_sub(done)),
            next_permit: next_permit.map(|at| at.since(now)),
            paused: scheduler.is_paused().then(|| self.last_failure.clone()),
            keys,
            oldest_in_flight: oldest_sent.map(|sent| now.since(sent)),
        }
    }
}

fn key_state(scheduler: &Scheduler, index: usize, now: Moment) -> String {
    let keys = scheduler.keys();
    let wait = |until: Moment| eta_text(until.since(now));
    match keys.state(index) {
        KeyState::Out(fault) => format!("out: {fault}"),
        KeyState::Cooling { until } if until > now => format!("cools down {}", wait(until)),
        KeyState::Cooling { .. } | KeyState::Retrying => "tried once more".to_owned(),
        KeyState::Open => match keys.waits_until(index) {
            Some(until) if until > now => format!("waits {}", wait(until)),
            _ => String::new(),
        },
    }
}
