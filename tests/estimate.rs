//! What a run will take, before it runs: `--dry-run`, `--probe`, `confirm_above`, `verify models`.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::mock::Mock;
use support::provider::{Provider, Reply};

/// Rows whose texts are of very different lengths.
fn rows(count: usize) -> String {
    let words = [
        "a short note",
        "the parcel came late and the box was torn on one side",
        "would buy again",
        "naïve café, 12.50 €",
    ];
    let mut text = String::new();
    for row in 0..count {
        let body: Vec<&str> = (0..=(row * 7 % 13)).map(|word| words[(row + word) % words.len()]).collect();
        text.push_str(&json!({ "n": row, "text": body.join(", ") }).to_string());
        text.push('\n');
    }
    text
}

const JOB: [&str; 10] = [
    "run",
    "in.jsonl",
    "--prompt",
    "Sort this review, number {{ n }}: {{ text }}",
    "--column",
    "ok=boolean",
    "--column",
    "why=string",
    "--price",
    "input=1,output=4",
];

fn job(count: usize, url: &str, model: &str) -> Verify {
    Verify::new().file("in.jsonl", rows(count)).args(JOB).args(["--model", model, "--base-url", url])
}

fn dollars(estimate: &Value, which: &str) -> f64 {
    estimate["cost_usd"][which].as_f64().unwrap()
}

/// The names in the directory, the test's own home left out.
fn names(outcome: &Outcome) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(outcome.path("."))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".home")
        .collect();
    names.sort();
    names
}

#[test]
fn a_dry_run_opens_no_connection_and_leaves_nothing() {
    let provider = Provider::start(|_| Reply::status(500));
    let dry = job(1_000, &provider.url(), "gpt-5.4-mini")
        .args(["--dry-run", "--format", "json", "--key-env", "k=VERIFY_TEST_NO_SUCH_KEY"])
        .run()
        .expect_code(0);
    assert_eq!(provider.connections(), 0);
    assert_eq!(names(&dry), ["in.jsonl"]);
    let estimate = dry.json();
    let members: Vec<&String> = estimate.as_object().unwrap().keys().collect();
    assert_eq!(members, ["rows", "replayed", "calls", "tokens", "cost_usd", "wall_s"]);
    assert_eq!(
        (&estimate["rows"], &estimate["replayed"], &estimate["calls"]),
        (&json!(1000), &json!(0), &json!(1000))
    );
    assert!(dry.stderr.contains("o200k_base"), "{}", dry.stderr);
    let text = job(3, &provider.url(), "qwen").arg("--dry-run").run().expect_code(0).stdout;
    assert!(text.contains("guessed at 4.0 characters a token") && text.contains("calls     3"), "{text}");
}

#[test]
fn the_book_is_between_low_and_high_and_near_what_a_probe_says() {
    for model in ["gpt-5.4-mini", "some-model"] {
        let mock = Mock::start(["--price", "input=1,output=4"]);
        let dry =
            job(1_000, &mock.openai(), model).args(["--dry-run", "--format", "json"]).run().expect_code(0);
        let before = dry.json();
        assert_eq!(mock.count("requests"), 0);

        let probe = || dry.again().args(JOB).args(["--model", model, "--base-url", &mock.openai()]);
        let probed = probe().args(["--probe", "20", "--format", "json", "--quiet"]).run().expect_code(0);
        assert_eq!(mock.count("requests"), 20);
        assert_eq!(names(&probed), [".verify", "in.jsonl"]);
        let after = probed.json();
        assert_eq!(
            (&after["rows"], &after["replayed"], &after["calls"]),
            (&json!(1000), &json!(0), &json!(1000))
        );

        let left = probe().args(["--dry-run", "--format", "json"]).run().expect_code(0).json();
        assert_eq!((&left["replayed"], &left["calls"]), (&json!(20), &json!(980)), "{left}");

        let run = probe().run().expect_code(0);
        assert!(run.stderr.contains("continuing run"), "{}", run.stderr);
        assert_eq!(run.json_lines("in.verified.jsonl").len(), 1_000);
        let stats = mock.stats();
        assert_eq!((&stats["requests"], &stats["repeated"]), (&json!(1000), &json!(0)));
        let usd = stats["usd"].as_f64().unwrap();
        for estimate in [&before, &after] {
            assert!(dollars(estimate, "low") <= usd && usd <= dollars(estimate, "high"), "{usd}: {estimate}");
        }
        assert!((dollars(&after, "likely") / usd - 1.0).abs() < 0.1, "{model}: {usd}, but {after}");
        if model == "gpt-5.4-mini" {
            // The tokens of a known encoding are those that are billed.
            assert_eq!(before["tokens"]["input"], stats["tokens"]["input"]);
        }

        let nothing = probe().args(["--dry-run", "--format", "json"]).run().expect_code(0).json();
        assert_eq!(
            (&nothing["replayed"], &nothing["calls"], &nothing["wall_s"]),
            (&json!(1000), &json!(0), &json!(0))
        );
        assert_eq!(nothing["cost_usd"], json!({ "low": 0, "likely": 0, "high": 0 }));
    }
}

