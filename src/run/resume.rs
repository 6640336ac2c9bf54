//! Which run a command works on: its lock, whether it continues, and what of it has ended.

use std::path::{Path, PathBuf};

use crate::base::{AttemptKey, CrashPoint, Digest, Money, RunId, WallTime};
use crate::model::{Ending, Reason, Settings, Totals};
use crate::run::draws::{Draws, boot_id};
use crate::run::error::RunError;
use crate::run::execute::Plan;
use crate::run::feed::FinishedRows;
use crate::run::history::Retry;
use crate::run::identity::job_key;
use crate::run::lock::JobLock;
use crate::store::{Book, NewRun, RunRecord, Store};

/// A run that is open: locked, found or made, its execution noted.
pub(super) struct Opened {
    pub(super) lock: JobLock,
    pub(super) store: Store,
    pub(super) record: RunRecord,
    pub(super) retry: Retry,
    pub(super) continued: bool,
    /// The job's run before this one, whose final failures are taken over for rows that this one has not had yet.
    pub(super) previous: Option<u64>,
    pub(super) execution: u32,
    pub(super) started: WallTime,
    /// What the run has spent and may have spent before this execution.
    pub(super) book: Book,
    /// What was forgiven of it just now.
    pub(super) forgiven: Option<Money>,
}

/// Takes the job's lock, then finds or opens its run.
pub(super) fn open(plan: &Plan, started: WallTime) -> Result<Opened, RunError> {
    let parent = plan.state.parent().map(PathBuf::from).unwrap_or_default();
    let job = job_key(&plan.settings, &parent, plan.checked.digest);
    crate::store::prepare_folder(&plan.state)?;
    let mut lock = JobLock::take(&plan.state, job, plan.pid, &plan.host)?;
    CrashPoint::LockTaken.pass();
    let store = Store::open(&plan.state)?;
    let (record, retry, continued) = open_run(plan, &store, job, started)?;
    lock.tell_run(record.id);
    // A run that was stopped early is still a new one to the rows that it has not had.
    let previous = store.run_before(&job, record.seq)?.filter(|run| run.input_digest == record.input_digest);
    let previous = previous.map(|run| run.seq);
    let execution = store.begin_execution(record.seq, plan.pid, started)?;
    store.update_settings(record.seq, &plan.record)?;
    CrashPoint::RunOpened.pass();
    settle_the_dead(plan, &store, record.seq, started)?;
    let forgiven =
        if plan.choice.forgive_possible { Some(store.forgive_possible(record.seq)?) } else { None };
    let book = store.book(record.seq)?;
    if has_ceiling(&plan.settings) {
        store.begin_lease(record.seq, book, &boot_id())?;
        CrashPoint::LeaseBegun.pass();
    }
    Ok(Opened { lock, store, record, retry, continued, previous, execution, started, book, forgiven })
}

/// Whether the run has a ceiling on money or requests.
pub(super) fn has_ceiling(settings: &Settings) -> bool {
    settings.limits.max_cost.is_some() || settings.limits.max_calls.is_some()
}

/// Takes over what an execution that died may have spent.
fn settle_the_dead(plan: &Plan, store: &Store, run: u64, now: WallTime) -> Result<(), RunError> {
    // Notes without a lease are of one whose draws are in the book.
    if let Some(Left { lost, beyond }) = left(&plan.state, store, run)? {
        store.carry_over(run, &lost, beyond, now)?;
        CrashPoint::DeadCarried.pass();
    }
    Draws::forget(&plan.state, run);
    Ok(())
}

/// What an execution that died has left of its lease.
struct Left {
    /// Requests that it had noted and of which no attempt is stored, each with its worst case.
    lost: Vec<(AttemptKey, Money)>,
    /// What may have gone besides, in money and requests: after a power cut, which forgets notes, all that the lease
    /// allowed.
    beyond: (Money, u64),
}

fn left(state: &Path, store: &Store, run: u64) -> Result<Option<Left>, RunError> {
    let Some(lease) = store.lease(run)? else { return Ok(None) };
    let (mut lost, mut beyond) = (Vec::new(), (Money::ZERO, 0));
    if !lease.boot.is_empty() && lease.boot == boot_id() {
        for (key, bound) in Draws::of_the_dead(state, run)? {
            if !store.has_attempt(key)? {
                lost.push((key, bound));
            }
        }
    } else {
        let book = store.book(run)?;
        let open = lease.money.pico() - book.spent.pico() - book.possible.pico();
        beyond = (Money::from_pico(open.max(0)), lease.calls.saturating_sub(book.calls));
    }
    Ok(Some(Left { lost, beyond }))
}

