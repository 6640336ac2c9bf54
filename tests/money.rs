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
use std::time::Duration;

use serde_json::Value;
use support::command::{Outcome, Verify};
use support::provider::{Provider, Reply};
use verify::base::Dice;

const ROWS: u64 = 36;
/// 10^-6 USD that an answer of 100 tokens costs at 30 USD per million.
const CALL: u64 = 3_000;

/// A provider that answers 100 tokens, with its own book in 10^-6 USD. It bills when the request arrives, as one does
/// whose client is killed meanwhile.
fn provider() -> (Provider, Arc<AtomicU64>) {
    let book = Arc::new(AtomicU64::new(0));
    let bill = Arc::clone(&book);
    let provider = Provider::start(move |call| {
        bill.fetch_add(CALL, Ordering::SeqCst);
        let reply = Reply::completion("{\"good\":true}", "stop", 50, 100);
        reply.after(Duration::from_millis(2 + call.row * 7_919 % 17))
    });
    (provider, book)
}

fn verify() -> Verify {
    let rows = (1..=ROWS).fold(String::new(), |mut text, row| {
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

fn summary(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.file("summary.json")).unwrap()
}

/// The rows that passed.
fn passed(outcome: &Outcome) -> Vec<u64> {
    let rows = outcome.json_lines("in.verified.jsonl");
    let pass = rows.iter().filter(|row| row["verify"]["status"] == "pass");
    pass.map(|row| row["verify"]["row"].as_u64().unwrap()).collect()
}

#[test]
fn the_same_rows_are_bought_at_every_concurrency_and_never_above_the_ceiling() {
    for (ceiling, most) in [("0.045", 45_000), ("0.046", 46_000)] {
        for tokens in [100, 300] {
            let worst = CALL * tokens / 100;
            let mut expected: Option<Vec<u64>> = None;
            for workers in [1, 4, 8, 64] {
                let (provider, book) = provider();
                let outcome = run(&verify(), &provider.url(), ceiling, tokens, workers).run().expect_code(5);
                let spent = book.load(Ordering::SeqCst);
                assert!(spent <= most && most - spent < worst, "{ceiling} {tokens} {workers}: {spent}");
                let rows = passed(&outcome);
                assert_eq!(rows.len() as u64 * CALL, spent, "nothing is half bought");
                assert_eq!(*expected.get_or_insert(rows.clone()), rows, "{ceiling} {tokens} {workers}");
                let summary = summary(&outcome);
                assert_eq!(summary["reason"]["budget"].as_u64().unwrap(), ROWS - rows.len() as u64);
                assert!(summary["exit"]["why"].as_str().unwrap().contains("the next row may cost $"));
            }
        }
    }
}

#[test]
fn a_higher_ceiling_continues_and_pays_only_for_the_rest() {
    let (provider, book) = provider();
    let verify = verify();
    run(&verify, &provider.url(), "0.045", 100, 8).run().expect_code(5);
    let outcome = run(&verify, &provider.url(), "1", 100, 8).run().expect_code(0);
    assert!(outcome.stderr.contains("continuing run"), "{}", outcome.stderr);
    assert_eq!(book.load(Ordering::SeqCst), ROWS * CALL);
    assert_eq!(summary(&outcome)["cost"]["spent_usd"].as_f64(), Some(0.108));
}

#[test]
fn kills_never_lift_the_ceiling_and_what_they_may_have_cost_is_shown() {
    let kills = std::env::var("VERIFY_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let (provider, book) = provider();
    let verify = verify();
    let most = 90_000;
    let command = run(&verify, &provider.url(), "0.09", 100, 8);
    for round in 0..kills {
        let before = provider.count();
        let running = command.spawn();
        // A run that has nothing left to buy ends by itself.
        let wanted = before + 1 + usize::try_from(Dice::new(5, &[round]).below(3)).unwrap();
        if provider.count() >= 26 {
            running.wait();
            break;
        }
        provider.wait_for_calls(wanted);
        running.kill9();
        assert!(book.load(Ordering::SeqCst) <= most, "round {round}");
    }
    let outcome = command.run();
    assert!(book.load(Ordering::SeqCst) <= most, "over all executions");
    let told = summary(&outcome);
    let (spent, possible) = (&told["cost"]["spent_usd"], &told["cost"]["possible_usd"]);
    let claimed = spent.as_f64().unwrap() + possible.as_f64().unwrap();
    let real = f64::from(u32::try_from(book.load(Ordering::SeqCst)).unwrap()) / 1e6;
    assert!(claimed <= 0.09 + 1e-9 && claimed + 1e-9 >= real, "{claimed} claimed, {real} billed");
    let higher = run(&verify, &provider.url(), "0.2", 100, 8).arg("--forgive-possible");
    let outcome = higher.run().expect_code(0);
    assert_eq!(summary(&outcome)["cost"]["possible_usd"], 0);
    assert_eq!(passed(&outcome).len() as u64, ROWS);
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
fn usage_that_is_missing_counts_under_a_ceiling_and_is_said_to_be_estimated() {
    let provider = Provider::start(|_| {
        Reply::status(200).json(&serde_json::json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "{\"good\":true}"}}]}))
    });
    // An answer of 13 bytes is estimated at 4 tokens, at 30 USD per million.
    let outcome = run(&verify(), &provider.url(), "1", 100, 8).run().expect_code(0);
    let cost = &summary(&outcome)["cost"];
    assert_eq!(cost["estimated_usd"].as_f64(), Some(0.004_32), "{cost}");
    assert!(outcome.stderr.contains("$0 exact, $0.00432 estimated"), "{}", outcome.stderr);
    // The ceiling counts it: with room for one worst case and what ten such answers cost, the rest is not asked.
    let outcome = run(&verify(), &provider.url(), "0.0042", 100, 1).run().expect_code(5);
    let rows = passed(&outcome).len();
    assert!((10..=11).contains(&rows), "{rows} rows");
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
    assert_eq!(passed(&outcome).len() as u64, ROWS);
    assert_eq!(provider.count() as u64, ROWS);
}