#[test]
fn equal_rows_are_called_once() {
    let text = "{\"text\":\"a\"}\n{\"text\":\"b\"}\n".repeat(50);
    let job = [
        "run",
        "in.jsonl",
        "--provider",
        "mock",
        "--prompt",
        "{{ text }}",
        "--samples",
        "3",
        "--format",
        "json",
    ];
    let probed =
        Verify::new().file("in.jsonl", &text).args(job).args(["--probe", "1"]).run().expect_code(0).json();
    assert_eq!((&probed["calls"], &probed["replayed"]), (&json!(6), &json!(294)));
    let dry = Verify::new()
        .file("in.jsonl", text)
        .args([
            "run",
            "in.jsonl",
            "--provider",
            "mock",
            "--prompt",
            "{{ text }}",
            "--samples",
            "3",
            "--dry-run",
        ])
        .args(["--format", "json"])
        .run()
        .expect_code(0)
        .json();
    assert_eq!((&dry["rows"], &dry["calls"], &dry["replayed"]), (&json!(100), &json!(6), &json!(294)));
}

#[test]
fn what_is_unknown_is_null() {
    let dry = Verify::new()
        .file("in.jsonl", "{\"text\":\"a\"}\n")
        .args([
            "run",
            "in.jsonl",
            "--model",
            "gpt-6.2-sol",
            "--prompt",
            "{{ text }}",
            "--dry-run",
            "--format",
            "json",
        ])
        .run()
        .expect_code(0)
        .json();
    assert_eq!(dry["cost_usd"], json!({ "low": null, "likely": null, "high": null }));
    assert_eq!(dry["calls"], 1);
}

#[test]
fn the_time_comes_from_the_limits() {
    let wall = |flags: &[&str]| {
        let base = ["--base-url", "http://127.0.0.1:9", "--model", "m", "--dry-run", "--format", "json"];
        let dry = Verify::new().file("in.jsonl", rows(121)).args(JOB).args(base).args(flags.iter().copied());
        dry.run().expect_code(0).json()["wall_s"].as_f64().unwrap()
    };
    assert!((wall(&["--rpm", "60"]) - 120.0).abs() < 0.01);
    let (one, eight) = (wall(&["--concurrency", "1"]), wall(&["--concurrency", "8"]));
    assert!(one > 121.0 && one / eight > 7.0 && one / eight < 8.0, "{one} {eight}");
    assert!(wall(&["--tpm", "1000"]) > 120.0);
}

