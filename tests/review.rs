//! Rows that a person decides: exported, decided, imported, and not asked for again.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::opinions::{self, config, rows};
use support::provider::{Call, Provider, Reply};

const OPINIONS: [&str; 6] = ["p.9 p.9", "p.9 f.9", "f.9 q.8", "f.9 p.7", "p.6 p.7", "x:refused x:refused"];

/// Row by row `status/reason`.
fn statuses(outcome: &Outcome) -> Vec<String> {
    statuses_in(outcome, "in.verified.jsonl")
}

fn statuses_in(outcome: &Outcome, file: &str) -> Vec<String> {
    let word = |line: &Value, name: &str| line["verify"][name].as_str().unwrap().to_owned();
    let lines = outcome.json_lines(file);
    lines.iter().map(|line| format!("{}/{}", word(line, "status"), word(line, "reason"))).collect()
}

/// Writes decisions into an exported JSONL file: `(row, decision)`.
fn decide(verify: &Verify, file: &str, decisions: &[(u64, &str)]) {
    let text = fs::read_to_string(verify.path(file)).unwrap();
    let mut written = String::new();
    for line in text.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        if let Some((_, word)) = decisions.iter().find(|(row, _)| line["row"] == *row) {
            line["decision"] = json!(word);
            line["reviewer"] = json!("ann");
        }
        writeln!(written, "{line}").unwrap();
    }
    drop(verify.again().file(file, written));
}

fn reviewed(provider: &Provider, opinions: &[&str]) -> Verify {
    let verify = Verify::new()
        .config(&config(&provider.url(), "samples = 2"))
        .file("in.jsonl", rows(opinions.iter().copied()));
    verify.again().args(["run", "in.jsonl", "-q"]).run();
    verify
}

fn run(verify: &Verify, arguments: &[&str]) -> Outcome {
    verify.again().args(arguments.iter().copied()).run()
}

#[test]
fn decided_rows_are_not_asked_for_again() {
    let provider = Provider::start(opinions::reply);
    let verify = reviewed(&provider, &OPINIONS);
    let bought = provider.count();
    let exported = run(&verify, &["review", "export", "last", "-o", "decide.jsonl"]).expect_code(0);
    let lines = exported.json_lines("decide.jsonl");
    assert_eq!(lines.iter().map(|line| line["row"].clone()).collect::<Vec<_>>(), [2, 4, 5]);
    let first = &lines[0];
    assert_eq!(first["input"], json!({"n": 2, "says": "p.9 f.9"}));
    assert_eq!(
        (&first["decision"], &first["reviewer"], &first["note"]),
        (&json!(""), &json!(""), &json!(""))
    );
    assert_eq!(
        first["samples"],
        json!([{"n": 1, "answer": {"match": "pass", "confidence": 0.9}},
            {"n": 2, "answer": {"match": "fail", "confidence": 0.9}}])
    );
    decide(&verify, "decide.jsonl", &[(2, "pass"), (4, "fail")]);
    run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(0);

    let second = run(&verify, &["run", "in.jsonl", "-q"]).expect_code(1);
    let expected = [
        "pass/agreed",
        "pass/reviewed",
        "fail/agreed",
        "fail/reviewed",
        "review/low_confidence",
        "error/refused",
    ];
    assert_eq!(statuses(&second), expected);
    let exported = run(&verify, &["export", "last", "-o", "again.jsonl"]).expect_code(0);
    assert_eq!(statuses_in(&exported, "again.jsonl"), expected);
    let lines = second.json_lines("in.verified.jsonl");
    // The answer is that of the lowest sample that says what the person says.
    assert_eq!(
        (&lines[1]["verify"]["answer"]["match"], &lines[3]["verify"]["answer"]["match"]),
        (&json!("pass"), &json!("fail"))
    );
    assert_eq!(lines[3]["verify"]["samples"], json!({"planned": 2, "made": 2, "valid": 2}));
    let waiting = run(&verify, &["review", "list", "last", "--format", "json"]).expect_code(0).json();
    assert_eq!(waiting.as_array().unwrap().iter().map(|row| row["row"].clone()).collect::<Vec<_>>(), [5]);

    // The last import wins, the older one stays as history; the same one again says nothing new.
    decide(&verify, "decide.jsonl", &[(2, "pass"), (4, "pass"), (5, "fail")]);
    for _ in 0..2 {
        run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(0);
    }
    let third =
        run(&verify, &["run", "in.jsonl", "-q", "--max-fail", "2", "--max-error", "1"]).expect_code(0);
    let expected =
        ["pass/agreed", "pass/reviewed", "fail/agreed", "pass/reviewed", "fail/reviewed", "error/refused"];
    assert_eq!(statuses(&third), expected);
    assert_eq!(provider.count(), bought, "decided and stored rows are asked for no more");
    let decided =
        run(&verify, &["review", "list", "last", "--decided", "--format", "json"]).expect_code(0).json();
    let words = |at: usize| -> Vec<Value> {
        decided[at]["decisions"].as_array().unwrap().iter().map(|one| one["decision"].clone()).collect()
    };
    assert_eq!(
        (words(0), words(1), words(2)),
        (vec![json!("pass")], vec![json!("fail"), json!("pass")], vec![json!("fail")])
    );
    let shown = run(&verify, &["show", "last", "4"]).expect_code(0).stdout;
    assert!(shown.contains("row 4: pass (reviewed)") && shown.contains("decision fail by ann"), "{shown}");

    // Another model: decided all the same, and only the others are asked.
    let other =
        run(&verify, &["run", "in.jsonl", "-q", "--model", "other", "--max-fail", "2", "--max-error", "1"])
            .expect_code(0);
    assert_eq!(statuses(&other), expected);
    let asked: Vec<u64> = provider.calls()[bought..].iter().map(|call| call.row).collect();
    assert_eq!(asked.iter().filter(|row| [2, 4, 5].contains(row)).count(), 0, "{asked:?}");
    assert_eq!(asked.len(), 6);

    // Another content: the decision is void, and the row is asked again.
    let edited = rows(OPINIONS).replace("p.9 f.9", "q.9 p.9");
    let verify = verify.file("in.jsonl", edited);
    let last = run(&verify, &["run", "in.jsonl", "-q"]);
    assert_eq!(statuses(&last)[1..4], ["review/split", "fail/agreed", "pass/reviewed"]);
    let asked: BTreeSet<u64> = provider.calls()[bought + 6..].iter().map(|call| call.row).collect();
    // A new input asks for final failures again, too.
    assert_eq!(asked, [2, 6].into());
}

