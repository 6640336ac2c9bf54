//! Whole runs of the scheduler against a made-up service, in virtual time: storms of 429, resets, time-outs, dead
//! keys, outages, equal rows, and stops at any moment, a thousand of them with different seeds.
#![expect(clippy::unwrap_used, reason = "a failed expectation is the failure of the test")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::time::Duration;

use rust_decimal::Decimal;
use verify::base::{AttemptKey, Dice, Moment, Money, Ticket};
use verify::model::{
    Ending, Ensemble, Failure, FailureClass, KeyFault, Lesson, Reason, RetrySettings, Rule, Status, Vote,
};
use verify::policy::SampleState;
use verify::policy::{
    Assignment, BudgetConfig, Claim, Feedback, Halt, KeyConfig, Notice, Outcome, RowPlan, SamplePlan,
    Scheduler, SchedulerConfig, Settlement, Step,
};

/// What a request may cost at most.
const BOUND: i64 = 1_000;
const SECOND: Duration = Duration::from_secs(1);

/// What a seed makes of the world.
struct World {
    rows: u64,
    /// Rows ask for `row % distinct`: so some ask the same.
    distinct: u64,
    samples: u16,
    concurrent: bool,
    concurrency: u32,
    keys: Vec<KeyModel>,
    reset_rate: f64,
    invalid_rate: f64,
    reject_rate: f64,
    /// 429 in these seconds; with a hint of so many milliseconds, or none.
    storms: Vec<(u64, u64, Option<u64>)>,
    /// Everything fails in these seconds.
    outages: Vec<(u64, u64)>,
    stop_after_steps: Option<u64>,
    /// Ceilings of money and requests.
    ceilings: Option<(Money, u64)>,
}

#[derive(Clone, Default)]
struct KeyModel {
    dies_at_request: Option<(u64, KeyFault)>,
}

impl World {
    /// A peaceful world: one key, nothing fails.
    fn calm(rows: u64, concurrency: u32) -> Self {
        Self {
            rows,
            distinct: rows + 1,
            samples: 1,
            concurrent: false,
            concurrency,
            keys: vec![KeyModel::default()],
            reset_rate: 0.0,
            invalid_rate: 0.0,
            reject_rate: 0.0,
            storms: Vec::new(),
            outages: Vec::new(),
            stop_after_steps: None,
            ceilings: None,
        }
    }

    fn from_seed(seed: u64) -> Self {
        let mut dice = Dice::new(seed, &[1]);
        let mut world = Self::calm(1 + dice.below(120), 1 + u32::try_from(dice.below(24)).unwrap());
        world.keys = vec![KeyModel::default(); usize::try_from(1 + dice.below(3)).unwrap()];
        // At least one key stays alive.
        for key in world.keys.iter_mut().skip(1) {
            key.dies_at_request = match dice.below(4) {
                0 => Some((0, KeyFault::Unauthorized)),
                1 => Some((dice.below(20), KeyFault::Quota)),
                2 => Some((dice.below(20), KeyFault::Unauthorized)),
                _ => None,
            };
        }
        for _ in 0..dice.below(4) {
            let start = dice.below(60);
            let hint = [None, Some(50), Some(1_500), Some(20_000)][usize::try_from(dice.below(4)).unwrap()];
            world.storms.push((start, start + 1 + dice.below(20), hint));
        }
        if dice.below(2) == 0 {
            let start = 2 + dice.below(20);
            world.outages.push((start, start + 1 + dice.below(300)));
        }
        if dice.below(3) == 0 {
            world.distinct = 1 + dice.below(world.rows);
        }
        world.samples = if dice.below(3) == 0 { 3 } else { 1 };
        world.concurrent = dice.below(2) == 0;
        world.reset_rate = [0.0, 0.05, 0.3][usize::try_from(dice.below(3)).unwrap()];
        world.invalid_rate = [0.0, 0.1][usize::try_from(dice.below(2)).unwrap()];
        world.reject_rate = [0.0, 0.05][usize::try_from(dice.below(2)).unwrap()];
        world.stop_after_steps = (dice.below(3) == 0).then(|| 1 + dice.below(600));
        if dice.below(4) == 0 {
            let rows = i64::try_from(world.rows).unwrap();
            let money = BOUND * (1 + i64::try_from(dice.below(2 * world.rows)).unwrap());
            world.ceilings = Some((Money::from_pico(money), 1 + dice.below(5 * rows.unsigned_abs())));
        }
        world
    }

