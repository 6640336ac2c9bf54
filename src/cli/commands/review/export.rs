//! `verify review export`.

use std::path::Path;

use crate::cli::commands::review::desk::{Desk, waits};
use crate::cli::failure::Failure;
use crate::model::{InputFormat, OutputFormat};
use crate::output::{ColumnCollector, ReviewRow, ReviewSample, ReviewWriter, Target, output_format_for};
use crate::policy::SampleState;
use crate::report::printable;
use crate::run::{PastRow, PastSample};

/// Writes the rows that wait for a decision. Returns the exit code.
pub(super) fn run(desk: &Desk<'_>, file: &Path) -> Result<u8, Failure> {
    let Desk { store, past, .. } = *desk;
    let format = output_format_for(Some(file), own_format(desk));
    let mut header = past.header().cloned();
    if header.is_none() && matches!(format, OutputFormat::Csv { .. }) {
        let mut columns = ColumnCollector::new();
        past.rows(store, &mut |row| -> Result<(), Failure> {
            if waits(&row) {
                columns.add(row.row);
            }
            Ok(())
        })?;
        header = Some(columns.finish()?);
    }
    let mut target = Target::prepare(Some(file), desk.record.input.whole().path.file())?;
    let name = target.name().to_owned();
    let mut writer = ReviewWriter::new(&name, format, header.as_ref(), target.begin()?)?;
    let mut count = 0_u64;
    past.rows(store, &mut |row| -> Result<(), Failure> {
        if waits(&row) {
            count += 1;
            writer.write(&review(&row))?;
        }
        Ok(())
    })?;
    writer.finish()?;
    target.commit()?;
    let shown = printable(&file.display().to_string());
    let run = past.run().id;
    desk.context.terminal.say(&match count {
        0 => format!("no row waits for a decision; {shown} holds none"),
        1 => format!("1 row to decide is in {shown}: write pass or fail as its decision, then\n  verify review import {run} {shown}"),
        _ => format!("{count} rows to decide are in {shown}: write pass or fail as their decision, then\n  verify review import {run} {shown}"),
    });
    Ok(0)
}

fn own_format(desk: &Desk<'_>) -> OutputFormat {
    match desk.record.input.format() {
        InputFormat::Csv { delimiter } => OutputFormat::Csv { delimiter },
        InputFormat::Jsonl => OutputFormat::Jsonl,
    }
}

fn review<'a>(row: &'a PastRow<'a>) -> ReviewRow<'a> {
    let is_made = |(_, sample): &(usize, &PastSample)| !matches!(sample.state, SampleState::Open);
    let sample = |(at, sample): (usize, &'a PastSample)| ReviewSample {
        n: at + 1,
        answer: sample.answer.as_deref(),
        error: match &sample.state {
            SampleState::Failed(reason) => Some(reason.as_str()),
            SampleState::Open | SampleState::Valid(_) => None,
        },
    };
    ReviewRow {
        row: row.row,
        result: &row.result,
        samples: row.samples.iter().enumerate().filter(is_made).map(sample).collect(),
        content: row.content.map(crate::base::Digest::to_hex).unwrap_or_default(),
    }
}
