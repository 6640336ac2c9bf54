//! The exit code, the printed verdict and what is left on disk, for every way a run can end.

mod support;

use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::command::Verify;
use support::job::{always, asks, job, left_behind, results, rows, statuses};
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";
const KEY: (&str, &str) = ("OPENAI_API_KEY", "sk-test-0123456789");

/// Answers `false` for the last so many rows of a job.
fn verdicts(rows: u64, fails: u64) -> Provider {
    Provider::start(move |call| {
        Reply::answer(if call.row > rows - fails { "{\"ok\":false}" } else { ANSWER })
    })
}

#[test]
fn shares_and_counts_are_judged_exactly_and_told_with_the_code() {
    let provider = verdicts(31, 3);
    for (gate, code) in
        [("20%", 0), ("9.67%", 1), ("9.68%", 0), ("3", 0), ("2", 1), ("any", 0), ("0%", 1), ("0", 1)]
    {
        let outcome =
            job(&provider, 31).args(["--verdict", "ok", "--max-fail", gate, "--format", "json"]).run();
        let outcome = outcome.expect_code(code);
        assert_eq!(outcome.json()["exit"]["code"], code, "{gate}");
        assert_eq!(outcome.json()["status"]["fail"], 3);
        let told =
            outcome.stderr.lines().find(|line| line.trim_start().starts_with("exit")).unwrap().to_owned();
        assert!(told.contains(&code.to_string()), "{told}");
        assert_eq!(outcome.output_lines("in.verified.jsonl").len(), 31);
    }
    for wrong in ["-1", "101%", "x", "5 %%", "1.5"] {
        let outcome = job(&provider, 1).args([format!("--max-fail={wrong}")]).run().expect_code(2);
        assert!(
            outcome.stderr.contains("max-fail") || outcome.stderr.contains("max_fail"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_failed_row_comes_before_an_error_and_an_error_before_a_review() {
    let provider = Provider::start(|call| match call.row {
        1 => Reply::answer("{\"ok\":false,\"sure\":1}"),
        2 => Reply::answer("{\"ok\":true,\"sure\":0.1}"),
        3 => Reply::answer("no"),
        _ => Reply::answer("{\"ok\":true,\"sure\":1}"),
    });
    let verify = |more: &[&str]| {
        let given = ["--column", "sure=number", "--verdict", "ok", "--confidence", "sure", "--repair", "0"];
        job(&provider, 5).args(given).args(more.iter().copied()).run().code
    };
    assert_eq!(verify(&[]), 1);
    assert_eq!(verify(&["--max-fail", "1"]), 4);
    assert_eq!(verify(&["--max-fail", "1", "--max-error", "1"]), 3);
    assert_eq!(verify(&["--max-fail", "24%", "--max-error", "20%", "--max-review", "25%"]), 1);
    assert_eq!(verify(&["--max-fail", "25%", "--max-error", "20%", "--max-review", "25%"]), 0);
}

#[test]
fn answers_that_are_all_invalid_are_grouped_with_a_hint() {
    let provider = Provider::start(|call| {
        Reply::answer(if call.row % 2 == 0 { "I would say yes." } else { "{\"okay\":1}" })
    });
    let outcome = job(&provider, 20).args(["--repair", "0"]).run().expect_code(4);
    assert_eq!(provider.count(), 20);
    assert!(statuses(&outcome).iter().all(|status| status == "error/invalid_answer"));
    assert!(outcome.stderr.contains("20 invalid_answer"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("10 x"), "{}", outcome.stderr);
    assert!(outcome.stderr.to_lowercase().contains("schema"), "no hint: {}", outcome.stderr);
}

#[test]
fn an_unknown_model_is_one_request_and_no_output() {
    for reply in [
        Reply::error(404, "model_not_found", "The model `m` does not exist."),
        Reply::status(404).body("{\"error\":\"model 'm' not found, try pulling it first\"}"),
    ] {
        let provider = Provider::start(move |_| reply.clone());
        let outcome = job(&provider, 50).args(["--concurrency", "16"]).run().expect_code(6);
        assert_eq!(provider.count(), 1);
        assert!(outcome.stderr.contains("`m`") && outcome.stderr.contains("--model"), "{}", outcome.stderr);
        assert!(!outcome.path("in.verified.jsonl").exists());
    }
}

#[test]
fn equal_rejections_stop_after_ten_rows_or_all_of_them() {
    for (count, sent) in [(50, 10), (4, 4)] {
        let provider =
            Provider::start(|_| Reply::error(400, "unsupported_thing", "This thing is not supported."));
        let outcome = job(&provider, count).args(["--concurrency", "16"]).run().expect_code(6);
        assert_eq!(provider.count(), sent, "{}", outcome.stderr);
        assert!(outcome.stderr.contains("This thing is not supported."), "{}", outcome.stderr);
        let partial = outcome.json_lines("in.verified.jsonl.partial");
        assert_eq!((partial.len(), &partial[0]["verify"]["reason"]), (count, &Value::from("rejected")));
    }
    // Different ones, or one answer, are the rows' own affair.
    let provider = Provider::start(|call| match call.row {
        1 => Reply::answer(ANSWER),
        _ => Reply::error(400, "unsupported_thing", "This thing is not supported."),
    });
    job(&provider, 30).run().expect_code(4);
    assert_eq!(provider.count(), 30);
}

#[test]
fn a_server_that_is_down_stops_after_ten_failures_with_advice() {
    let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/v1");
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ text }}", "--base-url", &url];
    let verify = Verify::new().file("in.jsonl", rows(100)).args(args).args(["--summary", "s.json"]);
    let outcome = verify.args(["--retry-base", "1ms", "--max-backoff", "5ms"]).run().expect_code(6);
    let summary: Value = serde_json::from_str(&outcome.file("s.json")).unwrap();
    assert_eq!((&summary["attempts"], &summary["exit"]["code"]), (&Value::from(10), &Value::from(6)));
    let address = format!("127.0.0.1:{port}");
    assert!(outcome.stderr.contains(&address) && outcome.stderr.contains("--base-url"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("verify run in.jsonl"), "no command to continue: {}", outcome.stderr);
}

#[test]
fn outputs_that_cannot_be_written_are_found_before_the_first_request() {
    let provider = always(ANSWER);
    let base = job(&provider, 2).file("a-file", "x").file("folder/x", "");
    for path in ["missing/out.jsonl", "a-file/out.jsonl", "/proc/out.jsonl", "/sys/out.jsonl"] {
        let args = asks(&provider, "in.jsonl", "{{ text }}");
        let outcome = base.again().args(args).args(["-o", path]).run().expect_code(6);
        assert!(outcome.stderr.contains(path), "{path}: {}", outcome.stderr);
        let left = left_behind(&outcome, &["a-file", "folder"]);
        assert_eq!((provider.count(), left), (0, vec![]), "{path}");
    }
    // The input under any of its names is refused, as it would be lost.
    std::os::unix::fs::symlink("in.jsonl", base.path("link.jsonl")).unwrap();
    for path in ["in.jsonl", "./in.jsonl", "link.jsonl", "folder"] {
        let args = asks(&provider, "in.jsonl", "{{ text }}");
        let outcome = base.again().args(args).args(["-o", path]).run().expect_code(2);
        assert!(
            outcome.stderr.contains(path) && outcome.stderr.contains("--output"),
            "{path}: {}",
            outcome.stderr
        );
        assert_eq!((outcome.file("in.jsonl"), provider.count()), (rows(2), 0));
    }
    for path in ["missing/s.json", "a-file/s.json"] {
        let args = asks(&provider, "in.jsonl", "{{ text }}");
        let outcome = base.again().args(args).args(["--summary", path]).run().expect_code(6);
        assert!(outcome.stderr.contains(path), "{path}: {}", outcome.stderr);
        assert_eq!(provider.count(), 0, "{path}: rows were bought for a summary that cannot be written");
    }
}

#[test]
fn a_state_that_cannot_be_written_is_found_before_the_first_request() {
    let provider = always(ANSWER);
    for state in ["a-file", "a-file/state", "/proc/state"] {
        let outcome = job(&provider, 2).file("a-file", "x").args(["--state", state]).run().expect_code(6);
        assert!(outcome.stderr.contains(state), "{state}: {}", outcome.stderr);
        assert_eq!((provider.count(), left_behind(&outcome, &["a-file"])), (0, vec![]));
    }
    let outcome =
        job(&provider, 2).file("state/store.db", "this is no database").args(["--state", "state"]).run();
    let outcome = outcome.expect_code(6);
    assert!(outcome.stderr.contains("store.db"), "{}", outcome.stderr);
    assert_eq!((provider.count(), outcome.file("state/store.db").as_str()), (0, "this is no database"));
}

#[test]
fn a_full_output_device_ends_the_run_and_what_was_bought_is_kept() {
    let provider = always(ANSWER);
    let outcome = job(&provider, 30).args(["-o", "/dev/full"]).run().expect_code(6);
    assert!(outcome.stderr.contains("/dev/full"), "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("panic"), "{}", outcome.stderr);
    let bought = provider.count();
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    let again = outcome.again().args(args).run().expect_code(0);
    assert_eq!((provider.count(), results(&again).len()), (30.max(bought), 30));
}

#[test]
fn too_many_rows_and_wrong_flags_are_refused_with_a_next_step() {
    let provider = always(ANSWER);
    let refused = |more: &[&str], said: &str| {
        let outcome = job(&provider, 5).args(more.iter().copied()).run().expect_code(2);
        assert!(outcome.stderr.contains(said), "{more:?}: no `{said}` in: {}", outcome.stderr);
        assert_eq!((provider.count(), left_behind(&outcome, &[])), (0, vec![]));
    };
    refused(&["--max-rows", "4"], "max_rows");
    refused(&["--concurency", "4"], "--concurrency");
    refused(&["--delimiter", ";"], "--delimiter");
    refused(&["--run", "last", "--new"], "--new");
    refused(&["--run", "last"], "no run yet");
    refused(&["--run", "0123abcd"], "0123abcd");
    refused(&["--retry", "nonsense"], "nonsense");
    refused(&["--verdict", "nope"], "nope");
    refused(&["--confidence", "nope"], "nope");
    refused(&["--agree-on", "nope"], "nope");
    refused(&["--verdict", "ok", "--pass", "yes"], "pass");
    refused(&["--column", "ok=string"], "ok");
    refused(&["--column", "x=whatever"], "whatever");
    refused(&["--column", "x"], "x");
    refused(&["--schema", "s.json"], "leave one out");
    refused(&["--preset", "nonsense"], "verdict");
    refused(&["--rows", "1-9"], "--rows");
    refused(&["--prompt-file", "p.txt"], "prompt");
    refused(&["--result-field", ""], "result");
}

#[test]
fn an_incomplete_command_says_what_is_missing() {
    let refused = |args: &[&str], said: &[&str]| {
        let outcome = Verify::new().file("in.jsonl", rows(1)).args(args.iter().copied()).run().expect_code(2);
        for said in said {
            assert!(outcome.stderr.contains(said), "{args:?}: no `{said}` in: {}", outcome.stderr);
        }
    };
    refused(&["run"], &["INPUT"]);
    refused(&["run", "in.jsonl"], &["--model", "--prompt"]);
    refused(&["run", "in.jsonl", "--model", "llama", "--prompt", "x"], &["llama", "--base-url"]);
    refused(&["run", "in.jsonl", "--provider", "mock"], &["--prompt"]);
    refused(&["run", "in.jsonl", "--provider", "openai", "--prompt", "x"], &["--model"]);
    refused(&["run", "in.jsonl", "--provider", "nonsense", "--prompt", "x"], &["--provider", "openai"]);
    refused(&["run", "in.jsonl", "--model", "claude-sonnet-5-5", "--prompt", "x"], &["ANTHROPIC_API_KEY"]);
    refused(&["runn", "in.jsonl"], &["'run'"]);
    refused(&["show", "last", "1"], &["run"]);
    refused(&["status"], &["run"]);
    for (schema, said) in [
        ("{", "line 1"),
        ("{\"type\":\"objekt\"}", "objekt"),
        ("[]", "schema"),
        ("{\"$ref\":\"https://example.com/s.json\"}", "example.com"),
        ("{\"$ref\":\"#/$defs/none\"}", "none"),
        ("{\"type\":\"string\",\"pattern\":\"(\"}", "("),
    ] {
        let args = ["run", "in.jsonl", "--provider", "mock", "--prompt", "x", "--schema", "s.json"];
        let outcome =
            Verify::new().file("in.jsonl", rows(1)).file("s.json", schema).args(args).run().expect_code(2);
        assert!(outcome.stderr.contains(said), "{schema}: {}", outcome.stderr);
    }
}

#[test]
fn a_closed_pipe_is_quiet_in_a_shell() {
    let verify = Verify::new().file("in.jsonl", rows(1_000));
    let provider = always(ANSWER);
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    let script = "\"$@\" -o - | head -1 > first; echo ${PIPESTATUS[0]}";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_verify")]).args(args).env(KEY.0, KEY.1);
    let output = command.current_dir(verify.directory()).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "141", "{said}");
    assert!(!said.contains("error") && !said.contains("panic") && !said.contains("ipe"), "{said}");
    assert_eq!(std::fs::read_to_string(verify.path("first")).unwrap().lines().count(), 1);
}

#[test]
fn quiet_says_errors_only() {
    let provider = always(ANSWER);
    assert_eq!(job(&provider, 2).arg("-q").run().expect_code(0).stderr, "");
    let outcome = job(&provider, 2).args(["-q", "--rows", "9"]).run().expect_code(2);
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_deadline_that_comes_when_all_has_been_asked_stops_nothing() {
    let provider =
        Provider::start(|_| Reply::answer("{\"ok\":true}").after(std::time::Duration::from_millis(1_500)));
    let outcome = support::job::job(&provider, 1).args(["--deadline", "500ms"]).run().expect_code(0);
    assert_eq!(support::job::statuses(&outcome), ["pass/valid"]);
}

#[test]
fn two_outputs_in_one_file_are_refused_before_anything_is_sent() {
    let provider = support::job::always("{\"ok\":true}");
    for flags in [
        ["-o", "x.jsonl", "--summary", "x.jsonl"],
        ["--summary", "./in.verified.jsonl", "--quiet", "--github"],
        ["--log", "x.log", "--junit", "./x.log"],
    ] {
        let outcome = support::job::job(&provider, 1).args(flags).run().expect_code(2);
        assert!(outcome.stderr.contains("give each its own file"), "{}", outcome.stderr);
    }
    support::job::job(&provider, 1)
        .args(["--summary", "/dev/null", "--log", "/dev/null"])
        .run()
        .expect_code(0);
    assert_eq!(provider.count(), 1);
}

#[test]
fn a_number_below_its_range_is_told_by_its_key() {
    let provider = support::job::always("{\"ok\":true}");
    for (flag, key) in
        [("--max-cost", "max_cost"), ("--samples", "samples"), ("--concurrency", "concurrency")]
    {
        let outcome = support::job::job(&provider, 1).args([flag, "-1"]).run().expect_code(2);
        assert!(outcome.stderr.contains(key) || outcome.stderr.contains(flag), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains("unexpected argument"), "{}", outcome.stderr);
    }
    assert_eq!(provider.count(), 0);
}