#[test]
fn a_continued_run_takes_decisions_and_asks_for_the_rest() {
    let well = Arc::new(AtomicBool::new(false));
    let is_well = Arc::clone(&well);
    let provider = Provider::start(move |call: &Call| {
        if is_well.load(Ordering::SeqCst) { opinions::say("p.9") } else { opinions::reply(call) }
    });
    let verify = reviewed(&provider, &["p.9 p.9", "p.9 f.9", "p.9 x:network", "p.1 p.9", "f.9 p.9"]);
    let export = ["review", "export", "last", "-o", "decide.jsonl"];
    run(&verify, &export).expect_code(0);
    decide(&verify, "decide.jsonl", &[(2, "fail"), (4, "pass")]);
    run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(0);
    let bought = provider.count();
    well.store(true, Ordering::SeqCst);
    let continued = run(&verify, &["run", "in.jsonl"]).expect_code(1);
    assert!(continued.stderr.contains("continuing run"), "{}", continued.stderr);
    let expected = ["pass/agreed", "fail/reviewed", "pass/agreed", "pass/reviewed", "review/split"];
    assert_eq!(statuses(&continued), expected);
    let asked: Vec<_> = provider.calls()[bought..].iter().map(|call| (call.row, call.sample)).collect();
    assert_eq!(asked, [(3, 2)]);
    // Asking everything again leaves decided rows alone.
    let again = run(&verify, &["run", "in.jsonl", "--retry", "all"]).expect_code(1);
    assert_eq!((statuses(&again), provider.count()), (expected.map(str::to_owned).to_vec(), bought + 1));
}

