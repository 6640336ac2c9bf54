//! One execution of a run, from its lock to its output.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::answer::Reader as AnswerReader;
use crate::base::{Clock, Digest, Moment, RunId, SystemClock, WallTime};
use crate::dataset::{Checked, Source};
use crate::mock::MockModel;
use crate::model::{Ending, Header, ProviderKind, Reason, Settings, Totals};
use crate::output::{OutputError, OutputWriter, Target};
use crate::policy::{Exit, KeyConfig, Scheduler, SchedulerConfig, StopCause, exit};
use crate::prompt::Template;
use crate::provider::{Codec, Price};
use crate::report::{FailureGroup, Latencies};
use crate::run::credentials::{Credentials, redactor};
use crate::run::driver::{Commit, Driver, GRACE, MakeWorker};
use crate::run::error::RunError;
use crate::run::feed::{Feed, FeedPlan, FinishedRows};
use crate::run::history::{Retry, RowJudge};
use crate::run::identity::{job_key, request_prefix};
use crate::run::join::{Join, Joined};
use crate::run::live::{Bus, Observer};
use crate::run::lock::JobLock;
use crate::run::stop::{Stops, ending_word, skip_reason};
use crate::run::worker::{Line, Worker};
use crate::store::{NewRun, RunRecord, Store, Writer};
use crate::transport::{Http, HttpSettings};

/// Which run to execute.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Open a new one in any case.
    pub new: bool,
    /// Continue this one: an id, a prefix, or `last`.
    pub run: Option<String>,
    /// Which rows count as unfinished, if somebody said so.
    pub retry: Option<Retry>,
}

/// Everything that is known before a run begins. All of it has been checked.
#[derive(Debug)]
pub struct Plan {
    /// The resolved configuration.
    pub settings: Settings,
    /// The input, and what its check found.
    pub source: Source,
    /// What the check found.
    pub checked: Checked,
    /// Columns of a CSV input, or of a JSONL input that becomes a CSV.
    pub columns: Option<Header>,
    /// The prompt.
    pub template: Template,
    /// Reads and checks answers.
    pub answers: AnswerReader,
    /// Speaks with the provider.
    pub codec: Codec,
    /// The model's price, if it is known.
    pub price: Option<Price>,
    /// The keys.
    pub credentials: Credentials,
    /// The state folder.
    pub state: PathBuf,
    /// Where the output goes.
    pub target: Target,
    /// Which run to execute.
    pub choice: Choice,
    /// What the store keeps of the settings, as JSON.
    pub record: String,
    /// This process.
    pub pid: u32,
    /// This machine, for people.
    pub host: String,
}

/// How an execution ended.
#[derive(Debug)]
pub struct Ended {
    /// The run's id.
    pub run: RunId,
    /// Which execution of the run this was, from 1.
    pub execution: u32,
    /// Digest of the input.
    pub input_digest: Digest,
    /// Counts of the run, over all executions.
    pub totals: Totals,
    /// Equal failures, grouped.
    pub failures: Vec<FailureGroup>,
    /// How long replies took, in this execution.
    pub latencies: Latencies,
    /// Rows that this execution finished.
    pub finished_here: u64,
    /// Requests that this execution sent.
    pub sent_here: u64,
    /// Whether requests were sent that brought no complete reply, so that their cost is unknown.
    pub possible: bool,
    /// How long it took.
    pub wall: Duration,
    /// When it began.
    pub started: WallTime,
    /// When it ended.
    pub ended: WallTime,
    /// The code and why.
    pub exit: Exit,
    /// Files written.
    pub files: Vec<PathBuf>,
    /// Rows that continuing would ask again.
    pub open: u64,
}

/// What is called back on the way.
#[expect(missing_debug_implementations, reason = "functions have nothing to show")]
pub struct Hooks<'h> {
    /// The run is known; whether it is continued.
    pub opened: &'h mut dyn FnMut(&RunRecord, bool),
    /// Makes the summary that the store keeps, as JSON.
    pub summarize: &'h mut dyn FnMut(&Ended) -> String,
}

