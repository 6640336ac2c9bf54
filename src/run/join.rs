//! The input again, in order, joined with what the store holds of each row.

use std::sync::Arc;

use crate::base::AttemptKey;
use crate::dataset::Source;
use crate::model::{Header, InputRow, Reason, RowResult};
use crate::output::{OutputWriter, Sink};
use crate::run::decisions::Decisions;
use crate::run::error::RunError;
use crate::run::feed::FinishedRows;
use crate::run::histories::Histories;
use crate::run::history::RowJudge;
use crate::run::joined::Joined;
use crate::run::result::RowFacts;
use crate::store::{Reader, RowHistory};

/// Is shown each row with what became of it.
pub type EachRow<'a> = &'a mut dyn FnMut(&InputRow, &RowResult);

/// Joins rows with what the store holds of them.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) source: Source,
    pub(super) header: Option<Header>,
    pub(super) judge: Arc<RowJudge>,
    /// Number of the run in the store.
    pub(super) run: u64,
    /// The configured model, if one is.
    pub(super) model: Option<String>,
    /// What people have decided, if there is any of that.
    pub(super) decisions: Option<Decisions>,
}

impl Join {
    /// What a row has become. `skipped`: why it is not finished, should it not be.
    pub(super) fn result(
        &self,
        row: &InputRow,
        history: &RowHistory,
        skipped: Reason,
    ) -> Result<RowResult, RunError> {
        let decided = match &self.decisions {
            Some(decisions) => decisions.on_row(row, self.header.as_ref())?,
            None => None,
        };
        Ok(self.judge.result(RowFacts {
            run: self.run,
            row: row.number,
            id: self.source.id_of(row, self.header.as_ref()),
            model: self.model.clone(),
            history,
            skipped,
            decided,
        }))
    }

    /// Goes through `rows`, adds them to `joined`, shows them to `each`, and writes them where there is a writer.
    /// Rows in `written` are in the output already: they are passed over, or only shown and counted if `each` wants
    /// to see all.
    pub(super) fn run(
        &self,
        rows: impl Iterator<Item = Result<InputRow, RunError>>,
        store: Reader,
        skipped: Reason,
        mut writer: Option<OutputWriter<Sink>>,
        (mut joined, written): (Joined, &FinishedRows),
        mut each: Option<EachRow<'_>>,
    ) -> Result<Joined, RunError> {
        let mut histories = Histories::new(store, self.run);
        for row in rows {
            let row = row?;
            let is_written = written.contains(row.number);
            if is_written && each.is_none() {
                continue;
            }
            let history = histories.of(row.number, || AttemptKey::MAX_ROW)?;
            let result = self.result(&row, &history, skipped)?;
            joined.add(&history, &result);
            if let Some(each) = &mut each {
                each(&row, &result);
            }
            if !is_written
                && let Some(out) = &mut writer
                && let Err(error) = out.write(&row, &result)
            {
                joined.output = Some(error);
                writer = None;
            }
        }
        if let Some(writer) = writer
            && let Err(error) = writer.close()
        {
            joined.output = Some(error);
        }
        Ok(joined)
    }
}
