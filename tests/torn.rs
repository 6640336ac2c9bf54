//! Torn tails and garbage in what the state folder holds: the store, its log, the notes of draws, the copy of standard
//! input. What is whole is used, what is not is asked again or named, and nothing is overwritten that may be saved.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, which damages files"
)]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::json;
use support::command::{Outcome, Verify};
use support::job::{numbered, results};
use support::provider::{Call, Provider, Reply};

const ROWS: u64 = 120;
const WORKERS: u64 = 4;

fn echo(call: &Call) -> Reply {
    Reply::completion(&json!({ "echo": call.user() }).to_string(), "stop", 50, 100)
}

fn ask(verify: Verify, url: &str) -> Verify {
    verify
        .args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", "row {{ id }}"])
        .args(["--column", "echo=string", "--accounting=false", "--adaptive=false"])
        .args(["--concurrency", &WORKERS.to_string()])
}

/// Copies the files of a folder, and its folders with theirs.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let goal = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &goal);
        } else {
            fs::copy(&path, &goal).unwrap();
        }
    }
}

/// A run that was killed with most of its answers in the log, and the same run's whole output.
fn killed() -> (Provider, Outcome, String) {
    let provider = Provider::start(|call| if call.n <= 90 { echo(call) } else { Reply::never() });
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let running = ask(verify.again(), &provider.url()).spawn();
    provider.wait_for_calls(94);
    let killed = running.kill9().expect_code(137);
    assert!(fs::metadata(killed.path(".verify/store.db-wal")).unwrap().len() > 50_000);
    let whole = (1..=ROWS).fold(String::new(), |mut text, row| {
        let line = json!({"echo": format!("row {row}")});
        writeln!(
            text,
            "{{\"id\":{row},\"verify\":{{\"row\":{row},\"id\":null,\"status\":\"pass\",\"reason\":\"valid\",\
             \"answer\":{line},\"confidence\":null,\"agreement\":null,\"samples\":{{\"planned\":1,\"made\":1,\"valid\":1}},\
             \"extracted\":false,\"model\":\"m\",\"error\":null}}}}"
        )
        .unwrap();
        text
    });
    (provider, killed, whole)
}

/// Nothing of a panic reaches a person.
fn is_civil(outcome: &Outcome) {
    assert!(
        !outcome.stderr.contains("panic") && !outcome.stderr.contains("RUST_BACKTRACE"),
        "{}",
        outcome.stderr
    );
}

/// What is done to the bytes of a file.
type Damage = fn(&mut Vec<u8>);

#[test]
fn a_log_with_a_torn_tail_or_garbage_in_it_loses_what_came_after_and_nothing_else() {
    let damages: [(&str, Damage); 9] = [
        ("nothing", |_| ()),
        ("one byte short", |bytes| {
            bytes.pop();
        }),
        ("half of it", |bytes| bytes.truncate(bytes.len() / 2)),
        ("torn within its head", |bytes| bytes.truncate(20)),
        ("empty", Vec::clear),
        ("garbage behind", |bytes| bytes.extend([0xa5; 5_000])),
        ("zeros at its end", |bytes| {
            let from = bytes.len() - 6_000;
            bytes[from..].fill(0);
        }),
        ("garbage in the middle", |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle..middle + 600].fill(0x5a);
        }),
        ("garbage from its start", |bytes| bytes.fill(0x5a)),
    ];
    let (_provider, killed, whole) = killed();
    for (name, damage) in damages {
        let verify = Verify::new().file("in.jsonl", numbered(ROWS));
        copy(&killed.path(".verify"), &verify.path(".verify"));
        let log = verify.path(".verify/store.db-wal");
        let mut bytes = fs::read(&log).unwrap();
        damage(&mut bytes);
        fs::write(&log, &bytes).unwrap();
        let provider = Provider::start(echo);
        // The endpoint is part of a request's identity, so the copy is asked at a place of its own: all rows are bought
        // there, whatever the log holds, and what matters is that the store opens, serves and says nothing odd.
        let outcome = ask(verify.again(), &provider.url()).run().expect_code(0);
        is_civil(&outcome);
        assert_eq!(outcome.file("in.verified.jsonl"), whole, "{name}");
        assert_eq!(provider.count() as u64, ROWS, "{name}");
        let runs = verify.again().args(["runs"]).run().expect_code(0);
        is_civil(&runs);
    }
}