/// Executes a run. `observer` hears of everything; `stops` may end it early.
///
/// # Errors
/// What keeps a run from beginning, or from writing its output at all: see [`RunError`].
pub fn execute(
    plan: Plan,
    stops: Stops,
    clock: &Arc<SystemClock>,
    observer: &mut dyn Observer,
    hooks: Hooks<'_>,
) -> Result<Ended, RunError> {
    let (begun, started) = (clock.now(), clock.wall());
    let parent = plan.state.parent().map(PathBuf::from).unwrap_or_default();
    let job = job_key(&plan.settings, &parent, plan.checked.digest);
    crate::store::prepare_folder(&plan.state)?;
    let mut lock = JobLock::take(&plan.state, job, plan.pid, &plan.host)?;
    let store = Store::open(&plan.state)?;
    let (record, retry, continued) = open_run(&plan, &store, job, started)?;
    lock.tell_run(record.id);
    (hooks.opened)(&record, continued);
    let previous = store.run_before(&job, record.seq)?.filter(|run| run.input_digest == record.input_digest);
    let execution = store.begin_execution(record.seq, plan.pid, started)?;
    store.update_settings(record.seq, &plan.record)?;

    let (commit_sender, commits) = mpsc::unbounded_channel::<Commit>();
    let writer = Writer::start(
        &store,
        Box::new(move |commit| {
            // A driver that has ended does not need to know.
            let _ = commit_sender.send(commit);
        }),
    )?;
    let judge = Arc::new(RowJudge::new(plan.answers.clone(), &plan.settings.answer, &plan.settings.ensemble));
    let template = Arc::new(plan.template);
    let feed = FeedPlan {
        rows: plan.source.rows(&plan.checked)?,
        header: plan.checked.header.clone(),
        template,
        judge: Arc::clone(&judge),
        prefix: request_prefix(&plan.settings),
        store: store.reader()?,
        run: record.seq,
        previous: previous.filter(|_| !continued).map(|run| run.seq),
        continued,
        finished: finished_rows(&store, &record, &plan.settings, &retry, continued)?,
        retry,
    };
    let codec = Arc::new(plan.codec);
    let parts = WorkerParts {
        settings: &plan.settings,
        run: record.id,
        codec: Arc::clone(&codec),
        judge: Arc::clone(&judge),
        price: plan.price,
        clock: Arc::clone(clock),
    };
    let make_worker: MakeWorker<'_> = Box::new(move |credentials| parts.make(credentials));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| RunError::Start { what: "the runtime", source })?;
    let labels = plan.credentials.labels().to_vec();
    let driver = Driver {
        settings: &plan.settings,
        run: record.seq,
        clock: Arc::clone(clock),
        scheduler: Scheduler::new(scheduler_config(&plan.settings, &store, &record, &labels, clock, begun)?),
        feed: Feed::start(feed)?,
        writer: &writer,
        commits,
        stops,
        credentials: &plan.credentials,
        make_worker: Some(make_worker),
        worker: None,
        learned: Arc::new(store.learned(&plan.settings.call.endpoint, &plan.settings.call.model)?),
        bus: Bus::new(observer, plan.checked.selected),
        loads: HashMap::new(),
        finishing: HashMap::new(),
        tasks: JoinSet::new(),
        running: HashMap::new(),
        cause: None,
        last_fault: String::new(),
        next_tick: begun,
        ticks: 0,
    };
    let driven = runtime.block_on(driver.drive());
    drop(runtime);
    let mut cause = driven.cause.clone();
    if let Err(error) = writer.flush() {
        let unable = StopCause::Unable(error.to_string());
        cause = cause.max(Some(unable));
    }
    let join = Join {
        source: &plan.source,
        header: plan.checked.header.as_ref(),
        judge: &judge,
        run: record.seq,
        model: Some(plan.settings.call.model.clone()).filter(|model| !model.is_empty()),
        skipped: skip_reason(cause.as_ref()),
    };
    let rows = plan.source.rows(&plan.checked)?;
    let mut target = plan.target;
    let columns = answer_columns(&plan.answers);
    let writes = !matches!(cause, Some(StopCause::Usage(_) | StopCause::ClosedOutput));
    let out = if writes {
        let file = target.begin()?;
        let header = plan.columns.as_ref();
        Some(OutputWriter::new(&plan.settings.output, header, &columns, plan.checked.line_end, file))
    } else {
        None
    };
    let Joined { totals, failures, open, output, unanswered } = join.run(rows, store.reader()?, out)?;
    cause = cause.max(output.map(|error| match error {
        OutputError::Closed { .. } => StopCause::ClosedOutput,
        error => StopCause::Unable(error.to_string()),
    }));
    let mut ending = exit(&totals.status, plan.checked.selected, &plan.settings.gate, cause.clone());
    let files = match place(target, ending.code, &totals, writes) {
        Ok(file) => file.into_iter().collect(),
        Err(error) => {
            let unable = Some(StopCause::Unable(error.to_string()));
            ending =
                exit(&totals.status, plan.checked.selected, &plan.settings.gate, cause.clone().max(unable));
            Vec::new()
        }
    };
    let closed = writer.close();
    let snapshot = driven.snapshot(&totals);
    let end = Ended {
        run: record.id,
        execution,
        input_digest: plan.checked.digest,
        totals,
        failures: failures.into_groups(),
        finished_here: driven.finished,
        sent_here: driven.sent,
        latencies: driven.latencies,
        possible: unanswered,
        wall: clock.now().since(begun),
        started,
        ended: clock.wall(),
        exit: ending,
        files,
        open,
    };
    store.finish_execution(record.seq, ending_word(cause.as_ref()), open > 0, &snapshot, end.ended)?;
    store.update_settings(record.seq, &with_truncated(&plan.record, &end.totals))?;
    store.save_summary(record.seq, &(hooks.summarize)(&end))?;
    store.close()?;
    closed.map_err(RunError::Writer)?;
    drop(lock);
    Ok(end)
}

