//! Disks that are full, folders that are no folders or have gone, descriptors that are closed: each names its thing and
//! the next step, ends with the code of the contract, and costs no answer that was bought.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed expectation is the failure of the test, which says what the machine cannot show"
)]

mod support;

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use support::command::Verify;
use support::job::{always, asks, job, left_behind, results, rows, statuses};
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";

/// Runs a line of shell in the directory, where `$VERIFY` stands for the binary with these arguments. What it says,
/// and its last code.
fn shell(verify: &Verify, arguments: &[String], line: &str) -> (String, i32) {
    let quoted: Vec<_> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let line = line.replace("$VERIFY", &format!("{} {}", env!("CARGO_BIN_EXE_verify"), quoted.join(" ")));
    let output = Command::new("sh").arg("-c").arg(line).current_dir(verify.directory()).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("panic"), "{said}");
    (said, output.status.code().unwrap())
}

#[test]
fn a_limit_on_the_size_of_files_stops_the_run_and_what_was_bought_is_kept() {
    // Replies of 40 KB fill a store that may have 512 KB long before the last row. The limit is a write that fails,
    // once the signal that comes with it is ignored; it needs no rights.
    let provider =
        Provider::start(|_| Reply::answer(&json!({"ok": true, "pad": "x".repeat(40_000)}).to_string()));
    let verify = Verify::new().file("in.jsonl", rows(60));
    let mut arguments = asks(&provider, "in.jsonl", "{{ text }}");
    arguments
        .extend(["--column", "pad=string", "--concurrency", "2", "--accounting=false"].map(str::to_owned));
    let (said, code) = shell(&verify, &arguments, "trap '' XFSZ; ulimit -f 1024; $VERIFY");
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("store.db") && said.contains("run the same command again"), "{said}");
    let (bought, asked) = (provider.count(), 60);
    assert!(bought < asked, "{bought} requests under the limit");
    let outcome = verify.again().args(arguments).run().expect_code(0);
    assert_eq!(statuses(&outcome), vec!["pass/valid"; asked]);
    // The failed commit's two requests, and those that were in flight beside it.
    assert!(provider.count() <= asked + 4, "{} requests for {asked} rows", provider.count());
}

#[test]
fn an_output_that_hits_the_limit_is_given_up_whole_and_made_again_for_nothing() {
    // The store stays small, the output carries long inputs.
    let provider = always(ANSWER);
    let long = |n: usize| json!({"text": format!("row {n}"), "pad": "y".repeat(30_000)}).to_string() + "\n";
    let input: String = (1..=60).map(long).collect();
    let verify = Verify::new().file("in.jsonl", input).file("in.verified.jsonl", "an older output\n");
    let arguments = asks(&provider, "in.jsonl", "{{ text }}");
    let (said, code) = shell(&verify, &arguments, "trap '' XFSZ; ulimit -f 1500; $VERIFY");
    assert_eq!(code, 6, "{said}");
    assert!(said.contains("in.verified.jsonl"), "{said}");
    // Nothing more is bought for an output that cannot be written.
    assert!(provider.count() <= 60);
    assert_eq!(fs::read_to_string(verify.path("in.verified.jsonl")).unwrap(), "an older output\n");
    assert!(!verify.path("in.verified.jsonl.partial").exists(), "a torn output was put in place");
    let outcome = verify.again().args(arguments).run().expect_code(0);
    assert_eq!((results(&outcome).len(), provider.count()), (60, 60));
    assert_eq!(left_behind(&outcome, &[]), ["in.verified.jsonl"]);
}

#[test]
fn a_full_disk_stops_the_run_and_it_goes_on_once_there_is_room() {
    let provider =
        Provider::start(|_| Reply::answer(&json!({"ok": true, "pad": "x".repeat(40_000)}).to_string()));
    let verify = Verify::new().file("in.jsonl", rows(60));
    fs::create_dir(verify.path("small")).unwrap();
    let mut arguments = asks(&provider, "in.jsonl", "{{ text }}");
    let more = ["--column", "pad=string", "--concurrency", "2", "--state", "small/state"];
    arguments.extend(more.map(str::to_owned));
    // A mount in a namespace of one's own needs a kernel that lets anybody have one.
    let script = "mount -t tmpfs -o size=1m tmpfs small || exit 99; $VERIFY; echo first=$?; \
                  mount -o remount,size=64m small || exit 99; $VERIFY; echo second=$?";
    let quoted: Vec<_> = arguments.iter().map(|word| format!("'{word}'")).collect();
    let script = script.replace("$VERIFY", &format!("{} {}", env!("CARGO_BIN_EXE_verify"), quoted.join(" ")));
    let output =
        Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(verify.directory()).output();
    let said = output.map(|output| {
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    });
    match said {
        Ok(said) if said.contains("first=") => {
            assert!(said.contains("first=6") && said.contains("second=0"), "{said}");
            assert!(said.contains("no space is left for the store small/state/store.db"), "{said}");
            assert!(said.contains("free some space and run the same command again"), "{said}");
            assert!(!said.contains("panic"), "{said}");
            assert!(provider.count() <= 60 + 4, "{} requests for 60 rows", provider.count());
        }
        other => {
            println!("no small disk can be mounted here, so only the limit on files is shown: {other:?}");
        }
    }
}

