//! A ceiling on money and requests holds at any concurrency, over any number of executions and kills, by the
//! provider's own book.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, whose size a variable sets"
)]

mod support;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use support::command::{Outcome, Verify};
use support::provider::{Provider, Reply};
use verify::base::Dice;

/// 10^-6 USD that an answer of 100 tokens costs at 30 USD per million.
const CALL: u64 = 3_000;

/// How many rows, and how many calls each: 36 calls either way.
#[derive(Debug, Clone, Copy)]
struct Shape {
    rows: u64,
    samples: u64,
    at_once: bool,
}

const PLAIN: Shape = Shape { rows: 36, samples: 1, at_once: false };
const SHAPES: [Shape; 3] =
    [PLAIN, Shape { rows: 12, samples: 3, at_once: false }, Shape { rows: 12, samples: 3, at_once: true }];
const CEILINGS: [(&str, u64); 2] = [("0.045", 45_000), ("0.046", 46_000)];
/// Limits of the output: the worst case of a call is its price, or three times that.
const LIMITS: [u64; 2] = [100, 300];
const WORKERS: [u64; 4] = [1, 4, 8, 64];

/// A provider that answers 100 tokens, with its own book in 10^-6 USD. It bills when the request arrives, as one does
/// whose client is killed meanwhile.
fn provider() -> (Provider, Arc<AtomicU64>) {
    let book = Arc::new(AtomicU64::new(0));
    let bill = Arc::clone(&book);
    let provider = Provider::start(move |call| {
        bill.fetch_add(CALL, Ordering::SeqCst);
        let reply = Reply::completion("{\"good\":true}", "stop", 50, 100);
        reply.after(Duration::from_millis(2 + (call.row * 7_919 + call.sample * 31) % 17))
    });
    (provider, book)
}

fn verify() -> Verify {
    with_rows(PLAIN.rows)
}

fn with_rows(count: u64) -> Verify {
    let rows = (1..=count).fold(String::new(), |mut text, row| {
        writeln!(text, "{{\"id\":{row}}}").unwrap();
        text
    });
    Verify::new().file("in.jsonl", rows)
}

fn run(verify: &Verify, url: &str, ceiling: &str, tokens: u64, workers: u64) -> Verify {
    let (tokens, workers) = (tokens.to_string(), workers.to_string());
    verify
        .again()
        .args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", "row {{ id }}"])
        .args([
            "--column",
            "good=boolean",
            "--price",
            "input=0,output=30",
            "--max-cost",
            ceiling,
            "--max-output-tokens",
            &tokens,
            "--concurrency",
            &workers,
            "--summary",
            "summary.json",
        ])
}

fn run_of(shape: Shape, verify: &Verify, url: &str, ceiling: &str, tokens: u64, workers: u64) -> Verify {
    let flags = [format!("--samples={}", shape.samples), format!("--concurrent-samples={}", shape.at_once)];
    run(verify, url, ceiling, tokens, workers).args(flags)
}

fn summary(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.file("summary.json")).unwrap()
}

/// USD of the summary in 10^-6.
fn micros(usd: &Value) -> u64 {
    let text = format!("{:.0}", usd.as_f64().unwrap() * 1e6);
    text.parse().unwrap()
}

/// The rows that passed.
fn passed(outcome: &Outcome) -> Vec<u64> {
    let rows = outcome.json_lines("in.verified.jsonl");
    let pass = rows.iter().filter(|row| row["verify"]["status"] == "pass");
    pass.map(|row| row["verify"]["row"].as_u64().unwrap()).collect()
}