    fn config(&self, seed: u64, keys: Vec<KeyConfig>, book: BudgetConfig) -> SchedulerConfig {
        SchedulerConfig {
            run: 1,
            concurrency: self.concurrency,
            keys,
            requests_a_minute: 0,
            tokens_a_minute: 0,
            sent_before: None,
            ensemble: Ensemble {
                samples: self.samples,
                rule: Rule::Unanimous,
                auto_pass: Decimal::ZERO,
                auto_fail: Decimal::ZERO,
                early_stop: true,
                concurrent_samples: self.concurrent,
            },
            has_verdict: true,
            has_confidence: false,
            retry: RetrySettings {
                attempts: 5,
                base: SECOND,
                max_backoff: 60 * SECOND,
                max_wait: 120 * SECOND,
                outage_patience: 1_800 * SECOND,
                throttle_patience: 1_800 * SECOND,
            },
            repair: 1,
            budget: self.ceilings.map(|(money, calls)| BudgetConfig {
                max_cost: Some(money),
                max_calls: Some(calls),
                ..book
            }),
            seed,
            selected: self.rows,
            deadline: None,
            grace: 5 * SECOND,
        }
    }

    fn request_of(&self, row: u64) -> u64 {
        row % self.distinct
    }
}

/// What the store holds.
#[derive(Default)]
struct Disk {
    /// By sample: how its last closing attempt ended, and the attempt that it was.
    closed: BTreeMap<(u64, u16), (Ending, AttemptKey)>,
    /// By request: the attempt that bought a valid answer, as soon as its row is on disk.
    bought: HashMap<(u64, u16), AttemptKey>,
    next_attempt: HashMap<(u64, u16), u32>,
    finished: BTreeMap<u64, (Status, Reason)>,
    /// By request: how many valid answers were bought.
    valid_for: HashMap<(u64, u16), u64>,
    answered: HashSet<usize>,
    book: BudgetConfig,
}

enum Happening {
    Kept,
    Leased(Claim),
    Done(Assignment, Outcome, Settlement),
    Loaded(Vec<RowPlan>, bool),
    Durable(u64),
}

struct Simulation<'w> {
    world: &'w World,
    seed: u64,
    disk: Disk,
    log: Vec<String>,
    dice: Dice,
}

/// What one execution keeps apart from the disk.
#[derive(Default)]
struct Execution {
    queue: BTreeMap<(Moment, u64), Happening>,
    serial: u64,
    flying: BTreeMap<Ticket, (Assignment, (Moment, u64))>,
    sent_with_key: HashMap<usize, u64>,
    key_flying: HashMap<usize, u32>,
    waits: HashMap<usize, Moment>,
    out: HashSet<usize>,
    ended: BTreeMap<u64, (Status, Reason)>,
    /// Only the last replies were missing.
    ebbs: bool,
}

impl Execution {
    fn put(&mut self, at: Moment, happening: Happening) -> (Moment, u64) {
        self.serial += 1;
        self.queue.insert((at, self.serial), happening);
        (at, self.serial)
    }
}

/// What a person has decided about some of the requests.
fn decided(request: u64) -> Option<bool> {
    (request % 13 == 5).then_some(request.is_multiple_of(2))
}

impl<'w> Simulation<'w> {
    fn new(world: &'w World, seed: u64) -> Self {
        Self { world, seed, disk: Disk::default(), log: Vec::new(), dice: Dice::new(seed, &[3]) }
    }

    fn plans(&self, after: &mut u64, count: usize) -> (Vec<RowPlan>, bool) {
        let mut plans = Vec::new();
        while plans.len() < count && *after < self.world.rows {
            *after += 1;
            let row = *after;
            if self.disk.finished.get(&row).is_some_and(|(_, reason)| !reason.is_operational()) {
                continue;
            }
            let request = self.world.request_of(row);
            let samples = (1..=self.world.samples)
                .map(|sample| {
                    let own = self.disk.closed.get(&(row, sample));
                    let bought = self.disk.bought.get(&(request, sample));
                    let (state, source) = match (own, bought) {
                        (Some((Ending::Valid, key)), _) => (valid(), Some(*key)),
                        (Some((Ending::Failed(reason), key)), _) if !reason.is_operational() => {
                            (SampleState::Failed(*reason), Some(*key))
                        }
                        (_, bought) => (bought.map_or(SampleState::Open, |_| valid()), bought.copied()),
                    };
                    let next_attempt = self.disk.next_attempt.get(&(row, sample)).copied().unwrap_or(1);
                    SamplePlan { state, next_attempt, source }
                })
                .collect();
            let mut group = [0; 16];
            group[..8].copy_from_slice(&request.to_le_bytes());
            plans.push(RowPlan {
                row,
                tokens: 0,
                bound: Some(Money::from_pico(BOUND)),
                group: Some(group),
                samples,
                decided: decided(request),
            });
        }
        (plans, *after >= self.world.rows)
    }

