//! `verify status`.

use std::path::Path;

use crate::base::{Clock as _, SystemClock, WallTime};
use crate::cli::args::ReadArgs;
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::commands::stand::{snapshot_of, state_of};
use crate::cli::failure::Failure;
use crate::report::{Cost, Input, Latency, RunState, Snapshot, StatusView, Summary, status_text};
use crate::run::left_by_the_dead;
use crate::store::{RunRecord, Store};

/// Prints how a run stands. Returns the exit code.
pub(super) fn run(args: &ReadArgs, context: &Context) -> Result<u8, Failure> {
    let state = context.state_to_read(args.state.as_deref());
    let store = Store::open_existing(&state)?;
    let run = store.find_run(&args.run)?;
    let snapshot = snapshot_of(&run);
    let started = store.execution_started(&run)?;
    let record = Record::from_json(&run.settings);
    let resume = record.filter(|_| run.unfinished).map(|record| record.command);
    let text = if args.json {
        if let Some(summary) = &run.summary {
            summary.clone()
        } else {
            let cost = cost_of(&run, &snapshot, &store, &state)?;
            unfinished_summary(&run, started, &snapshot, cost, resume).to_json()
        }
    } else {
        let cost = cost_of(&run, &snapshot, &store, &state)?;
        let state = state_of(&run, &state);
        let resume = resume.filter(|_| state != RunState::Running);
        let view = StatusView {
            run: run.id,
            execution: run.executions.into(),
            input: run.input.clone(),
            version: run.version.clone(),
            started,
            state,
            snapshot,
            cost,
            resume,
        };
        status_text(&view, SystemClock::new().wall(), false)
    };
    let text = format!("{}\n", text.trim_end());
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

/// What a run has cost, from the store's own book. What an execution may have spent that died under a ceiling is
/// possible, although only the next one takes it over.
fn cost_of(run: &RunRecord, snapshot: &Snapshot, store: &Store, state: &Path) -> Result<Cost, Failure> {
    let book = store.book(run.seq)?;
    let mut possible = book.possible;
    if state_of(run, state) == RunState::Killed
        && let Some(left) = left_by_the_dead(state, store, run.seq)?
    {
        possible += left;
    }
    let known = |amount| (!book.unpriced).then_some(amount);
    Ok(Cost {
        spent: known(book.spent),
        estimated: known(book.estimated),
        possible: known(possible).filter(|_| !book.unbounded),
        ceiling: snapshot.ceiling,
    })
}

/// The summary of a run that goes on, or that was killed.
fn unfinished_summary(
    run: &RunRecord,
    started: WallTime,
    snapshot: &Snapshot,
    cost: Cost,
    resume: Option<String>,
) -> Summary {
    Summary {
        run: run.id,
        execution: run.executions.into(),
        version: run.version.clone(),
        input: Input {
            path: run.input.clone(),
            digest: run.input_digest.to_hex(),
            rows: None,
            selected: run.selected,
        },
        status: snapshot.status,
        reason: snapshot.reason.clone(),
        exit: None,
        attempts: snapshot.attempts,
        retries: snapshot.retries,
        repairs: snapshot.repairs,
        throttled: snapshot.throttled,
        replayed: snapshot.replayed,
        tokens: snapshot.tokens,
        cost,
        wall: snapshot.at.since(started),
        finished_here: 0,
        sent_here: 0,
        rows_per_minute: snapshot.rows_per_minute,
        requests_per_minute: None,
        latency: Latency { p50: None, p95: None },
        started,
        ended: None,
        files: Vec::new(),
        resume,
        place: String::new(),
        failures: Vec::new(),
    }
}