/// The settings' record with the number of truncated rows, so that a larger length limit finds them.
fn with_truncated(record: &str, totals: &Totals) -> String {
    let truncated = totals.reason.get(&Reason::Truncated).copied().unwrap_or(0);
    match serde_json::from_str::<serde_json::Value>(record) {
        Ok(serde_json::Value::Object(mut members)) => {
            members.insert("truncated".to_owned(), truncated.into());
            serde_json::Value::Object(members).to_string()
        }
        _ => record.to_owned(),
    }
}

/// The columns that an answer fills in a CSV.
fn answer_columns(answers: &AnswerReader) -> Vec<String> {
    answers.schema().properties().to_vec()
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

/// Continues the job's unfinished run, or opens a new one. Says which rows count as unfinished, and whether it
/// continues.
fn open_run(
    plan: &Plan,
    store: &Store,
    job: Digest,
    now: WallTime,
) -> Result<(RunRecord, Retry, bool), RunError> {
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
    if let Some(run) = wanted {
        if has_room_for_truncated(&run, &plan.settings) {
            retry = retry.with(Reason::Truncated);
        }
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

/// Whether the length limit has grown since the run's last execution, and rows were truncated under it.
fn has_room_for_truncated(run: &RunRecord, settings: &Settings) -> bool {
    let Ok(record) = serde_json::from_str::<serde_json::Value>(&run.settings) else { return false };
    let number = |name: &str| record.get(name).and_then(serde_json::Value::as_u64);
    number("truncated").is_some_and(|rows| rows > 0)
        && number("max_output_tokens").is_some_and(|limit| limit < settings.call.max_output_tokens)
}

/// Rows of a continued run that are passed over by number: each of their samples has ended, and none is asked again.
fn finished_rows(
    store: &Store,
    run: &RunRecord,
    settings: &Settings,
    retry: &Retry,
    continued: bool,
) -> Result<FinishedRows, RunError> {
    let mut finished = FinishedRows::default();
    if !continued {
        return Ok(finished);
    }
    let planned = settings.ensemble.samples;
    let mut current = (0, 0);
    store.reader()?.finished(run.seq, &mut |row, _, ending| {
        if current.0 != row {
            current = (row, 0);
        }
        let ended = match ending {
            Ending::Valid => true,
            Ending::Failed(reason) => !retry.reopens(reason),
            _ => false,
        };
        current.1 += u16::from(ended);
        if current.1 == planned {
            finished.insert(row);
        }
    })?;
    Ok(finished)
}

fn scheduler_config(
    settings: &Settings,
    store: &Store,
    record: &RunRecord,
    labels: &[String],
    clock: &SystemClock,
    begun: Moment,
) -> Result<SchedulerConfig, RunError> {
    let call = &settings.call;
    let mut keys = Vec::with_capacity(labels.len());
    for (at, label) in labels.iter().enumerate() {
        let wait = store.key_wait(&call.endpoint, label)?.map(|until| until.since(clock.wall()));
        keys.push(KeyConfig {
            concurrency: settings.keys.get(at).map_or(0, |key| key.concurrency),
            // The built-in provider needs no canary.
            answered: call.provider == ProviderKind::Mock
                || store.answered(&call.endpoint, &call.model, label)?,
            waits_until: wait.filter(|wait| !wait.is_zero()).map(|wait| clock.now().after(wait)),
        });
    }
    Ok(SchedulerConfig {
        run: record.seq,
        concurrency: settings.limits.concurrency,
        keys,
        ensemble: settings.ensemble.clone(),
        has_verdict: settings.answer.verdict.is_some(),
        has_confidence: settings.answer.confidence.is_some(),
        retry: settings.retry.clone(),
        repair: if settings.answer.schema.is_some() { settings.answer.repair } else { 0 },
        seed: u64::from_le_bytes(record.input_digest.as_bytes()[..8].try_into().unwrap_or_default()),
        selected: record.selected,
        deadline: settings.limits.deadline.map(|deadline| begun.after(deadline)),
        grace: GRACE,
    })
}

/// What a worker is made from once the keys are known.
struct WorkerParts<'a> {
    settings: &'a Settings,
    run: RunId,
    codec: Arc<Codec>,
    judge: Arc<RowJudge>,
    price: Option<Price>,
    clock: Arc<SystemClock>,
}

impl WorkerParts<'_> {
    fn make(self, credentials: &Credentials) -> Result<Worker, StopCause> {
        let call = &self.settings.call;
        let labels = credentials.labels().to_vec();
        if call.provider == ProviderKind::Mock {
            let line = Line::InProcess(MockModel::new(call.mock_seed, 0.0));
            return Ok(self.worker(line, labels, crate::base::Redactor::default()));
        }
        let keys = credentials.resolve().map_err(StopCause::Usage)?;
        let redactor = redactor(&keys);
        let idle = usize::try_from(self.settings.limits.concurrency).unwrap_or(usize::MAX);
        let unable = |error: crate::transport::TransportError| StopCause::Unable(error.to_string());
        let http = Http::new(HttpSettings::new(self.settings.limits.timeout, idle), redactor.clone())
            .map_err(unable)?;
        let mut endpoints = Vec::with_capacity(keys.len());
        for key in &keys {
            let headers = self.codec.headers(key.secret.as_ref());
            endpoints.push(http.endpoint(&call.endpoint, &headers).map_err(unable)?);
        }
        Ok(self.worker(Line::Http { http, endpoints }, labels, redactor))
    }

    fn worker(self, line: Line, labels: Vec<String>, redactor: crate::base::Redactor) -> Worker {
        Worker {
            run: self.run,
            codec: self.codec,
            line,
            judge: self.judge,
            price: self.price,
            clock: self.clock,
            labels,
            redactor,
        }
    }
}
