//! What a run leaves for the pipeline that it is part of: `--junit`, `--github`, `--log`; and what `-v` says.

mod support;

use serde_json::Value;
use support::command::Verify;
use support::provider::{Provider, Reply};

/// Row 2 does not pass, row 3 is refused by the server, the others pass.
fn provider() -> Provider {
    Provider::start(|call| match call.row {
        2 => Reply::answer("{\"ok\":false}"),
        3 => Reply::error(400, "content_policy_violation", "50% <no>\nnot this"),
        _ => Reply::answer("{\"ok\":true}"),
    })
}

fn job(provider: &Provider, count: usize) -> Verify {
    let rows: Vec<_> = (1..=count).map(|n| format!("{{\"text\":\"row {n}\"}}\n")).collect();
    Verify::new()
        .file("in.jsonl", rows.concat())
        .args(["run", "in.jsonl", "--model", "m", "--base-url", &provider.url(), "--prompt", "{{ text }}"])
        .args(["--column", "ok=boolean", "--verdict", "ok", "--max-fail", "any"])
}

#[test]
fn rows_become_test_cases() {
    let outcome = job(&provider(), 4).args(["--junit", "out.xml"]).run().expect_code(4);
    let xml = outcome.file("out.xml");
    assert!(xml.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"), "{xml}");
    assert!(
        xml.contains("<testsuite name=\"in.jsonl\" tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"0\""),
        "{xml}"
    );
    assert!(
        xml.contains("name=\"row 1\"/>") && xml.contains("name=\"row 2\"><failure type=\"agreed\""),
        "{xml}"
    );
    assert!(xml.contains("name=\"row 3\"><error type=\"") && xml.contains("50% &lt;no&gt;"), "{xml}");
    assert!(xml.contains(">{&quot;ok&quot;:false}</failure>") && xml.ends_with("</testsuites>\n"), "{xml}");
    // A place that cannot be written is found before anything is sent.
    let provider = provider();
    job(&provider, 4).args(["--junit", "none/out.xml"]).run().expect_code(6);
    job(&provider, 4).args(["--log", "in.jsonl"]).run().expect_code(2);
    assert_eq!(provider.count(), 0);
}

#[test]
fn bad_rows_are_annotated_and_the_job_summary_is_added_to() {
    let outcome = job(&provider(), 4)
        .file("summary.md", "before\n")
        .env("GITHUB_STEP_SUMMARY", "summary.md")
        .args(["--github", "-q"])
        .run()
        .expect_code(4);
    let commands: Vec<_> = outcome.stderr.lines().filter(|line| line.starts_with("::")).collect();
    assert_eq!(commands.len(), 2, "{}", outcome.stderr);
    assert!(
        commands[0].starts_with("::error file=in.jsonl,line=2,title=row 2: fail/agreed::"),
        "{commands:?}"
    );
    assert!(
        commands[1].contains("line=3,title=row 3: error/") && commands[1].contains("50%25 <no>"),
        "{commands:?}"
    );
    let summary = outcome.file("summary.md");
    assert!(summary.starts_with("before\n### verify: in.jsonl\n"), "{summary}");
    assert!(summary.contains("**exit 4**") && summary.contains("| fail | 1 |"), "{summary}");
}

#[test]
fn the_log_has_every_event_of_every_execution() {
    let first = job(&provider(), 4).args(["--log", "run.log", "-v"]).run().expect_code(4);
    assert!(
        first.stderr.contains("row 2: fail/agreed") && first.stderr.contains("row 3: error/"),
        "{}",
        first.stderr
    );
    let events = first.json_lines("run.log");
    let of = |name: &str| -> Vec<&Value> { events.iter().filter(|event| event["event"] == name).collect() };
    assert_eq!((of("started").len(), of("attempt_finished").len(), of("row_finished").len()), (1, 4, 4));
    assert_eq!(events.last().unwrap()["event"], "ended");
    assert_eq!(events.last().unwrap()["summary"]["status"]["fail"], 1);
    let numbers: Vec<_> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(events.windows(2).all(|two| two[0]["at"].as_str() <= two[1]["at"].as_str()));

    let provider = provider();
    let second = first.again().args(["run", "in.jsonl", "--provider", "mock", "--prompt", "{{ text }}"]);
    let second = second.args(["--log", "run.log"]).run().expect_code(0);
    assert!(second.json_lines("run.log").len() > events.len());
    assert_eq!(provider.count(), 0);
    job(&provider, 1).args(["-v", "-q"]).run().expect_code(2);
}
