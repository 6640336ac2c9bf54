//! One execution of a run, from its lock to its output.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::answer::Reader as AnswerReader;
use crate::base::{Clock, CrashPoint, Digest, Moment, Money, RunId, SystemClock, WallTime};
use crate::dataset::{Checked, Source};
use crate::mock::MockModel;
use crate::model::{CallSettings, Header, ProviderKind, Settings, Totals};
use crate::policy::{BudgetConfig, Exit, KeyConfig, Scheduler, SchedulerConfig, StopCause};
use crate::prompt::Template;
use crate::provider::{Codec, Price};
use crate::report::{FailureGroup, Latencies};
use crate::run::credentials::{Credentials, redactor};
use crate::run::decisions::Decisions;
use crate::run::draws::Draws;
use crate::run::driven::Driven;
use crate::run::driver::{Commit, Driver, GRACE, MakeWorker};
use crate::run::earlier::Earlier;
use crate::run::error::RunError;
use crate::run::feed::{Feed, FeedPlan, FinishedRows};
use crate::run::finish::{follow, replaced_run, target, write};
use crate::run::follow::{Finishing, Follow};
use crate::run::history::{Retry, RowJudge};
use crate::run::identity::request_prefix;
use crate::run::join::EachRow;
use crate::run::live::{Bus, Observer};
use crate::run::resume::{Opened, finished_rows, has_ceiling, open, with_truncated};
use crate::run::seen::SeenRequests;
use crate::run::stop::{LateStop, StopSender, Stops, ending_word};
use crate::run::worker::{Line, Worker};
use crate::store::{RunRecord, Writer};
use crate::transport::{Http, HttpSettings};

/// The most tasks that run between two looks at the sockets.
const TASKS_A_TURN: u32 = 1_024;

/// Which run to execute.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Open a new one in any case.
    pub new: bool,
    /// Continue this one: an id, a prefix, or `last`.
    pub run: Option<String>,
    /// Which rows count as unfinished, if somebody said so.
    pub retry: Option<Retry>,
    /// Whether to forgive what the run may have spent without a complete reply.
    pub forgive_possible: bool,
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
    pub template: Arc<Template>,
    /// Reads and checks answers.
    pub answers: AnswerReader,
    /// Speaks with the provider.
    pub codec: Arc<Codec>,
    /// The model's price, if it is known.
    pub price: Option<Price>,
    /// The keys.
    pub credentials: Credentials,
    /// The state folder.
    pub state: PathBuf,
    /// Which run to execute.
    pub choice: Choice,
    /// Stop once so many rows have ended, and write no output.
    pub probe: Option<u64>,
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
    /// The worst case of requests that were sent and brought no complete reply; `None` where it is unknown.
    pub possible: Option<Money>,
    /// What was forgiven of `possible` before it began.
    pub forgiven: Option<Money>,
    /// What the next row would have needed, if a ceiling ended the run.
    pub needed: Option<String>,
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
    /// The run is known; whether it is continued, and the run of another job whose output this one replaces.
    pub opened: &'h mut dyn FnMut(&RunRecord, bool, Option<&RunRecord>),
    /// Makes the summary that the store keeps, as JSON.
    pub summarize: &'h mut dyn FnMut(&Ended) -> String,
    /// Each row with what became of it, at the end of the execution, in the order of the rows; where somebody wants to
    /// see them.
    pub row: Option<EachRow<'h>>,
}

