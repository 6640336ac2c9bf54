//! The end of an execution: what the rows have become, the output in its place, the exit code.

use std::path::PathBuf;
use std::sync::Arc;

use crate::base::Money;
use crate::model::{OutputOrder, Settings, Totals};
use crate::output::{OutputError, OutputWriter, Target};
use crate::policy::{Exit, StopCause, exit};
use crate::report::FailureGroup;
use crate::run::error::{RunError, chain};
use crate::run::execute::{Plan, Work, decisions};
use crate::run::feed::FinishedRows;
use crate::run::follow::{Follow, FollowPlan, Followed};
use crate::run::join::{EachRow, Join};
use crate::run::joined::Joined;
use crate::run::resume::Opened;
use crate::run::stop::{LateStop, StopSender, skip_reason};
use crate::store::RunRecord;

/// Starts to write rows as they finish. A file in the order of the input is written at the end where somebody wants
/// to see each row then, since the join has to go through all of them anyway.
pub(super) fn follow(
    work: &Work<'_>,
    target: Option<Target>,
    earlier: &FinishedRows,
    stops: StopSender,
    each: bool,
) -> Result<Option<Follow>, RunError> {
    let Work { plan, opened, .. } = *work;
    let settings = &plan.settings;
    let at_the_end =
        |target: &Target| each && !target.is_stream() && settings.output.order == OutputOrder::Input;
    let Some(target) = target.filter(|target| !at_the_end(target)) else { return Ok(None) };
    let follow = FollowPlan {
        join: join(work)?,
        rows: plan.source.rows(&plan.checked)?,
        store: opened.store.reader()?,
        output: settings.output.clone(),
        columns: plan.columns.clone(),
        line_end: plan.checked.line_end,
        target,
        earlier: earlier.clone(),
        stops,
    };
    Follow::start(follow).map(Some)
}

fn join(work: &Work<'_>) -> Result<Join, RunError> {
    let Work { plan, opened, judge, .. } = *work;
    Ok(Join {
        source: plan.source.clone(),
        header: plan.checked.header.clone(),
        judge: Arc::clone(judge),
        run: opened.record.seq,
        // The configured model, if one is.
        model: Some(plan.settings.call.model.clone()).filter(|model| !model.is_empty()),
        decisions: decisions(work)?,
    })
}

fn prepare(settings: &Settings) -> Result<Target, OutputError> {
    Target::prepare(settings.output.path.as_deref(), settings.input.path.file())
}

/// The place of the output; a probe writes none.
pub(super) fn target(plan: &Plan) -> Result<Option<Target>, OutputError> {
    plan.probe.is_none().then(|| prepare(&plan.settings)).transpose()
}

/// The run of another job that has written the file which this one's output replaces, if one has.
pub(super) fn replaced_run(target: Option<&Target>, opened: &Opened) -> Result<Option<RunRecord>, RunError> {
    let Some(file) = target.and_then(Target::replaces) else { return Ok(None) };
    let writer = opened.store.last_writer(&file.display().to_string())?;
    Ok(writer.filter(|run| run.job != opened.record.job))
}

/// What the output has become.
pub(super) struct Written {
    pub(super) totals: Totals,
    pub(super) failures: Vec<FailureGroup>,
    pub(super) open: u64,
    pub(super) unanswered: bool,
    /// The worst case of requests of stored attempts that brought no complete reply.
    pub(super) possible: Money,
    pub(super) cause: Option<StopCause>,
    pub(super) exit: Exit,
    pub(super) files: Vec<PathBuf>,
}

