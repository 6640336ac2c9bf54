//! The scheduler against servers that bear only so much, in virtual time: what it asks of them, and how much of the
//! ideal work it gets done.

use std::collections::BTreeMap;
use std::time::Duration;

use rust_decimal::Decimal;
use verify::base::{Dice, Moment};
use verify::model::{Ensemble, Failure, FailureClass, KeyFault, Reason, RetrySettings, Rule, Status, Vote};
use verify::policy::{
    Assignment, Feedback, KeyConfig, Notice, Outcome, Pressure, RowPlan, SamplePlan, SampleState, Scheduler,
    SchedulerConfig, Step,
};

const SECOND: Duration = Duration::from_secs(1);

/// What a server says to a request that arrives.
enum Reply {
    Answer,
    Busy,
    /// Busy, and for how long.
    Wait(Duration),
    Overloaded,
    Refused(KeyFault),
}

/// A run against a server that `serve` describes: it is told the moment, the key, and the requests that the key has
/// in service.
struct Run<F> {
    rows: u64,
    config: SchedulerConfig,
    delay: Duration,
    jitter: f64,
    serve: F,
}

/// What happened.
#[derive(Default)]
struct Told {
    /// When each request arrived, with its key, and whether it was answered.
    requests: Vec<(Moment, usize, bool)>,
    /// The limit of the first key over time.
    limits: Vec<(Moment, u32)>,
    ended: BTreeMap<u64, (Status, Reason)>,
    out: Vec<usize>,
    end: Moment,
}

fn config(concurrency: u32, keys: usize) -> SchedulerConfig {
    SchedulerConfig {
        run: 1,
        concurrency,
        keys: vec![KeyConfig { adaptive: true, ..KeyConfig::fresh(concurrency) }; keys],
        requests_a_minute: 0,
        tokens_a_minute: 0,
        sent_before: None,
        ensemble: Ensemble {
            samples: 1,
            rule: Rule::Unanimous,
            auto_pass: Decimal::ZERO,
            auto_fail: Decimal::ZERO,
            early_stop: true,
            concurrent_samples: false,
        },
        has_verdict: false,
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
        budget: None,
        seed: 7,
        selected: 1_000,
        deadline: None,
        grace: 5 * SECOND,
    }
}

impl<F: FnMut(Moment, usize, u32) -> Reply> Run<F> {
    fn new(rows: u64, config: SchedulerConfig, delay: Duration, jitter: f64, serve: F) -> Self {
        Self { rows, config, delay, jitter, serve }
    }