#[test]
fn a_dry_run_refuses_what_a_run_would_refuse() {
    let call = |text: &str, flags: &[&str]| {
        let base = ["run", "in.jsonl", "--provider", "mock", "--prompt", "{{ text }}", "--dry-run"];
        Verify::new().file("in.jsonl", text).args(base).args(flags.iter().copied()).run()
    };
    let error = call("{\"txt\":1}\n", &[]).expect_code(2);
    assert!(error.stderr.contains("text") && error.stdout.is_empty(), "{}", error.stderr);
    call("{\"text\":1}\n", &["--run", "last"]).expect_code(2);
    call("{\"text\":1}\n", &["--probe", "3"]).expect_code(2);
    let odd = Verify::new()
        .file("in.jsonl", "{\"text\":1}\n")
        .file(".verify/store.db", "no database at all, but a text that is long enough".repeat(40))
        .args(["run", "in.jsonl", "--provider", "mock", "--prompt", "{{ text }}", "--dry-run"])
        .run()
        .expect_code(0);
    assert!(odd.stdout.contains("stored answers are not counted"), "{}", odd.stdout);
}

#[test]
fn standard_input_is_estimated_and_not_kept() {
    let dry = Verify::new()
        .stdin("{\"text\":\"a\"}\n{\"text\":\"b\"}\n")
        .args(["run", "-", "--provider", "mock", "--prompt", "{{ text }}", "--dry-run", "--format", "json"])
        .run()
        .expect_code(0);
    assert_eq!(dry.json()["calls"], 2);
    assert!(names(&dry).is_empty());
}

