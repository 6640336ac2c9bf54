//! What a row's samples decide, through the binary: every line of the table, and what failures do to it.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::opinions::{self, config, rows};
use support::provider::{Call, Provider, Reply};

/// Row by row `status/reason agreement confidence`, `-` for null.
fn verdicts(outcome: &Outcome) -> Vec<String> {
    let show = |value: &Value| if value.is_null() { "-".to_owned() } else { value.to_string() };
    let verdict = |line: Value| {
        let v = &line["verify"];
        let word = |name: &str| v[name].as_str().unwrap().to_owned();
        let (agreement, confidence) = (show(&v["agreement"]), show(&v["confidence"]));
        format!("{}/{} {agreement} {confidence}", word("status"), word("reason"))
    };
    outcome.json_lines("in.verified.jsonl").into_iter().map(verdict).collect()
}

/// Runs rows of opinions and compares what became of each.
#[track_caller]
fn judged(ensemble: &str, table: &[(&str, &str)]) -> (Provider, Outcome) {
    let provider = Provider::start(opinions::reply);
    let outcome = Verify::new()
        .config(&config(&provider.url(), ensemble))
        .file("in.jsonl", rows(table.iter().map(|line| line.0)))
        .args(["run", "in.jsonl"])
        .run();
    let got = verdicts(&outcome);
    for ((says, expected), got) in table.iter().zip(&got) {
        assert_eq!(got, expected, "{says} under {ensemble}");
    }
    assert_eq!(got.len(), table.len());
    (provider, outcome)
}

const BOTH: [&str; 2] = ["rule = 'unanimous'", "rule = 'majority'"];

#[test]
fn one_sample() {
    for rule in BOTH {
        judged(
            &format!("{rule}\nsamples = 1"),
            &[
                ("f.95", "fail/agreed 1 0.95"),
                ("p.5", "review/low_confidence 1 0.5"),
                ("p.8", "pass/agreed 1 0.8"),
                ("p.7999", "review/low_confidence 1 0.7999"),
                ("x:invalid", "error/invalid_answer - -"),
                ("x:refused", "error/refused - -"),
            ],
        );
        judged(
            &format!("{rule}\nsamples = 1\nauto_pass = 0.5\nauto_fail = 0.5"),
            &[("p.6", "pass/agreed 1 0.6"), ("f.5", "fail/agreed 1 0.5")],
        );
        judged(
            &format!("{rule}\nsamples = 1\nauto_pass = 0\nauto_fail = 0"),
            &[("p0", "pass/agreed 1 0"), ("f0.0", "fail/agreed 1 0")],
        );
    }
}

#[test]
fn two_samples() {
    for rule in BOTH {
        let (_, outcome) = judged(
            &format!("{rule}\nsamples = 2"),
            &[
                ("p.9 p.7", "pass/agreed 1 0.8"),
                ("q.95 q.95", "fail/agreed 1 0.95"),
                ("p.95 f.95", "review/split 0.5 0.95"),
                ("x:invalid x:invalid", "error/invalid_answer - -"),
                ("p.95 p.9", "pass/agreed 1 0.925"),
                ("f.95 q.95", "fail/agreed 1 0.95"),
                ("x:refused x:invalid", "error/refused - -"),
                ("p.95 x:invalid", "review/sample_failed 1 0.95"),
            ],
        );
        assert_eq!(outcome.code, 1, "two rows fail, which comes before all else: {}", outcome.stderr);
        judged(
            &format!("{rule}\nsamples = 2\nauto_pass = 0\nauto_fail = 0"),
            &[("p.95 f.95", "review/split 0.5 0.95"), ("f.95 p.95", "review/split 0.5 0.95")],
        );
    }
}

#[test]
fn three_samples_under_the_unanimous_rule() {
    judged(
        "samples = 3",
        &[
            ("p.8 p.8 p.8", "pass/agreed 1 0.8"),
            ("p.95 p.95 x:refused", "review/sample_failed 1 0.95"),
            ("p.95 p.95 q.95", "review/split 0.6667 0.95"),
            ("f.95 f.95 x:refused", "review/sample_failed 1 0.95"),
            ("p.1 p.1 p.1", "review/low_confidence 1 0.1"),
            ("p.7 p.7 p.9", "review/low_confidence 1 0.7667"),
        ],
    );
}

