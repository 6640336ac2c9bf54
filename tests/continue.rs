//! The same job goes on where it stood; another one begins anew, and replays what is equal.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, and waiting has an end"
)]

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::numbered;
use support::provider::{Call, Provider, Reply};

fn echo(call: &Call) -> Reply {
    Reply::answer(&json!({ "echo": call.user() }).to_string())
}

/// A provider that answers, except rows that it breaks while it is told to.
struct Service {
    provider: Provider,
    broken: Arc<AtomicBool>,
    /// Whether it leaves requests without an answer.
    held: Arc<AtomicBool>,
}

impl Service {
    /// `breaks` says what a broken service does with a request, if it is not answered.
    fn new(breaks: impl Fn(&Call) -> Option<Reply> + Send + 'static) -> Self {
        let broken = Arc::new(AtomicBool::new(true));
        let is_broken = Arc::clone(&broken);
        let held = Arc::new(AtomicBool::new(false));
        let is_held = Arc::clone(&held);
        let provider = Provider::start(move |call| {
            if is_held.load(Ordering::SeqCst) {
                return Reply::never();
            }
            let reply = is_broken.load(Ordering::SeqCst).then(|| breaks(call)).flatten();
            reply.unwrap_or_else(|| echo(call))
        });
        Self { provider, broken, held }
    }

    /// One that answers everything.
    fn good() -> Self {
        Self::new(|_| None)
    }

    fn mend(&self) {
        self.broken.store(false, Ordering::SeqCst);
    }

    fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    /// What is asked of it, with `{{ id }}` as the prompt.
    fn ask(&self, verify: Verify, more: &[&str]) -> Verify {
        self.ask_about("row {{ id }}", verify, more)
    }

    fn ask_about(&self, prompt: &str, verify: Verify, more: &[&str]) -> Verify {
        let url = self.provider.url();
        let verify = verify.args([
            "run",
            "in.jsonl",
            "--base-url",
            &url,
            "--prompt",
            prompt,
            "--column",
            "echo=string",
        ]);
        let verify = verify.args(["--retry-base", "1ms", "--max-backoff", "2ms"]);
        let has_model = more.contains(&"--model");
        verify
            .args(if has_model { &[][..] } else { &["--model", "m"][..] }.iter().copied())
            .args(more.iter().copied())
    }

    /// Rows asked since the first `count` requests, in order.
    fn rows_since(&self, count: usize) -> Vec<u64> {
        let mut rows: Vec<_> = self.provider.calls()[count..].iter().map(|call| call.row).collect();
        rows.sort_unstable();
        rows
    }
}

/// The run's id in the summary, and how many executions it has had.
fn run_of(outcome: &Outcome, name: &str) -> (String, u64) {
    let summary: Value = serde_json::from_str(&outcome.file(name)).unwrap();
    (summary["run"].as_str().unwrap().to_owned(), summary["execution"].as_u64().unwrap())
}

fn reasons(outcome: &Outcome) -> Vec<String> {
    let lines = outcome.json_lines("in.verified.jsonl");
    lines.iter().map(|line| line["verify"]["reason"].as_str().unwrap().to_owned()).collect()
}

const SUMMARY: [&str; 2] = ["--summary", "summary.json"];

/// An unfinished run: the last two of six rows have failed for an operational reason.
fn unfinished() -> (Service, Outcome) {
    let service = Service::new(|call| (call.row > 4).then(|| Reply::status(500)));
    let verify =
        Verify::new().file("in.jsonl", numbered(6)).env("KEY_A", "a-secret-key").env("KEY_B", "b-secret-key");
    let outcome = service.ask(verify, &["--attempts", "1", "--summary", "summary.json"]).run().expect_code(4);
    assert_eq!(reasons(&outcome)[3..], ["valid", "server_error", "server_error"]);
    service.mend();
    (service, outcome)
}