#[test]
fn the_same_rows_are_bought_at_every_concurrency_and_never_above_the_ceiling() {
    for (shape, (ceiling, most), tokens) in combinations() {
        let row = CALL * shape.samples;
        let worst = row * tokens / 100;
        let mut expected: Option<Vec<u64>> = None;
        for workers in WORKERS {
            let case = format!("{shape:?} {ceiling} {tokens} {workers}");
            let (provider, book) = provider();
            let verify = with_rows(shape.rows);
            let outcome =
                run_of(shape, &verify, &provider.url(), ceiling, tokens, workers).run().expect_code(5);
            let spent = book.load(Ordering::SeqCst);
            assert!(spent <= most && most - spent < worst, "{case}: {spent}");
            let rows = passed(&outcome);
            assert_eq!(rows.len() as u64 * row, spent, "{case}: nothing is half bought");
            for line in outcome.json_lines("in.verified.jsonl") {
                let (attempts, cost) =
                    (&line["verify"]["usage"]["attempts"], &line["verify"]["usage"]["cost_usd"]);
                let bought = if line["verify"]["status"] == "pass" { shape.samples } else { 0 };
                assert_eq!(
                    (attempts.as_u64(), micros(cost)),
                    (Some(bought), bought * CALL),
                    "{case}: {line}"
                );
            }
            assert_eq!(*expected.get_or_insert(rows.clone()), rows, "{case}");
            let summary = summary(&outcome);
            assert_eq!(summary["reason"]["budget"].as_u64().unwrap(), shape.rows - rows.len() as u64);
            assert!(summary["exit"]["why"].as_str().unwrap().contains("the next row may cost $"));
            assert_eq!(micros(&summary["cost"]["spent_usd"]), spent, "{case}");
            assert_eq!(summary["cost"]["possible_usd"], 0, "{case}");
            // The same ceiling again buys nothing, a higher one the rest and nothing else.
            if workers == WORKERS[1] {
                run_of(shape, &verify, &provider.url(), ceiling, tokens, workers).run().expect_code(5);
                assert_eq!(book.load(Ordering::SeqCst), spent, "{case}");
                let outcome =
                    run_of(shape, &verify, &provider.url(), "1", tokens, workers).run().expect_code(0);
                assert!(outcome.stderr.contains("continuing run"), "{}", outcome.stderr);
                assert_eq!(book.load(Ordering::SeqCst), 36 * CALL, "{case}");
                let told = self::summary(&outcome);
                assert_eq!(micros(&told["cost"]["spent_usd"]), 36 * CALL, "{case}: {told}");
                assert_eq!(passed(&outcome).len() as u64, shape.rows);
            }
        }
    }
}