/// Joins what is left of the input with the store, writes the output where the ending wants one, and decides the
/// exit code.
pub(super) fn write(
    work: &Work<'_>,
    cause: Option<StopCause>,
    followed: Option<Followed>,
    mut late: LateStop<'_>,
    each: Option<EachRow<'_>>,
) -> Result<Written, RunError> {
    let Work { plan, opened, .. } = *work;
    let settings = &plan.settings;
    let join = join(work)?;
    let skipped = skip_reason(cause.as_ref());
    // An input that has changed is found here, before anything takes its place.
    let all = plan.source.rows(&plan.checked)?;
    let has_output = match &cause {
        _ if plan.probe.is_some() => false,
        Some(StopCause::Usage(_) | StopCause::ClosedOutput) => false,
        // A stream cannot be taken back, as a file can: whether a row has ended is known before it is written to.
        Some(StopCause::Unable(_)) if prepare(settings).is_ok_and(|target| target.is_stream()) => {
            let nothing = (Joined::default(), &FinishedRows::default());
            let rows = plan.source.rows(&plan.checked)?.map(|row| late.check().and_then(|()| Ok(row?)));
            let counted = join.run(rows, opened.store.reader()?, skipped, None, nothing, None)?;
            let status = counted.totals.status;
            status.total() > status.skipped
        }
        _ => true,
    };
    let mut begun = match followed {
        Some(followed) => followed,
        None if has_output => begin(work),
        None => Followed::default(),
    };
    if each.is_some() {
        // Whoever wants to see the rows sees all of them, and they are counted on the way.
        (begun.rest, begun.joined) = (None, Joined::default());
    }
    let Followed { target, writer, written, joined, rest, error: failed } = begun;
    let rows: Box<dyn Iterator<Item = _>> = match rest {
        Some(rest) => Box::new(rest),
        None => Box::new(all),
    };
    let writer = writer.filter(|_| has_output);
    let rows = rows.map(|row| late.check().and_then(|()| Ok(row?)));
    let joined = join.run(rows, opened.store.reader()?, skipped, writer, (joined, &written), each)?;
    let Joined { totals, failures, open, output, unanswered, possible } = joined;
    let failed = failed.or(output);
    // What was written before a fault ends anywhere: it is no output, not even a partial one.
    let target = target.filter(|target| failed.is_none() || target.is_stream());
    let mut cause = cause.max(failed.map(|error| match error {
        OutputError::Closed { .. } => StopCause::ClosedOutput,
        error => StopCause::Unable(chain(&error)),
    }));
    cause = cause.max(late.signal().map(StopCause::Signal));
    // A deadline that has come when all was done has stopped nothing.
    cause = cause.filter(|cause| *cause != StopCause::Deadline || totals.status.skipped > 0);
    let ending = |cause: &Option<StopCause>| match (plan.probe, cause) {
        // Rows that nobody has asked for yet break no gate.
        (Some(_), None) => Exit { code: 0, why: "the probe has ended".to_owned() },
        _ => exit(&totals.status, open, plan.checked.selected, &settings.gate, cause.clone()),
    };
    let mut exit = ending(&cause);
    let placed = target.map(|target| place(target, exit.code, &totals, has_output));
    let files = match placed.transpose() {
        Ok(file) => file.flatten().into_iter().collect(),
        Err(error) => {
            cause = cause.max(Some(StopCause::Unable(chain(&error))));
            exit = ending(&cause);
            Vec::new()
        }
    };
    Ok(Written { failures: failures.into_groups(), totals, open, unanswered, possible, cause, exit, files })
}

/// Begins the output at the end of a run. If its place has gone since it was looked at, the rows are counted, and the
/// run is closed all the same.
fn begin(work: &Work<'_>) -> Followed {
    let Work { plan, judge, .. } = *work;
    let output = &plan.settings.output;
    let begun = prepare(&plan.settings).and_then(|mut target| {
        let sink = target.begin()?;
        let (header, columns) = (plan.columns.as_ref(), judge.schema_properties());
        Ok((target, OutputWriter::new(output, header, columns, plan.checked.line_end, sink)))
    });
    match begun {
        Ok((target, writer)) => {
            Followed { target: Some(target), writer: Some(writer), ..Followed::default() }
        }
        Err(error) => Followed { error: Some(error), ..Followed::default() },
    }
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