#[test]
fn what_is_not_the_job_continues_the_same_run() {
    let changes: [&[&str]; 9] = [
        &["--concurrency", "3"],
        &["--key-env", "a=KEY_A", "--key-env", "b=KEY_B"],
        &["--attempts", "2", "--throttle-patience", "1m"],
        &["--max-error", "5", "--max-fail", "50%"],
        &["-o", "other.jsonl", "--accounting=false"],
        &["--max-output-tokens", "77"],
        &["--repair", "0", "--timeout", "9s"],
        &["--price", "input=1,output=1", "--prompt-version", "two"],
        &["--early-stop=false", "--concurrent-samples"],
    ];
    for change in changes {
        let (service, first) = unfinished();
        let asked = service.provider.count();
        let verify = first.again().env("KEY_A", "a-secret-key").env("KEY_B", "b-secret-key");
        let second = service.ask(verify, &[change, &SUMMARY].concat());
        let (id, executions) = run_of(&first, "summary.json");
        let second = second.run().expect_code(0);
        assert_eq!(run_of(&second, "summary.json"), (id.clone(), executions + 1), "{change:?}");
        assert!(second.stderr.contains(&format!("continuing run {id}")), "{change:?}: {}", second.stderr);
        assert_eq!(service.rows_since(asked), [5, 6], "{change:?}");
    }
}

#[test]
fn what_is_the_job_opens_a_new_run_and_replays_what_is_equal() {
    // What changes, and how many of the six rows it makes different requests.
    let changes: [(&[&str], &str, u64); 6] = [
        (&["--temperature", "0.5"], "row {{ id }}", 6),
        (&["--model", "n"], "row {{ id }}", 6),
        (&["--column", "why=string?"], "row {{ id }}", 6),
        (&[], "other {{ id }}", 6),
        (&["--limit", "4"], "row {{ id }}", 0),
        (&[], "row {% if id|int > 2 %}x{% endif %}{{ id }}", 4),
    ];
    for (change, prompt, different) in changes {
        let service = Service::new(|call| {
            let fits = if call.body.to_string().contains("why") {
                json!({"echo": "e", "why": null})
            } else {
                json!({"echo": "e"})
            };
            Some(Reply::answer(&fits.to_string()))
        });
        let verify = Verify::new().file("in.jsonl", numbered(6));
        let first = service.ask(verify, &SUMMARY).run().expect_code(0);
        let id = run_of(&first, "summary.json").0;
        let second = service.ask_about(prompt, first.again(), &[change, &SUMMARY].concat()).run();
        let second = second.expect_code(0);
        assert_ne!(run_of(&second, "summary.json").0, id, "{change:?}");
        assert_eq!(service.provider.count() as u64, 6 + different, "{change:?} {prompt}");
        assert!(!second.stderr.contains("continuing run"), "{}", second.stderr);
    }
}

#[test]
fn a_new_run_replays_for_nothing_and_says_so() {
    let service = Service::good();
    let verify = Verify::new().file("in.jsonl", numbered(6));
    let first = service.ask(verify, &SUMMARY).run().expect_code(0);
    let before = run_of(&first, "summary.json").0;
    let kept: Vec<_> =
        first.json_lines("in.verified.jsonl").iter().map(|line| line["verify"]["answer"].clone()).collect();
    let second = service.ask(first.again(), &[&["--new"], &SUMMARY[..]].concat()).run().expect_code(0);
    assert_ne!(run_of(&second, "summary.json").0, before);
    assert_eq!(service.provider.count(), 6);
    for (line, answer) in second.json_lines("in.verified.jsonl").iter().zip(&kept) {
        assert_eq!(&line["verify"]["answer"], answer);
        let usage = &line["verify"]["usage"];
        assert_eq!(
            (&usage["cached"], &usage["attempts"], &usage["output"]),
            (&json!(true), &json!(0), &json!(0))
        );
    }
    let summary: Value = serde_json::from_str(&second.file("summary.json")).unwrap();
    assert_eq!((&summary["attempts"], &summary["replayed"]), (&json!(0), &json!(6)));
    // The ended run is not opened again by the plain command either.
    let third = service.ask(second.again(), &SUMMARY).run().expect_code(0);
    assert!(!third.stderr.contains("continuing run"));
    assert_eq!(service.provider.count(), 6);
}

