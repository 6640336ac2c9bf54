//! `prompt.cache`: what is sent, what it costs, and what estimates and ceilings make of it.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use support::command::Verify;
use support::job::results;
use support::provider::{Call, Provider, Reply};
use verify::base::Money;

/// A model whose cache takes 1,024 tokens and more, and its prices in 10^-12 USD a token.
const MODEL: &str = "claude-opus-4-8";
const INPUT: u64 = 5_000_000;
const READ: u64 = 500_000;
const WRITE: u64 = 6_250_000;
const HOUR: u64 = 10_000_000;
const OUTPUT: u64 = 25_000_000;
/// How long a request takes, and with it the time until what it writes can be read.
const LATENCY: Duration = Duration::from_millis(15);

fn rows(count: usize) -> String {
    (1..=count).map(|n| json!({ "n": n, "text": "some words ".repeat(n % 7) }).to_string() + "\n").collect()
}

/// 9,000 characters, of which a token has three.
fn system() -> String {
    "Judge as the rules say, all of them. ".repeat(244)[..9_000].to_owned()
}

/// A provider with a prompt cache and a book. It keeps what is marked, from the moment of its reply on.
struct Caching {
    provider: Provider,
    /// In 10^-12 USD.
    book: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
    /// What is kept, and since when.
    kept: Arc<Mutex<Option<(String, Duration)>>>,
}

impl Caching {
    fn start() -> Self {
        let (book, writes, kept) =
            (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default(), Arc::<Mutex<_>>::default());
        let (bill, wrote, keeps) = (Arc::clone(&book), Arc::clone(&writes), Arc::clone(&kept));
        let provider = Provider::start(move |call| {
            let tokens = |text: &str| text.len() as u64 / 3;
            let (system, user) = (call.system(), call.user());
            let marked = call.body["system"][0]["cache_control"] == json!({ "type": "ephemeral" });
            let mut keeps: MutexGuard<'_, Option<(String, Duration)>> = keeps.lock().unwrap();
            let is_kept = |(text, since): &(String, Duration)| *text == system && call.at >= *since;
            let (read, written) = match (marked, keeps.as_ref().is_some_and(is_kept)) {
                (false, _) => (0, 0),
                (true, true) => (tokens(&system), 0),
                (true, false) => (0, tokens(&system)),
            };
            if written > 0 {
                wrote.fetch_add(1, Ordering::SeqCst);
                *keeps = Some((system.clone(), call.at + LATENCY));
            }
            let ordinary = tokens(&user) + if marked { 0 } else { tokens(&system) };
            bill.fetch_add(ordinary * INPUT + read * READ + written * WRITE + 5 * OUTPUT, Ordering::SeqCst);
            message(&json!({ "input_tokens": ordinary, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
                "cache_creation": { "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 },
                "output_tokens": 5 }))
            .after(LATENCY)
        });
        Self { provider, book, writes, kept }
    }

    fn job(&self, count: usize) -> Verify {
        let files = Verify::new().file("in.jsonl", rows(count)).file("short.txt", "Be brief.");
        files.file("system.txt", system()).args(self.asks("{{ n }}: {{ text }}"))
    }

    fn asks(&self, prompt: &str) -> Vec<String> {
        self.asks_of("system.txt", prompt)
    }

    fn asks_of(&self, system: &str, prompt: &str) -> Vec<String> {
        let url = self.provider.url();
        let all = ["run", "in.jsonl", "--model", MODEL, "--base-url", &url, "--system-file", system];
        let more = ["--prompt", prompt, "--column", "ok=boolean"];
        all.into_iter().chain(more).map(str::to_owned).collect()
    }

    fn usd(&self) -> f64 {
        usd(&self.book)
    }
}

fn message(usage: &Value) -> Reply {
    Reply::status(200).json(&json!({ "type": "message", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "{\"ok\":true}" }], "usage": usage }))
}

/// A book in USD.
fn usd(book: &AtomicU64) -> f64 {
    let amount = Money::from_pico(i64::try_from(book.load(Ordering::SeqCst)).unwrap());
    amount.to_string().parse().unwrap()
}

