//! What goes into the scheduler and what comes out of it.

use std::time::Duration;

use crate::base::{AttemptKey, Moment, Money, Ticket};
use crate::model::{Ending, Ensemble, Failure, KeyFault, Reason, RetrySettings, Vote};
use crate::policy::budget::{BudgetConfig, Ceiling, Claim, Settlement};
use crate::policy::consensus::{Decision, SampleState};
use crate::policy::keys::KeyConfig;
use crate::policy::limiter::Pressure;

/// What a scheduler is made for.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Sequence number of the run in its store.
    pub run: u64,
    /// Requests in flight at once, at least 1.
    pub concurrency: u32,
    /// The keys, at least one.
    pub keys: Vec<KeyConfig>,
    /// Requests a minute over all keys; 0 for no limit.
    pub requests_a_minute: u64,
    /// Tokens a minute over all keys; 0 for no limit.
    pub tokens_a_minute: u64,
    /// When an earlier execution may have sent its last request, at the latest.
    pub sent_before: Option<Moment>,
    /// Samples and the rule.
    pub ensemble: Ensemble,
    /// Whether a verdict is configured.
    pub has_verdict: bool,
    /// Whether a confidence is configured.
    pub has_confidence: bool,
    /// Retrying.
    pub retry: RetrySettings,
    /// Re-asks after an invalid answer.
    pub repair: u32,
    /// The ceiling, if there is one.
    pub budget: Option<BudgetConfig>,
    /// Seed of the jitter.
    pub seed: u64,
    /// Selected rows.
    pub selected: u64,
    /// When the execution must end.
    pub deadline: Option<Moment>,
    /// How long requests in flight may go on after a stop.
    pub grace: Duration,
}

impl SchedulerConfig {
    /// The most rows that are loaded and unfinished at once.
    pub fn window(&self) -> usize {
        4 * usize::try_from(self.concurrency).unwrap_or(usize::MAX / 8) + 64
    }
}

/// A row that is to be worked on.
#[derive(Debug, Clone)]
pub struct RowPlan {
    /// Row number.
    pub row: u64,
    /// The first 16 bytes of the digest of its request without the sample number: rows with the same one ask the
    /// same. `None` for a row that asks nothing.
    pub group: Option<[u8; 16]>,
    /// Tokens that one of its requests counts for, before its usage is known.
    pub tokens: u64,
    /// The most that one of its requests can cost; `None` where the price is unknown.
    pub bound: Option<Money>,
    /// Its samples, as many as are planned.
    pub samples: Vec<SamplePlan>,
    /// What a person has decided, whether it passes: the row asks nothing.
    pub decided: Option<bool>,
}

/// A sample of a row, as it is known before anything is sent.
#[derive(Debug, Clone)]
pub struct SamplePlan {
    /// What is known of it.
    pub state: SampleState,
    /// The number of its next attempt, at least 1.
    pub next_attempt: u32,
    /// The stored attempt that its state comes from, of this row or of another row or run; `None` while open.
    pub source: Option<AttemptKey>,
}

/// What the driver is to do next.
#[derive(Debug)]
pub enum Step {
    /// Send this request.
    Send(Assignment),
    /// Load up to so many further rows, then call `on_rows`.
    Load(usize),
    /// Put this row's end on disk, then call `on_durable`.
    Finish(FinishedRow),
    /// Make this known.
    Notice(Notice),
    /// Cancel every request in flight, and report each as [`Outcome::Aborted`].
    Abort,
    /// Nothing to do before this moment, or before something is reported.
    Wait(Option<Moment>),
    /// All is done, or the stop is complete.
    Finished,
}

/// A request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Assignment {
    /// Which.
    pub ticket: Ticket,
    /// With which key.
    pub key: usize,
    /// Whether it carries the invalid answer before it, with its errors.
    pub repair: bool,
}