/// What an execution of a run may have spent if it died under a ceiling: the draws whose attempts are not stored; after
/// a power cut, which forgets notes, all that its lease allowed. `None` where no lease was left.
///
/// # Errors
/// A store or notes that cannot be read.
pub fn left_by_the_dead(state: &Path, store: &Store, run: u64) -> Result<Option<Money>, RunError> {
    let left = left(state, store, run)?;
    Ok(left.map(|Left { lost, beyond }| beyond.0 + lost.iter().map(|(_, bound)| *bound).sum::<Money>()))
}

/// Continues the job's unfinished run, or opens a new one. Says which rows count as unfinished, and whether it
/// continues.
fn open_run(
    plan: &Plan,
    store: &Store,
    job: Digest,
    now: WallTime,
) -> Result<(RunRecord, Retry, bool), RunError> {
    let (wanted, retry) = wanted(plan, store, job)?;
    if let Some(run) = wanted {
        return Ok((run, retry, true));
    }
    let new = NewRun {
        id: RunId::new(now),
        job,
        input_digest: plan.checked.digest,
        input: plan.source.shown_as().to_owned(),
        version: plan.settings.prompt.version.clone(),
        settings: plan.record.clone(),
        selected: plan.checked.selected,
        started: now,
    };
    Ok((store.create_run(&new)?, retry, false))
}

/// The run that is to be continued, if there is one, and which of its rows count as unfinished.
pub(super) fn wanted(
    plan: &Plan,
    store: &Store,
    job: Digest,
) -> Result<(Option<RunRecord>, Retry), RunError> {
    let newest = store.newest_run(&job)?.filter(|run| run.input_digest == plan.checked.digest);
    let mut retry = plan.choice.retry.clone().unwrap_or_else(Retry::operational);
    let wanted = match &plan.choice.run {
        Some(text) => {
            let named = store.find_run(text)?;
            if named.job != job {
                return Err(RunError::Usage(format!(
                    "run {} belongs to another job: its input, model, prompt or schema differ from these",
                    named.id
                )));
            }
            if named.input_digest != plan.checked.digest {
                return Err(RunError::Usage(format!("the input has changed since run {}", named.id)));
            }
            Some(named)
        }
        None if plan.choice.new => None,
        None => newest.filter(|run| {
            run.unfinished || plan.choice.retry.is_some() || has_room_for_truncated(run, &plan.settings)
        }),
    };
    if wanted.as_ref().is_some_and(|run| has_room_for_truncated(run, &plan.settings)) {
        retry = retry.with(Reason::Truncated);
    }
    Ok((wanted, retry))
}

/// Whether the length limit has grown since the run's last execution, and rows were truncated under it.
fn has_room_for_truncated(run: &RunRecord, settings: &Settings) -> bool {
    let Ok(record) = serde_json::from_str::<serde_json::Value>(&run.settings) else { return false };
    let number = |name: &str| record.get(name).and_then(serde_json::Value::as_u64);
    number("truncated").is_some_and(|rows| rows > 0)
        && number("max_output_tokens").is_some_and(|limit| limit < settings.call.max_output_tokens)
}

/// Rows of a continued run that are passed over by number: each of their samples has ended, and none is asked again.
pub(super) fn finished_rows(opened: &Opened, settings: &Settings) -> Result<FinishedRows, RunError> {
    if !opened.continued {
        return Ok(FinishedRows::default());
    }
    finished_in(&opened.store, opened.record.seq, &opened.retry, settings.ensemble.samples)
}

/// Rows of the run with this number of which all `planned` samples have ended, and none is asked again.
pub(super) fn finished_in(
    store: &Store,
    run: u64,
    retry: &Retry,
    planned: u16,
) -> Result<FinishedRows, RunError> {
    let mut finished = FinishedRows::default();
    let mut current = (0, 0);
    store.reader()?.finished(run, &mut |row, _, ending| {
        if current.0 != row {
            current = (row, 0);
        }
        let has_ended = match ending {
            Ending::Valid => true,
            Ending::Failed(reason) => !retry.reopens(reason),
            _ => false,
        };
        current.1 += u16::from(has_ended);
        if current.1 == planned {
            finished.insert(row);
        }
    })?;
    Ok(finished)
}

/// The settings' record with the number of truncated rows, so that a larger length limit finds them.
pub(super) fn with_truncated(record: &str, totals: &Totals) -> String {
    let truncated = totals.reason.get(&Reason::Truncated).copied().unwrap_or(0);
    match serde_json::from_str(record) {
        Ok(serde_json::Value::Object(mut members)) => {
            members.insert("truncated".to_owned(), truncated.into());
            serde_json::Value::Object(members).to_string()
        }
        _ => record.to_owned(),
    }
}
