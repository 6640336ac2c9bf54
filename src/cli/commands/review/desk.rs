//! What the three steps share.

use crate::cli::args::{ReviewArgs, ReviewStep};
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::commands::review::{export, import, list};
use crate::cli::failure::Failure;
use crate::model::Status;
use crate::run::{Past, PastRow};
use crate::store::Store;

/// Runs the command. Returns the exit code.
pub(in crate::cli::commands) fn run(args: &ReviewArgs, context: &Context) -> Result<u8, Failure> {
    let state = context.state_to_read(args.state.as_deref());
    let store = Store::open_existing(&state)?;
    let run = store.find_run(&args.run)?;
    let record = Record::from_json(&run.settings);
    let plan = record.as_ref().and_then(Record::past);
    let (Some(record), Some(plan)) = (record, plan) else {
        return Err(Failure::unable(format!("the settings of run {} cannot be read", run.id)));
    };
    let past = Past::open(&store, run, plan)?;
    let desk = Desk { context, state: &state, store: &store, record: &record, past: &past };
    match &args.step {
        ReviewStep::List { decided, json } => list::run(&desk, *decided, *json),
        ReviewStep::Export { file } => export::run(&desk, file),
        ReviewStep::Import { file } => import::run(&desk, file),
    }
}

/// What the three steps work with.
pub(super) struct Desk<'a> {
    pub(super) context: &'a Context,
    pub(super) state: &'a std::path::Path,
    pub(super) store: &'a Store,
    pub(super) record: &'a Record,
    pub(super) past: &'a Past,
}

/// Whether a row waits for a person.
pub(super) fn waits(row: &PastRow<'_>) -> bool {
    row.result.status == Status::Review
}
