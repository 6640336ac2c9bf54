//! The one task that owns the scheduler and does as it says.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};

use crate::base::{Clock, CrashPoint, Moment, SystemClock};
use crate::model::{AttemptFact, EventKind, Learned, ProviderKind, Reason, Repair, Settings, Status, Turn};
use crate::policy::{
    Assignment, Claim, Feedback, FinishedRow, Halt, Notice, Outcome, Scheduler, Step, StopCause,
};
use crate::provider::learn;
use crate::report::Snapshot;
use crate::run::credentials::Credentials;
use crate::run::draws::Draws;
use crate::run::driven::Driven;
use crate::run::error::RunError;
use crate::run::feed::{Batch, Feed, RowLoad};
use crate::run::follow::Finishing;
use crate::run::live::Bus;
use crate::run::stop::{StopSignal, Stops, cause_of_halt, needed_in_words, words};
use crate::run::worker::{Done, Job, Worker};
use crate::store::{Entry, StoreError, Writer, Written};

/// How often observers are told how things stand.
const TICK: Duration = Duration::from_millis(200);
/// How many ticks lie between two snapshots in the store.
const TICKS_A_SNAPSHOT: u32 = 5;
/// How long requests in flight may go on after the first signal.
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// How long after the wait of a key replies are still looked for before each request.
const SETTLING: Duration = Duration::from_secs(1);
/// How often they are looked for at most before something is sent.
const SETTLING_TURNS: usize = 8;

/// The token of a lease among those of rows, which count from 1.
const LEASE: u64 = 0;

/// How far the store has come, or why it comes no further.
pub(super) type Commit = Result<Written, Arc<StoreError>>;

/// Makes the worker when the first request is about to go, which is when keys are looked up.
pub(super) type MakeWorker<'a> = Box<dyn FnOnce(&Credentials) -> Result<Worker, StopCause> + 'a>;

/// Everything that an execution works with.
pub(super) struct Driver<'a> {
    pub(super) settings: &'a Settings,
    pub(super) run: u64,
    pub(super) clock: Arc<SystemClock>,
    pub(super) scheduler: Scheduler,
    pub(super) feed: Feed,
    pub(super) writer: &'a Writer,
    pub(super) commits: mpsc::UnboundedReceiver<Commit>,
    pub(super) stops: &'a mut Stops,
    pub(super) credentials: &'a Credentials,
    pub(super) make_worker: Option<MakeWorker<'a>>,
    pub(super) worker: Option<Arc<Worker>>,
    pub(super) learned: Arc<Learned>,
    pub(super) bus: Bus<'a>,
    pub(super) loads: HashMap<u64, Live>,
    pub(super) finishing: HashMap<u64, (Status, Reason)>,
    /// Who writes rows as they end.
    pub(super) finishing_rows: Option<Finishing>,
    pub(super) tasks: JoinSet<Done>,
    pub(super) running: HashMap<Id, (Job, Moment)>,
    pub(super) cause: Option<StopCause>,
    pub(super) last_fault: String,
    pub(super) leases: VecDeque<Claim>,
    /// Where each draw on the lease is noted, under a ceiling.
    pub(super) draws: Option<Draws>,
    pub(super) needed: Option<String>,
    pub(super) next_tick: Moment,
    /// Until when a server that asks to wait is likely to ask for more.
    pub(super) settles_until: Moment,
    pub(super) ticks: u32,
}

/// A loaded row.
pub(super) struct Live {
    load: RowLoad,
    repairs: HashMap<u16, Arc<Repair>>,
    /// Bits of the samples that had a request that was not throttled.
    tried: u128,
}

/// What comes after all that could be done at once.
enum Rest {
    /// Nothing before this moment, or before something is reported.
    Until(Option<Moment>),
    /// The run is over.
    Over,
}

enum Woken {
    Stop(Option<StopSignal>),
    Commit(Option<Commit>),
    Batch(Option<Result<Batch, RunError>>),
    Task(Box<Result<(Id, Done), JoinError>>),
    Time,
}

