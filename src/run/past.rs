//! A run read again: its input, joined with what the store holds.

use std::sync::Arc;

use serde_json::Value;

use crate::base::{AttemptKey, Digest};
use crate::dataset::{Checked, Source};
use crate::model::{Header, InputRow, PersonDecision, Reason, RowResult};
use crate::policy::SampleState;
use crate::prompt::Template;
use crate::run::decisions::Decisions;
use crate::run::error::RunError;
use crate::run::histories::Histories;
use crate::run::history::RowJudge;
use crate::run::result::RowFacts;
use crate::store::{RunRecord, Store};

/// A run of the store with its input as it was.
#[derive(Debug)]
pub struct Past {
    run: RunRecord,
    source: Source,
    checked: Checked,
    judge: RowJudge,
    model: Option<String>,
    decisions: Decisions,
}

/// What a past run is read with.
#[derive(Debug)]
pub struct PastPlan {
    /// The input.
    pub source: Source,
    /// Reads answers and decides rows.
    pub judge: RowJudge,
    /// The prompt.
    pub template: Template,
    /// The schema of answers.
    pub schema: Option<Value>,
    /// The configured model, if one was.
    pub model: Option<String>,
}

/// A row of a past run.
#[derive(Debug)]
pub struct PastRow<'a> {
    /// The record.
    pub row: &'a InputRow,
    /// What became of it.
    pub result: RowResult,
    /// Its samples, in order, as many as were planned.
    pub samples: Vec<PastSample>,
    /// Digest of what it asks, by which decisions are kept; `None` for a row that cannot be asked about.
    pub content: Option<Digest>,
    /// The newest decision of a person about it.
    pub person: Option<PersonDecision>,
}

/// A sample of such a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastSample {
    /// What it says.
    pub state: SampleState,
    /// Its answer on one line, if it has a valid one.
    pub answer: Option<String>,
    /// What went wrong, if something did.
    pub error: Option<String>,
}

impl Past {
    /// Checks the input and that it is the one that the run had.
    ///
    /// # Errors
    /// An input that is gone or has changed since: a person's to mend.
    pub fn open(store: &Store, run: RunRecord, plan: PastPlan) -> Result<Self, RunError> {
        let PastPlan { source, judge, template, schema, model } = plan;
        let checked = source.check(&mut |_, _| {})?;
        if checked.digest != run.input_digest {
            return Err(RunError::Usage(format!(
                "the input {} has changed since run {}: run it again first, then use the new run",
                source.shown_as(),
                run.id
            )));
        }
        let decisions = Decisions::new(store, &Arc::new(template), schema.as_ref())?;
        Ok(Self { run, source, checked, judge, model, decisions })
    }

    /// The run.
    pub fn run(&self) -> &RunRecord {
        &self.run
    }

    /// The columns of a CSV input.
    pub fn header(&self) -> Option<&Header> {
        self.checked.header.as_ref()
    }

    /// What people have decided.
    pub fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// Goes through all rows of the run in order. The first error of `visit` ends it.
    pub fn rows<E: From<RunError>>(
        &self,
        store: &Store,
        visit: &mut dyn FnMut(PastRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let rows = self.source.rows(&self.checked).map_err(RunError::from)?;
        let mut histories = Histories::new(store.reader().map_err(RunError::from)?, self.run.seq);
        for row in rows {
            let row = row.map_err(RunError::from)?;
            visit(self.row(&row, &mut histories)?)?;
        }
        Ok(())
    }

    fn row<'a>(&self, row: &'a InputRow, histories: &mut Histories) -> Result<PastRow<'a>, RunError> {
        let history = histories.of(row.number, || AttemptKey::MAX_ROW)?;
        let prompt = self.decisions.prompt(row, self.header());
        let content = prompt.map(|prompt| self.decisions.content(&prompt));
        let person = match &content {
            Some(content) => self.decisions.on(content)?,
            None => None,
        };
        let samples = self.judge.samples(self.run.seq, &history);
        let result = self.judge.result(RowFacts {
            run: self.run.seq,
            row: row.number,
            id: self.source.id_of(row, self.header()),
            model: self.model.clone(),
            history: &history,
            skipped: self.run.ending.as_deref().and_then(Reason::from_word).unwrap_or(Reason::Stopped),
            decided: person.as_ref().map(|person| person.positive),
        });
        let samples = samples
            .into_iter()
            .map(|sample| PastSample {
                state: sample.state,
                answer: sample.answer.map(|answer| answer.text),
                error: sample.error,
            })
            .collect();
        Ok(PastRow { row, result, samples, content, person })
    }
}