#[test]
fn a_continued_run_tells_its_own_figures_from_the_runs() {
    let (service, first) = unfinished();
    assert!(first.stderr.contains("in.jsonl: 6 rows in "), "{}", first.stderr);
    assert!(first.stderr.contains("exit      4: 2 error rows, more than max_error = 0; run again to finish"));
    let second = service.ask(first.again(), &[]).run().expect_code(0);
    let said = second.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("in.jsonl: 6 rows, 2 of them in execution 2 in "), "{said}");
    assert!(said.contains("requests 8 sent, 2 retries (25.0%), 0 throttled"), "{said}");
    assert!(said.contains(" for 2 rows and 2 requests of execution 2, "), "{said}");
    assert!(
        said.contains("tokens and cost are of all 2 executions, time and latency of this one exit 0"),
        "{said}"
    );
}

#[test]
fn while_a_continued_run_goes_on_its_counts_are_the_runs() {
    let (service, first) = unfinished();
    service.hold();
    let asked = service.provider.count();
    let running = service.ask(first.again(), &["--price", "input=1,output=1"]).spawn();
    service.provider.wait_for_calls(asked + 1);
    let begun = std::time::Instant::now();
    let stands = loop {
        let said = first.again().args(["status", "last", "--format", "json"]).run().expect_code(0).json();
        // The counts of the execution before stand there until the first ones of this one are kept.
        if said["status"]["error"] == 0 || begun.elapsed() > Duration::from_secs(60) {
            break said;
        }
    };
    assert_eq!(stands["status"], json!({"pass": 4, "fail": 0, "review": 0, "error": 0, "skipped": 0}));
    assert_eq!(stands["reason"]["valid"], 4);
    assert_eq!(stands["reason"].get("server_error").and_then(Value::as_u64).unwrap_or(0), 0);
    assert_eq!((&stands["attempts"], &stands["execution"]), (&json!(6), &json!(2)));
    let text = first.again().args(["status"]).run().expect_code(0).stdout;
    assert!(text.contains("4 of 6 (66%)") && text.contains("pass 4\n"), "{text}");
    running.kill9();
}

#[test]
fn a_hint_finds_the_state_and_a_command_to_continue_forgives_nothing() {
    let service = Service::new(|_| Some(Reply::answer("no")));
    let verify = Verify::new().file("in.jsonl", numbered(1));
    let more = ["--repair", "0", "--price", "input=1,output=1"];
    let first = service.ask(verify, &more).run().expect_code(4);
    let said = |outcome: &Outcome| outcome.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said(&first).contains("look at one with `verify show last 1`,"), "{}", first.stderr);
    let apart =
        service.ask(first.again(), &[&more[..], &["--state", "a place"]].concat()).run().expect_code(4);
    assert!(said(&apart).contains("`verify show last 1 --state 'a place'`"), "{}", apart.stderr);
    apart.again().args(["show", "last", "1", "--state", "a place"]).run().expect_code(0);
    let folder = first.again().file("sub/verify.toml", "").file("sub/in.jsonl", numbered(1));
    let beside = service.ask(folder, &[&more[..], &["--config", "sub/verify.toml"]].concat());
    let beside = beside.run().expect_code(4);
    assert!(said(&beside).contains("`verify show last 1 --state sub/.verify`"), "{}", beside.stderr);

    let broken = Service::new(|_| Some(Reply::status(500)));
    let forgiving = [&more[..], &["--attempts", "1", "--max-cost", "1", "--forgive-possible"]].concat();
    let stopped = broken.ask(Verify::new().file("in.jsonl", numbered(1)), &forgiving).run().expect_code(4);
    let command = stopped.stderr.lines().find(|line| line.starts_with("  continue ")).unwrap();
    assert!(command.contains("--max-cost 1") && !command.contains("forgive"), "{command}");
}

#[test]
fn a_project_that_is_moved_as_a_whole_goes_on() {
    let service = Service::new(|call| (call.row == 2).then(|| Reply::status(500)));
    let ask = |verify: Verify| service.ask(verify, &["--attempts", "1"]).run();
    let here = Verify::new().file("in.jsonl", numbered(3));
    ask(here.again()).expect_code(4);
    service.mend();
    let there = Verify::new().file("in.jsonl", numbered(3));
    let state = here.path(".verify");
    assert!(Command::new("cp").arg("-a").arg(state).arg(there.directory()).status().unwrap().success());
    let moved = ask(there.again()).expect_code(0);
    assert!(moved.stderr.contains("continuing run"), "{}", moved.stderr);
    assert_eq!(service.provider.count(), 4);
}

