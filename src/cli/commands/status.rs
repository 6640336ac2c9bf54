//! `verify status`.

use crate::base::{Clock as _, SystemClock};
use crate::cli::args::ReadArgs;
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::failure::Failure;
use crate::report::{Cost, Exit, Input, Latency, RunState, Snapshot, StatusView, Summary, status_text};
use crate::run::JobLock;
use crate::store::{RunRecord, Store};

/// Prints how a run stands. Returns the exit code.
pub(super) fn run(args: &ReadArgs, context: &Context) -> Result<u8, Failure> {
    let state = context.state_to_read(args.state.as_deref());
    let store = Store::open_existing(&state)?;
    let run = store.find_run(&args.run)?;
    let snapshot = run.progress.as_deref().and_then(|json| Snapshot::from_store_json(json).ok());
    let snapshot = snapshot.unwrap_or_else(|| Snapshot { total: run.selected, ..Snapshot::default() });
    let record = Record::from_json(&run.settings);
    let resume = record.filter(|_| run.unfinished).map(|record| record.command);
    let text = if args.json {
        match &run.summary {
            Some(summary) => summary.clone(),
            None => unfinished_summary(&run, &snapshot, resume).to_json(),
        }
    } else {
        let state = run_state(&run, JobLock::is_held(&state, run.job));
        let resume = resume.filter(|_| state != RunState::Running);
        let view = StatusView {
            run: run.id,
            execution: run.executions.into(),
            input: run.input.clone(),
            version: run.version.clone(),
            started: run.started,
            state,
            snapshot,
            resume,
        };
        status_text(&view, SystemClock::new().wall(), false)
    };
    let text = format!("{}\n", text.trim_end());
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

fn run_state(run: &RunRecord, is_held: bool) -> RunState {
    match (run.ended, &run.summary) {
        (Some(at), summary) => RunState::Ended { exit: exit_of(summary.as_deref()), at },
        (None, _) if is_held => RunState::Running,
        (None, _) => RunState::Killed,
    }
}

fn exit_of(summary: Option<&str>) -> Exit {
    let json: serde_json::Value =
        summary.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let code = json.pointer("/exit/code").and_then(serde_json::Value::as_u64);
    let why = json.pointer("/exit/why").and_then(serde_json::Value::as_str);
    Exit {
        code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(Failure::UNABLE),
        why: why.unwrap_or("its summary was not kept").to_owned(),
    }
}

/// The summary of a run that goes on, or that was killed.
fn unfinished_summary(run: &RunRecord, snapshot: &Snapshot, resume: Option<String>) -> Summary {
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
        throttled: snapshot.throttled,
        replayed: snapshot.replayed,
        tokens: snapshot.tokens,
        cost: Cost::of(&totals, None, None),
        wall: snapshot.at.since(run.started),
        rows_per_minute: snapshot.rows_per_minute,
        requests_per_minute: None,
        latency: Latency { p50: None, p95: None },
        started: run.started,
        ended: None,
        files: Vec::new(),
        resume,
        failures: Vec::new(),
    }
}
