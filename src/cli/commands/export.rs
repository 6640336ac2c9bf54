//! `verify export`.

use std::sync::Arc;

use crate::cli::args::ExportArgs;
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::failure::Failure;
use crate::dataset::Source;
use crate::model::{InputFormat, OutputFormat};
use crate::output::{ColumnCollector, OutputError, check_names, output_format_for};
use crate::prompt::Template;
use crate::report::printable;
use crate::run::{Decisions, Export, RunError, chain, export};
use crate::store::Store;

/// Writes a run's output again. Returns the exit code.
pub(super) fn run(args: &ExportArgs, context: &Context) -> Result<u8, Failure> {
    let Some(output) = &args.output else {
        return Err(Failure::usage(format!(
            "export needs a place for the rows: add -o FILE, or -o - for standard output, as in `verify export {} -o out.jsonl`",
            args.run
        )));
    };
    let state = context.state_to_read(args.state.as_deref());
    let store = Store::open_existing(&state)?;
    let run = store.find_run(&args.run)?;
    let kept = |record: &Record| record.judge();
    let Some((record, judge)) =
        Record::from_json(&run.settings).and_then(|record| kept(&record).map(|judge| (record, judge)))
    else {
        return Err(Failure::unable(format!("the settings of run {} cannot be read: update verify", run.id)));
    };
    let source = Source::new(record.input.whole());
    let path = Some(output).filter(|path| path.as_os_str() != "-").cloned();
    let same = match source.settings().format {
        InputFormat::Csv { delimiter } => OutputFormat::Csv { delimiter },
        InputFormat::Jsonl => OutputFormat::Jsonl,
    };
    let format = output_format_for(path.as_deref(), same);
    let output = record.output.settings(path, format);
    let mut collector = ColumnCollector::new();
    let is_csv = matches!(format, OutputFormat::Csv { .. });
    let checked = source.check(&mut |row, _| {
        if is_csv {
            collector.add(row);
        }
    })?;
    if checked.digest != run.input_digest {
        return Err(Failure::usage(format!(
            "{} has changed since run {} has read it: put it back to export the run",
            source.shown_as(),
            run.id
        )));
    }
    let columns = match &checked.header {
        None if is_csv => Some(collector.finish()?),
        header => header.clone(),
    };
    check_names(&output, columns.as_ref(), judge.schema_properties())?;
    let template = Template::compile(record.system.as_deref(), &record.user)
        .map_err(|error| Failure::unable(chain(&error)))?;
    let decisions = Decisions::any(&store, &Arc::new(template), record.answer.schema.as_ref())?;
    let exported = export(Export {
        source: &source,
        checked: &checked,
        columns: columns.as_ref(),
        judge: &Arc::new(judge),
        store: &store,
        run: &run,
        model: Some(record.model.clone()).filter(|model| !model.is_empty()),
        decisions,
        output: &output,
    });
    let exported = match exported {
        Err(RunError::Output(OutputError::Closed { .. })) => return Ok(141),
        other => other.map_err(|error| match &error {
            RunError::Usage(_) => Failure::usage(chain(&error)),
            _ => error.into(),
        })?,
    };
    let rows = exported.totals.status.total();
    let place = exported.file.map_or_else(|| "standard output".to_owned(), |file| file.display().to_string());
    context.terminal.say(&printable(&format!("{rows} rows of run {} written to {place}", run.id)));
    Ok(0)
}
