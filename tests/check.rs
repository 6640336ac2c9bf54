//! `verify check`: what it finds, and where each value comes from.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};

const MOCK: [&str; 6] = ["--provider", "mock", "--prompt", "Is {{ text }} spam?", "--column", "spam=boolean"];

fn check(directory: Verify) -> Verify {
    directory.args(["check", "in.csv"]).args(MOCK)
}

fn three_rows() -> Verify {
    Verify::new().file("in.csv", "text\none\ntwo\nthree\n")
}

/// Value and origin of a key.
#[track_caller]
fn value(outcome: &Outcome, key: &str) -> (Value, String) {
    let json = outcome.json();
    let entry = json["values"].as_array().unwrap().iter().find(|entry| entry["key"] == key);
    let entry = entry.unwrap_or_else(|| panic!("no key {key}: {json}"));
    (entry["value"].clone(), entry["origin"].as_str().unwrap().to_owned())
}

#[test]
fn a_good_job_is_said_to_be_good_and_leaves_nothing_behind() {
    let outcome = check(three_rows()).run().expect_code(0);
    assert!(outcome.stderr.contains("good: in.csv, 3 rows"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("limits.concurrency = 16  "), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("# answer.temperature is not set\n"), "{}", outcome.stdout);
    assert!(!outcome.path(".verify").exists() && !outcome.path("in.verified.csv").exists());

    let piped = Verify::new()
        .stdin("{\"text\":\"a\"}\n")
        .args(["check", "-"])
        .args(MOCK)
        .args(["--format", "json"])
        .run()
        .expect_code(0);
    assert_eq!(piped.json()["input"]["rows"], 1);
    assert!(!piped.path(".verify").exists());
}

#[test]
fn the_text_is_a_configuration_that_means_the_same() {
    let first = check(three_rows()).args(["--rule", "majority", "--samples", "3"]).run().expect_code(0);
    let file: String = first
        .stdout
        .lines()
        .filter(|line| !line.starts_with("answer.columns"))
        .fold(String::new(), |text, line| text + line + "\n");
    let again = first
        .again()
        .config(&file)
        .args(["check", "in.csv", "--column", "spam=boolean", "--format", "json"])
        .run()
        .expect_code(0);
    assert_eq!(value(&again, "ensemble.samples").0, 3);
    assert_eq!(value(&again, "ensemble.rule").0, "majority");
    assert!(value(&again, "ensemble.rule").1.starts_with("verify.toml line "));
}

#[test]
fn the_highest_layer_counts_and_is_named() {
    let job = || {
        three_rows().config(
            "provider = \"mock\"\n[prompt]\nuser = \"{{ text }}\"\n[limits]\nconcurrency = 2\n\
             timeout = \"7s\"\ndeadline = \"9m\"\n[answer]\ncolumns = { ok = \"boolean\" }\n",
        )
    };
    let outcome = job()
        .env("VERIFY_LIMITS_TIMEOUT", "8s")
        .env("VERIFY_LIMITS_CONCURRENCY", "3")
        .args(["check", "in.csv", "--concurrency", "4", "--format", "json"])
        .run()
        .expect_code(0);
    assert!(outcome.stderr.contains("configuration: verify.toml"), "{}", outcome.stderr);
    assert_eq!(value(&outcome, "limits.concurrency"), (json!(4), "--concurrency".to_owned()));
    assert_eq!(value(&outcome, "limits.timeout"), (json!("8s"), "VERIFY_LIMITS_TIMEOUT".to_owned()));
    assert_eq!(value(&outcome, "limits.deadline"), (json!("9m"), "verify.toml line 7".to_owned()));
    assert_eq!(value(&outcome, "retry.attempts"), (json!(5), "default".to_owned()));
    assert_eq!(
        value(&outcome, "answer.columns"),
        (json!({"ok": "boolean"}), "verify.toml line 9".to_owned())
    );

    let outcome =
        job().args(["check", "in.csv", "--preset", "verdict", "--format", "json"]).run().expect_code(0);
    assert_eq!(value(&outcome, "answer.verdict"), (json!("match"), "--preset, the preset".to_owned()));
    let (columns, origin) = value(&outcome, "answer.columns");
    assert!(columns.is_null() && origin.contains("set aside for answer.preset (--preset)"), "{origin}");
}

#[test]
fn credentials_are_names_and_a_mask() {
    let checked = |url: &str| {
        three_rows()
            .env("ORG_A", "sk-very-secret")
            .args(["check", "in.csv", "--model", "m", "--base-url", url])
            .args([
                "--prompt",
                "{{ text }}",
                "--key-env",
                "a=ORG_A",
                "--key-env",
                "b=ORG_B",
                "--format",
                "json",
            ])
            .run()
    };
    let outcome = checked("http://127.0.0.1:9/v1?api-version=2").expect_code(0);
    assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains("secret\":\"sk"));
    assert!(!outcome.stdout.contains("sk-very"), "{}", outcome.stdout);
    assert_eq!(value(&outcome, "keys.a"), (json!({"env": "ORG_A", "secret": "***"}), "--key-env".to_owned()));
    assert_eq!(value(&outcome, "keys.b").0, json!({"env": "ORG_B", "secret": null}));
    assert_eq!(value(&outcome, "base_url").0, "http://127.0.0.1:9/v1?api-version=2");
    // One in the address is refused, and shown as little.
    let outcome = checked("http://127.0.0.1:9/v1?api-key=hidden&a=b").expect_code(2);
    assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains("hidden"), "{}", outcome.stdout);
    assert_eq!(value(&outcome, "base_url").0, "http://127.0.0.1:9/v1?api-key=***&a=b");
}