#[test]
fn a_dear_run_says_so_and_a_cheap_one_does_not() {
    let provider = Provider::start(|_| Reply::answer(r#"{"ok":true,"why":"w"}"#));
    let call =
        |flags: &[&str]| job(3, &provider.url(), "m").args(flags.iter().copied()).run().expect_code(0).stderr;
    let said = call(&["--confirm-above", "0.0001"]);
    assert!(said.contains("3 calls, about $0.00") && said.contains("confirm_above = 0.0001 USD"), "{said}");
    for flags in [&["--confirm-above", "0.0001", "--yes"][..], &["--confirm-above", "0.1"], &[]] {
        let said = call(flags);
        assert!(!said.contains("confirm_above"), "{said}");
    }
    // What is stored costs nothing again.
    let first = job(3, &provider.url(), "m").run().expect_code(0);
    let again = first.again().args(JOB).args(["--model", "m", "--base-url", &provider.url()]);
    let said = again.args(["--new", "--confirm-above", "0.0001"]).run().expect_code(0).stderr;
    assert!(!said.contains("confirm_above"), "{said}");
    let config = "[limits]\nconfirm_above = 0.0001\n";
    let said = job(3, &provider.url(), "m").config(config).run().expect_code(0).stderr;
    assert!(said.contains("confirm_above"), "{said}");
}

#[test]
fn a_probe_of_all_rows_leaves_the_output_to_the_run() {
    let provider = Provider::start(|_| Reply::answer(r#"{"ok":true,"why":"w"}"#));
    let probed = job(3, &provider.url(), "m").args(["--probe", "5", "--format", "json"]).run().expect_code(0);
    assert_eq!(names(&probed), [".verify", "in.jsonl"]);
    let estimate = probed.json();
    let exact = 3.0 * (100.0 + 4.0 * 10.0) / 1e6;
    assert_eq!(
        (&estimate["calls"], &estimate["tokens"]),
        (&json!(3), &json!({ "input": 300, "output": 30 }))
    );
    assert!((dollars(&estimate, "likely") - exact).abs() < 1e-9, "{estimate}");
    let run =
        probed.again().args(JOB).args(["--model", "m", "--base-url", &provider.url()]).run().expect_code(0);
    assert_eq!((run.json_lines("in.verified.jsonl").len(), provider.count()), (3, 3));
}

#[test]
fn the_tier_of_the_reply_is_what_is_paid() {
    let reply = |tier: &str| {
        let message = json!({ "role": "assistant", "content": "yes" });
        Reply::status(200).json(&json!({
            "choices": [{ "index": 0, "finish_reason": "stop", "message": message }], "service_tier": tier,
            "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 } }))
    };
    let provider = Provider::start(move |call| reply(if call.row == 1 { "flex" } else { "default" }));
    let run = Verify::new()
        .file("in.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n")
        .config("[request]\nextra = { service_tier = \"flex\" }\n")
        .args([
            "run",
            "in.jsonl",
            "--model",
            "gpt-5.4-mini",
            "--prompt",
            "{{ text }}",
            "--base-url",
            &provider.url(),
        ])
        .run()
        .expect_code(0);
    let lines = run.json_lines("in.verified.jsonl");
    let cost = |at: usize| lines[at]["verify"]["usage"]["cost_usd"].to_string();
    assert_eq!((cost(0), cost(1)), ("0.00006".to_owned(), "0.00012".to_owned()));
}

#[test]
fn models_are_listed_and_shown_with_the_source_of_their_price() {
    let list = Verify::new().args(["models", "--format", "json"]).run().expect_code(0).json();
    let mini = list.as_array().unwrap().iter().find(|model| model["id"] == "gpt-5.4-mini").unwrap();
    assert_eq!(
        (&mini["provider"], &mini["input"], &mini["output"]),
        (&json!("openai"), &json!(0.75), &json!(4.5))
    );
    assert_eq!((&mini["date"], mini["source"].as_str().unwrap().is_empty()), (&json!("2026-11-20"), false));
    let text = Verify::new().arg("models").run().expect_code(0).stdout;
    assert!(text.lines().count() > 76 && text.contains("2026-11-20"), "{text}");

    let one = |name: &str| Verify::new().args(["models", name]).run();
    let haiku = one("anthropic/claude-haiku-5-5-20261001").expect_code(0).stdout;
    for part in ["claude-haiku-5-5", "batch", "above 100000 in", "2.5", "context window", "of 2026-11-20"] {
        assert!(haiku.contains(part), "{part}: {haiku}");
    }
    let whole = Verify::new().args(["models", "gpt-5.4", "--format", "json"]).run().expect_code(0).json();
    assert_eq!((&whole["flex"]["input"], &whole["priority"]["output"]), (&json!(1.25), &json!(30)));
    assert_eq!(whole["date"], "2026-11-20");
    let unknown = one("gpt-5.4-mimi").expect_code(2).stderr;
    assert!(unknown.contains("did you mean `gpt-5.4-mini`"), "{unknown}");
}

#[test]
fn what_requests_ask_for_multiplies_the_price() {
    let input = |model: &str, extra: &str, flags: &[&str]| {
        let config = format!("[request]\nextra = {{ {extra} }}\n");
        let check = Verify::new().file("in.jsonl", "{\"text\":\"a\"}\n").config(&config);
        let check = check.args(["check", "in.jsonl", "--prompt", "{{ text }}", "--model", model]);
        let told = check.args(flags.iter().copied()).args(["--format", "json"]).run().expect_code(0).json();
        let values = told["values"].as_array().unwrap().clone();
        values.into_iter().find(|value| value["key"] == "price.input").unwrap()["value"].clone()
    };
    let opus = |extra: &str| input("claude-opus-4-8", extra, &[]);
    assert_eq!(opus(""), json!(5));
    assert_eq!(opus("speed = \"fast\""), json!(10));
    assert_eq!(opus("inference_geo = \"us\""), json!(5.5));
    assert_eq!(opus("speed = \"fast\", inference_geo = \"us\""), json!(11));
    assert_eq!(opus("speed = \"standard\", inference_geo = \"global\""), json!(5));
    // What the table does not know is unknown.
    assert_eq!(opus("inference_geo = \"moon\""), Value::Null);
    assert_eq!(input("claude-haiku-5-5", "speed = \"fast\"", &[]), Value::Null);
    // A price that somebody sets is what it is.
    assert_eq!(input("claude-opus-4-8", "speed = \"fast\"", &["--price", "input=3,output=4"]), json!(3));
    let eu = ["--base-url", "https://eu.api.openai.com/v1"];
    assert_eq!(input("gpt-5.4-mini", "", &eu), json!(0.825));
    assert_eq!(input("gpt-4o", "", &eu), json!(2.5));
}
