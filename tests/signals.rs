//! Stopping: what is under way gets its grace, what is finished is kept, and the same command goes on.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, which measures how long a stop takes"
)]

mod support;

use std::time::{Duration, Instant};

use serde_json::json;
use support::command::{Outcome, Verify};
use support::job::numbered;
use support::provider::{Call, Provider, Reply};

const SECOND: Duration = Duration::from_secs(1);
/// Within a second, and what a busy machine adds to it: less than the grace of requests in flight, and far less than any
/// wait in these tests.
const AT_ONCE: Duration = Duration::from_millis(4_500);

fn echo(call: &Call) -> Reply {
    Reply::answer(&json!({ "echo": call.user() }).to_string())
}

fn ask(verify: Verify, url: &str) -> Verify {
    ask_with(verify, url, 4)
}

fn ask_with(verify: Verify, url: &str, workers: u32) -> Verify {
    verify.args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", "row {{ id }}"]).args([
        "--column",
        "echo=string",
        "--adaptive=false",
        "--concurrency",
        &workers.to_string(),
    ])
}

/// Statuses with their reasons, in order.
fn statuses(outcome: &Outcome, name: &str) -> Vec<String> {
    let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let lines = outcome.json_lines(name);
    lines
        .iter()
        .map(|line| word(&line["verify"]["status"]) + "/" + &word(&line["verify"]["reason"]))
        .collect()
}

/// The command that stderr says continues the run: its last line that begins with `verify run`, after any words.
fn said_command(stderr: &str) -> String {
    let line = stderr.lines().rev().find(|line| line.contains("verify run ")).unwrap();
    line[line.find("verify run ").unwrap()..].to_owned()
}

#[test]
fn each_signal_stops_gently_with_its_own_code() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        // The four that are in flight at the signal are answered a second after it, which is within the grace.
        let provider =
            Provider::start(
                |call| if (7..=10).contains(&call.n) { echo(call).after(SECOND) } else { echo(call) },
            );
        let verify =
            Verify::new().file("in.jsonl", numbered(100)).file("in.verified.jsonl", "an older output\n");
        let running = ask(verify.again(), &provider.url()).spawn();
        provider.wait_for_calls(10);
        let begun = Instant::now();
        running.signal(signal);
        let outcome = running.wait().expect_code(code);
        assert!(begun.elapsed() < AT_ONCE, "the grace ends with the last answer");
        assert_eq!(outcome.file("in.verified.jsonl"), "an older output\n");
        let mut expected = vec!["pass/valid"; 10];
        expected.resize(100, "skipped/interrupted");
        assert_eq!(statuses(&outcome, "in.verified.jsonl.partial"), expected, "{signal}");
        assert_eq!(provider.count(), 10);

        let command = said_command(&outcome.stderr);
        assert!(command.contains("in.jsonl") && command.contains("row {{ id }}"), "{command}");
        let continued = ask_with(verify.again(), &provider.url(), 90).run().expect_code(0);
        assert_eq!(statuses(&continued, "in.verified.jsonl"), ["pass/valid"; 100]);
        assert_eq!(provider.count(), 100, "something was bought twice");
        assert!(!continued.path("in.verified.jsonl.partial").exists());
    }
}

#[test]
fn the_command_that_is_printed_continues_as_it_stands() {
    let provider =
        Provider::start(|call| if call.n <= 3 { echo(call) } else { echo(call).after(SECOND / 2) });
    let verify = Verify::new().file("in.jsonl", numbered(30));
    let running = ask(verify.again(), &provider.url()).args(["--limit", "20"]).spawn();
    provider.wait_for_calls(5);
    running.signal("INT");
    let stopped = running.wait().expect_code(130);
    let command = said_command(&stopped.stderr).replacen("verify", env!("CARGO_BIN_EXE_verify"), 1);
    let shell = std::process::Command::new("sh")
        .arg("-c")
        .arg(&command)
        .current_dir(verify.directory())
        .output()
        .unwrap();
    assert!(shell.status.success(), "{command}: {}", String::from_utf8_lossy(&shell.stderr));
    assert_eq!(provider.count(), 20);
    assert_eq!(stopped.json_lines("in.verified.jsonl").len(), 20);
}

