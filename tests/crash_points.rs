//! A death at each arrow of the order of durability, and the same command once more: what was lost, and that nothing
//! else was. Only a build with the feature `crash-points` can die there:
//! `cargo test --features crash-points --test crash_points -- --nocapture` prints the table.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a failed expectation is the failure of the test, which prints a table"
)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::{left_behind, numbered};
use support::provider::{Call, Provider, Reply};
use verify::base::CrashPoint;

const ROWS: u64 = 30;
const WORKERS: u64 = 4;
/// 10^-6 USD that an answer of 100 tokens costs at 30 USD per million.
const CALL: u64 = 3_000;
/// The exit code after `abort`.
const DIED: i32 = 134;

/// Answers by the row alone: one is refused for good, one is never well.
fn reply(call: &Call) -> Reply {
    match call.row {
        7 => Reply::error(400, "content_policy_violation", "no"),
        8 => Reply::completion("{\"echo\":\"cu", "length", 50, 100),
        _ => Reply::completion(&json!({ "echo": call.user() }).to_string(), "stop", 50, 100),
    }
}

/// A provider that bills each request when it arrives, with its book in 10^-6 USD.
fn provider() -> (Provider, Arc<AtomicU64>) {
    let book = Arc::new(AtomicU64::new(0));
    let bill = Arc::clone(&book);
    let provider = Provider::start(move |call| {
        bill.fetch_add(CALL, Ordering::SeqCst);
        reply(call)
    });
    (provider, book)
}

/// A run under a ceiling, with room for what a crash may have cost.
fn ask(verify: &Verify, url: &str) -> Verify {
    verify
        .again()
        .args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", "row {{ id }}"])
        .args(["--column", "echo=string", "--accounting=false", "--adaptive=false"])
        .args(["--price", "input=0,output=30", "--max-cost", "0.2", "--max-output-tokens", "100"])
        .args(["--concurrency", &WORKERS.to_string(), "--summary", "summary.json"])
}

const MOST: u64 = 200_000;

/// How many attempts with a reply are in the store, which opens and is whole.
fn kept(folder: &Path) -> u64 {
    let path = folder.join(".verify/store.db");
    if !path.exists() {
        return 0;
    }
    let store = rusqlite::Connection::open(path).unwrap();
    let whole: String = store.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    let count =
        store.query_row("SELECT count(*) FROM attempts WHERE http_status IS NOT NULL", [], |row| row.get(0));
    count.map_or(0, |count: i64| u64::try_from(count).unwrap())
}

fn summary(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.file("summary.json")).unwrap()
}

/// The output of a run that nothing disturbs.
fn undisturbed() -> String {
    let (provider, _) = provider();
    let outcome = ask(&Verify::new().file("in.jsonl", numbered(ROWS)), &provider.url()).run().expect_code(4);
    assert_eq!(provider.count() as u64, ROWS);
    outcome.file("in.verified.jsonl")
}

/// Where a process dies, in the order of its executions, each point with its passing.
type Deaths = &'static [(CrashPoint, u64)];

/// Every point at its first passing and, where a run passes it more than once, at a later one; then deaths that need
/// an earlier one.
const DEATHS: &[Deaths] = &[
    &[(CrashPoint::LockTaken, 1)],
    &[(CrashPoint::StoreMigrating, 1)],
    &[(CrashPoint::StoreMigrated, 1)],
    &[(CrashPoint::RunOpened, 1)],
    &[(CrashPoint::LeaseBegun, 1)],
    &[(CrashPoint::LeaseTaken, 1)],
    &[(CrashPoint::DrawNoted, 1)],
    &[(CrashPoint::DrawNoted, 11)],
    &[(CrashPoint::CallSending, 1)],
    &[(CrashPoint::CallSending, 12)],
    &[(CrashPoint::CallAnswered, 1)],
    &[(CrashPoint::CallAnswered, 13)],
    &[(CrashPoint::AttemptsWriting, 1)],
    &[(CrashPoint::AttemptsWriting, 5)],
    &[(CrashPoint::AttemptsKept, 1)],
    &[(CrashPoint::AttemptsKept, 5)],
    &[(CrashPoint::AttemptsDurable, 1)],
    &[(CrashPoint::AttemptsDurable, 2)],
    &[(CrashPoint::RowDone, 1)],
    &[(CrashPoint::RowDone, 14)],
    &[(CrashPoint::OutputBegun, 1)],
    &[(CrashPoint::OutputLine, 1)],
    &[(CrashPoint::OutputLine, 15)],
    &[(CrashPoint::OutputWritten, 1)],
    &[(CrashPoint::OutputSynced, 1)],
    &[(CrashPoint::OutputRenamed, 1)],
    &[(CrashPoint::WriterClosed, 1)],
    &[(CrashPoint::LeaseEnded, 1)],
    &[(CrashPoint::RunClosed, 1)],
    &[(CrashPoint::SummaryStored, 1)],
    &[(CrashPoint::StoreCheckpointed, 1)],
    &[(CrashPoint::CallAnswered, 9), (CrashPoint::DeadCarried, 1), (CrashPoint::LeaseBegun, 1)],
    &[(CrashPoint::CallAnswered, 9), (CrashPoint::CallAnswered, 1), (CrashPoint::AttemptsKept, 2)],
    &[(CrashPoint::AttemptsKept, 3), (CrashPoint::OutputSynced, 1), (CrashPoint::OutputRenamed, 1)],
];