#[test]
fn only_errors_that_come_back_are_finished_by_running_again() {
    let service = Service::new(|call| {
        (call.row > 4).then(|| if call.row == 5 { Reply::answer("no") } else { Reply::status(500) })
    });
    let verify = Verify::new().file("in.jsonl", numbered(6));
    let first = service.ask(verify, &["--attempts", "1"]).run().expect_code(4);
    let said = first.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("run again to finish 1 of them; the other 1 has failed for good"), "{said}");
    assert!(said.contains("1 repair, 0 throttled"), "{said}");
    service.mend();
    let second = service.ask(first.again(), &[]).run().expect_code(4);
    let said = second.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("exit 4: 1 error row, more than max_error = 0; it has failed for good"), "{said}");
    assert!(said.contains("asked again only with --retry final"), "{said}");
    assert!(!said.contains("continue verify run"), "{said}");
    service.ask(second.again(), &["--retry", "final"]).run().expect_code(0);
}

#[test]
fn the_output_of_another_job_is_not_replaced_in_silence() {
    const WARNING: &str = "in.verified.jsonl is the output of another job (run ";
    let service = Service::good();
    let first = service.ask(Verify::new().file("in.jsonl", numbered(2)), &SUMMARY).run().expect_code(0);
    assert!(!first.stderr.contains(WARNING), "{}", first.stderr);
    let id = run_of(&first, "summary.json").0;
    let same = service.ask(first.again(), &["--new"]).run().expect_code(0);
    assert!(!same.stderr.contains(WARNING), "{}", same.stderr);
    for quiet in [&["--quiet"][..], &["-o", "own.jsonl"], &["--probe", "1"]] {
        let other = service.ask_about("other {{ id }}", first.again(), quiet).run().expect_code(0);
        assert!(!other.stderr.contains(WARNING), "{}", other.stderr);
    }
    let same = service.ask(first.again(), &["--new", "--quiet"]).run().expect_code(0);
    let other = service.ask_about("third {{ id }}", same.again(), &[]).run().expect_code(0);
    assert!(other.stderr.contains(WARNING), "{}", other.stderr);
    assert!(!other.stderr.contains(&id) && other.stderr.contains("-o FILE keeps both"), "{}", other.stderr);
}

#[test]
fn a_run_is_named_only_by_its_own_job() {
    let (service, first) = unfinished();
    let asked = service.provider.count();
    let id = run_of(&first, "summary.json").0;
    let refused = service.ask_about("other {{ id }}", first.again(), &["--run", &id]).run().expect_code(2);
    assert!(refused.stderr.contains(&id) && refused.stderr.contains("another job"), "{}", refused.stderr);
    service.ask(first.again(), &["--run", "ffffff"]).run().expect_code(2);
    assert_eq!(service.provider.count(), asked);
    let named = service.ask(first.again(), &["--run", &id, "--summary", "summary.json"]).run().expect_code(0);
    assert_eq!(run_of(&named, "summary.json"), (id, 2));
    assert_eq!(service.rows_since(asked), [5, 6]);
}

#[test]
fn an_edited_input_is_a_new_run_that_replays_unchanged_rows() {
    let service = Service::good();
    let verify = Verify::new().file("in.jsonl", numbered(6));
    let first = service.ask(verify, &SUMMARY).run().expect_code(0);
    let before = run_of(&first, "summary.json").0;
    let edited = numbered(6).replace("{\"id\":3}", "{\"id\":33}") + "{\"id\":7}\n";
    let second = service.ask(first.again().file("in.jsonl", &edited), &SUMMARY).run().expect_code(0);
    assert_ne!(run_of(&second, "summary.json").0, before);
    assert_eq!(service.rows_since(6), [3, 7]);
    let lines = second.json_lines("in.verified.jsonl");
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[2]["verify"]["answer"]["echo"], "row 33");
    assert_eq!(lines[3]["verify"]["usage"]["cached"], true);
}