#[test]
fn an_import_takes_all_or_nothing() {
    let provider = Provider::start(opinions::reply);
    let verify = reviewed(&provider, &OPINIONS);
    let table = [
        (
            r#"{"row":2,"decision":"pass"}
{"row":4,"decision":"perhaps"}"#,
            "line 2: the decision \"perhaps\" is neither pass nor fail",
        ),
        (
            r#"{"row":2,"decision":"pass"}

{"row":99,"decision":"fail"}"#,
            "line 3: run ",
        ),
        (
            r#"{"row":2,"decision":"pass"}
{"row":6,"decision":"fail"}"#,
            "line 2: row 6 is error/refused and cannot be decided",
        ),
        (
            r#"{"row":2,"decision":"pass"}
{"row":2,"decision":"fail"}"#,
            "line 2: row 2 is decided otherwise on line 1",
        ),
        (r#"{"row":"x","decision":"pass"}"#, "line 1: the row \"x\" is no row number"),
        (r#"{"row":2,"decision":true}"#, "line 1: `decision` is true, and must be a text"),
        (r#"{"row":2,"decision":"pass","content":"00"}"#, "line 1: row 2 is not what it was"),
        (r#"{"row":2,"decision":"pass""#, "line 1: "),
    ];
    for (text, message) in table {
        let verify = verify.again().file("decide.jsonl", text);
        let refused = run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(2);
        assert!(refused.stderr.contains(message), "{text}: {}", refused.stderr);
    }
    let none = run(&verify, &["review", "list", "last", "--decided", "--format", "json"]).expect_code(0);
    assert_eq!(none.json(), json!([]));
    // Empty decisions are left out, whatever else their line says.
    let text = "{\"row\":99,\"decision\":\"\"}\n{\"row\":2}\n{\"row\":4,\"decision\":null}\n";
    let verify = verify.file("decide.jsonl", text);
    let nothing = run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(0);
    assert!(nothing.stderr.contains("nothing has changed"), "{}", nothing.stderr);
    run(&verify, &["review", "import", "last", "none.jsonl"]).expect_code(2);
    run(&verify, &["review", "import", "ffff", "decide.jsonl"]).expect_code(2);
    // Without its input as it was, a run has no contents.
    let verify = verify.file("in.jsonl", rows(["p.9 p.9"]));
    let changed = run(&verify, &["review", "export", "last", "-o", "decide.jsonl"]).expect_code(2);
    assert!(changed.stderr.contains("has changed since run"), "{}", changed.stderr);
}

#[test]
fn a_csv_goes_through_a_spreadsheet() {
    let provider = Provider::start(opinions::reply);
    let input = "sku,text,note,says\r\na-1,\"two\r\nlines, \"\"quoted\"\"\",x,p.9 f.9\r\na-2,=1+1,,p.9 p.9\r\na-3,plain,,f.9 p.9\r\na-4,=2,,q.9 p.9\r\n";
    let verify = Verify::new().config(&config(&provider.url(), "samples = 2")).file("in.csv", input);
    let arguments = ["--prompt", "{{ sku }} {{ text }}: {{ says }}", "--id-column", "sku", "--limit", "3"];
    verify.again().args(["run", "in.csv", "-q"]).args(arguments).run().expect_code(3);
    let export = run(&verify, &["review", "export", "last", "-o", "decide.csv"]).expect_code(0);
    let text = export.file("decide.csv");
    assert!(
        text.starts_with("row,sku,text,input_note,says,reason,agreement,confidence,samples,decision,reviewer,note,content\n"),
        "{text}"
    );
    assert!(text.contains("1,a-1,\"two\r\nlines, \"\"quoted\"\"\",x,p.9 f.9,split,0.5,0.9,"), "{text}");
    // As a spreadsheet of another country may save it: semicolons, CRLF, a BOM, empty ends left out.
    let decided =
        "\u{feff}row;decision;reviewer;note;sku\r\n1;pass;\"ann; the first\";\"two\r\nlines\"\r\n3;fail\r\n";
    let verify = verify.file("decide.csv", decided);
    run(&verify, &["review", "import", "last", "decide.csv"]).expect_code(0);
    let after = verify.again().args(["run", "in.csv", "-q"]).args(arguments).run().expect_code(1);
    let lines = after.output_lines("in.verified.csv");
    assert!(lines.iter().any(|line| line.contains(",pass,reviewed,")), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains(",fail,reviewed,")), "{lines:?}");
    assert_eq!(provider.count(), 6);
    let list = run(&verify, &["review", "list", "last", "--decided"]).expect_code(0).stdout;
    assert!(
        list.contains("row 1 (\"a-1\"): pass/reviewed") && list.contains("pass by ann; the first: two"),
        "{list}"
    );
    let verify = verify.file("decide.csv", "row,verdict\n1,pass\n");
    let wrong = run(&verify, &["review", "import", "last", "decide.csv"]).expect_code(2);
    assert!(wrong.stderr.contains("no column `decision`"), "{}", wrong.stderr);
}

#[test]
fn rows_that_ask_the_same_are_decided_together() {
    let provider = Provider::start(opinions::reply);
    let input = "{\"n\":1,\"says\":\"p.9 f.9\",\"x\":1}\n{\"n\":1,\"says\":\"p.9 f.9\",\"x\":2}\n";
    let verify = Verify::new().config(&config(&provider.url(), "samples = 2")).file("in.jsonl", input);
    run(&verify, &["run", "in.jsonl", "-q"]).expect_code(3);
    let both = "{\"row\":1,\"decision\":\"pass\"}\n{\"row\":2,\"decision\":\"fail\"}\n";
    let verify = verify.file("decide.jsonl", both);
    let refused = run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(2);
    assert!(refused.stderr.contains("line 2: row 2 asks the same as row 1"), "{}", refused.stderr);
    let verify = verify.file("decide.jsonl", "{\"row\":1,\"decision\":\"pass\"}\n");
    run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(0);
    let after = run(&verify, &["run", "in.jsonl", "-q"]).expect_code(0);
    assert_eq!((statuses(&after), provider.count()), (vec!["pass/reviewed".to_owned(); 2], 2));
}

#[test]
fn an_import_waits_for_no_run() {
    let provider =
        Provider::start(|call: &Call| if call.row == 2 { Reply::never() } else { opinions::reply(call) });
    let verify = Verify::new()
        .config(&config(&provider.url(), "samples = 2"))
        .file("in.jsonl", rows(["p.9 f.9", "p.9 p.9"]))
        .file("decide.jsonl", "{\"row\":1,\"decision\":\"pass\"}\n");
    let running = verify.again().args(["run", "in.jsonl", "--timeout", "60s"]).spawn();
    provider.wait_for_calls(3);
    let refused = run(&verify, &["review", "import", "last", "decide.jsonl"]).expect_code(6);
    assert!(refused.stderr.contains("another process works on this job"), "{}", refused.stderr);
    running.kill9();
    let none = run(&verify, &["review", "list", "last", "--decided", "--format", "json"]).expect_code(0);
    assert_eq!(none.json(), json!([]));
}