#[test]
fn problems_are_listed_together() {
    let outcome = three_rows()
        .file("in.csv", "text\none\ntwo,2\nthree,3,3\n")
        .args(["check", "in.csv", "--provider", "mock", "--prompt", "{{ txt }}", "--column", "a=boolean"])
        .run()
        .expect_code(2);
    assert!(outcome.stderr.contains("row 2, line 3") && outcome.stderr.contains("row 3, line 4"));
    assert!(outcome.stderr.contains("did you mean `text`?"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("prompt.user = \"{{ txt }}\""), "{}", outcome.stdout);

    let many: String = (0..30).map(|_| "a,b\n").collect();
    let outcome = check(Verify::new().file("in.csv", format!("text\n{many}"))).run().expect_code(2);
    assert_eq!(outcome.stderr.matches("error: in.csv, row ").count(), 20, "{}", outcome.stderr);

    let outcome = check(three_rows()).args(["--format", "json", "--samples", "0"]).run().expect_code(2);
    let json = outcome.json();
    assert_eq!(json["ok"], false);
    assert!(json["problems"][0].as_str().unwrap().contains("`ensemble.samples`"), "{json}");
    assert_eq!(value(&outcome, "ensemble.samples"), (json!(0), "--samples".to_owned()));

    let outcome = check(three_rows()).args(["-o", "none/out.csv"]).run().expect_code(2);
    assert!(outcome.stderr.contains("none/out.csv"), "{}", outcome.stderr);
}

#[test]
fn rows_that_would_be_bad_input_are_warnings() {
    let lines =
        "{\"text\":\"a\",\"n\":1}\n{\"text\":\"\\ud800\",\"n\":1}\n{\"n\":2}\n{\"text\":\"b\",\"n\":1}\n";
    let outcome = Verify::new()
        .file("in.jsonl", lines)
        .args(["check", "in.jsonl"])
        .args(MOCK)
        .args(["--format", "json"])
        .run()
        .expect_code(0);
    let warnings = outcome.json()["warnings"].to_string();
    for row in ["row 2, line 2", "row 3, line 3"] {
        assert!(warnings.contains(&format!("{row}: it would become error/bad_input")), "{warnings}");
    }
    assert!(!warnings.contains("row 4, line 4"), "{warnings}");
}

/// Every key with its flag and a value that is not its default. The second group cannot stand beside the first.
const KEYS: [&[(&str, &str, &str)]; 2] = [
    &[
        ("model", "--model", "\"m\""),
        ("provider", "--provider", "\"openai\""),
        ("base_url", "--base-url", "\"http://127.0.0.1:9/v1\""),
        ("input.id", "--id-column", "\"text\""),
        ("prompt.system", "--system", "\"Be brief.\""),
        ("prompt.user", "--prompt", "\"{{ text }}\""),
        ("prompt.cache", "--prompt-cache", "true"),
        ("prompt.version", "--prompt-version", "\"v2\""),
        ("answer.schema", "--schema", "\"schema.json\""),
        ("answer.verdict", "--verdict", "\"grade\""),
        ("answer.pass", "--pass", "[\"a\",\"b\"]"),
        ("answer.confidence", "--confidence", "\"sure\""),
        ("answer.agree_on", "--agree-on", "[\"grade\"]"),
        ("answer.max_output_tokens", "--max-output-tokens", "77"),
        ("answer.structured", "--structured", "\"json_object\""),
        ("answer.repair", "--repair", "2"),
        ("answer.temperature", "--temperature", "0.5"),
        ("answer.top_p", "--top-p", "0.25"),
        ("answer.seed", "--seed", "-4"),
        ("answer.reasoning_effort", "--reasoning-effort", "\"low\""),
        ("ensemble.samples", "--samples", "3"),
        ("ensemble.rule", "--rule", "\"majority\""),
        ("ensemble.auto_pass", "--auto-pass", "0.7"),
        ("ensemble.auto_fail", "--auto-fail", "0.6"),
        ("ensemble.early_stop", "--early-stop", "false"),
        ("ensemble.concurrent_samples", "--concurrent-samples", "true"),
        ("limits.concurrency", "--concurrency", "9"),
        ("limits.adaptive", "--adaptive", "false"),
        ("limits.rpm", "--rpm", "600"),
        ("limits.tpm", "--tpm", "70000"),
        ("limits.max_cost", "--max-cost", "5.5"),
        ("limits.max_calls", "--max-calls", "88"),
        ("limits.confirm_above", "--confirm-above", "7"),
        ("limits.timeout", "--timeout", "\"9s\""),
        ("limits.deadline", "--deadline", "\"9m\""),
        ("limits.max_rows", "--max-rows", "99"),
        ("retry.attempts", "--attempts", "6"),
        ("retry.base", "--retry-base", "\"2s\""),
        ("retry.max_backoff", "--max-backoff", "\"50s\""),
        ("retry.max_wait", "--max-wait", "\"60s\""),
        ("retry.outage_patience", "--outage-patience", "\"5m\""),
        ("retry.throttle_patience", "--throttle-patience", "\"6m\""),
        ("gate.max_fail", "--max-fail", "3"),
        ("gate.max_review", "--max-review", "\"5%\""),
        ("gate.max_error", "--max-error", "\"any\""),
        ("output.path", "--output", "\"out.jsonl\""),
        ("output.prefix", "--prefix", "\"ai_\""),
        ("output.csv_safe", "--csv-safe", "true"),
        ("output.accounting", "--accounting", "false"),
    ],
    &[
        ("provider", "--provider", "\"mock\""),
        ("prompt.system_file", "--system-file", "\"system.txt\""),
        ("prompt.user_file", "--prompt-file", "\"prompt.txt\""),
        ("answer.preset", "--preset", "\"verdict\""),
    ],
];

#[test]
fn every_key_is_a_flag_a_variable_and_an_entry_of_the_file() {
    let directory = || {
        let schema = r#"{"type":"object","properties":{"grade":{"enum":["a","b","c"]},"sure":{"type":"number"}},
            "required":["grade","sure"],"additionalProperties":false}"#;
        let files = [("schema.json", schema), ("system.txt", "Be brief."), ("prompt.txt", "{{ text }}")];
        files.iter().fold(three_rows(), |directory, (name, text)| directory.file(name, text))
    };
    let plain = |value: &str| match serde_json::from_str(value).unwrap() {
        Value::String(text) => text,
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    };
    for keys in KEYS {
        let by_flag = keys.iter().fold(
            directory().args(["check", "in.csv", "--price", "input=1,output=4"]),
            |call, (_, flag, value)| call.arg(format!("{flag}={}", plain(value))),
        );
        let by_variable = keys.iter().fold(
            directory().args(["check", "in.csv", "--price", "input=1,output=4"]),
            |call, (key, _, value)| {
                call.env(&format!("VERIFY_{}", key.replace('.', "_").to_uppercase()), &plain(value))
            },
        );
        let lines: String =
            keys.iter().map(|(key, _, value)| format!("{key} = {value}\n")).collect::<Vec<_>>().concat();
        let by_file = directory().config(&lines).args(["check", "in.csv", "--price", "input=1,output=4"]);
        let by_flag = by_flag.args(["--format", "json"]).run().expect_code(0);
        let by_variable = by_variable.args(["--format", "json"]).run().expect_code(0);
        let by_file = by_file.args(["--format", "json"]).run().expect_code(0);
        for (at, (key, flag, written)) in keys.iter().enumerate() {
            let wanted: Value = serde_json::from_str(written).unwrap();
            assert_eq!(value(&by_flag, key), (wanted.clone(), (*flag).to_owned()));
            let variable = format!("VERIFY_{}", key.replace('.', "_").to_uppercase());
            assert_eq!(value(&by_variable, key), (wanted.clone(), variable));
            assert_eq!(value(&by_file, key), (wanted, format!("verify.toml line {}", at + 1)), "{key}");
        }
    }
    let all = check(three_rows()).args(["--format", "json"]).run().expect_code(0).json();
    let listed = all["values"].as_array().unwrap().iter().filter_map(|entry| entry["key"].as_str());
    let tables = ["answer.columns", "request.extra"];
    for key in
        listed.filter(|key| !tables.contains(key) && !key.starts_with("keys.") && !key.starts_with("price."))
    {
        assert!(KEYS.iter().any(|keys| keys.iter().any(|(known, ..)| known == &key)), "{key} is not tested");
    }
}
