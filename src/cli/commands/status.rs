//! `verify status`.

use crate::base::{Clock as _, SystemClock, WallTime};
use crate::cli::args::ReadArgs;
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::commands::stand::{snapshot_of, state_of};
use crate::cli::failure::Failure;
use crate::report::{Cost, Input, Latency, RunState, Snapshot, StatusView, Summary, status_text};
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
        match &run.summary {
            Some(summary) => summary.clone(),
            None => unfinished_summary(&run, started, &snapshot, resume).to_json(),
        }
    } else {
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
            resume,
        };
        status_text(&view, SystemClock::new().wall(), false)
    };
    let text = format!("{}\n", text.trim_end());
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

/// The summary of a run that goes on, or that was killed.
fn unfinished_summary(
    run: &RunRecord,
    started: WallTime,
    snapshot: &Snapshot,
    resume: Option<String>,
) -> Summary {
    let totals = crate::model::Totals {
        spent: snapshot.spent.unwrap_or_default(),
        unpriced: snapshot.spent.is_none(),
        ..crate::model::Totals::default()
    };
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
        cost: Cost::of(&totals, None, None),
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