#[test]
fn three_samples_under_the_majority_rule() {
    judged(
        "samples = 3\nrule = 'majority'",
        &[
            ("p.8 p.8 p.8", "pass/agreed 1 0.8"),
            ("p.95 p.95 x:refused", "pass/agreed 1 0.95"),
            ("p.95 p.95 q.95", "pass/agreed 0.6667 0.95"),
            ("f.95 f.95 x:refused", "fail/agreed 1 0.95"),
            ("p.9 f.1 p.7", "pass/agreed 0.6667 0.8"),
            ("p.7 f1 p.8", "review/low_confidence 0.6667 0.75"),
            ("p.95 x:refused f.95", "review/split 0.5 0.95"),
            ("x:refused x:refused p.95", "review/sample_failed 1 0.95"),
            ("x:refused x:invalid x:refused", "error/refused - -"),
        ],
    );
}

#[test]
fn every_order_of_the_same_confidences_decides_alike() {
    const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let sets = [
        (["p.7", "p.8", "p.9"], "pass/agreed 1 0.8"),
        (["f.7", "q.8", "f.9"], "fail/agreed 1 0.8"),
        (["p.6", "p.8", "p1.0"], "pass/agreed 1 0.8"),
        (["p.79", "p.8", "p.81"], "pass/agreed 1 0.8"),
        (["p.7", "p.8", "p.8999"], "review/low_confidence 1 0.8"),
    ];
    let table: Vec<(String, &str)> = sets
        .iter()
        .flat_map(|(words, expected)| ORDERS.map(|order| (order.map(|at| words[at]).join(" "), *expected)))
        .collect();
    let table: Vec<(&str, &str)> = table.iter().map(|(says, expected)| (says.as_str(), *expected)).collect();
    for rule in BOTH {
        for early_stop in [true, false] {
            judged(&format!("samples = 3\n{rule}\nearly_stop = {early_stop}"), &table);
        }
    }
}

#[test]
fn a_sample_lost_to_the_service_is_an_error_and_asked_again() {
    for rule in BOTH {
        let (provider, outcome) = judged(
            &format!("samples = 3\n{rule}"),
            &[
                ("p.95 p.95 p.95", "pass/agreed 1 0.95"),
                ("p.95 p.95 x:429", "error/rate_limited - -"),
                ("p.95 p.95 x:network", "error/connection - -"),
                ("p.95 p.95 x:timeout", "error/timeout - -"),
                ("p.95 p.95 x:slow", "error/server_error - -"),
            ],
        );
        assert_eq!(outcome.code, 4, "{}", outcome.stderr);
        assert_eq!(provider.count(), 15);
    }
}

#[test]
fn continuing_buys_only_the_samples_that_are_missing() {
    let well = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_well = std::sync::Arc::clone(&well);
    let provider = Provider::start(move |call: &Call| {
        if is_well.load(std::sync::atomic::Ordering::SeqCst) {
            opinions::say("p.9")
        } else {
            opinions::reply(call)
        }
    });
    let verify = Verify::new()
        .config(&config(&provider.url(), "samples = 3"))
        .file(
            "in.jsonl",
            rows([
                "p.9 p.9 p.9",
                "p.9 x:429 p.9",
                "x:network p.9 p.9",
                "p.9 p.9 x:slow",
                "x:refused x:refused x:refused",
            ]),
        )
        .args(["run", "in.jsonl"]);
    let first = verify.run().expect_code(4);
    assert!(!verdicts(&first).iter().any(|verdict| verdict.starts_with("review")), "{:?}", verdicts(&first));
    let before = provider.count();
    well.store(true, std::sync::atomic::Ordering::SeqCst);
    let second = verify.run().expect_code(4);
    let passed = "pass/agreed 1 0.9";
    assert_eq!(verdicts(&second), [passed, passed, passed, passed, "error/refused - -"]);
    let asked: BTreeSet<_> = provider.calls()[before..].iter().map(|call| (call.row, call.sample)).collect();
    // Row 3 lost its first sample, behind which early stop asks for nothing.
    assert_eq!(asked, [(2, 2), (2, 3), (3, 1), (3, 2), (3, 3), (4, 3)].into());
    assert_eq!(provider.count() - before, 6);
    let third = verify.run().expect_code(4);
    assert_eq!((provider.count() - before, verdicts(&third)), (6, verdicts(&second)));
}

