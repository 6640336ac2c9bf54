//! Killed at random moments, over ensembles, with faults of every kind and a ceiling: no row is lost, none is twice in
//! the output, no answer that was kept is bought again, and the provider's book never exceeds the ceiling.
//!
//! `VERIFY_TEST_KILLS=200 cargo test --test kills -- --nocapture` kills 200 times and prints what that cost.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a failed expectation is the failure of the test, whose size a variable sets"
)]

mod support;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::command::{Outcome, Running, Verify};
use support::job::{kills, left_behind, numbered};
use support::provider::{Call, Provider, Reply};
use verify::base::Dice;

const ROWS: u64 = 60;
const SAMPLES: u64 = 3;
const WORKERS: u64 = 6;
/// 10^-6 USD that 100 output tokens cost at 30 USD per million, which is also the worst case of a request.
const CALL: u64 = 3_000;
/// How many requests the ceiling allows at first, and by how many it is raised where it ends a run.
const STEP: u64 = 90;

/// What befalls the first requests for a sample, before its answer comes.
#[derive(Clone, Copy)]
enum Fault {
    Throttled,
    Failed,
    Cut,
    Reset,
    Invalid,
    NoJson,
}

/// The faults of a sample, by its row and number alone.
fn faults(row: u64, sample: u64) -> &'static [Fault] {
    use Fault::{Cut, Failed, Invalid, NoJson, Reset, Throttled};
    match Dice::new(41, &[row, sample]).below(24) {
        0 => &[Throttled],
        1 => &[Failed],
        2 => &[Cut],
        3 => &[Reset],
        4 => &[Invalid],
        5 => &[NoJson],
        6 => &[Throttled, Reset],
        7 => &[Cut, Failed],
        _ => &[],
    }
}

/// The answer for a sample, by its row and number alone: most pass, some do not, a few are refused for good.
fn answer(row: u64, sample: u64) -> Reply {
    if is_refused(row, sample) {
        return Reply::error(400, "content_policy_violation", "not this one");
    }
    let verdict = match Dice::new(42, &[row, sample]).below(20) {
        1 | 2 => "fail",
        _ if row.is_multiple_of(9) => "fail",
        _ => "pass",
    };
    let confidence = 70 + Dice::new(43, &[row, sample]).below(30);
    let text = format!("{{\"match\":\"{verdict}\",\"confidence\":0.{confidence}}}");
    Reply::completion(&text, "stop", 50, 100)
}

/// Whether a sample is refused for good.
fn is_refused(row: u64, sample: u64) -> bool {
    Dice::new(45, &[row, sample]).below(20) == 0
}

/// A provider with its book in 10^-6 USD. It bills answers, whole or not, when their request arrives; errors are free.
struct Service {
    provider: Provider,
    book: Arc<AtomicU64>,
}

impl Service {
    fn start() -> Self {
        let book = Arc::new(AtomicU64::new(0));
        let bill = Arc::clone(&book);
        let mut had: HashMap<(u64, u64), usize> = HashMap::new();
        let provider = Provider::start(move |call: &Call| {
            let (row, sample) = (call.row, call.sample);
            let turn = had.entry((row, sample)).or_default();
            let fault = faults(row, sample).get(*turn).copied();
            *turn += 1;
            let is_free = match fault {
                None => is_refused(row, sample),
                Some(fault) => matches!(fault, Fault::Throttled | Fault::Failed | Fault::NoJson),
            };
            if !is_free {
                bill.fetch_add(CALL, Ordering::SeqCst);
            }
            let reply = match fault {
                None => answer(row, sample),
                Some(Fault::Throttled) => {
                    Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after-ms", "15")
                }
                Some(Fault::Failed) => Reply::status(500),
                Some(Fault::Cut) => answer(row, sample).cut_body_after(40),
                Some(Fault::Reset) => Reply::reset(),
                Some(Fault::Invalid) => Reply::completion("{\"match\":\"perhaps\"}", "stop", 50, 100),
                Some(Fault::NoJson) => Reply::status(200).body("<html>busy</html>"),
            };
            // Some are slow.
            let wait = Dice::new(44, &[row, sample]).below(40);
            reply.after(Duration::from_millis(if wait == 0 { 250 } else { 2 + wait % 9 }))
        });
        Self { provider, book }
    }

