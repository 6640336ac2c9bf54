//! What a run's samples say of its thresholds, beside what a spreadsheet says.

mod support;

use serde_json::{Value, json};
use support::command::Verify;
use support::opinions::{self, config, rows};
use support::provider::Provider;

/// A verdict with its confidence, the truth, and what a spreadsheet makes of these is in the test.
const KNOWN: [(&str, &str); 12] = [
    ("p.95", "pass"),
    ("p.95", "pass"),
    ("p.9", "fail"),
    ("p.85", "pass"),
    ("p.75", "fail"),
    ("p.6", "pass"),
    ("f.95", "fail"),
    ("q.85", "partial"),
    ("f.8", "pass"),
    ("f.55", "fail"),
    ("p1", ""),
    ("x:refused", "pass"),
];

fn threshold(json: &Value, threshold: &str) -> Value {
    let lines = json["thresholds"].as_array().cloned().unwrap_or_default();
    let at = |line: &Value| line["threshold"].as_f64().map(|value| value.to_string());
    lines.into_iter().find(|line| at(line).as_deref() == Some(threshold)).unwrap_or_default()
}

#[test]
fn a_known_set_gives_the_table_of_a_spreadsheet() {
    let provider = Provider::start(opinions::reply);
    let line = |(n, (says, truth)): (usize, &(&str, &str))| format!("{},{says},{truth}\n", n + 1);
    let input = KNOWN.iter().enumerate().map(line).collect::<String>();
    let verify = Verify::new()
        .config(&config(&provider.url(), "samples = 1"))
        .file("in.csv", format!("n,says,truth\n{input}"));
    verify.again().args(["run", "in.csv", "-q"]).run().expect_code(1);
    let bought = provider.count();

    let call = ["agreement", "last", "--gold", "truth", "--format", "json"];
    let json = verify.again().args(call).run().expect_code(0).json();
    let gold = &json["gold"];
    assert_eq!(gold["confusion"], json!({"pass": {"pass": 4, "fail": 1}, "fail": {"pass": 2, "fail": 3}}));
    assert_eq!((&gold["accuracy"], &gold["false_pass_rate"]), (&json!(0.7), &json!(0.4)));
    assert_eq!((&gold["rows"], &gold["without"]), (&json!(10), &json!(1)));
    let bin = |at: usize| {
        let bin = &gold["calibration"][at];
        (bin["rows"].clone(), bin["right"].clone(), bin["accuracy"].clone(), bin["confidence"].clone())
    };
    assert_eq!(bin(9), (json!(4), json!(3), json!(0.75), json!(0.9375)));
    assert_eq!(bin(8), (json!(3), json!(2), json!(0.6667), json!(0.8333)));
    assert_eq!(bin(7), (json!(1), json!(0), json!(0), json!(0.75)));
    assert_eq!(bin(4), (json!(0), json!(0), json!(null), json!(null)));
    let counts = |line: &Value| {
        ["pass", "fail", "review", "error", "false_pass", "false_fail"].map(|name| line[name].as_u64())
    };
    assert_eq!(counts(&json["rows"]), [5, 3, 3, 1, 1, 1].map(Some));
    assert_eq!(counts(&threshold(&json, "0.8")), [5, 3, 3, 1, 1, 1].map(Some));
    assert_eq!(counts(&threshold(&json, "0.9")), [4, 1, 6, 1, 1, 0].map(Some));
    assert_eq!(threshold(&json, "0.9")["automatic"], json!(0.4545));
    assert_eq!(counts(&threshold(&json, "0")), [7, 4, 0, 1, 2, 1].map(Some));

    // Another threshold says in advance what a run with it says.
    let rerun = ["run", "in.csv", "-q", "--auto-pass", "0.9", "--auto-fail", "0.9", "--summary", "s.json"];
    let outcome = verify.again().args(rerun).run().expect_code(1);
    let summary: Value = serde_json::from_str(&outcome.file("s.json")).unwrap_or_default();
    let status = &summary["status"];
    assert_eq!((&status["pass"], &status["fail"], &status["review"]), (&json!(4), &json!(1), &json!(6)));
    // Other thresholds are another job, which asks for a final failure itself; valid answers are replayed.
    assert_eq!(provider.count(), bought + 1);

    let text = verify.again().args(["agreement", "last", "--gold", "truth"]).run().expect_code(0).stdout;
    assert!(text.contains("false passes: 2 of 5 rows that should not pass, 40.0 %"), "{text}");
    let other = verify.again().args(["agreement", "last", "--gold", "n"]).run().expect_code(0);
    assert!(other.stderr.contains("no value of the column `n` means pass"), "{}", other.stderr);
    let missing = verify.again().args(["agreement", "last", "--gold", "label"]).run().expect_code(2);
    assert!(
        missing.stderr.contains("no column `label`") && missing.stderr.contains("`truth`"),
        "{}",
        missing.stderr
    );
}

#[test]
fn samples_say_how_much_they_agree() {
    let provider = Provider::start(opinions::reply);
    let verify = Verify::new().config(&config(&provider.url(), "samples = 3\nearly_stop = false")).file(
        "in.jsonl",
        rows(["p.9 p.9 p.9", "p.9 f.9 p.9", "p.9 p.8 f.7", "p.6 p.7 p.8", "x:429 p.9 p.9"]),
    );
    verify.again().args(["run", "in.jsonl", "-q"]).run().expect_code(4);
    let bought = provider.count();
    let call = ["agreement", "last", "--format", "json"];
    let json = verify.again().args(call).run().expect_code(0).json();
    assert_eq!(json["agreement"], json!([{"agreement": 1, "rows": 2}, {"agreement": 0.6667, "rows": 2}]));
    assert_eq!(json["gold"], json!(null));
    let automatic = |at: &str| threshold(&json, at)["automatic"].clone();
    assert_eq!((automatic("0.7"), automatic("0.75"), automatic("0.95")), (json!(0.5), json!(0.25), json!(0)));
    let bins: Vec<u64> = (0..10).filter_map(|at| json["confidence"][at]["rows"].as_u64()).collect();
    assert_eq!(bins, [0, 0, 0, 0, 0, 0, 0, 1, 1, 2]);
    assert_eq!((json["rows"]["error"].clone(), provider.count()), (json!(1), bought));
    // The samples are in the store: the input is not needed.
    let gone = verify.file("in.jsonl", "");
    assert_eq!(gone.again().args(call).run().expect_code(0).json(), json);
    gone.again().args(["agreement", "last", "--gold", "n"]).run().expect_code(2);
    gone.again().args(["agreement", "ffff"]).run().expect_code(2);
}
