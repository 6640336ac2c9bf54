//! `verify show`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cli::args::ShowArgs;
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::failure::Failure;
use crate::dataset::Source;
use crate::model::{Header, InputRow, PersonDecision, Prompt, Reason, Status};
use crate::prompt::Template;
use crate::report::{ShowRow, ShowSample};
use crate::run::{Decisions, RowFacts};
use crate::store::{RowHistory, RunRecord, Store};

/// Prints one row of a run. Returns the exit code.
pub(super) fn run(args: &ShowArgs, context: &Context) -> Result<u8, Failure> {
    let state = context.state_to_read(args.read.state.as_deref());
    let store = Store::open_existing(&state)?;
    let run = store.find_run(&args.read.run)?;
    let history = store.reader()?.with_raw(run.seq, args.row)?;
    let record = Record::from_json(&run.settings);
    let found = record.as_ref().map(|record| find_row(record, args.row));
    let is_blank = history.attempts.is_empty() && history.replays.is_empty() && history.bad_input.is_none();
    let row = match found {
        Some(Ok(found)) => found,
        Some(Err(why)) if is_blank => {
            return Err(Failure::usage(format!("run {} has no row {}: {why}", run.id, args.row)));
        }
        _ => None,
    };
    if row.is_none() && is_blank {
        return Err(Failure::usage(format!("run {} has no row {}", run.id, args.row)));
    }
    let asked = match (&record, &row) {
        (Some(record), Some((row, header))) => ask(&store, record, row, header.as_ref())?,
        _ => None,
    };
    let (prompt, decisions) = asked.map_or((None, Vec::new()), |(prompt, past)| (Some(prompt), past));
    let result = record.as_ref().and_then(|record| {
        let judge = record.judge()?;
        let result = judge.result(RowFacts {
            run: run.seq,
            row: args.row,
            id: None,
            model: Some(record.model.clone()).filter(|model| !model.is_empty()),
            history: &history,
            decided: decisions.last().map(|decision| decision.positive),
            skipped: run.ending.as_deref().and_then(Reason::from_word).unwrap_or(Reason::Stopped),
        });
        // While the run goes on, a row without an outcome is simply not finished.
        Some(result).filter(|result| result.status != Status::Skipped || run.ended.is_some())
    });
    let shown = ShowRow {
        row: args.row,
        result,
        version: run.version.clone(),
        prompt,
        decisions,
        samples: samples(&store, &run, &history),
    };
    let text =
        if args.read.json { format!("{}\n", shown.to_json().trim_end()) } else { shown.to_text(false) };
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

type Found = Option<(InputRow, Option<Header>)>;

/// The row in its input, if the input still has it.
fn find_row(record: &Record, number: u64) -> Result<Found, String> {
    let source = Source::new(record.input.settings(number));
    let checked = source.check(&mut |_, _| {}).map_err(|error| error.to_string())?;
    let row = source.rows(&checked).ok().and_then(|mut rows| rows.next()).and_then(Result::ok);
    Ok(row.map(|row| (row, checked.header)))
}

/// What the row asks, and what people have decided about it.
fn ask(
    store: &Store,
    record: &Record,
    row: &InputRow,
    header: Option<&Header>,
) -> Result<Option<(Prompt, Vec<PersonDecision>)>, Failure> {
    let prompt = record.prompt();
    let Ok(template) = Template::compile(prompt.system.as_deref(), &prompt.user) else { return Ok(None) };
    let decisions = Decisions::new(store, &Arc::new(template), record.answer.schema.as_ref())?;
    let Some(prompt) = decisions.prompt(row, header) else { return Ok(None) };
    let history = decisions.history(&decisions.content(&prompt))?;
    Ok(Some((prompt, history)))
}

fn samples(store: &Store, run: &RunRecord, history: &RowHistory) -> Vec<ShowSample> {
    let mut samples: BTreeMap<u16, ShowSample> = BTreeMap::new();
    for attempt in &history.attempts {
        let n = attempt.ticket.sample;
        let sample =
            samples.entry(n).or_insert_with(|| ShowSample { n, replayed_from: None, attempts: Vec::new() });
        sample.attempts.push(attempt.clone());
    }
    for replay in &history.replays {
        let n = replay.sample;
        let sample =
            samples.entry(n).or_insert_with(|| ShowSample { n, replayed_from: None, attempts: Vec::new() });
        let ticket = replay.from.ticket();
        let from = if replay.from.run() == run.seq {
            format!("row {}", ticket.row)
        } else {
            let id = store.runs().ok().and_then(|runs| {
                runs.into_iter()
                    .find(|other| other.seq == replay.from.run())
                    .map(|other| other.id.to_string())
            });
            format!("run {} row {}", id.unwrap_or_else(|| "(removed)".to_owned()), ticket.row)
        };
        sample.replayed_from = Some(from);
        sample.attempts.extend(replay.source.clone());
    }
    samples.into_values().collect()
}