fn money(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn the_first_request_writes_and_all_others_read() {
    let caching = Caching::start();
    let job = caching.job(40).args(["--prompt-cache", "--concurrency", "16", "--summary", "s.json"]);
    let outcome = job.run().expect_code(0);
    assert_eq!(caching.writes.load(Ordering::SeqCst), 1, "one request goes alone and writes");
    let rows = results(&outcome);
    let cached: Vec<u64> = rows.iter().map(|row| row["usage"]["cached_input"].as_u64().unwrap()).collect();
    assert_eq!(cached.iter().filter(|tokens| **tokens == 0).count(), 1);
    assert_eq!(cached.iter().sum::<u64>(), 39 * 3_000);
    // What is read and what is written stand beside `input_tokens`, and are part of the input here.
    assert!(rows.iter().all(|row| row["usage"]["input"].as_u64().unwrap() > 3_000));
    let told: Value = serde_json::from_str(&outcome.file("s.json")).unwrap();
    assert_eq!(told["tokens"]["cached_input"], 39 * 3_000);
    assert!((money(&told["cost"]["spent_usd"]) - caching.usd()).abs() < 1e-10, "{told}");
    let sum: f64 = rows.iter().map(|row| money(&row["usage"]["cost_usd"])).sum();
    assert!((sum - caching.usd()).abs() < 1e-7);
    assert!(outcome.stderr.contains("of it cached"), "{}", outcome.stderr);

    // In another execution the key has answered before, and nothing is kept any more.
    *caching.kept.lock().unwrap() = None;
    let again = outcome.again().args(caching.asks("And {{ n }}: {{ text }}"));
    again.args(["--prompt-cache", "--concurrency", "16"]).run().expect_code(0);
    assert_eq!(caching.writes.load(Ordering::SeqCst), 2);
}

#[test]
fn a_cache_changes_no_answer_and_is_not_hashed() {
    let caching = Caching::start();
    let plain = caching.job(5).run().expect_code(0);
    assert_eq!(caching.provider.calls()[0].body["system"], system());
    let again = plain.again().args(caching.asks("{{ n }}: {{ text }}"));
    let again = again.arg("--prompt-cache").run().expect_code(0);
    assert_eq!(caching.provider.count(), 5);
    let answers =
        |lines: Vec<Value>| -> Vec<Value> { lines.into_iter().map(|mut row| row["answer"].take()).collect() };
    assert_eq!(answers(results(&again)), answers(results(&plain)));
}

#[test]
fn estimates_count_on_the_cache() {
    let caching = Caching::start();
    let job = caching.job(300).arg("--prompt-cache");
    let estimate = |more: &[&str]| {
        let run = job.again().args(caching.asks("{{ n }}: {{ text }}")).args(["--format", "json"]);
        run.args(more.iter().copied()).run().expect_code(0)
    };
    let dry = estimate(&["--prompt-cache", "--dry-run"]);
    assert!(dry.stderr.contains("are read from it once the first call has written them"), "{}", dry.stderr);
    let dear = estimate(&["--dry-run"]).json();
    // With an answer before, the shares are as they were found, but for what was written at the start.
    let one = estimate(&["--prompt-cache", "--probe", "1"]).json();
    let probed = estimate(&["--prompt-cache", "--probe", "19"]).json();
    let before = dry.json();
    job.run().expect_code(0);
    let usd = caching.usd();
    for (name, told) in [("dry run", &before), ("probe of 1 row", &one), ("probe of 20 rows", &probed)] {
        let cost = &told["cost_usd"];
        let is_between = money(&cost["low"]) <= usd && usd <= money(&cost["high"]);
        assert!(is_between, "{name}: {usd} and {cost}");
    }
    let near = |told: &Value| money(&told["cost_usd"]["likely"]) / usd;
    assert!((near(&probed) - 1.0).abs() < 0.1, "{usd}: {probed}");
    assert!((near(&one) - 1.0).abs() < 0.2, "{usd}: {one}");
    // Guessed at 2.7 characters a token, and a little for the schema: 299 times it is read instead of bought.
    let saved = money(&dear["cost_usd"]["likely"]) - money(&before["cost_usd"]["likely"]);
    assert!((saved / (299.0 * 3_333.0 * 4.5e-6) - 1.0).abs() < 0.05, "{saved}: {before} {dear}");
    // A prompt that is too short for the cache is not.
    let short = job.again().args(caching.asks_of("short.txt", "{{ n }}"));
    let short = short.args(["--prompt-cache", "--dry-run", "--format", "json"]).run().expect_code(0);
    assert!(short.stderr.contains("less than 1024 equal tokens"), "{}", short.stderr);
}

#[test]
fn a_ceiling_reserves_the_price_of_writing() {
    // Whoever asks for an hour may have to pay for it.
    for (ttl, rate) in [(None, WRITE), (Some("1h"), HOUR)] {
        let bill = Arc::new(AtomicU64::new(0));
        let (book, hour) = (Arc::clone(&bill), ttl.is_some());
        let provider = Provider::start(move |call: &Call| {
            let bytes = (call.system().len() + call.user().len()) as u64 + 1_024;
            book.fetch_add(bytes * rate + 50 * OUTPUT, Ordering::SeqCst);
            let kept = if hour { [0, bytes] } else { [bytes, 0] };
            message(&json!({ "input_tokens": 0, "cache_creation_input_tokens": bytes, "output_tokens": 50,
                "cache_creation": { "ephemeral_5m_input_tokens": kept[0], "ephemeral_1h_input_tokens": kept[1] } }))
        });
        let config = ttl.map_or_else(String::new, |ttl| {
            format!("[request]\nextra = {{ cache_control = {{ type = \"ephemeral\", ttl = \"{ttl}\" }} }}\n")
        });
        let outcome = Verify::new()
            .file("in.jsonl", rows(20))
            .file("system.txt", system())
            .config(&config)
            .args(["run", "in.jsonl", "--model", MODEL, "--base-url", &provider.url(), "--prompt", "{{ n }}"])
            .args(["--system-file", "system.txt", "--column", "ok=boolean", "--prompt-cache"])
            .args(["--max-output-tokens", "50", "--max-cost", "0.5", "--concurrency", "8"])
            .args(["--summary", "s.json"])
            .run()
            .expect_code(5);
        let spent = bill.load(Ordering::SeqCst);
        let row = 10_500 * rate;
        assert!(spent <= 500_000_000_000 && spent + row > 500_000_000_000, "{spent} at {rate}");
        let told: Value = serde_json::from_str(&outcome.file("s.json")).unwrap();
        assert!((money(&told["cost"]["spent_usd"]) - usd(&bill)).abs() < 1e-9, "{told}");
    }
}

#[test]
fn other_providers_are_sent_nothing_of_it() {
    let bodies = |flags: &[&str]| {
        let provider = support::job::always("{\"ok\":true}");
        support::job::job(&provider, 3)
            .args(["--system", "Be brief.", "--concurrency", "1"])
            .args(flags.iter().copied())
            .run()
            .expect_code(0);
        let bodies: Vec<Value> = provider.calls().into_iter().map(|call| call.body).collect();
        bodies
    };
    let (plain, cached) = (bodies(&[]), bodies(&["--prompt-cache"]));
    assert_eq!(plain, cached);
    for body in cached {
        assert_eq!(body["messages"][0], json!({ "role": "system", "content": "Be brief." }));
        assert_eq!(body["messages"][1]["role"], "user");
    }
}

#[test]
fn a_server_that_refuses_the_mark_is_asked_without_it() {
    let refused = Arc::new(AtomicBool::new(false));
    let once = Arc::clone(&refused);
    let provider = Provider::start(move |call| {
        if call.body["system"].is_array() {
            assert!(!once.swap(true, Ordering::SeqCst), "asked twice");
            let error = json!({ "type": "invalid_request_error",
                "message": "system.0.cache_control: Extra inputs are not permitted" });
            return Reply::status(400).json(&json!({ "type": "error", "error": error }));
        }
        Reply::message("{\"ok\":true}")
    });
    let outcome = Verify::new()
        .file("in.jsonl", rows(4))
        .args(["run", "in.jsonl", "--model", MODEL, "--base-url", &provider.url(), "--prompt", "{{ n }}"])
        .args(["--system", "Be brief.", "--column", "ok=boolean", "--prompt-cache"])
        .run()
        .expect_code(0);
    assert_eq!(provider.count(), 5);
    assert_eq!(outcome.stderr.matches("refuses `cache_control`").count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_cache_that_cannot_help_is_warned_about() {
    let check = |flags: &[&str]| {
        let base = ["check", "in.jsonl", "--model", MODEL, "--prompt", "{{ n }}", "--prompt-cache"];
        let check = Verify::new().file("in.jsonl", rows(4)).args(base).args(flags.iter().copied());
        let outcome = check.args(["--format", "json"]).run().expect_code(0);
        outcome.json()["warnings"].to_string()
    };
    assert!(check(&["--system", "Row {{ n }}."]).contains("differs from row to row"));
    assert!(check(&[]).contains("there is none"));
    assert_eq!(check(&["--system", "Be brief."]), "[]");
    // Nobody marks anything for other providers.
    assert_eq!(check(&["--base-url", "http://127.0.0.1:9", "--provider", "openai"]), "[]");
}
