//! Killed at any moment and started again: the same output as if nothing had happened, and nothing is bought twice
//! that was on disk.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, whose size a variable sets"
)]

mod support;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use support::command::Verify;
use support::job::{kills, numbered};
use support::provider::{Call, Provider, Reply};
use verify::base::Dice;

const ROWS: u64 = 300;
const WORKERS: usize = 16;

/// Answers by the row alone, a few late, a few never well.
fn reply(call: &Call) -> Reply {
    let reply = match call.row % 50 {
        7 => Reply::error(400, "content_policy_violation", "no"),
        8 => Reply::completion("{\"echo\":\"cu", "length", 100, 10),
        _ => Reply::answer(&json!({ "echo": call.user() }).to_string()),
    };
    reply.after(Duration::from_millis(5 + call.row * 7_919 % 31))
}

fn ask(verify: Verify, url: &str) -> Verify {
    verify.args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", "row {{ id }}"]).args([
        "--column",
        "echo=string",
        "--accounting=false",
        "--adaptive=false",
        "--concurrency",
        &WORKERS.to_string(),
    ])
}

/// How many attempts are on disk.
fn stored(folder: &Path) -> usize {
    let path = folder.join(".verify/store.db");
    if !path.exists() {
        return 0;
    }
    let store = rusqlite::Connection::open(path).unwrap();
    let count = store.query_row("SELECT count(*) FROM attempts", [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| usize::try_from(count).unwrap())
}

/// The output of a run that nothing disturbs.
fn undisturbed() -> String {
    let provider = Provider::start(reply);
    let outcome = ask(Verify::new().file("in.jsonl", numbered(ROWS)), &provider.url()).run().expect_code(4);
    assert_eq!(provider.count() as u64, ROWS);
    outcome.file("in.verified.jsonl")
}

#[test]
fn a_run_that_is_killed_at_random_moments_ends_as_if_it_had_not_been() {
    let expected = undisturbed();
    for round in 0..kills(6) {
        let provider = Provider::start(reply);
        // The endpoint is part of the job, and each round has its own.
        let verify = Verify::new().file("in.jsonl", numbered(ROWS));
        let running = ask(verify.again(), &provider.url()).spawn();
        let at = 1 + usize::try_from(Dice::new(20_260_401, &[round]).below(ROWS)).unwrap();
        provider.wait_for_calls(at);
        running.kill9().expect_code(137);
        provider.wait_until_the_dead_are_served();
        let sent = provider.count();
        let kept = stored(verify.directory());
        assert!(!verify.path("in.verified.jsonl").exists());

        let outcome = ask(verify.again(), &provider.url()).run().expect_code(4);
        assert!(outcome.stderr.contains("continuing run"), "{}", outcome.stderr);
        assert_eq!(outcome.file("in.verified.jsonl"), expected, "round {round}");
        assert_eq!(provider.count(), usize::try_from(ROWS).unwrap() + sent - kept);
        assert!(sent - kept <= WORKERS, "round {round}: {sent} sent, {kept} kept");
    }
}

/// A pipe in the run's folder: writing into it waits for a reader, and asking does not wait for the writing.
fn pipe(verify: &Verify) -> std::path::PathBuf {
    let path = verify.path("pipe.jsonl");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// Waits until every row has been asked for and the disk has every answer.
fn wait_until_all_is_stored(verify: &Verify, provider: &Provider) {
    provider.wait_for_calls(usize::try_from(ROWS).unwrap());
    while (stored(verify.directory()) as u64) < ROWS {
        std::thread::yield_now();
    }
}

#[test]
fn a_kill_between_the_last_answer_and_the_output_costs_nothing() {
    let provider = Provider::start(reply);
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let pipe = pipe(&verify);
    let running = ask(verify.again(), &provider.url()).args(["-o", "pipe.jsonl"]).spawn();
    wait_until_all_is_stored(&verify, &provider);
    running.kill9().expect_code(137);
    assert!(pipe.exists());
    assert_eq!(stored(verify.directory()) as u64, ROWS);
    let outcome = ask(verify.again(), &provider.url()).run().expect_code(4);
    assert_eq!(provider.count() as u64, ROWS);
    assert_eq!(outcome.file("in.verified.jsonl"), undisturbed());
}

#[test]
fn a_kill_in_the_middle_of_the_output_costs_nothing() {
    let provider = Provider::start(|call| {
        Reply::answer(&json!({ "echo": "x".repeat(2_000) + &call.user() }).to_string())
    });
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let pipe = pipe(&verify);
    let running = ask(verify.again(), &provider.url()).args(["-o", "pipe.jsonl"]).spawn();
    // 300 rows of 2 KB are more than a pipe holds, so most of them are still to be written.
    let mut reader = File::open(pipe).unwrap();
    reader.read_exact(&mut [0; 1_000]).unwrap();
    wait_until_all_is_stored(&verify, &provider);
    running.kill9().expect_code(137);
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!((rest.lines().count() as u64) < ROWS);

    let outcome = ask(verify.again(), &provider.url()).run().expect_code(0);
    assert_eq!((provider.count() as u64, outcome.json_lines("in.verified.jsonl").len() as u64), (ROWS, ROWS));
}

#[test]
fn a_kill_of_a_file_that_is_being_replaced_leaves_the_old_one() {
    // Nothing is asked, so the runs differ in when they are killed only: at their start, in the join, at the end.
    let verify = Verify::new().file("in.jsonl", numbered(2_000));
    let provider = Provider::start(|call| Reply::answer(&json!({ "echo": call.user() }).to_string()));
    let first = ask(verify.again(), &provider.url()).run().expect_code(0);
    let whole = first.file("in.verified.jsonl");
    let count = provider.count();
    for round in 0..kills(6) {
        let running = ask(verify.again(), &provider.url()).arg("--new").spawn();
        // The first progress in the store, or the first look at the input, is as good a moment as any.
        if round % 2 == 0 {
            running.wait_for_stderr("\n");
        }
        running.kill9();
        assert_eq!(first.file("in.verified.jsonl"), whole);
    }
    let last = ask(verify.again(), &provider.url()).run().expect_code(0);
    assert_eq!((last.file("in.verified.jsonl"), provider.count()), (whole, count));
}

#[test]
fn a_run_that_is_killed_again_and_again_gets_there() {
    let provider = Provider::start(reply);
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let mut lost = 0;
    for kill in 1..=5_usize {
        let running = ask(verify.again(), &provider.url()).spawn();
        provider.wait_for_calls(lost + kill * 40);
        running.kill9();
        provider.wait_until_the_dead_are_served();
        lost = provider.count() - stored(verify.directory());
        assert!(lost <= kill * WORKERS, "{lost} lost after {kill} kills");
    }
    let outcome = ask(verify.again(), &provider.url()).run().expect_code(4);
    assert_eq!(provider.count(), usize::try_from(ROWS).unwrap() + lost);
    assert_eq!(outcome.file("in.verified.jsonl"), undisturbed());
}

#[test]
fn samples_are_kept_as_they_land() {
    let answer = |call: &Call| Reply::answer(&json!({ "good": true, "n": call.sample }).to_string());
    let provider = Provider::start(move |call| {
        // The second row's third sample does not come before the kill.
        if call.row == 2 && call.sample == 3 && call.n <= 12 { Reply::never() } else { answer(call) }
    });
    let verify = Verify::new().file("in.jsonl", numbered(4));
    let ask = |verify: Verify| {
        verify
            .args([
                "run",
                "in.jsonl",
                "--model",
                "m",
                "--base-url",
                &provider.url(),
                "--prompt",
                "row {{ id }}",
            ])
            .args(["--column", "good=boolean", "--column", "n=integer", "--verdict", "good"])
            .args(["--samples", "3", "--adaptive=false", "--concurrency", "2"])
    };
    let running = ask(verify.again()).spawn();
    // Three samples of each of the four rows; the other worker goes on beside the one that hangs.
    provider.wait_for_calls(12);
    wait_until_stored(verify.directory(), 11);
    running.kill9();
    let outcome = ask(verify.again()).run().expect_code(0);
    let calls = provider.calls();
    let again: Vec<_> = calls[12..].iter().map(|call| (call.row, call.sample)).collect();
    assert_eq!(again, [(2, 3)]);
    for line in outcome.json_lines("in.verified.jsonl") {
        assert_eq!(line["verify"]["samples"], json!({"planned": 3, "made": 3, "valid": 3}));
        assert_eq!((&line["verify"]["status"], &line["verify"]["answer"]["n"]), (&json!("pass"), &json!(1)));
    }
}

/// An ordinary build cannot be told to die: it has neither the points nor the name of their variable.
#[cfg(not(feature = "crash-points"))]
#[test]
fn an_ordinary_build_has_no_crash_points() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_verify")).unwrap();
    let text = String::from_utf8_lossy(&binary);
    assert!(text.contains("x-client-request-id"), "nothing is found in this binary");
    assert!(!text.contains("VERIFY_CRASH_AT"));
}

/// Waits until so many attempts are in the store.
fn wait_until_stored(folder: &Path, count: usize) {
    let begun = std::time::Instant::now();
    while stored(folder) < count {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "{} attempts are stored, not {count}",
            stored(folder)
        );
        std::thread::yield_now();
    }
}
