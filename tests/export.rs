//! `verify export`: the output again.

mod support;

use support::command::{Outcome, Verify};
use support::provider::{Provider, Reply};

const MOCK: [&str; 6] = ["--provider", "mock", "--prompt", "Is {{ text }} spam?", "--column", "spam=boolean"];

fn ended(directory: Verify, input: &str, more: &[&str]) -> Outcome {
    directory.args(["run", input]).args(MOCK).args(more.iter().copied()).run().expect_code(0)
}

fn export(outcome: &Outcome, place: &str) -> Verify {
    outcome.again().args(["export", "last", "-o", place])
}

#[test]
fn the_same_bytes_come_again() {
    let csv = "text;note\r\none;\"a;\nb\"\r\ntwo;\r\n";
    let first = ended(
        Verify::new().file("in.csv", csv),
        "in.csv",
        &["--delimiter", ";", "--prefix", "ai_", "--result-field", "v", "--rows", "2"],
    );
    let again = export(&first, "again.csv").run().expect_code(0);
    assert!(again.stderr.contains("1 rows of run"), "{}", again.stderr);
    assert_eq!(again.file("again.csv"), again.file("in.verified.csv"));
    assert_eq!(export(&first, "-").run().expect_code(0).stdout, again.file("in.verified.csv"));

    let lines = "{\"text\": \"one\",\"n\":1.50}\n\n{\"text\":\"two\"}\n";
    let first = ended(Verify::new().file("in.jsonl", lines), "in.jsonl", &["--accounting=false"]);
    let again = export(&first, "again.jsonl").run().expect_code(0);
    assert_eq!(again.file("again.jsonl"), again.file("in.verified.jsonl"));
    let csv = export(&first, "again.csv").run().expect_code(0).file("again.csv");
    assert!(csv.starts_with("text,n,spam,v_status") || csv.starts_with("text,n,spam,verify_status"), "{csv}");
    assert!(csv.contains("one,1.50,true,pass,valid"), "{csv}");
}

#[test]
fn without_a_place_it_says_how_to_give_one() {
    let refused = Verify::new().args(["export", "last"]).run().expect_code(2);
    assert!(refused.stderr.contains("add -o FILE, or -o - for standard output"), "{}", refused.stderr);
    assert!(refused.stderr.contains("`verify export last -o out.jsonl`"), "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
}

#[test]
fn a_changed_input_and_a_taken_name_are_refused() {
    let first = ended(Verify::new().file("in.csv", "text\none\n"), "in.csv", &[]);
    let own = export(&first, "in.csv").run().expect_code(2);
    assert!(own.stderr.contains("is the input itself"), "{}", own.stderr);
    first.again().args(["export", "last"]).run().expect_code(2);
    first.again().args(["export", "ffffffff", "-o", "x.csv"]).run().expect_code(2);
    let changed = first.again().file("in.csv", "text\nten\n");
    let changed = changed.args(["export", "last", "-o", "again.csv"]).run().expect_code(2);
    assert!(changed.stderr.contains("in.csv has changed since run"), "{}", changed.stderr);
    assert!(!changed.path("again.csv").exists());
}

#[test]
fn a_run_that_was_killed_is_exported_as_far_as_it_came() {
    let provider =
        Provider::start(|call| if call.row == 1 { Reply::answer("{\"spam\":true}") } else { Reply::never() });
    let running = Verify::new()
        .file("in.jsonl", "{\"text\":\"a\"}\n{\"text\":\"b\"}\n")
        .args(["run", "in.jsonl", "--model", "m", "--base-url", &provider.url()])
        .args(MOCK.into_iter().skip(2))
        .spawn();
    provider.wait_for_calls(2);
    let killed = running.kill9();
    // The first answer may have been on its way to the disk; what counts is that both rows are there.
    let outcome = export(&killed, "out.jsonl").run().expect_code(0);
    let lines = outcome.json_lines("out.jsonl");
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[1]["verify"]["status"], &lines[1]["verify"]["reason"]),
        (&"skipped".into(), &"stopped".into())
    );
    assert_eq!(provider.count(), 2);
}