#[test]
fn a_request_that_outlives_the_grace_is_given_up() {
    let provider = Provider::start(|call| if call.n == 1 { echo(call) } else { Reply::never() });
    let running = ask(Verify::new().file("in.jsonl", numbered(9)), &provider.url()).spawn();
    provider.wait_for_calls(5);
    let begun = Instant::now();
    running.signal("TERM");
    let outcome = running.wait().expect_code(143);
    let took = begun.elapsed();
    assert!((5 * SECOND..30 * SECOND).contains(&took), "the grace is 5 s, and it took {took:?}");
    let statuses = statuses(&outcome, "in.verified.jsonl.partial");
    assert_eq!(
        (statuses[0].as_str(), statuses[1].as_str(), statuses.len()),
        ("pass/valid", "skipped/interrupted", 9)
    );
}

#[test]
fn a_second_signal_of_any_kind_leaves_within_a_second() {
    for second in ["INT", "TERM", "HUP"] {
        let provider = Provider::start(|call| if call.row <= 2 { echo(call) } else { Reply::never() });
        let verify = Verify::new().file("in.jsonl", numbered(50));
        let running = ask(verify.again(), &provider.url()).spawn();
        // The sixth goes only once the first two are kept.
        provider.wait_for_calls(6);
        running.signal("INT");
        running.wait_for_stderr("stopping");
        let begun = Instant::now();
        running.signal(second);
        let outcome = running.wait();
        assert!(begun.elapsed() < AT_ONCE, "it took {:?}", begun.elapsed());
        assert!([130, 143, 129].contains(&outcome.code), "{}", outcome.code);
        // What had come is kept.
        let asked = provider.count();
        let again = ask(verify.again(), &provider.url()).spawn();
        let calls = provider.wait_for_calls(asked + 4);
        assert!(calls[asked..].iter().all(|call| call.row > 2), "an answered row was asked again");
        again.kill9();
    }
}

#[test]
fn a_run_whose_keys_all_wait_stops_at_once() {
    let provider = Provider::start(|call| {
        if call.n == 1 {
            echo(call)
        } else {
            Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "60")
        }
    });
    let verify = Verify::new().file("in.jsonl", numbered(20));
    let running = ask(verify, &provider.url()).spawn();
    running.wait_for_stderr("wait");
    let begun = Instant::now();
    running.signal("INT");
    let outcome = running.wait().expect_code(130);
    assert!(begun.elapsed() < AT_ONCE, "it took {:?}", begun.elapsed());
    assert_eq!(statuses(&outcome, "in.verified.jsonl.partial")[1..], ["skipped/interrupted"; 19]);
}

/// A wait: what comes after the first answer, flags, and how many requests come before it.
type Wait<'a> = (&'a str, fn() -> Reply, &'a [&'a str], usize);

#[test]
fn every_kind_of_wait_is_left_at_the_first_signal() {
    fn throttle(name: &str, value: &str) -> Reply {
        Reply::error(429, "rate_limit_exceeded", "slow down").header(name, value)
    }
    let date = || {
        let later = std::time::SystemTime::UNIX_EPOCH + support::job::epoch() + 60 * SECOND;
        throttle("retry-after", &httpdate::fmt_http_date(later))
    };
    let reset =
        || throttle("x-ratelimit-reset-requests", "1m0s").header("x-ratelimit-remaining-requests", "0");
    let waits: [Wait<'_>; 11] = [
        ("milliseconds", || throttle("retry-after-ms", "60000"), &[], 2),
        ("seconds", || throttle("retry-after", "60"), &[], 2),
        ("fractions", || throttle("retry-after", "60.5"), &[], 2),
        ("a date", date, &[], 2),
        ("a reset", reset, &[], 2),
        ("words", || Reply::error(429, "rate_limit_exceeded", "Please try again in 60s."), &[], 2),
        ("a wait beside a failure", || Reply::status(503).header("retry-after", "60"), &[], 2),
        ("a key that cools down", || Reply::error(401, "invalid_api_key", "no"), &[], 2),
        ("an outage", || Reply::status(503), &["--retry-base", "1ms", "--attempts", "20"], 12),
        ("requests a minute", || Reply::answer("{\"echo\":\"\"}"), &["--rpm", "1"], 1),
        ("tokens a minute", || Reply::answer("{\"echo\":\"\"}"), &["--tpm", "1"], 1),
    ];
    std::thread::scope(|scope| {
        for (name, reply, flags, calls) in waits {
            scope.spawn(move || {
                let provider = Provider::start(move |call| if call.n == 1 { echo(call) } else { reply() });
                let verify = Verify::new().file("in.jsonl", numbered(5));
                let running = ask_with(verify, &provider.url(), 1).args(flags.iter().copied()).spawn();
                provider.wait_for_calls(calls);
                let begun = Instant::now();
                running.signal("INT");
                let outcome = running.wait().expect_code(130);
                assert!(begun.elapsed() < AT_ONCE, "{name}: it took {:?}", begun.elapsed());
                let statuses = statuses(&outcome, "in.verified.jsonl.partial");
                assert_eq!(statuses.last().unwrap(), "skipped/interrupted", "{name}");
            });
        }
    });
}