#[test]
fn early_stop_saves_calls_and_changes_no_status() {
    let opinions: Vec<&str> = (0..1_000)
        .map(|row| match row % 10 {
            0 => "p.95 f.95 p.95",
            1 => "f.95 p.95 f.95",
            2 => "p.95 p.95 q.95",
            _ => "p.95 p.9 p.85",
        })
        .collect();
    let run = |early_stop: bool| {
        let provider = Provider::start(opinions::reply);
        let outcome = Verify::new()
            .config(&config(&provider.url(), &format!("samples = 3\nearly_stop = {early_stop}")))
            .file("in.jsonl", rows(opinions.iter().copied()))
            .args(["run", "in.jsonl", "-q"])
            .run()
            .expect_code(3);
        (provider.count(), outcome)
    };
    let ((calls, with), (all_calls, without)) = (run(true), run(false));
    assert_eq!((calls, all_calls), (2_800, 3_000));
    let statuses = |outcome: &Outcome| -> Vec<(Value, Value, Value)> {
        let lines = outcome.json_lines("in.verified.jsonl");
        lines
            .into_iter()
            .map(|line| {
                let v = &line["verify"];
                (v["row"].clone(), v["status"].clone(), v["reason"].clone())
            })
            .collect()
    };
    assert_eq!(statuses(&with), statuses(&without));
    let samples = |outcome: &Outcome| outcome.json_lines("in.verified.jsonl")[0]["verify"]["samples"].clone();
    assert_eq!(samples(&with), json!({"planned": 3, "made": 2, "valid": 2}));
    assert_eq!(samples(&without), json!({"planned": 3, "made": 3, "valid": 3}));
}

#[test]
fn what_cannot_become_automatic_any_more_is_not_asked_for() {
    for (ensemble, says, made, expected) in [
        ("samples = 3", "p.1 p.9 p.9", 1, "review/low_confidence 1 0.1"),
        ("samples = 3", "p.9 x:refused p.9", 2, "review/sample_failed 1 0.9"),
        ("samples = 3\nrule = 'majority'", "p1 p1 f.9", 3, "pass/agreed 0.6667 1"),
        ("samples = 5\nrule = 'majority'\nauto_pass = 0.6", "p1 p1 p1 f1 f1", 3, "pass/agreed 1 1"),
        ("samples = 3\nrule = 'majority'\nauto_pass = 0.5", "p1 p1 f1", 2, "pass/agreed 1 1"),
        ("samples = 4\nrule = 'majority'", "p1 f1 p1 f1", 4, "review/split 0.5 1"),
        ("samples = 3\nrule = 'majority'", "x:refused x:refused p1", 3, "review/sample_failed 1 1"),
    ] {
        let (provider, _) = judged(ensemble, &[(says, expected)]);
        assert_eq!(provider.count(), made, "{says} under {ensemble}");
    }
}

#[test]
fn no_row_waits_for_a_person_because_of_the_service() {
    // A storm of 429s in the middle, and a reset every twentieth request.
    let provider = Provider::start(|call: &Call| match call.n {
        200..=260 => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after-ms", "1"),
        n if n % 20 == 7 => Reply::reset(),
        _ => opinions::reply(call),
    });
    let texts: Vec<&str> =
        (0..200).map(|row| if row % 4 == 0 { "f.9 f.9 f.9" } else { "p.9 p.9 p.9" }).collect();
    let verify = Verify::new()
        .config(&config(&provider.url(), "samples = 3"))
        .file("in.jsonl", rows(texts))
        .args(["run", "in.jsonl", "-q", "--max-fail", "any"]);
    let mut runs = 0;
    let mut errors = 0;
    let last = loop {
        let outcome = verify.run();
        runs += 1;
        let found = verdicts(&outcome);
        assert!(!found.iter().any(|verdict| verdict.starts_with("review")), "{found:?}");
        errors += found.iter().filter(|verdict| verdict.starts_with("error")).count();
        if outcome.code == 0 {
            break outcome;
        }
        assert!(runs < 50, "{}", outcome.stderr);
    };
    assert!(runs > 1 && errors > 20, "{runs} runs, {errors} errors");
    let passed = verdicts(&last).iter().filter(|verdict| verdict.starts_with("pass")).count();
    assert_eq!((passed, verdicts(&last).len()), (150, 200));
    let answered: BTreeSet<_> = provider.calls().iter().map(|call| (call.row, call.sample)).collect();
    let faults =
        provider.calls().iter().filter(|call| (200..=260).contains(&call.n) || call.n % 20 == 7).count();
    assert_eq!((answered.len(), provider.count() - faults), (600, 600), "nothing is bought twice");
}