    fn serve(&mut self, at: Moment, ticket: Ticket, key: usize, sent_with_key: u64) -> (Duration, Outcome) {
        let latency = Duration::from_millis(20 + self.dice.below(2_000));
        let second = at.offset().as_secs();
        if let Some((dies_at, fault)) = self.world.keys[key].dies_at_request
            && sent_with_key > dies_at
        {
            return (latency, failed(FailureClass::Key(fault), None));
        }
        if self.world.outages.iter().any(|(from, to)| (*from..*to).contains(&second)) {
            return (latency, failed(FailureClass::Server, None));
        }
        if let Some((_, _, hint)) =
            self.world.storms.iter().find(|(from, to, _)| (*from..*to).contains(&second))
        {
            return (latency / 10, failed(FailureClass::Throttled, hint.map(Duration::from_millis)));
        }
        if self.dice.fraction() < self.world.reset_rate {
            let class = match self.dice.below(4) {
                0 => FailureClass::Timeout { total: true },
                1 => FailureClass::Server,
                2 => FailureClass::Teaches(Lesson::SwapLengthParameter),
                _ => FailureClass::Connection,
            };
            return (latency, failed(class, None));
        }
        // Whether a row is rejected is the row's, whatever the attempt.
        let mut fate = Dice::new(self.seed, &[2, self.world.request_of(ticket.row)]);
        if fate.fraction() < self.world.reject_rate {
            return (latency, failed(FailureClass::TooLong, None));
        }
        if self.dice.fraction() < self.world.invalid_rate {
            return (latency, Outcome::Unusable(Reason::InvalidAnswer));
        }
        (latency, Outcome::Valid(Vote { positive: Some(true), confidence: None, agree_on: None }))
    }

    /// What the provider books for a request.
    fn bill(&mut self, outcome: &Outcome) -> Settlement {
        match outcome {
            Outcome::Valid(_) | Outcome::Unusable(_) => Settlement::Replied(Money::from_pico(
                1 + i64::try_from(self.dice.below(BOUND.unsigned_abs())).unwrap(),
            )),
            Outcome::Failed(failure) if failure.class == FailureClass::Connection => Settlement::NotSent,
            Outcome::Failed(failure) if matches!(failure.class, FailureClass::Timeout { .. }) => {
                Settlement::Lost
            }
            _ => Settlement::Replied(Money::ZERO),
        }
    }

    fn send(&mut self, execution: &mut Execution, now: Moment, assignment: Assignment) {
        let Assignment { ticket, key, .. } = assignment;
        self.log.push(format!("{:?} send {ticket:?} {key}", now.offset()));
        let person = decided(self.world.request_of(ticket.row));
        assert_eq!(person, None, "seed {}: a row that a person has decided asks nothing", self.seed);
        let waits = execution.waits.get(&key).copied().unwrap_or_default();
        assert!(waits <= now, "seed {}: nothing is sent during a wait", self.seed);
        assert!(!execution.out.contains(&key), "seed {}: nothing is sent with a key that is out", self.seed);
        let flying = execution.key_flying.entry(key).or_default();
        if !self.disk.answered.contains(&key) {
            assert_eq!(*flying, 0, "seed {}: the first request of a key goes alone", self.seed);
        }
        *flying += 1;
        let sent = execution.sent_with_key.entry(key).or_default();
        *sent += 1;
        let (took, outcome) = self.serve(now, ticket, key, *sent);
        let settlement = self.bill(&outcome);
        let at = execution.put(now.after(took), Happening::Done(assignment, outcome, settlement));
        assert!(execution.flying.insert(ticket, (assignment, at)).is_none(), "a ticket is sent once");
        assert!(execution.flying.len() <= usize::try_from(self.world.concurrency).unwrap(), "the pool holds");
        let next = self.disk.next_attempt.entry((ticket.row, ticket.sample)).or_insert(1);
        assert_eq!(*next, ticket.attempt, "attempts count from 1 without gaps");
        *next += 1;
    }