fn combinations() -> impl Iterator<Item = (Shape, (&'static str, u64), u64)> {
    let ceilings = |shape| CEILINGS.into_iter().map(move |ceiling| (shape, ceiling));
    let limits = |(shape, ceiling)| LIMITS.into_iter().map(move |tokens| (shape, ceiling, tokens));
    SHAPES.into_iter().flat_map(ceilings).flat_map(limits)
}

/// How often a run is killed in each of the combinations: `VERIFY_TEST_KILLS` sets it, as to 20.
fn kills() -> u64 {
    std::env::var("VERIFY_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

#[test]
fn kills_never_lift_the_ceiling_and_what_they_may_have_cost_is_shown() {
    let mut shown = 0;
    for (at, (shape, (ceiling, most), tokens)) in combinations().enumerate() {
        let (provider, book) = provider();
        let verify = with_rows(shape.rows);
        let case = format!("{shape:?} {ceiling} {tokens}");
        for round in 0..kills() {
            let mut dice = Dice::new(5, &[at as u64, round]);
            let workers = WORKERS[usize::try_from(dice.below(4)).unwrap()];
            let wanted = provider.count() + usize::try_from(dice.below(4)).unwrap();
            let mut running = run_of(shape, &verify, &provider.url(), ceiling, tokens, workers).spawn();
            // A random moment: so many requests, and then so long. A run that can buy nothing more ends by itself.
            while provider.count() < wanted && !running.has_ended() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_micros(dice.below(25_000)));
            running.kill9();
            assert!(book.load(Ordering::SeqCst) <= most, "{case}, round {round}");
        }
        let outcome = run_of(shape, &verify, &provider.url(), ceiling, tokens, 8).run().expect_code(5);
        let billed = book.load(Ordering::SeqCst);
        assert!(billed <= most, "{case}: {billed} over all executions");
        let told = summary(&outcome);
        let (spent, possible) = (micros(&told["cost"]["spent_usd"]), micros(&told["cost"]["possible_usd"]));
        assert!(billed <= spent + possible && spent + possible <= most, "{case}: {billed}, {told}");
        if possible > 0 {
            shown += 1;
            assert!(outcome.stderr.contains(" possible"), "{}", outcome.stderr);
            let status = outcome.again().args(["status", "--format", "json"]).run();
            assert_eq!(micros(&status.json()["cost"]["possible_usd"]), possible, "{case}");
        }
        let higher = run_of(shape, &verify, &provider.url(), "0.2", tokens, 8).arg("--forgive-possible");
        let outcome = higher.run().expect_code(0);
        let told = summary(&outcome);
        assert_eq!(told["cost"]["possible_usd"], 0);
        assert_eq!(micros(&told["cost"]["spent_usd"]), 36 * CALL, "{case}: {told}");
        assert_eq!(passed(&outcome).len() as u64, shape.rows);
        assert_eq!(book.load(Ordering::SeqCst) - billed, 36 * CALL - spent, "{case}: only the rest is paid");
    }
    assert!(shown > 0 || kills() == 0, "no kill left anything unknown");
}

#[test]
fn requests_are_counted_over_all_executions() {
    let (provider, _) = provider();
    let verify = verify();
    let limited = |calls: &str| run(&verify, &provider.url(), "1", 100, 8).args(["--max-calls", calls]);
    limited("10").run().expect_code(5);
    assert_eq!(provider.count(), 10);
    limited("10").run().expect_code(5);
    assert_eq!(provider.count(), 10);
    limited("15").run().expect_code(5);
    assert_eq!(provider.count(), 15);
}

#[test]
fn a_ceiling_below_the_first_row_sends_nothing() {
    let (provider, _) = provider();
    run(&verify(), &provider.url(), "0.002", 100, 8).run().expect_code(5);
    run(&verify(), &provider.url(), "0", 100, 8).run().expect_code(5);
    assert_eq!(provider.count(), 0);
}

#[test]
fn a_ceiling_needs_a_price_and_an_unknown_price_is_never_nothing() {
    let (provider, _) = provider();
    let plain = || {
        let url = provider.url();
        verify()
            .args(["run", "in.jsonl", "--model", "m", "--base-url", &url, "--prompt", "row {{ id }}"])
            .args(["--column", "good=boolean", "--summary", "summary.json"])
    };
    let refused = plain().args(["--max-cost", "1"]).run().expect_code(2);
    assert!(refused.stderr.contains("--price"), "{}", refused.stderr);
    assert_eq!(provider.count(), 0);
    let outcome = plain().run().expect_code(0);
    assert_eq!(summary(&outcome)["cost"]["spent_usd"], Value::Null);
    let rows = outcome.json_lines("in.verified.jsonl");
    assert!(rows.iter().all(|row| row["verify"]["usage"]["cost_usd"].is_null()));
}

#[test]
fn a_bill_above_the_reservation_stops_the_run() {
    let provider = Provider::start(|_| Reply::completion("{\"good\":true}", "stop", 50, 400));
    let outcome = run(&verify(), &provider.url(), "1", 100, 1).run().expect_code(6);
    assert!(outcome.stderr.contains("billed more"), "{}", outcome.stderr);
    assert_eq!(provider.count(), 1);
}

#[test]
fn replays_finish_under_a_ceiling_of_nothing() {
    let (provider, _) = provider();
    let verify = verify();
    run(&verify, &provider.url(), "1", 100, 8).run().expect_code(0);
    let outcome = run(&verify, &provider.url(), "0", 100, 8).arg("--new").run().expect_code(0);
    assert_eq!(passed(&outcome).len() as u64, PLAIN.rows);
    assert_eq!(provider.count() as u64, PLAIN.rows);
}