#[test]
fn a_run_that_backs_off_stops_at_once() {
    let provider = Provider::start(|call| if call.n == 1 { echo(call) } else { Reply::status(503) });
    let verify = Verify::new().file("in.jsonl", numbered(3));
    let running = ask_with(verify, &provider.url(), 1).args(["--retry-base", "60s"]).spawn();
    provider.wait_for_calls(3);
    let begun = Instant::now();
    running.signal("INT");
    let outcome = running.wait().expect_code(130);
    assert!(begun.elapsed() < AT_ONCE, "it took {:?}", begun.elapsed());
    assert_eq!(
        statuses(&outcome, "in.verified.jsonl.partial"),
        ["pass/valid", "skipped/interrupted", "skipped/interrupted"]
    );
}

#[test]
fn a_run_that_waits_for_a_reader_of_its_output_leaves_at_the_second_signal() {
    let provider = Provider::start(echo);
    let verify = Verify::new().file("in.jsonl", numbered(5));
    assert!(std::process::Command::new("mkfifo").arg(verify.path("pipe")).status().unwrap().success());
    let running = ask(verify.again(), &provider.url()).args(["-o", "pipe"]).spawn();
    provider.wait_for_calls(5);
    let begun = Instant::now();
    running.signal("TERM");
    running.signal("INT");
    let code = running.wait().code;
    assert!([130, 143].contains(&code), "{code}");
    assert!(begun.elapsed() < AT_ONCE, "it took {:?}", begun.elapsed());
    ask(verify.again(), &provider.url()).run().expect_code(0);
    // The second signal gives up what is in flight at that moment, and nothing else is asked again.
    assert!(provider.count() <= 5 + 4);
}

#[test]
#[cfg(target_os = "linux")]
fn a_hangup_that_was_ignored_from_the_start_stays_ignored() {
    // The last answer takes its time, so that the run is there when the signal comes.
    let provider =
        Provider::start(|call| echo(call).after(if call.n == 20 { 2 * SECOND } else { SECOND / 50 }));
    let verify = Verify::new().file("in.jsonl", numbered(20)).ignoring("HUP");
    let running = ask(verify, &provider.url()).spawn();
    provider.wait_for_calls(20);
    running.signal("HUP");
    let outcome = running.wait().expect_code(0);
    assert_eq!(statuses(&outcome, "in.verified.jsonl"), ["pass/valid"; 20]);
}

#[test]
fn an_interrupt_stops_what_a_script_has_put_in_the_background() {
    // Shells without job control start such commands with SIGINT ignored.
    let provider = Provider::start(|call| echo(call).after(if call.n > 4 { SECOND } else { SECOND / 50 }));
    let verify = Verify::new().file("in.jsonl", numbered(20)).ignoring("INT");
    let running = ask(verify, &provider.url()).spawn();
    provider.wait_for_calls(6);
    running.signal("INT");
    running.wait().expect_code(130);

    let mock = Verify::new().args(["mock"]).ignoring("INT").spawn();
    mock.wait_for_stdout("\"anthropic\"");
    mock.signal("INT");
    mock.wait().expect_code(0);
}