#[test]
fn every_point_is_died_at() {
    for point in CrashPoint::ALL {
        assert!(DEATHS.iter().any(|deaths| deaths.iter().any(|(died, _)| *died == point)), "{point:?}");
    }
}

#[test]
fn what_a_death_at_each_point_costs_is_at_most_what_was_in_flight() {
    let expected = undisturbed();
    println!("{:<52} {:>5} {:>5} {:>5}", "point:passing, one an execution", "sent", "kept", "lost");
    for deaths in DEATHS {
        let names: Vec<String> = deaths.iter().map(|(point, n)| format!("{point:?}:{n}")).collect();
        let name = names.join(" ");
        let (provider, book) = provider();
        let verify =
            Verify::new().file("in.jsonl", numbered(ROWS)).file("in.verified.jsonl", "an older output\n");
        let mut at_death = 0;
        for at in &names {
            ask(&verify, &provider.url()).env("VERIFY_CRASH_AT", at).run().expect_code(DIED);
            at_death = kept(verify.directory());
            assert!(book.load(Ordering::SeqCst) <= MOST, "{name}");
            // The store opens for whoever asks.
            let told = verify.again().args(["runs"]).run();
            assert!([0, 2].contains(&told.code), "{name}: {}", told.stderr);
        }

        let outcome = ask(&verify, &provider.url()).run().expect_code(4);
        assert_eq!(outcome.file("in.verified.jsonl"), expected, "{name}");
        assert_eq!(left_behind(&outcome, &[]), ["in.verified.jsonl", "summary.json"], "{name}");
        let ids: BTreeSet<_> = provider.calls().into_iter().map(|call| call.client_request_id).collect();
        assert_eq!(ids.len(), provider.count(), "{name}: the id of a request was given twice");
        assert_eq!(kept(verify.directory()), ROWS, "{name}: what was kept was bought again");
        let lost = provider.count() as u64 - ROWS;
        let most = deaths.iter().map(|(point, _)| most_lost(*point)).sum();
        assert!(lost <= most, "{name}: {lost} lost");
        the_books_agree(&name, &summary(&outcome), &book, (lost, most));
        println!("{name:<52} {:>5} {at_death:>5} {lost:>5}", at_death + lost);
    }
}

/// How many requests a death at a point may lose: those that are in flight there.
fn most_lost(point: CrashPoint) -> u64 {
    let place = |point| CrashPoint::ALL.iter().position(|other| *other == point);
    let in_flight = place(CrashPoint::DrawNoted)..place(CrashPoint::OutputWritten);
    if in_flight.contains(&place(point)) { WORKERS } else { 0 }
}

/// What the program claims covers what was billed, and stays below the ceiling. A request that was lost counts once;
/// one that was noted and had not gone counts too.
fn the_books_agree(name: &str, summary: &Value, book: &AtomicU64, (lost, most): (u64, u64)) {
    assert!(book.load(Ordering::SeqCst) <= MOST, "{name}");
    // A run that was closed before its process died is over, and the next one has a ledger of its own.
    if summary["execution"] == 1 {
        return;
    }
    let micros = |member: &str| {
        let usd = summary["cost"][member].to_string().parse::<rust_decimal::Decimal>().unwrap();
        u64::try_from(usd * rust_decimal::Decimal::from(1_000_000)).unwrap()
    };
    let (spent, possible) = (micros("spent_usd"), micros("possible_usd"));
    // A refused request costs nothing.
    assert_eq!(spent, (ROWS - 1) * CALL, "{name}");
    assert!(lost * CALL <= possible && possible <= most * CALL, "{name}: {possible} possible, {lost} lost");
    assert!(spent + possible <= MOST, "{name}");
    assert_eq!(summary["attempts"].as_u64().unwrap(), ROWS + possible / CALL, "{name}");
}