impl Driver<'_> {
    /// Runs until all rows have ended or the run has stopped. Returns what stopped it.
    pub(super) async fn drive(mut self) -> Driven {
        while let Rest::Until(until) = self.act() {
            let wake = until.map_or(self.next_tick, |until| until.min(self.next_tick));
            let timer = tokio::time::sleep_until(self.clock.instant(wake).into());
            let woken = tokio::select! {
                biased;
                stop = self.stops.recv() => Woken::Stop(stop),
                commit = self.commits.recv() => Woken::Commit(commit),
                Some(task) = self.tasks.join_next_with_id() => Woken::Task(Box::new(task)),
                batch = self.feed.next(), if self.feed.is_awaited() => Woken::Batch(batch),
                () = timer => Woken::Time,
            };
            if !self.wake(woken) {
                break;
            }
            if self.settles_until.since(self.clock.now()) > Duration::ZERO {
                self.settle().await;
            }
        }
        self.tell();
        let last = self.snapshot();
        let totals = self.bus.totals;
        Driven {
            cause: self.cause,
            latencies: self.bus.latency,
            finished: totals.status.total(),
            sent: totals.attempts,
            needed: self.needed,
            last,
        }
    }

    /// Takes in the replies that lie in the sockets before anything is sent: one of them may have made the wait of
    /// a key longer, and its connection would carry the next request at once. A turn looks at the sockets, the next
    /// one lets their tasks read.
    async fn settle(&mut self) {
        for _ in 0..SETTLING_TURNS {
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            let Some(task) = self.tasks.try_join_next_with_id() else { return };
            self.on_task(task);
            while let Some(task) = self.tasks.try_join_next_with_id() {
                self.on_task(task);
            }
        }
    }

    /// Does what the scheduler says until it has to wait.
    fn act(&mut self) -> Rest {
        loop {
            let now = self.clock.now();
            match self.scheduler.poll(now) {
                Step::Send(assignment) => self.send(now, assignment),
                Step::Load(count) => self.feed.ask(count),
                Step::Finish(row) => self.finish(row),
                Step::Notice(notice) => self.notice(now, notice),
                Step::Abort => self.abort(now),
                Step::Wait(until) => return Rest::Until(until),
                Step::Finished => return Rest::Over,
            }
        }
    }

    fn wake(&mut self, woken: Woken) -> bool {
        let now = self.clock.now();
        match woken {
            Woken::Stop(signal) => self.on_stop(now, signal),
            Woken::Commit(Some(Ok(Written::Kept(attempts)))) => self.scheduler.on_kept(attempts),
            Woken::Commit(Some(Ok(Written::Durable(rows)))) => self.on_commit(now, rows),
            Woken::Commit(Some(Err(error))) => {
                self.stop_for(StopCause::Unable(error.to_string()));
                self.tasks.abort_all();
                return false;
            }
            Woken::Commit(None) => {
                self.stop_for(StopCause::Unable("the store has stopped writing".to_owned()));
                return false;
            }
            Woken::Task(task) => {
                self.on_task(*task);
                while let Some(task) = self.tasks.try_join_next_with_id() {
                    self.on_task(task);
                }
            }
            Woken::Batch(batch) => self.on_batch(now, batch),
            Woken::Time => {
                if self.next_tick <= now {
                    self.next_tick = now.after(TICK);
                    self.ticks += 1;
                    self.tell();
                }
            }
        }
        true
    }

    /// Tells observers how things stand, and now and then the store.
    fn tell(&mut self) {
        let snapshot = self.snapshot();
        self.bus.tick(self.clock.now(), &snapshot);
        if self.ticks.is_multiple_of(TICKS_A_SNAPSHOT) {
            let json = snapshot.to_store_json();
            self.writer.push(None, Entry::Progress { run: self.run, json });
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let now = self.clock.now();
        let labels = self.credentials.labels();
        let oldest = self.running.values().map(|(_, sent)| *sent).min();
        self.bus.snapshot(&self.clock, now, &self.scheduler, labels, &self.settings.limits, oldest)
    }

    fn stop_for(&mut self, cause: StopCause) {
        if self.cause.as_ref().is_none_or(|have| *have < cause) {
            self.cause = Some(cause);
        }
    }

    fn on_stop(&mut self, now: Moment, signal: Option<StopSignal>) {
        let (cause, grace) = match signal {
            Some(StopSignal::Gentle(signal)) => (StopCause::Signal(signal), GRACE),
            Some(StopSignal::Now(signal)) => (StopCause::Signal(signal), Duration::ZERO),
            Some(StopSignal::ClosedOutput) => (StopCause::ClosedOutput, GRACE),
            Some(StopSignal::Output(why)) => (StopCause::Unable(why), GRACE),
            // Nobody can ask any more, which is no reason to stop.
            None => return,
        };
        self.stop_for(cause);
        self.scheduler.on_stop(now, grace);
    }

    fn on_commit(&mut self, now: Moment, rows: Vec<u64>) {
        for row in rows {
            if row == LEASE {
                CrashPoint::LeaseTaken.pass();
                if let Some(lease) = self.leases.pop_front() {
                    self.scheduler.on_lease(lease);
                }
                continue;
            }
            CrashPoint::RowDone.pass();
            self.scheduler.on_durable(row);
            if let Some(finishing) = &self.finishing_rows {
                finishing.add(row);
            }
            if let Some((status, reason)) = self.finishing.remove(&row) {
                self.bus.emit(now, EventKind::RowFinished { row, status, reason });
            }
        }
    }

    fn on_batch(&mut self, now: Moment, batch: Option<Result<Batch, RunError>>) {
        let batch = match batch {
            Some(Ok(batch)) => batch,
            Some(Err(error)) => {
                let text = error.to_string();
                self.stop_for(if error.is_usage() {
                    StopCause::Usage(text)
                } else {
                    StopCause::Unable(text)
                });
                self.scheduler.on_stop(now, GRACE);
                return;
            }
            None => {
                self.stop_for(StopCause::Unable("the thread that reads the input has ended".to_owned()));
                self.scheduler.on_stop(now, GRACE);
                return;
            }
        };
        if batch.passed > 0 {
            self.bus.emit(now, EventKind::RowsPassed { count: batch.passed });
        }
        let mut plans = Vec::with_capacity(batch.rows.len());
        for fed in batch.rows {
            let live = Live { load: fed.load, repairs: HashMap::new(), tried: 0 };
            self.loads.insert(fed.plan.row, live);
            plans.push(fed.plan);
        }
        self.scheduler.on_rows(plans, batch.exhausted);
    }

    fn send(&mut self, now: Moment, assignment: Assignment) {
        let worker = match self.ready_worker() {
            Ok(worker) => worker,
            Err(cause) => {
                // Nothing was sent, so there is no attempt to keep.
                self.stop_for(cause);
                self.scheduler.on_stop(now, Duration::ZERO);
                self.scheduler.on_outcome(now, assignment, Outcome::Aborted, Feedback::default());
                return;
            }
        };
        let ticket = assignment.ticket;
        let Some(live) = self.loads.get(&ticket.row) else { return };
        let RowLoad::Ask { prompt, hashes } = &live.load else { return };
        let job = Job {
            assignment,
            prompt: Arc::clone(prompt),
            hash: hashes.get(usize::from(ticket.sample) - 1).copied().unwrap_or_default(),
            learned: Arc::clone(&self.learned),
            repair: assignment.repair.then(|| live.repairs.get(&ticket.sample).cloned()).flatten(),
            started: self.clock.wall(),
        };
        if let Some(draws) = &mut self.draws
            && let Err(error) = draws.note(self.run, ticket, self.scheduler.bound(ticket))
        {
            self.stop_for(StopCause::Unable(error.to_string()));
            self.scheduler.on_stop(now, GRACE);
            self.scheduler.on_outcome(now, assignment, Outcome::Aborted, Feedback::default());
            return;
        }
        CrashPoint::DrawNoted.pass();
        let handle = self.tasks.spawn(worker.attempt(job.clone()));
        self.running.insert(handle.id(), (job, now));
    }

    fn ready_worker(&mut self) -> Result<Arc<Worker>, StopCause> {
        if let Some(worker) = &self.worker {
            return Ok(Arc::clone(worker));
        }
        let Some(make) = self.make_worker.take() else {
            return Err(StopCause::Unable("the connection to the provider could not be prepared".to_owned()));
        };
        let worker = Arc::new(make(self.credentials)?);
        self.worker = Some(Arc::clone(&worker));
        Ok(worker)
    }

    fn on_task(&mut self, task: Result<(Id, Done), JoinError>) {
        let id = match &task {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((job, sent)) = self.running.remove(&id) else { return };
        let now = self.clock.now();
        let done = match task {
            Ok((_, done)) => done,
            Err(error) => {
                let Some(worker) = &self.worker else { return };
                let took = now.since(sent);
                if error.is_cancelled() { worker.abandoned(&job, took) } else { worker.broken(&job, took) }
            }
        };
        self.on_done(now, done);
    }

    fn on_done(&mut self, now: Moment, done: Done) {
        let Done { assignment, outcome, mut record, took, repair, lesson, learned: learned_then, feedback } =
            done;
        let ticket = assignment.ticket;
        if let Outcome::Failed(failure) = &outcome {
            self.bus.fail(now, ticket.row, &failure.message, &record.raw);
        }
        let was_sent = !matches!(outcome, Outcome::Unsent(_));
        let ruling = self.scheduler.on_outcome(now, assignment, outcome, feedback);
        if !was_sent {
            self.draws.iter_mut().for_each(|draws| draws.void(self.run, ticket));
            return;
        }
        record.ending = ruling.ending;
        record.possible = ruling.possible;
        let throttled = record.is_throttled();
        let mut tried = false;
        if let Some(live) = self.loads.get_mut(&ticket.row) {
            let bit = 1_u128 << (ticket.sample % 128);
            tried = live.tried & bit != 0;
            if !throttled {
                live.tried |= bit;
            }
            if ruling.repair_next
                && let Some(repair) = repair
            {
                live.repairs.insert(ticket.sample, Arc::new(repair));
            }
        }
        // A lesson holds for the form that the request had: another request may have taught it meanwhile.
        if let Some(lesson) = lesson.filter(|_| *learned_then == *self.learned) {
            let mut learned = (*self.learned).clone();
            let message = learn(&mut learned, &lesson);
            if learned != *self.learned {
                self.learned = Arc::new(learned.clone());
                let call = &self.settings.call;
                let (endpoint, model) = (call.endpoint.clone(), call.model.clone());
                self.writer.push(None, Entry::Learned { endpoint, model, learned });
                self.bus.emit(now, EventKind::Learned { message });
            }
        }
        let fact = AttemptFact {
            ticket,
            ending: record.ending,
            took,
            usage: record.usage,
            estimated: record.estimated,
            cost: record.cost,
            replied: record.http_status.is_some(),
            throttled,
            turn: Turn::of(throttled, record.repair, tried),
        };
        self.scheduler.on_unkept();
        self.writer.push(None, Entry::Attempt { run: self.run, record });
        self.bus.emit(now, EventKind::AttemptFinished(fact));
    }

    fn finish(&mut self, finished: FinishedRow) {
        let now = self.clock.now();
        let FinishedRow { row, decision, replays } = finished;
        self.finishing.insert(row, (decision.status, decision.reason));
        if let Some(Live { load: RowLoad::Bad(error), .. }) = self.loads.remove(&row) {
            self.writer.push(None, Entry::BadInput { run: self.run, row, error });
        }
        for (sample, from) in replays {
            self.writer.push(None, Entry::Replay { run: self.run, row, sample, from });
            self.bus.emit(now, EventKind::SampleReplayed { row, sample });
        }
        self.writer.push(Some(row), Entry::RowDone);
    }

    fn notice(&mut self, now: Moment, notice: Notice) {
        let call = &self.settings.call;
        let (endpoint, model) = (call.endpoint.clone(), call.model.clone());
        let label = |key: usize| self.credentials.labels().get(key).cloned().unwrap_or_default();
        let kind = match notice {
            Notice::TakenUp(attempts) => {
                for attempt in attempts {
                    self.writer.push(None, Entry::TakenUp { attempt });
                }
                return;
            }
            Notice::LastReplies => return self.writer.expect_quiet(),
            Notice::FirstContent { key } => {
                if call.provider != ProviderKind::Mock {
                    self.writer.push(None, Entry::Answered { endpoint, model, key_label: label(key) });
                }
                return;
            }
            Notice::KeyWaits { key, until } => {
                let wait = until.since(now);
                self.settles_until = self.settles_until.max(until.after(SETTLING));
                let (key, noted) = (label(key), self.clock.wall());
                let until = Some(noted.after(wait));
                self.writer.push(None, Entry::KeyWait { endpoint, key_label: key.clone(), noted, until });
                EventKind::KeyWaits { key, wait }
            }
            Notice::KeyCools { key, message, .. } => EventKind::KeyCools { key: label(key), message },
            Notice::KeyOut { key, fault, message } => {
                let key = label(key);
                self.last_fault = format!("key {key}: {message}");
                EventKind::KeyOut { key, fault, message }
            }
            Notice::Lease(lease) => {
                self.leases.push_back(lease);
                let entry = Entry::Lease { run: self.run, money: lease.money, calls: lease.calls };
                self.writer.push(Some(LEASE), entry);
                return;
            }
            Notice::OutageBegins { message } => EventKind::OutageBegins { message },
            Notice::OutageEnds => EventKind::OutageEnds,
            Notice::Stopping(halt) => {
                let mut is_told = false;
                if let Halt::Ceiling { which, needed, left } = &halt {
                    // A row that had begun may have been given up before.
                    is_told = self.needed.replace(needed_in_words(*which, *needed, *left)).is_some();
                }
                let halt = match halt {
                    Halt::Outage { .. } => Halt::Outage { message: self.bus.last_failure.clone() },
                    other => other,
                };
                if let Some(cause) = cause_of_halt(&halt, self.settings, &*self.clock, &self.last_fault) {
                    self.stop_for(cause);
                }
                if is_told || self.cause == Some(StopCause::ClosedOutput) {
                    // Whoever closed the output does not want to be told about it.
                    return;
                }
                let message = self.cause.as_ref().map(words).unwrap_or_default();
                EventKind::Stopping { message, in_flight: self.scheduler.in_flight() }
            }
        };
        self.bus.emit(now, kind);
    }

    fn abort(&mut self, now: Moment) {
        self.tasks.abort_all();
        let Some(worker) = self.worker.clone() else { return };
        for (_, (job, sent)) in std::mem::take(&mut self.running) {
            let done = worker.abandoned(&job, now.since(sent));
            self.on_done(now, done);
        }
    }
}