    fn happen(&mut self, execution: &mut Execution, scheduler: &mut Scheduler, now: Moment, what: Happening) {
        match what {
            Happening::Loaded(plans, exhausted) => scheduler.on_rows(plans, exhausted),
            Happening::Durable(row) => {
                self.disk.finished.insert(row, execution.ended[&row]);
                for sample in 1..=self.world.samples {
                    if let Some((Ending::Valid, key)) = self.disk.closed.get(&(row, sample)) {
                        self.disk.bought.entry((self.world.request_of(row), sample)).or_insert(*key);
                    }
                }
                scheduler.on_durable(row);
            }
            Happening::Leased(lease) => scheduler.on_lease(lease),
            Happening::Kept => scheduler.on_kept(1),
            Happening::Done(assignment, outcome, settlement) => {
                self.book(settlement);
                let ticket = assignment.ticket;
                execution.flying.remove(&ticket);
                *execution.key_flying.entry(assignment.key).or_default() -= 1;
                let valid = matches!(outcome, Outcome::Valid(_));
                let ruling = scheduler.on_outcome(
                    now,
                    assignment,
                    outcome,
                    Feedback { settlement, ..Feedback::default() },
                );
                scheduler.on_unkept();
                execution.put(now.after(Duration::from_millis(self.dice.below(12))), Happening::Kept);
                self.log.push(format!("{:?} {ticket:?} {:?}", now.offset(), ruling.ending));
                if ruling.ending.closes() {
                    let key = AttemptKey::new(1, ticket).unwrap();
                    self.disk.closed.insert((ticket.row, ticket.sample), (ruling.ending, key));
                }
                if valid {
                    let request = (self.world.request_of(ticket.row), ticket.sample);
                    *self.disk.valid_for.entry(request).or_default() += 1;
                }
            }
        }
    }

    /// What the disk knows of money after a request.
    fn book(&mut self, settlement: Settlement) {
        let book = &mut self.disk.book;
        match settlement {
            Settlement::NotSent => return,
            Settlement::Replied(cost) => book.spent += cost,
            Settlement::Lost => book.possible += Money::from_pico(BOUND),
        }
        book.calls += 1;
    }

    /// One execution. Returns when it ended and whether it stopped early.
    fn execute(&mut self, start: Moment, stop_after: Option<u64>) -> (Moment, bool) {
        let answered = |key| self.disk.answered.contains(&key);
        let keys = (0..self.world.keys.len())
            .map(|key| KeyConfig { answered: answered(key), ..KeyConfig::fresh(self.world.concurrency) })
            .collect();
        let config = self.world.config(self.seed, keys, self.disk.book);
        let window = config.window();
        let mut scheduler = Scheduler::new(config);
        let mut execution = Execution::default();
        let (mut now, mut fed) = (start, 0);
        for step in 0_u64.. {
            assert!(step < 400_000, "seed {}: no end in sight at {:?}", self.seed, now.offset());
            if stop_after == Some(step) {
                scheduler.on_stop(now, 5 * SECOND);
            }
            assert!(scheduler.loaded() <= window, "the window holds");
            if let (Some(budget), Some((money, calls))) = (scheduler.budget(), self.world.ceilings) {
                let (claimed, risk, lease) = (budget.claimed(), budget.at_risk(), budget.leased());
                assert!(
                    claimed.money <= money && claimed.calls <= calls,
                    "seed {}: the ceiling holds",
                    self.seed
                );
                assert!(
                    risk.money <= lease.money && risk.calls <= lease.calls,
                    "seed {}: within the lease",
                    self.seed
                );
            }
            match scheduler.poll(now) {
                Step::Send(assignment) => {
                    assert!(stop_after.is_none_or(|stop| step <= stop), "nothing is sent after a stop");
                    self.send(&mut execution, now, assignment);
                }
                Step::Load(count) => {
                    let (plans, exhausted) = self.plans(&mut fed, count);
                    let at = now.after(Duration::from_millis(self.dice.below(30)));
                    execution.put(at, Happening::Loaded(plans, exhausted));
                }
                Step::Finish(row) => {
                    self.log.push(format!("{:?} end {} {:?}", now.offset(), row.row, row.decision.reason));
                    let end = (row.decision.status, row.decision.reason);
                    assert!(execution.ended.insert(row.row, end).is_none(), "a row ends once");
                    for (sample, source) in row.replays {
                        self.disk.closed.insert((row.row, sample), (Ending::Valid, source));
                    }
                    let at = now.after(Duration::from_millis(self.dice.below(40)));
                    execution.put(at, Happening::Durable(row.row));
                }
                Step::Notice(Notice::KeyWaits { key, until }) => {
                    let known = execution.waits.entry(key).or_default();
                    *known = until.max(*known);
                }
                Step::Notice(Notice::KeyOut { key, .. }) => assert!(execution.out.insert(key), "told once"),
                Step::Notice(Notice::FirstContent { key }) => {
                    self.disk.answered.insert(key);
                }
                Step::Notice(Notice::Lease(lease)) => {
                    let at = now.after(Duration::from_millis(1 + self.dice.below(30)));
                    execution.put(at, Happening::Leased(lease));
                }
                Step::Notice(Notice::LastReplies) => {
                    let missing = |what: &Happening| matches!(what, Happening::Kept | Happening::Loaded(..));
                    assert!(!execution.flying.is_empty() && !execution.queue.values().any(missing));
                    assert!(!mem::replace(&mut execution.ebbs, true), "told once");
                }
                Step::Notice(_) => {}
                Step::Abort => {
                    for (ticket, (assignment, at)) in mem::take(&mut execution.flying) {
                        execution.queue.remove(&at);
                        let feedback = Feedback { settlement: Settlement::Lost, ..Feedback::default() };
                        self.book(Settlement::Lost);
                        let ruling = scheduler.on_outcome(now, assignment, Outcome::Aborted, feedback);
                        assert_eq!(ruling.ending, Ending::Abandoned, "{ticket:?}");
                    }
                }
                Step::Finished => {
                    let asked = execution.sent_with_key.values().any(|sent| *sent > 0);
                    assert!(execution.ebbs || !asked || scheduler.halted().is_some(), "told before the end");
                    break;
                }
                Step::Wait(until) => {
                    let next = execution.queue.keys().next().map(|(at, _)| *at);
                    let wake = [next, until].into_iter().flatten().min();
                    now = wake.unwrap_or_else(|| panic!("seed {}: it waits for nothing", self.seed)).max(now);
                    while let Some(entry) = execution.queue.first_entry().filter(|entry| entry.key().0 <= now)
                    {
                        let what = entry.remove();
                        self.happen(&mut execution, &mut scheduler, now, what);
                    }
                }
            }
        }
        assert_eq!(scheduler.in_flight(), 0);
        (now, scheduler.halted().is_some())
    }
}