/// Executes a run. `observer` hears of everything; what is sent to `stops` may end it
/// early, and so does an output that is closed while rows are written to it. Connections that are open at the end stay
/// so until the process ends.
///
/// # Errors
/// What keeps a run from beginning, or from writing its output at all: see [`RunError`].
pub fn execute(
    plan: &Plan,
    (stop, mut stops): (StopSender, Stops),
    clock: &Arc<SystemClock>,
    observer: &mut dyn Observer,
    hooks: &mut Hooks<'_>,
) -> Result<Ended, RunError> {
    let begun = clock.now();
    let opened = open(plan, clock.wall())?;
    let target = target(plan)?;
    let replaced = replaced_run(target.as_ref(), &opened)?;
    (hooks.opened)(&opened.record, opened.continued, replaced.as_ref());
    let (commit_sender, commits) = mpsc::unbounded_channel::<Commit>();
    let writer = Writer::start(
        &opened.store,
        Box::new(move |commit| {
            // A driver that has ended does not need to know.
            let _ = commit_sender.send(commit);
        }),
    )?;
    let judge = Arc::new(RowJudge::new(plan.answers.clone(), &plan.settings.answer, &plan.settings.ensemble));
    let work = Work { plan, opened: &opened, judge: &judge, clock, begun };
    let finished = finished_rows(&opened, &plan.settings)?;
    let follow = follow(&work, target, &finished, stop, hooks.row.is_some())?;
    let finishing = follow.as_ref().map(Follow::finishing);
    let driven = drive(&work, &writer, commits, &mut stops, observer, (finished, finishing));
    let mut late = LateStop::new(&mut stops, &**clock);
    let cause = driven.as_ref().ok().and_then(|driven| driven.cause.as_ref());
    let followed = follow.map(|follow| follow.finish(&mut late, cause)).transpose();
    let mut driven = driven?;
    let followed = followed?.flatten();
    if let Err(error) = writer.flush() {
        let unable = StopCause::Unable(error.to_string());
        driven.cause = driven.cause.take().max(Some(unable));
    }
    // The store carries over what it holds while the output goes to the disk.
    writer.begin_to_close();
    let written = write(&work, driven.cause.clone(), followed, late, hooks.row.take())?;
    let closed = writer.close();
    CrashPoint::WriterClosed.pass();
    let snapshot = driven.snapshot(&written.totals);
    let (run, seq, store) = (opened.record.id, opened.record.seq, opened.store);
    // Everything that was drawn is settled now, on disk.
    store.end_lease(seq)?;
    CrashPoint::LeaseEnded.pass();
    Draws::forget(&plan.state, seq);
    let possible = store.possible_with(seq, written.possible)?;
    let ended = Ended {
        run,
        execution: opened.execution,
        input_digest: plan.checked.digest,
        totals: written.totals,
        failures: written.failures,
        finished_here: driven.finished,
        sent_here: driven.sent,
        latencies: driven.latencies,
        possible: (!written.unanswered).then_some(possible),
        forgiven: opened.forgiven,
        needed: driven.needed.clone(),
        wall: clock.now().since(begun),
        started: opened.started,
        ended: clock.wall(),
        exit: written.exit,
        files: written.files,
        open: written.open,
    };
    // A probe ends before its run does.
    let is_early = plan.probe.is_some() && written.cause.is_none() && ended.open > 0;
    let ending = if is_early { "stopped" } else { ending_word(written.cause.as_ref()) };
    store.finish_execution(seq, ending, ended.open > 0, &snapshot, ended.ended)?;
    CrashPoint::RunClosed.pass();
    store.update_settings(seq, &with_truncated(&plan.record, &ended.totals))?;
    store.save_summary(seq, &(hooks.summarize)(&ended))?;
    CrashPoint::SummaryStored.pass();
    store.close()?;
    CrashPoint::StoreCheckpointed.pass();
    closed.map_err(RunError::Writer)?;
    drop(opened.lock);
    Ok(ended)
}

/// What the steps of an execution share.
pub(super) struct Work<'a> {
    pub(super) plan: &'a Plan,
    pub(super) opened: &'a Opened,
    pub(super) judge: &'a Arc<RowJudge>,
    clock: &'a Arc<SystemClock>,
    begun: Moment,
}

/// Asks for all that is missing.
fn drive(
    work: &Work<'_>,
    writer: &Writer,
    commits: mpsc::UnboundedReceiver<Commit>,
    stops: &mut Stops,
    observer: &mut dyn Observer,
    (finished, finishing): (FinishedRows, Option<Finishing>),
) -> Result<Driven, RunError> {
    let Work { plan, opened, judge, clock, begun } = *work;
    let (settings, store, record) = (&plan.settings, &opened.store, &opened.record);
    let earlier = Earlier::of(opened, &finished);
    let feed = FeedPlan {
        rows: plan.source.rows(&plan.checked)?,
        header: plan.checked.header.clone(),
        template: plan.template.clone(),
        judge: Arc::clone(judge),
        prefix: request_prefix(settings),
        store: store.reader()?,
        run: record.seq,
        previous: opened.previous,
        continued: opened.continued,
        finished,
        price: plan.price,
        fixed_bytes: fixed_bytes(settings),
        output_tokens: output_limit(&settings.call),
        retry: opened.retry.clone(),
        decisions: decisions(work)?,
        left: plan.probe,
        started: opened.started,
        seen: SeenRequests::default(),
    };
    let parts = WorkerParts {
        settings,
        run: record.id,
        codec: Arc::clone(&plan.codec),
        judge: Arc::clone(judge),
        price: plan.price,
        clock: Arc::clone(clock),
    };
    let make_worker: MakeWorker<'_> = Box::new(move |credentials| parts.make(credentials));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // All replies that have come are read before the driver's turn.
        .event_interval(TASKS_A_TURN)
        .build()
        .map_err(|source| RunError::Start { what: "the runtime", source })?;
    let driver = Driver {
        settings,
        run: record.seq,
        clock: Arc::clone(clock),
        scheduler: Scheduler::new(scheduler_config(work)?),
        feed: Feed::start(feed)?,
        writer,
        commits,
        stops,
        credentials: &plan.credentials,
        make_worker: Some(make_worker),
        worker: None,
        learned: Arc::new(store.learned(&settings.call.endpoint, &settings.call.model)?),
        bus: Bus::new(observer, plan.checked.selected, earlier),
        loads: HashMap::new(),
        finishing: HashMap::new(),
        finishing_rows: finishing,
        tasks: JoinSet::new(),
        running: HashMap::new(),
        cause: None,
        last_fault: String::new(),
        leases: VecDeque::new(),
        needed: None,
        draws: has_ceiling(settings).then(|| Draws::begin(&plan.state, record.seq)).transpose()?,
        next_tick: begun,
        settles_until: begun,
        ticks: 0,
    };
    let left = runtime.block_on(driver.drive());
    // Idle connections are all that is left in it. The end of the process closes thousands of them at once; one by one
    // they would take as long as the rest of the run's end, and what hears of them the other core.
    mem::forget(runtime);
    Ok(left)
}

