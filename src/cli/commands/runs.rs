//! `verify runs` and `verify runs rm`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::base::{Clock as _, Digest, SystemClock};
use crate::cli::args::{RunsArgs, Which};
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::commands::stand::{snapshot_of, state_of};
use crate::cli::failure::Failure;
use crate::report::{RunLine, printable, runs_json, runs_text};
use crate::run::{JobLock, RunError};
use crate::store::{RunRecord, Store};

/// Lists or removes. Returns the exit code.
pub(super) fn run(args: &RunsArgs, context: &Context) -> Result<u8, Failure> {
    match args {
        RunsArgs::List { state, json } => list(&context.state_to_read(state.as_deref()), *json, context),
        RunsArgs::Remove { state, which } => remove(&context.state_to_read(state.as_deref()), which, context),
    }
}

fn list(state: &Path, json: bool, context: &Context) -> Result<u8, Failure> {
    let store = Store::open_existing(state)?;
    let lines: Vec<RunLine> = store
        .runs()?
        .into_iter()
        .map(|run| RunLine {
            run: run.id,
            status: snapshot_of(&run).status,
            total: run.selected,
            started: run.started,
            state: state_of(&run, state),
            version: run.version,
            input: run.input,
        })
        .collect();
    let text = if json { runs_json(&lines) } else { runs_text(&lines) };
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

fn remove(state: &Path, which: &Which, context: &Context) -> Result<u8, Failure> {
    let store = Store::open_existing(state)?;
    let mut chosen: Vec<RunRecord> = match which {
        Which::Named(names) => names.iter().map(|name| store.find_run(name)).collect::<Result<_, _>>()?,
        Which::Older(age) => {
            let now = SystemClock::new().wall();
            let is_older = |run: &RunRecord| now.since(run.ended.unwrap_or(run.started)) > *age;
            store.runs()?.into_iter().filter(is_older).collect()
        }
    };
    chosen.sort_by_key(|run| run.seq);
    chosen.dedup_by_key(|run| run.seq);
    // Each job is locked until its runs are gone, so that none of them is continued meanwhile.
    let mut locks: BTreeMap<Digest, JobLock> = BTreeMap::new();
    let mut gone = Vec::new();
    for run in chosen {
        if let Entry::Vacant(slot) = locks.entry(run.job) {
            match JobLock::take(state, run.job, std::process::id(), &context.environment.host()) {
                Ok(lock) => {
                    slot.insert(lock);
                }
                Err(error @ RunError::Locked { .. }) if matches!(which, Which::Older(_)) => {
                    context.terminal.warn(&format!("run {} stays: {error}", run.id));
                    continue;
                }
                Err(RunError::Locked { owner }) => {
                    return Err(Failure::unable(format!(
                        "run {} is not removed: a process works on its job ({owner}); wait for it to end, or stop it",
                        run.id
                    )));
                }
                Err(error) => return Err(error.into()),
            }
        }
        gone.push(run);
    }
    // A run of another job may be about to replay any answer.
    let mine = gone.iter().map(|run| run.job).collect();
    let numbers: Vec<u64> = gone.iter().map(|run| run.seq).collect();
    store.remove_runs(&numbers, JobLock::is_any_held(state, &mine))?;
    remove_spools(state, &gone, &store.runs()?);
    store.close()?;
    for run in &gone {
        context.terminal.say(&printable(&format!("removed run {} ({})", run.id, run.input)));
    }
    if gone.is_empty() {
        context.terminal.say("no run was removed");
    }
    Ok(0)
}

/// Removes the copies of standard input that only removed runs have read.
fn remove_spools(state: &Path, gone: &[RunRecord], left: &[RunRecord]) {
    let spools = |runs: &[RunRecord]| -> BTreeSet<std::ffi::OsString> {
        runs.iter().filter_map(|run| Record::from_json(&run.settings)?.input.spool()).collect()
    };
    for name in spools(gone).difference(&spools(left)) {
        // What is left over takes room and does no harm.
        let _ = std::fs::remove_file(state.join(name));
    }
}