fn failed(class: FailureClass, wait: Option<Duration>) -> Outcome {
    Outcome::Failed(Failure { class, code: None, message: "no".to_owned(), wait })
}

fn valid() -> SampleState {
    SampleState::Valid(Vote { positive: Some(true), confidence: None, agree_on: None })
}

/// Runs a seed to its end, over as many executions as it takes, and returns what happened.
fn run(seed: u64) -> (Vec<String>, BTreeMap<u64, (Status, Reason)>) {
    let world = World::from_seed(seed);
    let mut simulation = Simulation::new(&world, seed);
    let mut stop = world.stop_after_steps;
    let mut now = Moment::ORIGIN;
    for _ in 0..12 {
        let stopped;
        (now, stopped) = simulation.execute(now, stop.take());
        let finished = &simulation.disk.finished;
        if !stopped {
            assert_eq!(finished.len() as u64, world.rows, "seed {seed}: every row ends");
        }
        let is_open =
            |row: u64| finished.get(&row).is_none_or(|(_, reason): &(_, Reason)| reason.is_operational());
        if !(1..=world.rows).any(is_open) {
            break;
        }
        now = now.after(60 * SECOND);
    }
    for (request, count) in &simulation.disk.valid_for {
        assert_eq!(*count, 1, "seed {seed}: an answer to {request:?} is bought once");
    }
    for (row, (_, reason)) in &simulation.disk.finished {
        assert_ne!(*reason, Reason::RateLimited, "seed {seed}: row {row} must not fail for a rate limit");
    }
    (simulation.log, simulation.disk.finished)
}