#[test]
fn an_output_folder_that_vanishes_costs_nothing_but_another_call() {
    for (order, name) in [("input", "out/a.jsonl"), ("input", "out/a.csv"), ("completion", "out/a.jsonl")] {
        let provider = Provider::start(|call| {
            let reply = Reply::answer(ANSWER);
            if call.n == 3 { reply.after(Duration::from_millis(400)) } else { reply }
        });
        let base = job(&provider, 12).file("out/other", "");
        let args = asks(&provider, "in.jsonl", "{{ text }}");
        let ask =
            || base.again().args(args.clone()).args(["-o", name, "--order", order, "--concurrency", "1"]);
        let running = ask().args(["--summary", "summary.json"]).spawn();
        provider.wait_for_calls(3);
        fs::remove_dir_all(base.path("out")).unwrap();
        let outcome = running.wait().expect_code(6);
        assert!(outcome.stderr.contains(name), "{}", outcome.stderr);
        assert!(
            !outcome.stderr.contains("panic") && outcome.stderr.contains("verify run in.jsonl"),
            "{}",
            outcome.stderr
        );
        let summary: serde_json::Value = serde_json::from_str(&outcome.file("summary.json")).unwrap();
        assert_eq!(
            (&summary["exit"]["code"], &summary["status"]["pass"]),
            (&json!(6), &json!(12)),
            "{order}"
        );
        fs::create_dir(base.path("out")).unwrap();
        let again = ask().run().expect_code(0);
        assert_eq!(
            (again.output_lines(name).len(), provider.count()),
            (12 + usize::from(name.ends_with("csv")), 12)
        );
    }
}

#[test]
fn a_state_folder_that_vanishes_is_no_end_of_the_world() {
    let provider = Provider::start(|call| {
        let reply = Reply::answer(ANSWER);
        if call.n == 3 { reply.after(Duration::from_millis(400)) } else { reply }
    });
    let verify = job(&provider, 12);
    let running = verify.args(["--concurrency", "1"]).spawn();
    provider.wait_for_calls(3);
    let state = running.directory().join(".verify");
    fs::remove_dir_all(&state).unwrap();
    let outcome = running.wait();
    assert!(!outcome.stderr.contains("panic"), "{}", outcome.stderr);
    // A file that is open stays until it is closed; whoever needs another one finds out.
    assert!([0, 6].contains(&outcome.code), "{}: {}", outcome.code, outcome.stderr);
    if outcome.code == 0 {
        assert_eq!(statuses(&outcome), ["pass/valid"; 12]);
    } else {
        assert!(outcome.stderr.contains(".verify"), "{}", outcome.stderr);
    }
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    let again = outcome.again().args(args).run().expect_code(0);
    assert_eq!(statuses(&again), ["pass/valid"; 12]);
}

/// What a test does to a directory before the program runs there.
type Prepare = fn(&Verify);

#[test]
fn what_stands_where_a_folder_or_a_file_should_be_is_named_before_anything_is_sent() {
    let provider = always(ANSWER);
    let cases: [(&str, Prepare, &str); 4] = [
        (
            "the folder of locks is a file",
            |verify| fs::File::create(verify.path(".verify/jobs")).map(drop).unwrap(),
            "jobs",
        ),
        (
            "the store is a folder",
            |verify| fs::create_dir(verify.path(".verify/store.db")).unwrap(),
            ".verify",
        ),
        (
            "the log is a folder",
            |verify| fs::create_dir(verify.path(".verify/store.db-wal")).unwrap(),
            ".verify",
        ),
        (
            "the copy of the store is a link to nowhere",
            |verify| {
                std::os::unix::fs::symlink("/nowhere/at/all", verify.path(".verify/store.db")).unwrap();
            },
            ".verify",
        ),
    ];
    for (name, prepare, named) in cases {
        let verify = Verify::new().file("in.jsonl", rows(3)).file(".verify/.gitignore", "*\n");
        prepare(&verify);
        let outcome = verify.again().args(asks(&provider, "in.jsonl", "{{ text }}")).run().expect_code(6);
        assert!(outcome.stderr.contains(named), "{name}: {}", outcome.stderr);
        assert!(
            !outcome.stderr.contains("panic") && outcome.stderr.contains("--state"),
            "{name}: {}",
            outcome.stderr
        );
        assert_eq!((provider.count(), left_behind(&outcome, &[])), (0, vec![]), "{name}");
    }
}

#[test]
fn closed_descriptors_harm_no_file() {
    let provider = always(ANSWER);
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let verify = Verify::new().file("in.jsonl", rows(20));
        let arguments = asks(&provider, "in.jsonl", "{{ text }}");
        let (said, code) = shell(&verify, &arguments, &format!("$VERIFY {closed}"));
        assert_eq!(code, 0, "{closed}: {said}");
        let status = verify.again().args(["status", "last", "--format", "json"]).run().expect_code(0);
        assert_eq!(status.json()["status"]["pass"], 20, "{closed}");
        assert_eq!(statuses(&status), ["pass/valid"; 20], "{closed}");
    }
}