#[test]
fn an_input_that_changes_under_the_run_stops_it_without_an_output() {
    // Once while rows are still to be read, once when all have been.
    for rows in [400, 5] {
        let provider = Provider::start(|call| {
            if call.n == 3 { echo(call).after(Duration::from_millis(700)) } else { echo(call) }
        });
        let verify = Verify::new().file("in.jsonl", numbered(rows));
        let service = Service { provider, broken: Arc::default(), held: Arc::default() };
        let running = service.ask(verify.again(), &["--concurrency", "1"]).spawn();
        service.provider.wait_for_calls(3);
        let changed = verify.again().file("in.jsonl", numbered(rows + 1));
        let outcome = running.wait().expect_code(6);
        assert!(
            outcome.stderr.contains("in.jsonl") && outcome.stderr.contains("changed"),
            "{}",
            outcome.stderr
        );
        for name in ["in.verified.jsonl", "in.verified.jsonl.partial"] {
            assert!(!outcome.path(name).exists(), "{name} was written for a changed input");
        }
        // What was bought is replayed by the run of the new content.
        let asked = service.provider.count() as u64;
        service.ask(changed.again(), &[]).run().expect_code(0);
        assert_eq!(service.provider.count() as u64, rows + 1);
        assert!(asked < rows + 1);
    }
}

#[test]
fn operational_errors_are_asked_again_and_final_ones_are_not() {
    let service = Service::new(|call| match call.row {
        1 => Some(Reply::status(500)),
        2 => Some(Reply::error(400, "context_length_exceeded", "too long")),
        3 => Some(Reply::completion("{\"echo\":\"cu", "length", 10, 10)),
        4 => Some(Reply::reset()),
        5 => Some(Reply::answer("{\"echo\":7}")),
        6 => Some(Reply::never()),
        _ => None,
    });
    let verify = Verify::new().file("in.jsonl", numbered(8));
    let ask = |verify: Verify, more: &[&str]| {
        service.ask(verify, &[&["--attempts", "1", "--repair", "0", "--timeout", "300ms"], more].concat())
    };
    let first = ask(verify, &[]).run().expect_code(4);
    let words = [
        "server_error",
        "too_long",
        "truncated",
        "connection",
        "invalid_answer",
        "timeout",
        "valid",
        "valid",
    ];
    assert_eq!(reasons(&first), words);
    service.mend();

    // `--retry` names the rows, and nothing else is asked, not even what the plain command would ask.
    let asked = service.provider.count();
    let none = ask(first.again(), &["--retry", "none"]).run().expect_code(4);
    assert_eq!((service.provider.count(), reasons(&none)), (asked, words.map(str::to_owned).to_vec()));
    let truncated = ask(none.again(), &["--retry", "truncated"]).run().expect_code(4);
    assert_eq!(service.rows_since(asked), [3]);
    assert_eq!(reasons(&truncated)[..3], ["server_error", "too_long", "valid"]);

    let asked = service.provider.count();
    let second = ask(truncated.again(), &[]).run().expect_code(4);
    assert_eq!(service.rows_since(asked), [1, 4, 6]);
    assert_eq!(reasons(&second)[..6], ["valid", "too_long", "valid", "valid", "invalid_answer", "valid"]);

    // The run has ended: the plain command opens a new one, which takes the final failures over.
    let asked = service.provider.count();
    let third = ask(second.again(), &[]).run().expect_code(4);
    assert_eq!((service.provider.count(), reasons(&third)), (asked, reasons(&second)));
    let fourth = ask(third.again(), &["--retry", "final"]).run().expect_code(0);
    assert_eq!(service.rows_since(asked), [2, 5]);
    assert_eq!(reasons(&fourth), ["valid"; 8]);
}