#[test]
fn a_log_that_is_cut_gives_back_a_prefix_of_what_it_held() {
    for (part, of) in [(1, 1), (2, 3), (1, 3), (0, 1)] {
        let provider =
            Provider::start(|call| if call.n <= 90 || call.n > 94 { echo(call) } else { Reply::never() });
        let verify = Verify::new().file("in.jsonl", numbered(ROWS));
        let running = ask(verify.again(), &provider.url()).spawn();
        provider.wait_for_calls(94);
        running.kill9().expect_code(137);
        let log = verify.path(".verify/store.db-wal");
        let bytes = fs::read(&log).unwrap();
        fs::write(&log, &bytes[..bytes.len() * part / of]).unwrap();
        let outcome = ask(verify.again(), &provider.url()).run().expect_code(0);
        is_civil(&outcome);
        assert_eq!(results(&outcome).len() as u64, ROWS);
        let again = provider.count() as u64 - 94;
        let fewest = ROWS - 90;
        if part == of {
            assert!((fewest..=fewest + WORKERS).contains(&again), "{again} asked, {fewest} were missing");
        } else {
            assert!((fewest..=ROWS).contains(&again), "{again} asked");
        }
    }
}

#[test]
fn a_damaged_store_is_named_left_alone_and_can_be_moved_away() {
    // Whether the damage is seen when the store is opened, before anything is written.
    let damages: [(&str, bool, Damage); 4] = [
        ("half of it", true, |bytes| bytes.truncate(bytes.len() / 2)),
        ("torn within a page", false, |bytes| bytes.truncate(bytes.len() - 1_000)),
        ("garbage in its head", true, |bytes| bytes[..100].fill(0xa5)),
        ("garbage in its tables", true, |bytes| bytes[100..16_384].fill(0xa5)),
    ];
    let provider = Provider::start(echo);
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let first = ask(verify, &provider.url()).run().expect_code(0);
    let whole = first.file("in.verified.jsonl");
    let good = fs::read(first.path(".verify/store.db")).unwrap();
    for (name, at_once, damage) in damages {
        let mut bytes = good.clone();
        damage(&mut bytes);
        fs::write(first.path(".verify/store.db"), &bytes).unwrap();
        let asked = provider.count();
        for command in
            [&["status", "last"][..], &["show", "last", "1"], &["runs"], &["export", "last", "-o", "e.jsonl"]]
        {
            let told = first.again().args(command.iter().copied()).run();
            is_civil(&told);
            // A command may find all it reads in pages that are whole.
            assert!(
                [0, 6].contains(&told.code),
                "{name}: {command:?} ended with {}: {}",
                told.code,
                told.stderr
            );
        }
        let refused = ask(first.again(), &provider.url()).arg("--new").run();
        is_civil(&refused);
        if refused.code == 0 {
            // Only pages beyond all that is read were hurt.
            assert_eq!(refused.file("in.verified.jsonl"), whole, "{name}");
            continue;
        }
        let refused = refused.expect_code(6);
        for word in ["store.db", "damaged", "put a copy back, or move the file away"] {
            assert!(refused.stderr.contains(word), "{name}: {}", refused.stderr);
        }
        let is_untouched = fs::read(first.path(".verify/store.db")).unwrap() == bytes;
        assert!(is_untouched || !at_once, "{name}: it was written to");
        assert_eq!((first.file("in.verified.jsonl"), provider.count()), (whole.clone(), asked), "{name}");
        // The next step that is named works.
        fs::rename(first.path(".verify/store.db"), first.path("old.db")).unwrap();
        ask(first.again(), &provider.url()).run().expect_code(0);
        assert_eq!(provider.count(), asked + usize::try_from(ROWS).unwrap(), "{name}");
    }
}