#[test]
fn a_kill_between_samples_loses_none_that_was_stored() {
    let provider = Provider::start(|call: &Call| {
        let first_try = call.sample == 2 && call.attempt == 1;
        // Row 1 goes first, alone, as every model's first request does.
        if first_try && call.n <= 8 { Reply::never() } else { opinions::reply(call) }
    });
    let verify = Verify::new()
        .config(&config(&provider.url(), "samples = 3"))
        .file("in.jsonl", rows(["p.9 p.9 p.9"; 4]))
        .args(["run", "in.jsonl", "--timeout", "60s"]);
    let running = verify.spawn();
    provider.wait_for_in_flight(4);
    for row in 1..=4 {
        // The answer is on its way to the disk: `show` tells when it is there.
        loop {
            let shown = verify.again().args(["show", "last", &row.to_string(), "--format", "json"]).run();
            if shown.code == 0 && shown.json()["samples"][0]["attempts"][0]["outcome"] == "valid" {
                break;
            }
        }
    }
    assert_eq!(running.kill9().code, 137);
    assert_eq!(provider.count(), 8);
    let outcome = verify.run().expect_code(0);
    assert_eq!(verdicts(&outcome), ["pass/agreed 1 0.9"; 4]);
    let asked: Vec<_> = provider.calls()[8..].iter().map(|call| (call.row, call.sample)).collect();
    let wanted: BTreeSet<_> = (1..=4).flat_map(|row| [(row, 2), (row, 3)]).collect();
    assert_eq!((asked.len(), asked.into_iter().collect::<BTreeSet<_>>()), (8, wanted));
    let shown = verify.again().args(["show", "last", "2", "--format", "json"]).run().expect_code(0).json();
    let samples = shown["samples"].as_array().unwrap();
    assert_eq!(samples.iter().map(|sample| sample["n"].clone()).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn samples_go_one_after_another_or_at_once() {
    for (concurrent, most) in [(false, 1), (true, 3)] {
        // The first request of a model goes alone until its answer has come.
        let provider = Provider::start(|call: &Call| opinions::reply(call).after(Duration::from_millis(100)));
        let outcome = Verify::new()
            .config(&config(&provider.url(), &format!("samples = 4\nconcurrent_samples = {concurrent}")))
            .file("in.jsonl", rows(["p.9 p.9 p.9 p.9"]))
            .args(["run", "in.jsonl"])
            .run()
            .expect_code(0);
        assert_eq!(verdicts(&outcome), ["pass/agreed 1 0.9"]);
        assert_eq!((provider.count(), provider.max_in_flight()), (4, most));
    }
}

#[test]
fn samples_are_judged_in_their_own_order_whenever_they_come() {
    let provider = Provider::start(|call: &Call| {
        let wait = if call.sample == 2 { 300 } else { 0 };
        opinions::reply(call).after(Duration::from_millis(wait))
    });
    let outcome = Verify::new()
        .config(&config(
            &provider.url(),
            "samples = 3\nrule = 'majority'\nconcurrent_samples = true\nauto_pass = 0",
        ))
        .file("in.jsonl", rows(["p.9 p.7 f.9"]))
        .args(["run", "in.jsonl"])
        .run()
        .expect_code(0);
    assert_eq!(verdicts(&outcome), ["pass/agreed 1 0.8"]);
    let samples = &outcome.json_lines("in.verified.jsonl")[0]["verify"]["samples"];
    assert_eq!((provider.count(), samples), (3, &json!({"planned": 3, "made": 2, "valid": 2})));
}

/// Rows whose samples answer these texts, without a verdict.
fn agreeing(answer: &str, ensemble: &str, answers: &[&str]) -> Value {
    let texts: Vec<String> = answers.iter().map(|&text| text.to_owned()).collect();
    let provider =
        Provider::start(move |call: &Call| Reply::answer(&texts[usize::try_from(call.sample).unwrap() - 1]));
    let outcome = Verify::new()
        .config(&format!(
            "model = 'judge'\nbase_url = '{}'\n[prompt]\nuser = '{{{{ a }}}}'\n[answer]\nrepair = 0\n{answer}\n[ensemble]\nsamples = {}\n{ensemble}\n",
            provider.url(),
            answers.len()
        ))
        .file("in.jsonl", "{\"a\":1}\n")
        .args(["run", "in.jsonl", "--max-review", "any"])
        .run()
        .expect_code(0);
    let mut line = outcome.json_lines("in.verified.jsonl").remove(0);
    line["verify"].take()
}

#[test]
fn without_a_verdict_samples_must_agree() {
    const GRADES: &str = r#"columns = { grade = ["a", "b", "c"], n = "integer", why = "string" }"#;
    let (a1, a2, b1) = (
        r#"{"grade":"a","n":1,"why":"x"}"#,
        r#"{"grade":"a","n":2,"why":"y"}"#,
        r#"{"grade":"b","n":1,"why":"z"}"#,
    );
    let of = |v: &Value| {
        format!("{}/{} {}", v["status"].as_str().unwrap(), v["reason"].as_str().unwrap(), v["agreement"])
    };
    let grade_only = format!("{GRADES}\nagree_on = ['grade']");
    for (answer, ensemble, answers, expected, n) in [
        (GRADES, "", [a1, a1, a1], "pass/valid 1", 1),
        (GRADES, "early_stop = false", [a1, a1, a2], "review/split 0.6667", 1),
        (&*grade_only, "", [a1, a2, a1], "pass/valid 1", 1),
        (&*grade_only, "rule = 'majority'", [b1, a2, a1], "pass/valid 0.6667", 2),
        (&*grade_only, "rule = 'majority'\nearly_stop = false", [a2, b1, a1], "pass/valid 0.6667", 2),
        (&*grade_only, "", [a1, "{}", a1], "review/sample_failed 1", 1),
    ] {
        let v = agreeing(answer, ensemble, &answers);
        assert_eq!((of(&v), &v["answer"]["n"]), (expected.to_owned(), &json!(n)), "{answers:?} {ensemble}");
    }
    // Nothing to agree on: never a split.
    let v = agreeing(r#"columns = { why = "string" }"#, "", &[r#"{"why":"x"}"#, r#"{"why":"y"}"#]);
    assert_eq!(of(&v), "pass/valid null");
    let sure = r#"columns = { grade = ["a", "b"], sure = "number 0..1" }
        confidence = "sure"
        agree_on = ["grade"]"#;
    let v = agreeing(sure, "", &[r#"{"grade":"a","sure":0.7}"#, r#"{"grade":"a","sure":0.8}"#]);
    assert_eq!((of(&v), &v["confidence"]), ("review/low_confidence 1".to_owned(), &json!(0.75)));
}

#[test]
fn gates_are_counts_shares_or_any() {
    let provider = Provider::start(opinions::reply);
    let mut texts = vec!["p.9 p.9"; 7];
    texts.extend(["p.9 f.9", "f.9 f.9", "f.9 f.9"]);
    let verify = Verify::new().config(&config(&provider.url(), "samples = 2")).file("in.jsonl", rows(texts));
    for (fail, review, code) in [
        ("2", "1", 0),
        ("1", "1", 1),
        ("20%", "10%", 0),
        ("19.99%", "any", 1),
        ("any", "9%", 3),
        ("any", "0", 3),
        ("any", "any", 0),
    ] {
        let run = verify.again().args(["run", "in.jsonl", "--max-fail", fail, "--max-review", review]).run();
        assert_eq!(run.code, code, "{fail} {review}: {}", run.stderr);
    }
    assert_eq!(provider.count(), 20, "gates ask for nothing");
}