#[test]
fn a_thousand_runs_keep_their_promises() {
    for seed in 0..1_000 {
        run(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [1, 7, 99, 500] {
        assert_eq!(run(seed), run(seed));
    }
}

/// A scheduler with one key that has asked for its rows and got them.
fn scheduler(rows: u64, concurrency: u32) -> Scheduler {
    let world = World::calm(rows, concurrency);
    let (plans, _) = Simulation::new(&world, 1).plans(&mut 0, usize::try_from(rows).unwrap());
    let mut scheduler =
        Scheduler::new(world.config(1, vec![KeyConfig::fresh(concurrency)], BudgetConfig::default()));
    assert!(matches!(scheduler.poll(Moment::ORIGIN), Step::Load(_)));
    scheduler.on_rows(plans, true);
    scheduler
}

/// Polls until a request is to be sent, and sees to everything else on the way.
fn next_send(scheduler: &mut Scheduler, now: &mut Moment) -> Option<Assignment> {
    loop {
        match scheduler.poll(*now) {
            Step::Send(assignment) => return Some(assignment),
            Step::Finish(row) => scheduler.on_durable(row.row),
            Step::Wait(Some(until)) => *now = until,
            Step::Wait(None) | Step::Finished | Step::Abort => return None,
            Step::Load(_) | Step::Notice(_) => {}
        }
    }
}

/// How many requests are made, and why the run stops, if every request ends like this.
fn answer_all(class: &FailureClass, rows: u64) -> (u64, Option<Halt>) {
    let mut scheduler = scheduler(rows, 16);
    let mut now = Moment::ORIGIN;
    let mut requests = 0;
    while let Some(assignment) = next_send(&mut scheduler, &mut now) {
        requests += 1;
        assert!(requests < 1_000, "it goes on and on");
        scheduler.on_outcome(now, assignment, failed(class.clone(), None), Feedback::default());
    }
    (requests, scheduler.halted().cloned())
}

#[test]
fn a_dead_key_costs_one_request() {
    assert_eq!(answer_all(&FailureClass::Key(KeyFault::Unauthorized), 50), (1, Some(Halt::KeysOut)));
}

#[test]
fn an_unknown_model_costs_one_request() {
    let message = "no".to_owned();
    assert_eq!(answer_all(&FailureClass::UnknownModel, 50), (1, Some(Halt::UnknownModel { message })));
}

#[test]
fn identical_rejections_stop_after_ten_rows_or_all_of_fewer() {
    let halt = |rows| Some(Halt::SameRejection { message: "no".to_owned(), rows });
    assert_eq!(answer_all(&FailureClass::Rejected, 50), (10, halt(10)));
    assert_eq!(answer_all(&FailureClass::Rejected, 3), (3, halt(3)));
}

#[test]
fn a_service_that_never_answers_stops_after_ten_failures() {
    let (requests, halt) = answer_all(&FailureClass::Connection, 50);
    assert_eq!(requests, 10);
    assert!(matches!(halt, Some(Halt::Unreachable { .. })));
}

#[test]
fn one_row_is_tried_as_often_as_its_failure_deserves() {
    assert_eq!(answer_all(&FailureClass::Server, 1), (5, None));
    assert_eq!(answer_all(&FailureClass::Timeout { total: true }, 1), (2, None));
    assert_eq!(answer_all(&FailureClass::TooLong, 1), (1, None));
}

#[test]
fn a_wait_holds_the_key_to_the_millisecond() {
    let mut scheduler = scheduler(5, 4);
    let mut now = Moment::ORIGIN;
    let first = next_send(&mut scheduler, &mut now).unwrap();
    let wait = Duration::from_millis(1_500);
    let ruling =
        scheduler.on_outcome(now, first, failed(FailureClass::Throttled, Some(wait)), Feedback::default());
    assert_eq!(ruling.ending, Ending::Throttled);
    let second = next_send(&mut scheduler, &mut now).unwrap();
    assert_eq!(now, Moment::ORIGIN.after(wait));
    assert_eq!(second.ticket, Ticket { row: 1, sample: 1, attempt: 2 });
}

#[test]
fn a_request_that_was_not_sent_is_no_attempt() {
    let mut scheduler = scheduler(5, 4);
    let mut now = Moment::ORIGIN;
    let first = next_send(&mut scheduler, &mut now).unwrap();
    let until = now.after(SECOND);
    scheduler.on_outcome(now, first, Outcome::Unsent(until), Feedback::default());
    assert_eq!(next_send(&mut scheduler, &mut now), Some(first));
    assert_eq!(now, until);
}

#[test]
fn a_wait_beyond_patience_stops_at_once() {
    let mut scheduler = scheduler(5, 4);
    let mut now = Moment::ORIGIN;
    let first = next_send(&mut scheduler, &mut now).unwrap();
    let wait = 86_400 * SECOND;
    scheduler.on_outcome(now, first, failed(FailureClass::Throttled, Some(wait)), Feedback::default());
    assert!(next_send(&mut scheduler, &mut now).is_none());
    assert_eq!(scheduler.halted(), Some(&Halt::KeysParked { until: Moment::ORIGIN.after(wait) }));
}