    fn go(mut self) -> Told {
        let keys = self.config.keys.len();
        let mut scheduler = Scheduler::new(self.config);
        let mut told = Told::default();
        let mut dice = Dice::new(11, &[self.rows]);
        let mut queue: BTreeMap<(Moment, u64), (Assignment, Outcome, Feedback, bool)> = BTreeMap::new();
        let mut in_service = vec![0_u32; keys];
        let (mut now, mut serial, mut fed) = (Moment::ORIGIN, 0, 0);
        loop {
            match scheduler.poll(now) {
                Step::Load(count) => {
                    let plans: Vec<_> = (0..count as u64)
                        .map(|n| fed + n + 1)
                        .filter(|row| *row <= self.rows)
                        .map(plan)
                        .collect();
                    fed += plans.len() as u64;
                    scheduler.on_rows(plans, fed >= self.rows);
                }
                Step::Finish(row) => {
                    told.ended.insert(row.row, (row.decision.status, row.decision.reason));
                    scheduler.on_durable(row.row);
                }
                Step::Notice(Notice::KeyOut { key, .. }) => told.out.push(key),
                Step::Notice(_) | Step::Abort => {}
                Step::Send(assignment) => {
                    let key = assignment.key;
                    let spread = 1.0 + self.jitter * (2.0 * dice.fraction() - 1.0);
                    let reply = (self.serve)(now, key, in_service[key]);
                    let (took, outcome, pressure, served) = match reply {
                        Reply::Answer => {
                            (self.delay.mul_f64(spread), answer(), Some(Pressure::default()), true)
                        }
                        Reply::Busy => {
                            let pressure = Pressure { throttled: true, ..Pressure::default() };
                            (Duration::from_millis(5), failed(FailureClass::Throttled), Some(pressure), false)
                        }
                        Reply::Wait(wait) => {
                            let pressure = Pressure { throttled: true, ..Pressure::default() };
                            (Duration::from_millis(5), throttled(wait), Some(pressure), false)
                        }
                        Reply::Overloaded => {
                            let pressure = Pressure { throttled: true, ..Pressure::default() };
                            (Duration::from_millis(50), failed(FailureClass::Server), Some(pressure), false)
                        }
                        Reply::Refused(fault) => {
                            (Duration::from_millis(5), failed(FailureClass::Key(fault)), None, false)
                        }
                    };
                    in_service[key] += u32::from(served);
                    told.requests.push((now, key, served));
                    serial += 1;
                    let feedback = Feedback { pressure, ..Feedback::default() };
                    queue.insert((now.after(took), serial), (assignment, outcome, feedback, served));
                }
                Step::Wait(until) => {
                    let next = queue.keys().next().map(|(at, _)| *at);
                    now = [next, until].into_iter().flatten().min().expect("it waits for something").max(now);
                    while let Some(entry) = queue.first_entry().filter(|entry| entry.key().0 <= now) {
                        let (assignment, outcome, feedback, served) = entry.remove();
                        in_service[assignment.key] -= u32::from(served);
                        scheduler.on_outcome(now, assignment, outcome, feedback);
                        told.limits.push((now, scheduler.keys().limit(0)));
                    }
                }
                Step::Finished => break,
            }
            assert!(now.offset() < 7_200 * SECOND, "it takes too long");
        }
        told.end = now;
        told
    }
}

fn plan(row: u64) -> RowPlan {
    let samples = vec![SamplePlan { state: SampleState::Open, next_attempt: 1, source: None }];
    RowPlan { row, tokens: 100, bound: None, group: None, samples, decided: None }
}

fn answer() -> Outcome {
    Outcome::Valid(Vote { positive: None, confidence: None, agree_on: None })
}

fn is_between(at: Moment, from: u64, to: u64) -> bool {
    (from..to).contains(&at.offset().as_secs())
}

fn throttled(wait: Duration) -> Outcome {
    let (class, message) = (FailureClass::Throttled, "no".to_owned());
    Outcome::Failed(Failure { class, code: None, message, wait: Some(wait) })
}

fn failed(class: FailureClass) -> Outcome {
    Outcome::Failed(Failure { class, code: None, message: "no".to_owned(), wait: None })
}

impl Told {
    fn all_pass(&self, rows: u64) {
        assert_eq!(self.ended.len() as u64, rows);
        assert!(self.ended.values().all(|(status, _)| *status == Status::Pass), "{:?}", self.ended);
    }

    fn answered_between(&self, from: u64, to: u64) -> usize {
        let within = |at: Moment| (from..to).contains(&at.offset().as_secs());
        self.requests.iter().filter(|(at, _, served)| *served && within(*at)).count()
    }
}

#[test]
fn finds_a_server_that_bears_five_at_once() {
    for (delay, jitter) in [(200, 0.0), (200, 0.5), (1_000, 0.2), (3_000, 0.5)] {
        let delay = Duration::from_millis(delay);
        let serve = |_, _, busy| if busy < 5 { Reply::Answer } else { Reply::Busy };
        let told = Run::new(500, config(64, 1), delay, jitter, serve).go();
        told.all_pass(500);
        let start = Moment::from_origin(30 * SECOND);
        let later: Vec<_> = told.requests.iter().filter(|(at, ..)| *at > start).collect();
        if later.len() < 50 {
            continue;
        }
        let throttled = later.iter().filter(|(.., served)| !served).count();
        assert!(throttled * 100 < 3 * later.len(), "{delay:?} {jitter}: {throttled} of {}", later.len());
        // Limits by the time for which they held.
        let (mut within, mut all) = (Duration::ZERO, Duration::ZERO);
        for pair in told.limits.windows(2).filter(|pair| pair[0].0 > start) {
            let held = pair[1].0.since(pair[0].0);
            all += held;
            if (4..=6).contains(&pair[0].1) {
                within += held;
            }
        }
        assert_eq!(within, all, "{delay:?} {jitter}");
    }
}

