//! What else happens to a process: it is stopped and goes on, another one runs beside it, a dead one has left its lock,
//! the clock jumps, the input goes away, a signal comes while the output is made.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, which prepares files"
)]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use serde_json::json;
use support::command::{Outcome, Verify};
use support::job::{always, asks, job, left_behind, results, rows, statuses};
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";

fn again(outcome: &Outcome, provider: &Provider) -> Verify {
    outcome.again().args(asks(provider, "in.jsonl", "{{ text }}"))
}

#[test]
fn a_process_that_is_stopped_for_a_while_goes_on_where_it_was() {
    let provider = Provider::start(|_| Reply::answer(ANSWER).after(Duration::from_millis(30)));
    let running = job(&provider, 60).args(["--concurrency", "4", "--adaptive=false"]).spawn();
    for stop in 1..=3 {
        // Some replies arrive while nobody reads them.
        let calls = provider.wait_for_calls(stop * 12).len();
        running.signal("STOP");
        provider.wait_for_in_flight(0);
        assert!(calls < 60);
        running.signal("CONT");
    }
    let outcome = running.wait().expect_code(0);
    assert_eq!((statuses(&outcome), provider.count()), (vec!["pass/valid".to_owned(); 60], 60));
}

#[test]
fn a_stopped_process_holds_its_job_and_no_other() {
    let provider = Provider::start(|call| if call.n <= 4 { Reply::answer(ANSWER) } else { Reply::never() });
    let running = job(&provider, 20).args(["--concurrency", "4", "--adaptive=false"]).spawn();
    provider.wait_for_calls(8);
    running.signal("STOP");
    let beside = Verify::beside(&running);
    let refused = beside.again().args(asks(&provider, "in.jsonl", "{{ text }}")).run().expect_code(6);
    assert!(refused.stderr.contains(&format!("pid {}", running.id())), "{}", refused.stderr);
    assert!(refused.stderr.contains("wait for it to end, or stop it"), "{}", refused.stderr);
    let other = always(ANSWER);
    let another = || beside.again().args(asks(&other, "in.jsonl", "{{ text }}")).args(["-o", "other.jsonl"]);
    another().run().expect_code(0);
    running.kill9();
    another().arg("--new").run().expect_code(0);
    assert_eq!(other.count(), 20);
}

#[test]
fn two_jobs_that_write_one_file_leave_the_whole_of_one() {
    let (one, two) = (always(ANSWER), always(ANSWER));
    let base = Verify::new().file("in.jsonl", rows(200));
    let start = |provider: &Provider, name: &str| {
        let args = asks(provider, "in.jsonl", "{{ text }}");
        base.again().args(args).args(["-o", "out.jsonl", "--result-field", name]).spawn()
    };
    for _ in 0..3 {
        let both = [start(&one, "first"), start(&two, "second")];
        let ended = both.map(|running| running.wait().expect_code(0));
        let lines = ended[0].json_lines("out.jsonl");
        let of = |name: &str| lines.iter().filter(|line| !line[name].is_null()).count();
        assert_eq!(lines.len(), 200);
        assert!([(200, 0), (0, 200)].contains(&(of("first"), of("second"))), "a mixture of two outputs");
        assert_eq!(left_behind(&ended[0], &[]), ["out.jsonl"]);
    }
}

