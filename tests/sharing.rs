//! Rows that ask the same share one request, one answer and one failure.
#![expect(clippy::unwrap_used, reason = "a failed expectation is the failure of the test")]

mod support;

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::mock::Mock;
use support::provider::{Call, Provider, Reply};

/// Rows with a number of their own, and a text that `text` gives them.
fn rows(count: u64, text: impl Fn(u64) -> String) -> String {
    (1..=count).fold(String::new(), |mut all, row| {
        writeln!(all, "{{\"id\":{row},\"text\":\"{}\"}}", text(row)).unwrap();
        all
    })
}

fn echo(call: &Call) -> Reply {
    Reply::answer(&json!({ "echo": call.user() }).to_string())
}

fn ask(verify: Verify, url: &str, workers: u32) -> Verify {
    verify
        .args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", "{{ text }}"])
        .args(["--column", "echo=string", "--adaptive=false", "--concurrency", &workers.to_string()])
        .args(["--retry-base", "1ms", "--max-backoff", "2ms", "--summary", "summary.json"])
}

fn summary(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.file("summary.json")).unwrap()
}

#[test]
fn five_hundred_equal_rows_ask_once_while_the_first_is_under_way() {
    // With room for all of them at once: the canary is over, and the window holds more than 500.
    let provider = Provider::start(|call| {
        let pause = if call.user() == "same" { 300 } else { 0 };
        echo(call).after(Duration::from_millis(pause))
    });
    let input =
        rows(502, |row| if row == 1 || row == 502 { format!("own {row}") } else { "same".to_owned() });
    let outcome = ask(Verify::new().file("in.jsonl", input), &provider.url(), 600).run().expect_code(0);
    let calls = provider.calls();
    let mut asked: Vec<_> = calls.iter().map(|call| call.row).collect();
    asked.sort_unstable();
    assert_eq!(asked, [1, 2, 502], "the lowest of the equal rows pays");
    for (line, row) in outcome.json_lines("in.verified.jsonl").iter().zip(1..) {
        let (answer, usage) = (&line["verify"]["answer"]["echo"], &line["verify"]["usage"]);
        let is_shared = (3..=501).contains(&row);
        assert_eq!(answer, &if (2..=501).contains(&row) { "same".to_owned() } else { format!("own {row}") });
        // What this run has bought is not `cached`, and costs where it was bought.
        assert_eq!(
            (&usage["cached"], &usage["attempts"]),
            (&json!(false), &json!(u32::from(!is_shared))),
            "{line}"
        );
    }
    let summary = summary(&outcome);
    assert_eq!((&summary["attempts"], &summary["tokens"]["output"]), (&json!(3), &json!(30)));
}

#[test]
fn equal_rows_far_apart_ask_once() {
    // Ten texts over a file that is many windows long.
    let mock = Mock::start(["--latency", "2ms", "--jitter", "8ms"]);
    let input = rows(1_000, |row| format!("text {}", row * row % 10));
    let outcome = ask(Verify::new().file("in.jsonl", input), &mock.openai(), 4).run().expect_code(0);
    // Squares end in 0, 1, 4, 5, 6 or 9.
    assert_eq!((mock.count("requests"), mock.count("distinct"), mock.count("repeated")), (6, 6, 0));
    let lines = outcome.json_lines("in.verified.jsonl");
    for (line, row) in lines.iter().zip(1_usize..) {
        assert_eq!(line["verify"]["answer"], lines[(row - 1) % 10]["verify"]["answer"]);
    }
}