    fn billed(&self) -> u64 {
        self.book.load(Ordering::SeqCst)
    }

    fn sent(&self) -> u64 {
        self.provider.count() as u64
    }

    fn ask(&self, verify: &Verify, ceiling: u64) -> Verify {
        let url = self.provider.url();
        verify
            .again()
            .args(["run", "in.jsonl", "--model", "m", "--base-url", &url, "--prompt", "row {{ id }}"])
            .args(["--column", "match=pass|fail", "--column", "confidence=number 0..1"])
            .args(["--verdict", "match", "--confidence", "confidence", "--samples", &SAMPLES.to_string()])
            .args(["--accounting=false", "--adaptive=false", "--concurrency", &WORKERS.to_string()])
            .args(["--retry-base", "1ms", "--max-backoff", "5ms", "--price", "input=0,output=30"])
            .args(["--max-output-tokens", "100", "--max-cost", &usd(ceiling), "--summary", "summary.json"])
            .args(["--max-fail", "any", "--max-review", "any", "--max-error", "any"])
    }
}

fn usd(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// A member of the summary's cost in 10^-6 USD.
fn micros(outcome: &Outcome, member: &str) -> u64 {
    let summary: Value = serde_json::from_str(&outcome.file("summary.json")).unwrap();
    let usd = summary["cost"][member].to_string().parse::<rust_decimal::Decimal>().unwrap();
    u64::try_from(usd * rust_decimal::Decimal::from(1_000_000)).unwrap()
}

/// How many requests the store knows the end of. It opens, and is whole.
fn kept(folder: &Path) -> u64 {
    let path = folder.join(".verify/store.db");
    if !path.exists() {
        return 0;
    }
    let store = rusqlite::Connection::open(path).unwrap();
    let whole: String = store.query_row("PRAGMA quick_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let count = store.query_row("SELECT count(*) FROM attempts WHERE ending <> 300", [], |row| row.get(0));
    count.map_or(0, |count: i64| u64::try_from(count).unwrap())
}

/// All that was spent and possibly spent in 10^-6 USD, over all runs, whatever was forgiven of it: a run that had
/// ended when its process was killed is closed, and the same command opens another one.
fn claimed(folder: &Path) -> u64 {
    let store = rusqlite::Connection::open(folder.join(".verify/store.db")).unwrap();
    let sum = "SELECT (SELECT sum(ifnull(cost, 0) + ifnull(possible, 0)) FROM attempts) \
               + (SELECT ifnull(sum(possible), 0) FROM ledger)";
    let picos: i64 = store.query_row(sum, [], |row| row.get(0)).unwrap();
    u64::try_from(picos).unwrap() / 1_000_000
}

/// Lets a process live until so many more requests have come, or for so long, and kills it then. How it ended if that
/// was by itself.
fn kill_at(mut running: Running, service: &Service, dice: &mut Dice) -> Option<Outcome> {
    let (calls, time) = if dice.below(2) == 0 {
        (service.sent() + 1 + dice.below(45), Duration::from_mins(1))
    } else {
        (u64::MAX, Duration::from_millis(dice.below(700)))
    };
    let begun = Instant::now();
    while service.sent() < calls && begun.elapsed() < time {
        if running.has_ended() {
            return Some(running.wait());
        }
        std::thread::yield_now();
    }
    Some(running.kill9()).filter(|outcome| outcome.code != 137)
}

/// Output and requests of a run that nothing kills, under a ceiling that it does not reach.
fn undisturbed() -> (String, u64) {
    let service = Service::start();
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let outcome = service.ask(&verify, 10_000_000).run().expect_code(0);
    let output = outcome.file("in.verified.jsonl");
    for status in ["pass", "fail", "review"] {
        assert!(output.contains(&json!(status).to_string()), "no row is {status}");
    }
    (output, service.sent())
}

#[test]
fn nothing_is_lost_or_bought_twice_by_random_kills_over_ensembles_with_faults_and_a_ceiling() {
    let (expected, fewest) = undisturbed();
    let (mut killed, mut rounds, mut extra, mut most_at_once, mut stops) = (0, 0, 0, 0, 0);
    while killed < kills(6) {
        rounds += 1;
        let dice = &mut Dice::new(20_261_129, &[rounds]);
        let service = Service::start();
        let verify = Verify::new().file("in.jsonl", numbered(ROWS));
        let (mut ceiling, mut forgiven, mut asks_pardon, mut lost, mut here) = (STEP * CALL, 0, false, 0, 0);
        let outcome = loop {
            let mut command = service.ask(&verify, ceiling);
            if asks_pardon {
                command = command.arg("--forgive-possible");
            }
            let ended = if killed < kills(6) {
                kill_at(command.spawn(), &service, dice)
            } else {
                Some(command.run())
            };
            assert!(service.billed() <= ceiling + forgiven, "round {rounds}, kill {killed}");
            asks_pardon = false;
            match ended {
                None => {
                    (killed, here) = (killed + 1, here + 1);
                    service.provider.wait_until_the_dead_are_served();
                    let now = service.sent().saturating_sub(kept(verify.directory()));
                    most_at_once = most_at_once.max(now.saturating_sub(lost));
                    assert!(now <= lost + WORKERS, "round {rounds}: {now} lost, {lost} before this kill");
                    lost = now;
                }
                Some(outcome) if outcome.code == 5 => {
                    stops += 1;
                    let possible = micros(&outcome, "possible_usd");
                    assert!(micros(&outcome, "spent_usd") + possible <= ceiling);
                    assert!(micros(&outcome, "spent_usd") + possible + forgiven >= service.billed());
                    // Every other time, what was possibly spent is forgiven instead.
                    if possible > 5 * CALL && stops % 2 == 0 {
                        (asks_pardon, forgiven) = (true, forgiven + possible);
                    } else {
                        ceiling += STEP * CALL;
                    }
                }
                Some(outcome) => break outcome.expect_code(0),
            }
        };
        let output = outcome.file("in.verified.jsonl");
        let other = output.lines().zip(expected.lines()).find(|(line, other)| line != other);
        assert!(output == expected, "round {rounds}: {other:#?}");
        assert_eq!(left_behind(&outcome, &[]), ["in.verified.jsonl", "summary.json"], "round {rounds}");
        let rows: Vec<u64> = outcome
            .json_lines("in.verified.jsonl")
            .iter()
            .map(|line| line["verify"]["row"].as_u64().unwrap())
            .collect();
        assert_eq!(rows, (1..=ROWS).collect::<Vec<_>>());
        let (spent, possible) = (micros(&outcome, "spent_usd"), micros(&outcome, "possible_usd"));
        let (claimed, billed) = (claimed(verify.directory()), service.billed());
        assert!(claimed >= billed, "round {rounds}: {claimed} claimed, {billed} billed");
        assert!(spent + possible <= ceiling, "round {rounds}");
        let (count, most) = (service.sent(), fewest + here * WORKERS);
        assert!((fewest..=most).contains(&count), "round {rounds}: {count} requests, {fewest} are needed");
        let ids: BTreeSet<_> =
            service.provider.calls().into_iter().map(|call| call.client_request_id).collect();
        assert_eq!(ids.len() as u64, count, "round {rounds}: the id of a request was given twice");
        extra += count - fewest;
    }
    println!(
        "{killed} kills in {rounds} runs of {ROWS} rows, {SAMPLES} samples each, {WORKERS} workers: {fewest} requests \
         undisturbed, {extra} more over all runs, at most {most_at_once} lost by one kill, {stops} stops at the ceiling"
    );
}