#[test]
fn torn_notes_and_an_index_of_garbage_are_passed_over() {
    let provider = Provider::start(|call| if call.n <= 2 { Reply::never() } else { echo(call) });
    let verify = Verify::new().file("in.jsonl", numbered(ROWS));
    let limited = |verify: Verify| {
        ask(verify, &provider.url()).args(["--price", "input=0,output=30", "--max-cost", "1"]).args([
            "--max-output-tokens",
            "100",
            "--summary",
            "summary.json",
        ])
    };
    // The canary goes alone and is never answered.
    let running = limited(verify.again()).spawn();
    provider.wait_for_calls(1);
    running.kill9().expect_code(137);
    let notes = verify.path(".verify/jobs/draws-1");
    let mut bytes = fs::read(&notes).unwrap();
    assert_eq!(bytes.len(), 16);
    bytes.extend([7, 7, 7]);
    fs::write(&notes, bytes).unwrap();
    fs::write(verify.path(".verify/store.db-shm"), [0xa5; 9_000]).unwrap();
    let running = limited(verify.again()).spawn();
    let calls = provider.wait_for_calls(2);
    running.kill9().expect_code(137);
    assert_ne!(calls[0].client_request_id, calls[1].client_request_id);
    let outcome = limited(verify.again()).run().expect_code(0);
    is_civil(&outcome);
    assert_eq!(results(&outcome).len() as u64, ROWS);
    let summary: serde_json::Value = serde_json::from_str(&outcome.file("summary.json")).unwrap();
    // Two requests were lost, at 100 tokens each.
    assert_eq!(summary["cost"]["possible_usd"].to_string(), "0.006");
    let shown = outcome.again().args(["show", "last", "1", "--format", "json"]).run().expect_code(0).json();
    let outcomes: Vec<_> = shown["samples"][0]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, ["abandoned", "abandoned", "valid"]);
}

#[test]
fn a_note_of_draws_that_cannot_be_kept_stops_the_run_before_anything_is_sent() {
    let provider = Provider::start(echo);
    let verify = Verify::new().file("in.jsonl", numbered(3));
    fs::create_dir_all(verify.path(".verify/jobs/draws-1")).unwrap();
    let refused = ask(verify, &provider.url())
        .args(["--price", "input=0,output=30", "--max-cost", "1"])
        .run()
        .expect_code(6);
    assert!(
        refused.stderr.contains("draws-1") && refused.stderr.contains("nothing more is sent"),
        "{}",
        refused.stderr
    );
    is_civil(&refused);
    assert_eq!(provider.count(), 0);
}

fn from_stdin(verify: &Verify, url: &str, rows: u64) -> Outcome {
    let given = numbered(rows);
    verify
        .again()
        .stdin(given)
        .args(["run", "-", "--model", "m", "--base-url", url, "--prompt", "row {{ id }}"])
        .args(["--column", "echo=string", "-o", "out.jsonl"])
        .run()
        .expect_code(0)
}

/// The copy of standard input in the state folder.
fn spool(verify: &Verify) -> std::path::PathBuf {
    let names = fs::read_dir(verify.path(".verify")).unwrap().map(|entry| entry.unwrap().path());
    let mut spools: Vec<_> =
        names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("spool")).collect();
    assert_eq!(spools.len(), 1, "{spools:?}");
    spools.remove(0)
}

#[test]
fn a_copy_of_standard_input_that_was_damaged_is_made_anew() {
    let damages: [Damage; 3] = [Vec::clear, |bytes| bytes.truncate(30), |bytes| bytes.fill(b'x')];
    let provider = Provider::start(echo);
    let verify = Verify::new();
    from_stdin(&verify, &provider.url(), 9);
    let path = spool(&verify);
    let good = fs::read(&path).unwrap();
    for damage in damages {
        let mut bytes = good.clone();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        // What was left by a process that died while it copied goes.
        fs::write(verify.path(".verify/spool-incoming-1-2"), "half of a li").unwrap();
        let outcome = from_stdin(&verify, &provider.url(), 9);
        assert_eq!((outcome.json_lines("out.jsonl").len(), provider.count()), (9, 9));
        assert_eq!((spool(&verify), fs::read(&path).unwrap()), (path.clone(), good.clone()));
    }
}
