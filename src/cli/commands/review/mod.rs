//! `verify review`: rows that a person must decide.
//!
//! What it is for: listing such rows, writing them to a file with room for decisions, and taking decisions from one.
//! It uses every floor beneath `cli`.
//! What never happens here: a decision is judged. What becomes of a decided row is `policy`'s to say.

mod export;
mod import;
mod list;

use crate::cli::args::{ReviewArgs, ReviewStep};
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::failure::Failure;
use crate::model::Status;
use crate::run::{Past, PastRow};
use crate::store::Store;

/// Runs the command. Returns the exit code.
pub(super) fn run(args: &ReviewArgs, context: &Context) -> Result<u8, Failure> {
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
struct Desk<'a> {
    context: &'a Context,
    state: &'a std::path::Path,
    store: &'a Store,
    record: &'a Record,
    past: &'a Past,
}

/// Whether a row waits for a person.
fn waits(row: &PastRow<'_>) -> bool {
    row.result.status == Status::Review
}