#[test]
fn a_lock_that_a_dead_process_left_is_taken_over_whatever_it_says() {
    let provider = always(ANSWER);
    let first = job(&provider, 3).run().expect_code(0);
    let locks: Vec<_> = fs::read_dir(first.path(".verify/jobs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "lock"))
        .collect();
    assert_eq!(locks.len(), 1);
    // The number may belong to a process that lives, such as this one: the lock is the kernel's, not the text's.
    for text in
        [format!("pid {}\nhost elsewhere\n", std::process::id()), String::new(), "\u{0}\u{fffd}".repeat(900)]
    {
        fs::write(&locks[0], &text).unwrap();
        again(&first, &provider).arg("--new").run().expect_code(0);
        assert_ne!(fs::read_to_string(&locks[0]).unwrap(), text);
    }
    assert_eq!(provider.count(), 3);
    fs::remove_file(&locks[0]).unwrap();
    fs::create_dir(&locks[0]).unwrap();
    let refused = again(&first, &provider).arg("--new").run().expect_code(6);
    let name = locks[0].file_name().unwrap().to_str().unwrap();
    assert!(refused.stderr.contains(name) && refused.stderr.contains("--state"), "{}", refused.stderr);
}

/// Sets all times in the store, in milliseconds since 1970.
fn set_times(outcome: &Outcome, to: i64) {
    let store = rusqlite::Connection::open(outcome.path(".verify/store.db")).unwrap();
    for column in [
        "runs SET started",
        "runs SET ended",
        "executions SET started",
        "executions SET ended",
        "attempts SET started",
        "key_waits SET noted",
    ] {
        store.execute(&format!("UPDATE {column} = ?1"), [to]).unwrap();
    }
    store.execute("UPDATE key_waits SET until = ?1", [to.saturating_add(3_600_000)]).unwrap();
    store.execute("UPDATE progress SET json = json_set(json, '$.at', ?1)", [to]).unwrap();
    store.close().unwrap();
}

#[test]
fn a_clock_that_was_wrong_when_a_run_was_stored_stops_no_later_one() {
    // 1970, long before, 2100, and what no calendar has.
    for at in [0, -62_000_000_000_000, 4_102_444_800_000, i64::MAX - 4_000_000, i64::MIN + 1] {
        let provider = Provider::start(|call| match call.n {
            // The server's wait is stored with the key.
            2 => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "3600"),
            _ => Reply::answer(ANSWER),
        });
        let waiting = job(&provider, 5).args(["--concurrency", "1"]).run().expect_code(6);
        assert!(waiting.stderr.contains("max_wait"), "{}", waiting.stderr);
        let asked = provider.count();
        set_times(&waiting, at);
        for command in [
            &["status", "last"][..],
            &["status", "last", "--format", "json"],
            &["runs"],
            &["runs", "--format", "json"],
            &["show", "last", "1"],
            &["show", "last", "1", "--format", "json"],
        ] {
            let told = waiting.again().args(command.iter().copied()).run();
            assert_eq!(told.code, 0, "{at}: {command:?}: {}", told.stderr);
        }
        let outcome = again(&waiting, &provider).run().expect_code(0);
        assert!(outcome.stderr.contains("continuing run"), "{at}: {}", outcome.stderr);
        assert_eq!(
            (statuses(&outcome), provider.count() - asked),
            (vec!["pass/valid".to_owned(); 5], 4),
            "{at}"
        );
        set_times(&outcome, at);
        let removed = outcome.again().args(["runs", "rm", "--older", "30d"]).run();
        assert!(
            [0, 2].contains(&removed.code) && !removed.stderr.contains("panic"),
            "{at}: {}",
            removed.stderr
        );
        assert_eq!(again(&outcome, &provider).run().expect_code(0).code, 0);
    }
}

#[test]
fn a_wait_that_the_server_asked_for_is_kept_while_the_clock_is_right() {
    let provider = Provider::start(|call| match call.n {
        2 => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "3600"),
        _ => Reply::answer(ANSWER),
    });
    let first = job(&provider, 5).args(["--concurrency", "1"]).run().expect_code(6);
    let asked = provider.count();
    again(&first, &provider).run().expect_code(6);
    assert_eq!(provider.count(), asked, "the key was used during its wait");
}

