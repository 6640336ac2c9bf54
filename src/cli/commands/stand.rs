//! How a run stands, from the store and from its job's lock.

use std::path::Path;

use crate::cli::failure::Failure;
use crate::report::{Exit, RunState, Snapshot};
use crate::run::JobLock;
use crate::store::RunRecord;

/// What becomes of a run of the state folder `dir`.
pub(super) fn state_of(run: &RunRecord, dir: &Path) -> RunState {
    match (run.ended, &run.summary) {
        (Some(at), summary) => RunState::Ended { exit: exit_of(summary.as_deref()), at },
        (None, _) if JobLock::is_held(dir, run.job) => RunState::Running,
        (None, _) => RunState::Killed,
    }
}

/// The newest snapshot of a run, or an empty one.
pub(super) fn snapshot_of(run: &RunRecord) -> Snapshot {
    let snapshot = run.progress.as_deref().and_then(|json| Snapshot::from_store_json(json).ok());
    snapshot.unwrap_or_else(|| Snapshot { total: run.selected, ..Snapshot::default() })
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
