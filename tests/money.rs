//! A ceiling on money and requests holds at any concurrency, over any number of executions and kills, by the
//! provider's own book.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, whose size a variable sets"
)]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::kills;
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

#[test]
fn kills_never_lift_the_ceiling_and_what_they_may_have_cost_is_shown() {
    let mut shown = 0;
    for (at, (shape, (ceiling, most), tokens)) in combinations().enumerate() {
        let (provider, book) = provider();
        let verify = with_rows(shape.rows);
        let case = format!("{shape:?} {ceiling} {tokens}");
        for round in 0..kills(3) {
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
            let billed = book.load(Ordering::SeqCst);
            assert!(billed <= most, "{case}, round {round}");
            // What the killed execution may have spent is told before anything goes on.
            let status = verify.again().args(["status", "--format", "json"]).run();
            if status.code == 0 {
                let cost = &status.json()["cost"];
                let claimed = micros(&cost["spent_usd"]) + micros(&cost["possible_usd"]);
                assert!(billed <= claimed && claimed <= most, "{case}, round {round}: {billed}, {cost}");
            }
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
    assert!(shown > 0 || kills(3) == 0, "no kill left anything unknown");
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
    assert_eq!(passed(&outcome).len() as u64, PLAIN.rows);
    assert_eq!(provider.count() as u64, PLAIN.rows);
}

/// What a provider notes of one request.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// In 10^-12 USD.
    billed: u64,
    /// Whether a whole reply was sent.
    whole: bool,
    throttled: bool,
}

/// Prices in 10^-12 USD a token, so that rows cost fractions of 10^-9.
const INPUT: u64 = 123_457;
const OUTPUT: u64 = 987_654;
/// The most output tokens of a request in the storm.
const MOST: u64 = 400;

type Entries = Arc<Mutex<BTreeMap<(u64, u64), Entry>>>;

/// A provider in a storm: 429 with and without a wait, cut bodies, connections that break, requests that are never
/// answered, failures that are billed or not, answers that are invalid, cut short, or dear. Its book has an entry for
/// each row and attempt.
fn storm() -> (Provider, Entries) {
    let book = Entries::default();
    let entries = Arc::clone(&book);
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let provider = Provider::start(move |call| {
        let note = |input: u64, output: u64, whole: bool, throttled: bool| {
            let entry = Entry { billed: input * INPUT + output * OUTPUT, whole, throttled };
            assert!(entries.lock().unwrap().insert((call.row, call.attempt), entry).is_none(), "sent twice");
        };
        let burst = call.n % 300 > 260;
        if burst || Dice::new(9, &[call.n as u64]).below(20) == 0 {
            note(0, 0, true, true);
            let reply = Reply::error(429, "rate_limit_exceeded", "Slow down.");
            return if burst { reply.header("retry-after-ms", "15") } else { reply };
        }
        let row = call.row;
        let tried = counts.entry(row).or_default();
        *tried += 1;
        let is_first = *tried == 1;
        let (input, output) = (40 + row * 31 % 900, 1 + row * 17 % 50 + *tried * 3);
        let text = format!("{{\"good\":{}}}", row % 2 == 0);
        let good = Reply::completion(&text, "stop", input, output);
        let late = Duration::from_micros(row * 7_919 % 9_000);
        match row {
            // Time-outs are tried once more only: some rows are left for the next execution.
            _ if row % 97 == 13 && (is_first || row % 2 == 1 && *tried == 2) => {
                note(input, output, false, false);
                Reply::never()
            }
            _ if row % 11 == 3 && is_first => {
                note(input, output, false, false);
                good.cut_body_after(60)
            }
            _ if row % 31 == 7 && is_first => {
                note(input, output, false, false);
                Reply::reset()
            }
            _ if row % 13 == 5 && *tried < 3 => {
                note(0, 0, true, false);
                Reply::error(503, "server_is_overloaded", "Overloaded.")
            }
            _ if row % 61 == 9 && is_first => {
                note(input, 0, true, false);
                Reply::status(500).json(&json!({ "error": { "message": "It broke.", "code": "server_error" },
                    "usage": { "prompt_tokens": input, "completion_tokens": 0, "total_tokens": input } }))
            }
            // Mended by a repair, or not.
            _ if row % 7 == 2 && (is_first || row % 5 == 0) => {
                note(input, output, true, false);
                Reply::completion("{\"good\":\"perhaps\"}", "stop", input, output).after(late)
            }
            _ if row % 53 == 1 => {
                note(input, MOST, true, false);
                Reply::completion("{\"good\":", "length", input, MOST).after(late)
            }
            _ => {
                note(input, output, true, false);
                good.after(late)
            }
        }
    });
    (provider, book)
}

/// USD of a JSON number.
fn usd(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

/// 10^-12 USD to 9 places, half up.
fn printed(pico: u64) -> Decimal {
    Decimal::new(i64::try_from((pico + 500) / 1_000).unwrap(), 9).normalize()
}

#[test]
fn book_ledger_and_output_agree_row_by_row_after_a_storm() {
    let count = std::env::var("VERIFY_TEST_ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(600);
    let (provider, book) = storm();
    let url = provider.url();
    let rate = |pico: u64| Decimal::new(i64::try_from(pico).unwrap(), 6);
    let price = format!("input={},output={}", rate(INPUT), rate(OUTPUT));
    let limit = MOST.to_string();
    let command = with_rows(count)
        .patience(Duration::from_secs(600))
        .args(["run", "in.jsonl", "--model", "m", "--base-url", &url, "--prompt", "row {{ id }}"])
        .args(["--column", "good=boolean", "--verdict", "good", "--max-fail", "any", "--max-error", "any"])
        .args(["--price", &price, "--max-cost", "1000", "--max-output-tokens", &limit, "--concurrency", "64"])
        .args([
            "--timeout",
            "6s",
            "--retry-base",
            "5ms",
            "--max-backoff",
            "100ms",
            "--summary",
            "summary.json",
        ])
        // A pool that keeps its size, so that requests without an answer do not stop the others.
        .args(["--log", "log.jsonl", "--adaptive=false"]);
    let first = command.run().expect_code(0);
    let reasons = summary(&first)["reason"].clone();
    // What was lost twice is asked again: the run's book goes on. Where many are lost at one moment, that is an outage,
    // which ends no row.
    let outcome = if reasons["timeout"].as_u64().unwrap_or(0) > 0 {
        let second = command.run().expect_code(0);
        assert!(second.stderr.contains("continuing run"), "{}", second.stderr);
        second
    } else {
        first
    };

    // A request whose end the log does not price brought no whole reply.
    let log = outcome.json_lines("log.jsonl");
    let attempts = log.iter().filter(|event| event["event"] == "attempt_finished");
    let ended: BTreeMap<(u64, u64), &Value> = attempts
        .map(|event| ((event["row"].as_u64().unwrap(), event["attempt"].as_u64().unwrap()), event))
        .collect();
    let book = book.lock().unwrap().clone();
    assert_eq!(
        book.keys().collect::<Vec<_>>(),
        ended.keys().collect::<Vec<_>>(),
        "each request is in the log"
    );
    let is_lost = |key: &(u64, u64)| ended[key]["cost_usd"].is_null();
    let (mut exact, mut lost, mut unpaid): (BTreeMap<u64, u64>, u64, u64) = Default::default();
    let mut answered: BTreeMap<u64, u64> = BTreeMap::new();
    for (key, entry) in &book {
        assert!(entry.whole || is_lost(key), "{key:?} was lost: {}", ended[key]);
        if is_lost(key) {
            (lost, unpaid) = (lost + 1, unpaid + entry.billed);
            continue;
        }
        assert_eq!(
            usd(&ended[key]["cost_usd"]).normalize(),
            printed(entry.billed),
            "{key:?}: {}",
            ended[key]
        );
        *exact.entry(key.0).or_default() += entry.billed;
        *answered.entry(key.0).or_default() += u64::from(!entry.throttled);
    }
    let whole = book.values().filter(|entry| !entry.whole).count() as u64;
    assert!(lost >= whole && whole > count / 11, "{lost} lost, {whole} of them as scripted");

    // The output, row by row.
    for line in outcome.json_lines("in.verified.jsonl") {
        let (row, usage) = (line["verify"]["row"].as_u64().unwrap(), &line["verify"]["usage"]);
        assert_eq!(usd(&usage["cost_usd"]).normalize(), printed(exact[&row]), "row {row}: {line}");
        assert_eq!(usage["attempts"].as_u64(), Some(answered[&row]), "row {row}: {line}");
        assert_eq!(usage["estimated"], false);
    }
    // The ledger.
    let told = summary(&outcome);
    let cost = &told["cost"];
    assert_eq!(usd(&cost["spent_usd"]).normalize(), printed(exact.values().sum()), "{told}");
    assert_eq!(told["attempts"].as_u64(), Some(book.len() as u64));
    assert_eq!(
        told["throttled"].as_u64().unwrap(),
        book.values().filter(|entry| entry.throttled).count() as u64
    );
    // Each lost request may have cost its worst case, which is more than it has.
    let least = lost * MOST * OUTPUT + unpaid.min(1);
    assert!(usd(&cost["possible_usd"]) > printed(least) && printed(least) > printed(unpaid), "{told}");
    let status = outcome.again().args(["status", "--format", "json"]).run().json();
    assert_eq!(&status["cost"], cost);
    // And in the store, attempt by attempt.
    for row in [2, 3, 5, 7, 9, 13, 54] {
        let show = outcome.again().args(["show", "last", &row.to_string(), "--format", "json"]).run().json();
        let attempts = show["samples"][0]["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), book.range((row, 0)..(row + 1, 0)).count(), "row {row}");
        for attempt in attempts {
            let key = (row, attempt["n"].as_u64().unwrap());
            let expected = if is_lost(&key) { Value::Null } else { ended[&key]["cost_usd"].clone() };
            assert_eq!(attempt["cost_usd"], expected, "{key:?}: {show}");
        }
    }
}