#[test]
fn a_final_failure_is_shared_and_taken_over_and_asked_again_when_named() {
    let is_mended = Arc::new(AtomicBool::new(false));
    let mended = Arc::clone(&is_mended);
    let provider = Provider::start(move |call| {
        if mended.load(Ordering::SeqCst) || call.user() != "bad" {
            echo(call)
        } else {
            Reply::error(400, "context_length_exceeded", "too long").after(Duration::from_millis(50))
        }
    });
    // More equal rows than the window of 4 × 4 + 64 holds.
    let input = rows(300, |row| if row == 1 { "good".to_owned() } else { "bad".to_owned() });
    let verify = Verify::new().file("in.jsonl", input);
    let first = ask(verify.again(), &provider.url(), 4).run().expect_code(4);
    assert_eq!(provider.count(), 2);
    let lines = first.json_lines("in.verified.jsonl");
    for line in &lines[1..] {
        let result = &line["verify"];
        assert_eq!((&result["status"], &result["reason"]), (&json!("error"), &json!("too_long")));
        assert_eq!(result["error"], lines[1]["verify"]["error"]);
    }
    assert!(lines[1]["verify"]["error"].is_string());

    let new = ask(verify.again(), &provider.url(), 4).arg("--new").run().expect_code(4);
    assert_eq!((provider.count(), new.json_lines("in.verified.jsonl").len()), (2, 300));
    // Asked again and failed again: still one request for all.
    ask(verify.again(), &provider.url(), 4).args(["--retry", "final"]).run().expect_code(4);
    assert_eq!(provider.count(), 3);
    is_mended.store(true, Ordering::SeqCst);
    let mended = ask(verify.again(), &provider.url(), 4).args(["--retry", "final"]).run().expect_code(0);
    assert_eq!(provider.count(), 4);
    for line in &mended.json_lines("in.verified.jsonl")[1..] {
        assert_eq!(line["verify"]["answer"]["echo"], "bad");
    }
}

#[test]
fn an_operational_failure_is_not_shared() {
    // The first two of the equal rows meet a broken service, the third is answered, and the rest share that.
    let provider =
        Provider::start(
            |call| {
                if call.user() == "same" && call.row <= 3 { Reply::status(500) } else { echo(call) }
            },
        );
    let input = rows(30, |row| if row == 1 { "first".to_owned() } else { "same".to_owned() });
    let outcome = ask(Verify::new().file("in.jsonl", input), &provider.url(), 8)
        .args(["--attempts", "2"])
        .run()
        .expect_code(4);
    let asked: Vec<_> = provider.calls().iter().map(|call| (call.row, call.attempt)).collect();
    assert_eq!(asked, [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 1)]);
    let reasons: Vec<_> =
        outcome.json_lines("in.verified.jsonl").iter().map(|line| line["verify"]["reason"].clone()).collect();
    assert_eq!(reasons[..4], ["valid", "server_error", "server_error", "valid"]);
    assert!(reasons[4..].iter().all(|reason| reason == "valid"));
    // Asked again, they are given the answer that is there.
    let again = ask(outcome.again(), &provider.url(), 8).args(["--attempts", "2"]).run().expect_code(0);
    assert_eq!((provider.count(), again.json_lines("in.verified.jsonl").len()), (6, 30));
}

#[test]
fn five_samples_of_one_prompt_are_five_answers_and_come_again_as_they_were() {
    let provider = Provider::start(|call| {
        Reply::answer(&json!({"good": true, "echo": format!("answer {}", call.n)}).to_string())
    });
    let input = rows(3, |row| format!("text {row}"));
    let verify = Verify::new().file("in.jsonl", input);
    let five = ["--column", "good=boolean", "--verdict", "good", "--samples", "5", "--early-stop=false"];
    let raw = |outcome: &Outcome| -> Vec<Value> {
        let row = |row: &str| outcome.again().args(["show", "last", row, "--format", "json"]).run().json();
        let samples = ["1", "2", "3"].map(|number| row(number)["samples"].clone());
        let samples = samples.iter().flat_map(|samples| samples.as_array().unwrap().clone());
        samples.map(|sample| sample["attempts"][0]["raw"].clone()).collect()
    };
    let first = ask(verify.again(), &provider.url(), 4).args(five).run().expect_code(0);
    let bought = raw(&first);
    let mut different: Vec<_> = bought.iter().map(ToString::to_string).collect();
    different.sort_unstable();
    different.dedup();
    assert_eq!((provider.count(), bought.len(), different.len()), (15, 15, 15));
    let again = ask(verify.again(), &provider.url(), 4).args(five).arg("--new").run().expect_code(0);
    assert_eq!((provider.count(), raw(&again)), (15, bought));
}

#[test]
fn equal_rows_share_each_sample() {
    let provider = Provider::start(|call| {
        Reply::answer(&json!({"good": true, "echo": format!("{}", call.sample)}).to_string())
    });
    let input = rows(40, |row| format!("{}", row % 2));
    let outcome = ask(Verify::new().file("in.jsonl", input), &provider.url(), 8)
        .args(["--column", "good=boolean", "--verdict", "good", "--samples", "3"])
        .run()
        .expect_code(0);
    assert_eq!(provider.count(), 6);
    for line in outcome.json_lines("in.verified.jsonl") {
        assert_eq!(line["verify"]["samples"], json!({"planned": 3, "made": 3, "valid": 3}));
    }
}
