//! `verify runs` and `verify runs rm`.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use support::command::{Outcome, Verify};
use support::provider::{Provider, Reply};

const MOCK: [&str; 6] = ["--provider", "mock", "--prompt", "Is {{ text }} spam?", "--column", "spam=boolean"];

fn job(directory: Verify, input: &str) -> Verify {
    directory.args(["run", input]).args(MOCK)
}

/// The ids that `verify runs` lists, the newest first.
fn ids(outcome: &Outcome) -> Vec<String> {
    let listed = outcome.again().args(["runs", "--format", "json"]).run().expect_code(0).json();
    listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn runs_are_listed_the_newest_first() {
    let first = job(Verify::new().file("in.csv", "text\none\ntwo\n"), "in.csv").run().expect_code(0);
    let second =
        job(first.again(), "in.csv").args(["--limit", "1", "--prompt-version", "v2"]).run().expect_code(0);
    let json = second.again().args(["runs", "--format", "json"]).run().expect_code(0).json();
    assert_eq!(json.as_array().unwrap().len(), 2);
    assert_eq!((json[0]["version"].as_str(), json[1]["version"].as_str()), (Some("v2"), Some("")));
    assert_eq!(json[1]["status"]["pass"], 2);
    assert_eq!(json[0]["input"], "in.csv");
    let members: Vec<_> = json[0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["run", "input", "status", "started", "ended", "version"]);
    assert!(json[0]["started"].as_str() < json[0]["ended"].as_str());

    let text = second.again().args(["runs"]).run().expect_code(0).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("RUN ") && lines[1].contains("exit 0") && lines.len() == 3, "{text}");
    assert!(lines[1].starts_with(json[0]["run"].as_str().unwrap()), "{text}");

    let none = Verify::new().args(["runs"]).run().expect_code(2);
    assert!(none.stderr.contains("nothing has been run here yet"), "{}", none.stderr);
}

#[test]
fn a_removed_run_is_gone_and_answers_that_others_replay_stay() {
    let provider = Provider::start(|_| Reply::answer("{\"spam\":true}"));
    let (url, lines) = (provider.url(), "{\"text\":\"a\"}\n{\"text\":\"b\"}\n");
    let ask = |directory: Verify, input: &str| {
        directory.args(["run", input, "--model", "m", "--base-url", &url]).args(MOCK.into_iter().skip(2))
    };
    let first = ask(Verify::new().file("in.jsonl", lines).file("other.jsonl", lines), "in.jsonl");
    let first = first.run().expect_code(0);
    let second = ask(first.again(), "other.jsonl").run().expect_code(0);
    assert_eq!(provider.count(), 2);
    let [newer, older] = <[String; 2]>::try_from(ids(&second)).unwrap();

    let removed = second.again().args(["runs", "rm", &older]).run().expect_code(0);
    assert!(removed.stderr.contains(&format!("removed run {older} (in.jsonl)")), "{}", removed.stderr);
    assert_eq!(ids(&removed), [newer.as_str()]);
    removed.again().args(["status", &older]).run().expect_code(2);
    let shown = removed.again().args(["show", &newer, "1", "--format", "json"]).run().expect_code(0).json();
    assert_eq!(shown["samples"][0]["attempts"][0]["http_status"], 200);

    // The answers are still found by their requests.
    ask(removed.again(), "in.jsonl").run().expect_code(0);
    assert_eq!(provider.count(), 2);
    let all = ids(&removed);
    removed.again().args(["runs", "rm"]).args(all).run().expect_code(0);
    assert_eq!(ids(&removed), [""; 0]);
    ask(removed.again(), "in.jsonl").run().expect_code(0);
    assert_eq!(provider.count(), 4);
}

#[test]
fn age_counts_from_the_end_and_unknown_names_remove_nothing() {
    let outcome = job(Verify::new().file("in.csv", "text\none\n"), "in.csv").run().expect_code(0);
    let kept = outcome.again().args(["runs", "rm", "--older", "30d"]).run().expect_code(0);
    assert!(kept.stderr.contains("no run was removed"), "{}", kept.stderr);
    outcome.again().args(["runs", "rm", "last", "ffffffff"]).run().expect_code(2);
    outcome.again().args(["runs", "rm"]).run().expect_code(2);
    outcome.again().args(["runs", "rm", "--older", "30"]).run().expect_code(2);
    assert_eq!(ids(&outcome).len(), 1);
    outcome.again().args(["runs", "rm", "--older", "0s"]).run().expect_code(0);
    assert_eq!(ids(&outcome).len(), 0);
}

#[test]
fn the_copy_of_standard_input_goes_with_its_last_run() {
    let spools = |outcome: &Outcome| {
        let entries = std::fs::read_dir(outcome.path(".verify")).unwrap();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("spool"))
            .count()
    };
    let piped = || Verify::new().stdin("{\"text\":\"a\"}\n");
    let first = job(piped(), "-").run().expect_code(0);
    let second = job(first.again().stdin("{\"text\":\"a\"}\n"), "-").args(["--new"]).run().expect_code(0);
    assert_eq!((ids(&second).len(), spools(&second)), (2, 1));
    second.again().args(["runs", "rm", "last"]).run().expect_code(0);
    assert_eq!(spools(&second), 1);
    second.again().args(["runs", "rm", "last"]).run().expect_code(0);
    assert_eq!(spools(&second), 0);
}

#[test]
fn a_run_that_goes_on_stays() {
    let provider = Provider::start(|_| Reply::never());
    let directory = Verify::new().file("in.csv", "text\none\n").file("done.csv", "text\none\n");
    let done = job(directory, "done.csv").run().expect_code(0);
    let running = done
        .again()
        .args(["run", "in.csv", "--model", "m", "--base-url", &provider.url()])
        .args(MOCK.into_iter().skip(2))
        .spawn();
    provider.wait_for_calls(1);
    let refused = done.again().args(["runs", "rm", "last"]).run().expect_code(6);
    assert!(refused.stderr.contains(&format!("pid {}", running.id())), "{}", refused.stderr);
    let swept = done.again().args(["runs", "rm", "--older", "0s"]).run().expect_code(0);
    assert!(swept.stderr.contains("stays: another process"), "{}", swept.stderr);
    let left = done.again().args(["runs"]).run().expect_code(0).stdout;
    assert!(left.contains("running") && !left.contains("done.csv"), "{left}");
    running.kill9();
    let left = done.again().args(["runs"]).run().expect_code(0).stdout;
    assert!(left.contains("killed"), "{left}");
}
