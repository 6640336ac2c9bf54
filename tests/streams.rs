//! Outputs that are read while they are written: standard output, FIFOs, devices; and `--order completion`.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::command::{Outcome, Verify};
use support::provider::{Provider, Reply};

fn rows(count: usize) -> String {
    (1..=count).map(|n| format!("{{\"text\":\"row {n}\"}}\n")).collect::<Vec<_>>().concat()
}

fn arguments(provider: &Provider, more: &[&str]) -> Vec<String> {
    let url = provider.url();
    let all = ["run", "in.jsonl", "--model", "m", "--base-url", &url, "--prompt", "{{ text }}"];
    let fixed = ["--column", "ok=boolean", "--retry-base", "20ms"];
    all.into_iter().chain(fixed).chain(more.iter().copied()).map(str::to_owned).collect()
}

fn job(provider: &Provider, count: usize, more: &[&str]) -> Verify {
    Verify::new().file("in.jsonl", rows(count)).args(arguments(provider, more))
}

/// Runs a shell line in the directory, in which `$VERIFY` stands for the program with these arguments.
fn shell(directory: &Verify, arguments: &[String], line: &str) -> String {
    let quoted: Vec<_> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let line = line.replace("$VERIFY", &format!("{} {}", env!("CARGO_BIN_EXE_verify"), quoted.join(" ")));
    let output = Command::new("sh").arg("-c").arg(line).current_dir(directory.directory()).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn numbers(text: &str) -> Vec<u64> {
    let row = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["verify"]["row"].as_u64().unwrap()
    };
    text.lines().map(row).collect()
}

fn same_rows(outcome: &Outcome, text: &str) {
    let file = outcome.again().args(["export", "last", "-o", "export.jsonl"]).run().expect_code(0);
    assert_eq!(file.file("export.jsonl"), text);
}

#[test]
fn standard_output_follows_the_finished_rows_and_a_slow_one_holds_it() {
    let provider =
        Provider::start(|call| if call.row == 3 { Reply::never() } else { Reply::answer("{\"ok\":true}") });
    let running = job(&provider, 6, &["-o", "-", "--concurrency", "2", "--adaptive=false"]).spawn();
    running.wait_for_stdout("row 2");
    provider.wait_for_calls(6);
    let killed = running.kill9();
    assert_eq!(numbers(&killed.stdout), [1, 2]);
    // Continuing writes the whole output, also what was finished before.
    let provider = Provider::start(|_| Reply::answer("{\"ok\":true}"));
    let outcome = job(&provider, 40, &["-o", "-", "--concurrency", "5"]).run().expect_code(0);
    assert_eq!(numbers(&outcome.stdout), (1..=40).collect::<Vec<_>>());
    same_rows(&outcome, &outcome.stdout);
}

#[test]
fn a_run_that_was_killed_writes_all_rows_when_it_is_continued() {
    let works_again = Arc::new(AtomicBool::new(false));
    let works = Arc::clone(&works_again);
    let provider = Provider::start(move |call| {
        let answers = call.row <= 4 || works.load(Ordering::SeqCst);
        if answers { Reply::answer("{\"ok\":true}") } else { Reply::never() }
    });
    let more = ["-o", "-", "--concurrency", "1", "--adaptive=false"];
    let running = job(&provider, 8, &more).spawn();
    running.wait_for_stdout("row 4");
    let killed = running.kill9();
    assert_eq!(numbers(&killed.stdout), [1, 2, 3, 4]);
    works_again.store(true, Ordering::SeqCst);
    let again = killed.again().args(arguments(&provider, &more)).run().expect_code(0);
    assert_eq!(numbers(&again.stdout), (1..=8).collect::<Vec<_>>());
    assert_eq!(again.stdout.matches("\"status\":\"pass\"").count(), 8);
    same_rows(&again, &again.stdout);
}

#[test]
fn a_run_that_cannot_go_on_before_its_first_row_writes_nothing() {
    let provider = Provider::start(|_| Reply::error(401, "invalid_api_key", "no"));
    let outcome = job(&provider, 5, &["-o", "-"]).run().expect_code(6);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_closed_standard_output_ends_the_run_quietly_and_nothing_more_is_sent() {
    let provider = Provider::start(|_| Reply::answer("{\"ok\":true}").after(Duration::from_millis(10)));
    let directory = Verify::new().file("in.jsonl", rows(300));
    let arguments = arguments(&provider, &["-o", "-", "--concurrency", "2"]);
    let said = shell(&directory, &arguments, "{ $VERIFY; echo $? >code; } | head -1");
    assert_eq!(numbers(&said), [1], "{said}");
    assert_eq!(std::fs::read_to_string(directory.path("code")).unwrap(), "141\n");
    assert!(provider.count() < 200, "{} requests", provider.count());
}

#[test]
fn a_full_device_stops_the_run() {
    let provider = Provider::start(|_| Reply::answer("{\"ok\":true}").after(Duration::from_millis(10)));
    let outcome = job(&provider, 300, &["-o", "/dev/full", "--concurrency", "2"]).run().expect_code(6);
    assert!(outcome.stderr.contains("/dev/full"), "{}", outcome.stderr);
    assert!(provider.count() < 200, "{} requests", provider.count());
    let outcome = job(&provider, 3, &["-o", "/dev/null"]).run().expect_code(0);
    assert!(std::fs::metadata("/dev/null").is_ok_and(|null| !null.is_file()), "{}", outcome.stderr);
}

#[test]
fn a_fifo_is_written_in_order_once_somebody_reads_it() {
    let provider = Provider::start(|_| Reply::answer("{\"ok\":true}"));
    let directory = Verify::new().file("in.jsonl", rows(20));
    let arguments = arguments(&provider, &["-o", "pipe.jsonl", "-q"]);
    let said = shell(&directory, &arguments, "mkfifo pipe.jsonl && { $VERIFY & cat pipe.jsonl; wait; }");
    assert_eq!(numbers(&said), (1..=20).collect::<Vec<_>>());
}

#[test]
fn rows_may_come_in_the_order_in_which_they_finish() {
    let provider = || {
        Provider::start(|call| {
            let wait = if call.row == 2 { 700 } else { 0 };
            Reply::answer("{\"ok\":true}").after(Duration::from_millis(wait))
        })
    };
    let order = ["--order", "completion", "--concurrency", "4", "--adaptive=false"];
    let first = provider();
    let outcome = job(&first, 30, &order).run().expect_code(0);
    let file = numbers(&outcome.file("in.verified.jsonl"));
    let mut sorted = file.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=30).collect::<Vec<_>>());
    assert_eq!(file.last(), Some(&2), "{file:?}");
    let second = provider();
    let outcome = job(&second, 30, &[&order[..], &["-o", "-"]].concat()).run().expect_code(0);
    assert_eq!(numbers(&outcome.stdout).last(), Some(&2), "{}", outcome.stdout);
}