/// A row whose outcome is certain.
#[derive(Debug, Clone)]
pub struct FinishedRow {
    /// Row number.
    pub row: u64,
    /// Its outcome.
    pub decision: Decision,
    /// Samples whose answers come from attempts of other rows or runs.
    pub replays: Vec<(u16, AttemptKey)>,
}

/// What became of a request.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A valid answer.
    Valid(Vote),
    /// A reply without a valid answer: `invalid_answer`, `empty`, `truncated`, `refused` or `filtered`.
    Unusable(Reason),
    /// A failure.
    Failed(Failure),
    /// Cancelled at the scheduler's word.
    Aborted,
    /// Never sent: between the scheduler's word and the sending, another reply asked the key to wait until then.
    Unsent(Moment),
}

/// What a request's end tells of its key.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Feedback {
    /// The pressure that the reply speaks of; `None` if there was no reply that could.
    pub pressure: Option<Pressure>,
    /// Tokens that it used, where that is known.
    pub tokens: Option<u64>,
    /// How it is booked.
    pub settlement: Settlement,
    /// By how much a repair of this answer may cost more than a first request.
    pub repair_extra: Money,
}

/// What an outcome means for its sample: how the attempt is kept, and whether its next one is a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruling {
    /// How the attempt is kept.
    pub ending: Ending,
    /// Whether the next attempt carries this answer and its errors.
    pub repair_next: bool,
    /// What it may have cost although no complete reply came; `None` where one came or no price is known.
    pub possible: Option<Money>,
}

/// A fact that people or the store should know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A reply with content came with this key for the first time in this store.
    FirstContent {
        /// Index of the key.
        key: usize,
    },
    /// The server asked this key to wait.
    KeyWaits {
        /// Index of the key.
        key: usize,
        /// Until when.
        until: Moment,
    },
    /// A key that had worked rests, and is tried once more.
    KeyCools {
        /// Index of the key.
        key: usize,
        /// What was wrong.
        fault: KeyFault,
        /// The server's words.
        message: String,
    },
    /// A key is used no more.
    KeyOut {
        /// Index of the key.
        key: usize,
        /// What was wrong.
        fault: KeyFault,
        /// The server's words.
        message: String,
    },
    /// Put this lease on disk, then call `on_lease`: no request beyond the one before goes meanwhile.
    Lease(Claim),
    /// All that can be sent is in flight, and what came before is in the store. Given once; what then comes may be tried
    /// again.
    LastReplies,
    /// Nearly everything fails: the run pauses and probes.
    OutageBegins {
        /// What failed last.
        message: String,
    },
    /// The service answers again.
    OutageEnds,
    /// These attempts ended their rows, and an outage was behind it: their rows are open again.
    TakenUp(Vec<AttemptKey>),
    /// No new work begins.
    Stopping(Halt),
}

/// Why the scheduler stops before all rows are finished. A later variant wins over an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Halt {
    /// The driver was asked to, and knows why.
    Requested,
    /// A ceiling leaves no room for the next row: rows that need a request are skipped, stored answers still taken.
    Ceiling {
        /// Which.
        which: Ceiling,
        /// What the next row needs.
        needed: Claim,
        /// What is left for it.
        left: Claim,
    },
    /// The execution's time is over.
    Deadline,
    /// Throttled only, no answer from any key, for `throttle_patience`.
    Throttled,
    /// An outage for `outage_patience`.
    Outage {
        /// What failed last.
        message: String,
    },
    /// Every key that is left waits for longer than `max_wait`.
    KeysParked {
        /// When the first of them may be used again.
        until: Moment,
    },
    /// Nothing has ever answered in this execution.
    Unreachable {
        /// What failed last.
        message: String,
    },
    /// The first rows were all rejected in the same way.
    SameRejection {
        /// How.
        message: String,
        /// How many of them.
        rows: u64,
    },
    /// The provider has billed more for a request than it could cost by the price known.
    Overbilled,
    /// The model does not exist.
    UnknownModel {
        /// The server's words.
        message: String,
    },
    /// No key is left.
    KeysOut,
}