#[test]
fn more_room_for_the_answer_asks_truncated_rows_again_by_itself() {
    let service = Service::new(|call| match call.row {
        2 if call.body["max_tokens"] == 50 => Some(Reply::completion("{\"echo\":\"cu", "length", 10, 10)),
        3 => Some(Reply::error(400, "context_length_exceeded", "too long")),
        _ => None,
    });
    let verify = Verify::new().file("in.jsonl", numbered(4));
    let ask = |verify: Verify, tokens: &str| {
        service.ask(verify, &["--max-output-tokens", tokens, "--summary", "summary.json"])
    };
    let first = ask(verify, "50").run().expect_code(4);
    assert_eq!((reasons(&first)[1].as_str(), service.provider.count()), ("truncated", 4));
    // Less room is no reason to try again.
    let less = ask(first.again(), "40").run().expect_code(4);
    assert_eq!(service.provider.count(), 4);
    let before = run_of(&less, "summary.json");
    let more = ask(less.again(), "100").run().expect_code(4);
    assert_eq!(run_of(&more, "summary.json"), (before.0, before.1 + 1));
    assert_eq!(service.rows_since(4), [2]);
    assert_eq!(reasons(&more), ["valid", "valid", "too_long", "valid"]);
}

#[test]
fn an_answer_that_another_job_has_bought_is_taken_for_a_failed_row() {
    // The whole file is another job than its first two rows, though the requests are the same.
    let service = Service::new(|call| {
        (call.row == 2).then(|| Reply::error(400, "context_length_exceeded", "too long"))
    });
    let verify = Verify::new().file("in.jsonl", numbered(3));
    let first = service.ask(verify, &["--limit", "2"]).run().expect_code(4);
    service.mend();
    service.ask(first.again(), &["-o", "all.jsonl"]).run().expect_code(0);
    assert_eq!(service.rows_since(2), [2, 3]);
    let again = service.ask(first.again(), &["--limit", "2", "--retry", "final"]).run().expect_code(0);
    assert_eq!((service.provider.count(), reasons(&again)), (4, vec!["valid".to_owned(); 2]));
}

#[test]
fn a_new_run_that_was_stopped_early_still_takes_final_failures_over() {
    let service = Service::new(|call| match call.row {
        1 => Some(Reply::status(500)),
        row if row % 2 == 0 => Some(Reply::error(400, "context_length_exceeded", "too long")),
        _ => None,
    });
    let ask = |verify: Verify, more: &[&str]| {
        service.ask(
            verify,
            &[&["--attempts", "1", "--concurrency", "1", "--summary", "summary.json"], more].concat(),
        )
    };
    let first = ask(Verify::new().file("in.jsonl", numbered(200)), &[]).run().expect_code(4);
    assert_eq!(service.provider.count(), 200);
    // The new run stops at its first request, when the window of 4 + 64 rows is loaded and the rest is not.
    ask(first.again(), &["--new", "--key-env", "a=NOT_SET"]).run().expect_code(2);
    service.mend();
    let second = ask(first.again(), &[]).run().expect_code(4);
    assert!(second.stderr.contains("continuing run"), "{}", second.stderr);
    assert_eq!(service.rows_since(200), [1]);
    assert_eq!(reasons(&second)[1..], reasons(&first)[1..]);
}

#[test]
fn of_a_failure_taken_over_and_an_own_one_the_later_counts() {
    let stage = Arc::new(std::sync::atomic::AtomicU32::new(1));
    let now = Arc::clone(&stage);
    let service = Service::new(move |call| match now.load(Ordering::SeqCst) {
        1 if call.row == 2 => Some(Reply::error(400, "context_length_exceeded", "too long")),
        2 => Some(Reply::status(500)),
        _ => None,
    });
    let ask = |verify: Verify, more: &[&str]| service.ask(verify, &[&["--attempts", "1"], more].concat());
    let first = ask(Verify::new().file("in.jsonl", numbered(3)), &[]).run().expect_code(4);
    let second = ask(first.again(), &["--new"]).run().expect_code(4);
    assert_eq!((service.provider.count(), reasons(&second)[1].as_str()), (3, "too_long"));
    // The failure that the new run has taken over is asked again, and now the service fails.
    stage.store(2, Ordering::SeqCst);
    let third = ask(first.again(), &["--retry", "final"]).run().expect_code(4);
    assert_eq!(reasons(&third), ["valid", "server_error", "valid"]);
    // That is an operational error like any: the plain command asks again.
    stage.store(3, Ordering::SeqCst);
    let fourth = ask(first.again(), &[]).run().expect_code(0);
    assert_eq!((service.rows_since(4), reasons(&fourth)), (vec![2], vec!["valid".to_owned(); 3]));
}