#[test]
fn follows_a_server_down_and_up_without_collapse() {
    for delay in [200, 500, 1_000] {
        let bears = |at: Moment| if (120..240).contains(&at.offset().as_secs()) { 10 } else { 100 };
        let serve = |at, _, busy| if busy < bears(at) { Reply::Answer } else { Reply::Busy };
        let rows = (120 * 100 + 120 * 10 + 100 * 100) * 1_000 / delay;
        let run = Run::new(rows, config(200, 1), Duration::from_millis(delay), 0.2, serve);
        let told = run.go();
        told.all_pass(rows);
        let ideal = |from: u64, to: u64, bears: u64| (to - from) * 1_000 / delay * bears;
        for (from, to, bears) in [(30, 120, 100), (150, 240, 10), (270, 320, 100)] {
            let (done, ideal) = (told.answered_between(from, to) as u64, ideal(from, to, bears));
            assert!(done * 100 > 80 * ideal, "{delay}: {done} of {ideal} from second {from} to {to}");
        }
        let early = told.limits.iter().filter(|(at, _)| (150..240).contains(&at.offset().as_secs()));
        assert!(early.map(|(_, limit)| *limit).max().unwrap() <= 20, "{delay}: followed down");
    }
}

#[test]
fn uses_most_of_a_rate_that_a_server_refills() {
    // A token bucket of 20 a second that holds two, as providers have it: it refuses bursts that the rate would bear.
    for delay in [200, 1_000, 3_000] {
        let (mut full, gap) = (Moment::ORIGIN, Duration::from_millis(50));
        let serve = move |at: Moment, _, _| {
            let missing = full.since(at);
            if missing > gap {
                return Reply::Wait(missing.saturating_sub(gap));
            }
            full = full.max(at).after(gap);
            Reply::Answer
        };
        let delay = Duration::from_millis(delay);
        let told = Run::new(6_000, config(100, 1), delay, 0.3, serve).go();
        told.all_pass(6_000);
        let done = told.answered_between(60, 180);
        let refused =
            told.requests.iter().filter(|(at, _, served)| !served && is_between(*at, 60, 180)).count();
        assert!(done * 2 > 2_400, "{delay:?}: {done} of 2,400 in two minutes, {refused} refused");
    }
}

#[test]
fn dead_and_dying_keys_lose_no_row() {
    let mut sent = 0;
    let serve = |_, key, _| match key {
        1 => Reply::Refused(KeyFault::Unauthorized),
        2 => {
            sent += 1;
            if sent > 60 { Reply::Refused(KeyFault::Quota) } else { Reply::Answer }
        }
        _ => Reply::Answer,
    };
    let told = Run::new(500, config(24, 3), Duration::from_millis(300), 0.3, serve).go();
    told.all_pass(500);
    let count = |key| told.requests.iter().filter(|(_, with, _)| *with == key).count();
    assert_eq!(count(1), 1, "one request with the dead key");
    assert!(count(2) > 60);
    let mut out = told.out.clone();
    out.sort_unstable();
    assert_eq!(out, [1, 2], "each is named once");
}

#[test]
fn an_outage_of_ten_minutes_fails_no_row() {
    let serve = |at: Moment, _, _| if is_between(at, 20, 620) { Reply::Overloaded } else { Reply::Answer };
    let told = Run::new(3_000, config(16, 1), Duration::from_millis(500), 0.2, serve).go();
    told.all_pass(3_000);
    let during = told.requests.iter().filter(|(at, ..)| (21..620).contains(&at.offset().as_secs())).count();
    assert!(during < 200, "{during} probes");
    // Sixteen at once of half a second each are 32 a second.
    let back = told.answered_between(680, 690);
    assert!(back > 250, "{back} answers in ten seconds, a minute after the outage");
}

