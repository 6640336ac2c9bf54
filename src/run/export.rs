//! The output of a run again, without an execution.

use std::path::PathBuf;
use std::sync::Arc;

use crate::dataset::{Checked, DatasetError, Source};
use crate::model::{Header, OutputSettings, Reason, Totals};
use crate::output::{OutputWriter, Target};
use crate::run::decisions::Decisions;
use crate::run::error::RunError;
use crate::run::feed::FinishedRows;
use crate::run::history::RowJudge;
use crate::run::join::Join;
use crate::run::joined::Joined;
use crate::store::{RunRecord, Store};

/// What an export is made from. The input has been checked and is the one that the run has read.
#[derive(Debug)]
pub struct Export<'a> {
    /// The input.
    pub source: &'a Source,
    /// What its check has found.
    pub checked: &'a Checked,
    /// Columns of a CSV input, or of a JSONL input that becomes a CSV.
    pub columns: Option<&'a Header>,
    /// Reads the run's rows out of the store.
    pub judge: &'a Arc<RowJudge>,
    /// The store.
    pub store: &'a Store,
    /// The run.
    pub run: &'a RunRecord,
    /// The configured model, if one is.
    pub model: Option<String>,
    /// What people have decided, if the store holds any of that.
    pub decisions: Option<Decisions>,
    /// The place and the form of the output.
    pub output: &'a OutputSettings,
}

/// What was written.
#[derive(Debug)]
pub struct Exported {
    /// Counts of the run.
    pub totals: Totals,
    /// The file; `None` for a stream.
    pub file: Option<PathBuf>,
}

/// Writes all rows of a run with what the store holds of them. Rows that are not finished are `skipped`.
///
/// # Errors
/// What keeps the output from being written; an input that has changed since it was checked is the caller's to mend.
pub fn export(export: Export<'_>) -> Result<Exported, RunError> {
    let Export { source, checked, run, output, .. } = export;
    let rows = source.rows(checked).map_err(of_input)?;
    let mut target = Target::prepare(output.path.as_deref(), source.file())?;
    let columns = export.judge.schema_properties();
    let writer = OutputWriter::new(output, export.columns, columns, checked.line_end, target.begin()?);
    let join = Join {
        source: source.clone(),
        header: checked.header.clone(),
        judge: Arc::clone(export.judge),
        run: run.seq,
        model: export.model,
        decisions: export.decisions,
    };
    let skipped = run.ending.as_deref().and_then(Reason::from_word).unwrap_or(Reason::Stopped);
    let nothing = (Joined::default(), &FinishedRows::default());
    let joined = join
        .run(rows.map(|row| Ok(row?)), export.store.reader()?, skipped, Some(writer), nothing, None)
        .map_err(|error| match error {
            RunError::Dataset(error) => of_input(error),
            error => error,
        });
    let Joined { totals, output, .. } = match joined {
        Ok(joined) => joined,
        Err(error) => {
            target.abandon();
            return Err(error);
        }
    };
    if let Some(error) = output {
        target.abandon();
        return Err(error.into());
    }
    Ok(Exported { totals, file: target.commit()? })
}

/// Nothing runs that a changed input could disturb: it is to be put back.
fn of_input(error: DatasetError) -> RunError {
    match error {
        DatasetError::Changed { .. } => RunError::Usage(error.to_string()),
        error => error.into(),
    }
}