/// What people have decided, if the store holds any of that.
pub(super) fn decisions(work: &Work<'_>) -> Result<Option<Decisions>, RunError> {
    let Work { plan, opened, .. } = *work;
    let schema = plan.settings.answer.schema.as_ref();
    Ok(Decisions::any(&opened.store, &plan.template, schema)?)
}

/// Bytes that every request carries besides its prompt: schema and extra members.
pub(super) fn fixed_bytes(settings: &Settings) -> usize {
    let schema = settings.answer.schema.as_ref().map_or(0, |schema| schema.to_string().len());
    let extra = serde_json::to_string(&settings.call.extra).map_or(0, |text| text.len());
    schema + extra
}

/// The most output tokens that a request may bring: what `extra` sets wins, as it does in the request.
pub(super) fn output_limit(call: &CallSettings) -> u64 {
    let set = |name: &str| call.extra.get(name).and_then(serde_json::Value::as_u64);
    let both = set("max_completion_tokens").into_iter().chain(set("max_tokens"));
    both.max().unwrap_or(call.max_output_tokens)
}

fn scheduler_config(work: &Work<'_>) -> Result<SchedulerConfig, RunError> {
    let Work { plan, opened, clock, begun, .. } = *work;
    let (settings, store, record) = (&plan.settings, &opened.store, &opened.record);
    let (call, limits) = (&settings.call, &settings.limits);
    // Other executions may have sent with the same keys a moment ago.
    let recently = WallTime(clock.wall().0 - 61_000);
    let sent_before = store.active_since(recently, record.seq, opened.execution)?.then(|| clock.now());
    let mut keys = Vec::new();
    for (at, label) in plan.credentials.labels().iter().enumerate() {
        let key = settings.keys.get(at);
        let own = key.map_or(0, |key| key.concurrency);
        let wall = clock.wall();
        let wait = store.key_wait(&call.endpoint, label, wall)?.map(|until| until.since(wall));
        keys.push(KeyConfig {
            concurrency: if own == 0 { limits.concurrency } else { own.min(limits.concurrency) },
            // The built-in provider bears anything.
            adaptive: limits.adaptive && call.provider != ProviderKind::Mock,
            requests_a_minute: key.map_or(0, |key| key.rpm),
            tokens_a_minute: key.map_or(0, |key| key.tpm),
            sent_before,
            // The built-in provider needs no canary. Where the system prompt is cached, the first request of each
            // execution goes alone: it writes what the others then read.
            answered: call.provider == ProviderKind::Mock
                || (!call.marks_cache() && store.answered(&call.endpoint, &call.model, label)?),
            waits_until: wait.filter(|wait| !wait.is_zero()).map(|wait| clock.now().after(wait)),
        });
    }
    Ok(SchedulerConfig {
        run: record.seq,
        concurrency: settings.limits.concurrency,
        keys,
        requests_a_minute: limits.rpm,
        tokens_a_minute: limits.tpm,
        sent_before,
        ensemble: settings.ensemble.clone(),
        has_verdict: settings.answer.verdict.is_some(),
        has_confidence: settings.answer.confidence.is_some(),
        retry: settings.retry.clone(),
        repair: if settings.answer.schema.is_some() { settings.answer.repair } else { 0 },
        budget: has_ceiling(settings).then_some(BudgetConfig {
            max_cost: limits.max_cost,
            max_calls: limits.max_calls,
            spent: opened.book.spent,
            possible: opened.book.possible,
            calls: opened.book.calls,
        }),
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
            holds: labels.iter().map(|_| AtomicU64::new(0)).collect(),
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