#[test]
fn a_key_that_is_refused_for_ten_minutes_fails_no_row() {
    let serve = |at: Moment, key, _| {
        let is_down = key == 1 && is_between(at, 20, 620);
        if is_down { Reply::Refused(KeyFault::Unauthorized) } else { Reply::Answer }
    };
    let told = Run::new(20_000, config(32, 2), Duration::from_millis(500), 0.2, serve).go();
    told.all_pass(20_000);
    let refused = told
        .requests
        .iter()
        .filter(|(at, key, served)| *key == 1 && !served && at.offset() > 20 * SECOND)
        .count();
    // What was in flight when it began, and the one retry after the cool-down.
    assert!(refused < 200, "{refused} requests were refused");
    assert_eq!(told.out, [1]);
    let answers = |from: u64| told.answered_between(from, from + 10);
    // The pool of 32 at once of half a second each is 64 a second, whichever keys bear it.
    assert!(answers(80) > 500, "{} answers in ten seconds, a minute after the key had failed", answers(80));
}

/// The most of anything that fell within a minute, its ends included.
fn most_in_a_minute(sent: &[(Moment, u64)]) -> u64 {
    let within = |start: Moment, at: Moment| at >= start && at <= start.after(60 * SECOND);
    let sum = |start| sent.iter().filter(|(at, _)| within(start, *at)).map(|(_, count)| count).sum();
    sent.iter().map(|(start, _)| sum(*start)).max().unwrap_or(0)
}

#[test]
fn tokens_of_a_minute_are_never_more() {
    let mut limited = config(64, 1);
    // Each row counts for a hundred.
    limited.tokens_a_minute = 5_000;
    let told = Run::new(200, limited, Duration::from_millis(20), 0.5, |_, _, _| Reply::Answer).go();
    told.all_pass(200);
    let sent: Vec<_> = told.requests.iter().map(|(at, ..)| (*at, 100)).collect();
    let most = most_in_a_minute(&sent);
    assert!((4_500..=5_000).contains(&most), "{most} tokens in a minute");
}

#[test]
fn the_minute_goes_on_in_the_next_execution() {
    // The second execution is told that something was sent up to its beginning; what it sends is added to what the first
    // one sent in the minute before.
    for (requests, tokens) in [(60, 0), (0, 6_000)] {
        let limited = |sent_before| {
            let mut config = config(64, 1);
            (config.requests_a_minute, config.tokens_a_minute) = (requests, tokens);
            config.sent_before = sent_before;
            Run::new(100, config, Duration::from_millis(20), 0.5, |_, _, _| Reply::Answer).go()
        };
        let (first, second) = (limited(None), limited(Some(Moment::ORIGIN)));
        let counted = |told: &Told, from: Duration| -> Vec<_> {
            let at = |(at, ..): &(Moment, usize, bool)| Moment::from_origin(at.offset() + from);
            told.requests.iter().map(|request| (at(request), 1)).collect()
        };
        // Killed at any moment, continued at once.
        for killed in [1, 7, 30, 59, 61, 90].map(Duration::from_secs) {
            let mut sent = counted(&first, Duration::ZERO);
            sent.retain(|(at, _)| at.offset() <= killed);
            sent.extend(counted(&second, killed));
            let most = most_in_a_minute(&sent);
            assert!(most <= 60, "{most} within a minute, killed after {killed:?}");
        }
    }
}

#[test]
fn sixty_a_minute_is_never_more() {
    let mut limited = config(64, 1);
    limited.requests_a_minute = 60;
    let told = Run::new(200, limited, Duration::from_millis(20), 0.5, |_, _, _| Reply::Answer).go();
    told.all_pass(200);
    for (start, ..) in &told.requests {
        let end = start.after(60 * SECOND);
        let count = told.requests.iter().filter(|(at, ..)| at >= start && *at <= end).count();
        assert!(count <= 60, "{count}");
    }
    assert!(told.end.offset() < 215 * SECOND, "{:?}", told.end.offset());
}