#[test]
fn an_input_that_is_removed_or_replaced_under_the_run_stops_it_and_is_named() {
    type Change = fn(&Verify);
    let changes: [(&str, Change); 3] = [
        ("removed", |verify| fs::remove_file(verify.path("in.jsonl")).unwrap()),
        ("replaced by a folder", |verify| {
            fs::remove_file(verify.path("in.jsonl")).unwrap();
            fs::create_dir(verify.path("in.jsonl")).unwrap();
        }),
        ("cut", |verify| fs::write(verify.path("in.jsonl"), &rows(400)[..900]).unwrap()),
    ];
    for (name, change) in changes {
        let provider = Provider::start(|call| {
            let reply = Reply::answer(ANSWER);
            if call.n == 3 { reply.after(Duration::from_millis(500)) } else { reply }
        });
        let base = job(&provider, 400);
        let ask =
            || base.again().args(asks(&provider, "in.jsonl", "{{ text }}")).args(["--concurrency", "1"]);
        let running = ask().spawn();
        provider.wait_for_calls(3);
        change(&base);
        let outcome = running.wait().expect_code(6);
        assert!(
            outcome.stderr.contains("in.jsonl") && !outcome.stderr.contains("panic"),
            "{name}: {}",
            outcome.stderr
        );
        assert_eq!(left_behind(&outcome, &[]), [""; 0], "{name}: an output was made of a changed input");
        let _ = fs::remove_dir(base.path("in.jsonl"));
        let base = base.again().file("in.jsonl", rows(400));
        let asked = provider.count();
        let whole = base.args(asks(&provider, "in.jsonl", "{{ text }}")).run().expect_code(0);
        assert_eq!((results(&whole).len(), provider.count()), (400, 400), "{name}: {asked} before");
    }
}

#[test]
fn a_first_signal_while_the_output_is_made_ends_the_run_soon_and_costs_nothing() {
    // Long rows of which the prompt needs little: asking is quick, making the output is not. Where each row is to be
    // seen besides, the output is made at the end.
    let pad = "z".repeat(100_000);
    let input = (1..=250).fold(String::new(), |mut text, row| {
        writeln!(text, "{}", json!({"text": format!("row {row}"), "pad": pad})).unwrap();
        text
    });
    let provider = always(ANSWER);
    let verify = Verify::new().file("in.jsonl", input).file("in.verified.jsonl", "an older output\n");
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    let ask = || verify.again().args(args.clone()).arg("--github").patience(Duration::from_mins(5));
    let running = ask().spawn();
    provider.wait_for_calls(250);
    let is_begun = || {
        fs::read_dir(verify.directory()).unwrap().any(|entry| {
            let entry = entry.unwrap();
            let is_temporary = entry.file_name().to_str().unwrap().starts_with(".verify-");
            is_temporary && entry.metadata().is_ok_and(|data| data.len() > 0)
        })
    };
    while !is_begun() {
        std::thread::yield_now();
    }
    running.signal("INT");
    let outcome = running.wait().expect_code(130);
    assert_eq!(outcome.file("in.verified.jsonl"), "an older output\n");
    assert!(outcome.stderr.contains("continue  verify run in.jsonl"), "{}", outcome.stderr);
    // Either it was given up, or so quick that it stands beside the older one.
    if outcome.path("in.verified.jsonl.partial").exists() {
        assert_eq!(outcome.json_lines("in.verified.jsonl.partial").len(), 250);
    } else {
        assert!(
            outcome.stderr.contains("SIGINT") && outcome.stderr.contains("without a new request"),
            "{}",
            outcome.stderr
        );
    }
    let again = ask().run().expect_code(0);
    assert_eq!((results(&again).len(), provider.count()), (250, 250));
    assert_eq!(left_behind(&again, &["report.xml"]), ["in.verified.jsonl"]);
}

#[test]
fn a_signal_ends_a_run_whose_output_nobody_reads() {
    // Once when all rows have ended, once when some have not.
    for answers in [5, 3] {
        let provider =
            Provider::start(
                move |call| {
                    if call.row <= answers { Reply::answer(ANSWER) } else { Reply::never() }
                },
            );
        let base = job(&provider, 5);
        let made = std::process::Command::new("mkfifo").arg(base.path("pipe")).status().unwrap();
        assert!(made.success());
        let ask = || base.again().args(asks(&provider, "in.jsonl", "{{ text }}"));
        let running = ask().args(["-o", "pipe", "--concurrency", "2"]).spawn();
        provider.wait_for_calls(5);
        running.signal("TERM");
        let outcome = running.wait().expect_code(143);
        assert!(outcome.stderr.contains("continue  verify run in.jsonl"), "{}", outcome.stderr);
        let status = ask().args(["--dry-run", "--format", "json"]).run().expect_code(0).json();
        assert!(status["calls"].as_u64().unwrap() <= 2, "what had come was not kept: {status}");
    }
}
