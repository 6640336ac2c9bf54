//! The end of an execution: what the rows have become, the output in its place, the exit code.

use std::path::PathBuf;
use std::sync::Arc;

use crate::model::{InputRow, OutputOrder, RowResult, Settings, Totals};
use crate::output::{OutputError, OutputWriter, Target};
use crate::policy::{Exit, StopCause, exit};
use crate::report::FailureGroup;
use crate::run::error::{RunError, chain};
use crate::run::execute::{Plan, Work, decisions};
use crate::run::feed::FinishedRows;
use crate::run::follow::{Follow, FollowPlan, Followed};
use crate::run::join::{Join, Joined};
use crate::run::resume::{Opened, finished_rows};
use crate::run::stop::{StopSender, skip_reason};
use crate::store::RunRecord;

/// Starts to write rows as they finish, where somebody may see them: into a stream, or in the order of completion.
/// A file in the order of the input is written at the end.
pub(super) fn follow(work: &Work<'_>, stops: StopSender) -> Result<Option<Follow>, RunError> {
    let Work { plan, opened, judge, .. } = *work;
    let settings = &plan.settings;
    // A probe writes no output.
    if plan.probe.is_some() {
        return Ok(None);
    }
    let target = prepare(settings)?;
    if !target.is_stream() && settings.output.order == OutputOrder::Input {
        return Ok(None);
    }
    let follow = FollowPlan {
        source: plan.source.clone(),
        rows: plan.source.rows(&plan.checked)?,
        header: plan.checked.header.clone(),
        judge: Arc::clone(judge),
        run: opened.record.seq,
        model: model(settings),
        store: opened.store.reader()?,
        output: settings.output.clone(),
        columns: plan.columns.clone(),
        line_end: plan.checked.line_end,
        target,
        earlier: finished_rows(opened, settings)?,
        decisions: decisions(work)?,
        stops,
    };
    Follow::start(follow).map(Some)
}

fn prepare(settings: &Settings) -> Result<Target, OutputError> {
    Target::prepare(settings.output.path.as_deref(), settings.input.path.file())
}

/// The run of another job that has written the file which this one's output replaces, if one has.
pub(super) fn replaced_run(plan: &Plan, opened: &Opened) -> Result<Option<RunRecord>, RunError> {
    if plan.probe.is_some() {
        return Ok(None);
    }
    let target = prepare(&plan.settings)?;
    let Some(file) = target.replaces() else { return Ok(None) };
    let writer = opened.store.last_writer(&file.display().to_string())?;
    Ok(writer.filter(|run| run.job != opened.record.job))
}

/// The configured model, if one is.
fn model(settings: &Settings) -> Option<String> {
    Some(settings.call.model.clone()).filter(|model| !model.is_empty())
}

/// What the output has become.
pub(super) struct Written {
    pub(super) totals: Totals,
    pub(super) failures: Vec<FailureGroup>,
    pub(super) open: u64,
    pub(super) unanswered: bool,
    pub(super) cause: Option<StopCause>,
    pub(super) exit: Exit,
    pub(super) files: Vec<PathBuf>,
}

/// Joins the input with the store, writes the output where the ending wants one, and decides the exit code.
pub(super) fn write(
    work: &Work<'_>,
    cause: Option<StopCause>,
    followed: Option<Followed>,
    each: &mut dyn FnMut(&InputRow, &RowResult),
) -> Result<Written, RunError> {
    let Work { plan, opened, judge, .. } = *work;
    let settings = &plan.settings;
    let decisions = decisions(work)?;
    let join = Join {
        source: &plan.source,
        header: plan.checked.header.as_ref(),
        judge,
        run: opened.record.seq,
        model: model(settings),
        skipped: skip_reason(cause.as_ref()),
        decisions: decisions.as_ref(),
    };
    let rows = plan.source.rows(&plan.checked)?;
    let has_output = match &cause {
        _ if plan.probe.is_some() => false,
        Some(StopCause::Usage(_) | StopCause::ClosedOutput) => false,
        // A stream cannot be taken back, as a file can: whether a row has ended is known before it is written to.
        Some(StopCause::Unable(_)) if prepare(settings)?.is_stream() => {
            let counted = join.run(
                plan.source.rows(&plan.checked)?,
                opened.store.reader()?,
                None,
                &FinishedRows::default(),
                &mut |_, _| {},
            )?;
            let status = counted.totals.status;
            status.total() > status.skipped
        }
        _ => true,
    };
    let (target, out, written, failed) = if let Some(Followed { target, writer, written, error }) = followed {
        (target, writer.filter(|_| has_output), written, error)
    } else {
        let mut target = prepare(settings)?;
        let out = has_output.then(|| target.begin()).transpose()?.map(|sink| {
            let columns = judge.schema_properties();
            let (header, line_end) = (plan.columns.as_ref(), plan.checked.line_end);
            OutputWriter::new(&settings.output, header, columns, line_end, sink)
        });
        (target, out, FinishedRows::default(), None)
    };
    let Joined { totals, failures, open, output, unanswered } =
        join.run(rows, opened.store.reader()?, out, &written, each)?;
    let mut cause = cause.max(failed.or(output).map(|error| match error {
        OutputError::Closed { .. } => StopCause::ClosedOutput,
        error => StopCause::Unable(chain(&error)),
    }));
    let ending = |cause: &Option<StopCause>| match (plan.probe, cause) {
        // Rows that nobody has asked for yet break no gate.
        (Some(_), None) => Exit { code: 0, why: "the probe has ended".to_owned() },
        _ => exit(&totals.status, open, plan.checked.selected, &settings.gate, cause.clone()),
    };
    let mut exit = ending(&cause);
    let files = match place(target, exit.code, &totals, has_output) {
        Ok(file) => file.into_iter().collect(),
        Err(error) => {
            cause = cause.max(Some(StopCause::Unable(chain(&error))));
            exit = ending(&cause);
            Vec::new()
        }
    };
    Ok(Written { failures: failures.into_groups(), totals, open, unanswered, cause, exit, files })
}

/// Puts the output in its place, as the exit code says.
fn place(target: Target, code: u8, totals: &Totals, writes: bool) -> Result<Option<PathBuf>, OutputError> {
    let counts = &totals.status;
    let nothing_ended = counts.total() == counts.skipped;
    match code {
        0 | 1 | 3 | 4 | 5 if writes => target.commit(),
        6 if nothing_ended => {
            target.abandon();
            Ok(None)
        }
        6 | 129 | 130 | 143 if writes => target.commit_partial(),
        _ => {
            target.abandon();
            Ok(None)
        }
    }
}
