//! One attempt: from a prompt to an outcome and the record of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::base::{Clock, CrashPoint, Moment, Money, Redactor, RunId, SystemClock, WallTime};
use crate::mock::MockModel;
use crate::model::{
    AttemptRecord, Ending, Failure, FailureClass, HttpReply, Learned, Lesson, Prompt, Repair, ReplyContent,
    ServiceTier, Usage,
};
use crate::policy::{Assignment, Feedback, Outcome, Pressure, Settlement};
use crate::provider::{Codec, Price, bound, cost, headroom};
use crate::run::history::RowJudge;
use crate::run::reading::{Understood, understand};
use crate::transport::{Http, HttpEndpoint};

/// What makes attempts. Shared by all tasks of an execution.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) run: RunId,
    pub(super) codec: Arc<Codec>,
    pub(super) line: Line,
    pub(super) judge: Arc<RowJudge>,
    pub(super) price: Option<Price>,
    pub(super) clock: Arc<SystemClock>,
    pub(super) labels: Vec<String>,
    pub(super) redactor: Redactor,
    /// Until when each key waits, as nanoseconds of the run's clock: known here as soon as a reply is read, which is
    /// before the driver hears of it.
    pub(super) holds: Vec<AtomicU64>,
}

/// The way to the provider.
#[derive(Debug)]
pub(super) enum Line {
    /// Over HTTP, with a prepared endpoint for each key.
    Http { http: Http, endpoints: Vec<HttpEndpoint> },
    /// The built-in provider.
    InProcess(MockModel),
}

/// What a request is made from.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) assignment: Assignment,
    pub(super) prompt: Arc<Prompt>,
    pub(super) hash: [u8; 16],
    pub(super) learned: Arc<Learned>,
    pub(super) repair: Option<Arc<Repair>>,
    pub(super) started: WallTime,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) assignment: Assignment,
    pub(super) outcome: Outcome,
    /// Complete but for its ending, on which the scheduler rules.
    pub(super) record: AttemptRecord,
    pub(super) took: Duration,
    /// What a repair would carry, after an invalid answer.
    pub(super) repair: Option<Repair>,
    pub(super) lesson: Option<Lesson>,
    /// What the request was encoded with.
    pub(super) learned: Arc<Learned>,
    /// What it tells of its key.
    pub(super) feedback: Feedback,
}

impl Worker {
    pub(super) async fn attempt(self: Arc<Self>, job: Job) -> Done {
        if self.held_until(job.assignment.key).is_some_and(|until| until > Moment::ORIGIN) {
            // The server throttles this key: replies that have arrived are read before a new request goes, by their
            // connections in the first turn and by their tasks in the second.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
        }
        let begun = self.clock.now();
        if let Some(until) = self.held_until(job.assignment.key).filter(|until| *until > begun) {
            return self.unsent(&job, until);
        }
        let body = self.codec.encode(&job.prompt, &job.learned, job.repair.as_deref());
        let ticket = job.assignment.ticket;
        CrashPoint::CallSending.pass();
        let reply = match &self.line {
            Line::Http { http, endpoints } => match endpoints.get(job.assignment.key) {
                Some(endpoint) => {
                    let id = [("x-client-request-id", ticket.client_request_id(self.run))];
                    http.send(endpoint, &id, body).await
                }
                None => Err(internal("no endpoint is prepared for this key")),
            },
            Line::InProcess(model) => Ok(HttpReply {
                status: 200,
                headers: Vec::new(),
                body: model.reply(&body, ticket.sample).into(),
            }),
        };
        CrashPoint::CallAnswered.pass();
        let took = self.clock.now().since(begun);
        self.read(&job, reply, took)
    }

    fn held_until(&self, key: usize) -> Option<Moment> {
        let nanos = self.holds.get(key)?.load(Ordering::Relaxed);
        Some(Moment::from_origin(Duration::from_nanos(nanos)))
    }

    fn hold(&self, key: usize, wait: Duration) {
        if let Some(hold) = self.holds.get(key) {
            let until = self.clock.now().after(wait).offset().as_nanos();
            hold.fetch_max(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// A request that was not sent, because its key was asked to wait meanwhile.
    fn unsent(&self, job: &Job, until: Moment) -> Done {
        let took = Duration::ZERO;
        let (record, learned) = (self.record(job, took), Arc::clone(&job.learned));
        let outcome = Outcome::Unsent(until);
        Done {
            assignment: job.assignment,
            outcome,
            record,
            took,
            repair: None,
            lesson: None,
            learned,
            feedback: Feedback::default(),
        }
    }

    /// A task that was cancelled: the request was under way.
    pub(super) fn abandoned(&self, job: &Job, took: Duration) -> Done {
        let record = self.record(job, took);
        Done {
            assignment: job.assignment,
            outcome: Outcome::Aborted,
            record,
            took,
            repair: None,
            lesson: None,
            learned: Arc::clone(&job.learned),
            feedback: Feedback { settlement: Settlement::Lost, ..Feedback::default() },
        }
    }

    /// A task that panicked. It is a bug; the row ends, the run goes on to its orderly end.
    pub(super) fn broken(&self, job: &Job, took: Duration) -> Done {
        let failure = internal("a bug in this program: please report it");
        self.read(job, Err(failure), took)
    }

    fn record(&self, job: &Job, took: Duration) -> AttemptRecord {
        AttemptRecord {
            ticket: job.assignment.ticket,
            ending: Ending::Abandoned,
            hash: job.hash,
            key_label: self.labels.get(job.assignment.key).cloned().unwrap_or_default(),
            http_status: None,
            started: job.started,
            millis: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            usage: None,
            estimated: false,
            cost: None,
            repair: job.assignment.repair,
            request_id: None,
            answer: None,
            extracted: false,
            error: None,
            possible: None,
            raw: bytes::Bytes::new(),
        }
    }

    fn read(&self, job: &Job, reply: Result<HttpReply, Failure>, took: Duration) -> Done {
        let mut record = self.record(job, took);
        let mut remaining = None;
        let understood = match reply {
            Err(failure) => {
                if !failure.was_sent() {
                    record.cost = Some(Money::ZERO);
                }
                record.error = Some(self.redactor.redact_text(&failure.message));
                Understood::new(Outcome::Failed(failure))
            }
            Ok(reply) => {
                remaining = headroom(&reply);
                let decoded = self.codec.decode(&reply, &job.learned, self.clock.wall());
                record.http_status = Some(reply.status);
                record.request_id = decoded.request_id;
                record.raw = reply.body;
                let content = self.without_credentials(decoded.content);
                let understood = understand(self.judge.reader(), content, &mut record);
                self.account(job, &mut record, decoded.usage, decoded.tier, &understood);
                understood
            }
        };
        let Understood { outcome, repair, lesson, .. } = understood;
        if let Outcome::Failed(Failure { class: FailureClass::Throttled, wait: Some(wait), .. }) = &outcome {
            self.hold(job.assignment.key, *wait);
        }
        let extra = repair.as_ref().map_or(Money::ZERO, |repair| self.repair_extra(job, repair));
        let mut feedback = feedback(&outcome, &record, remaining, extra);
        if self.price.is_some() && record.http_status.is_some() && record.cost.is_none() {
            // The reply names a tier whose price is unknown: it may have cost all that was reserved.
            feedback.settlement = Settlement::Lost;
        }
        let (assignment, learned) = (job.assignment, Arc::clone(&job.learned));
        Done { assignment, outcome, record, took, repair, lesson, learned, feedback }
    }

    /// The body holds no credential any more, but a text that was put together from parts or events may: a credential
    /// can be cut between them.
    fn without_credentials(&self, mut content: ReplyContent) -> ReplyContent {
        let text = match &mut content {
            ReplyContent::Text(text)
            | ReplyContent::Truncated(text)
            | ReplyContent::Refused(text)
            | ReplyContent::Filtered(text)
            | ReplyContent::Unusable(text) => text,
            ReplyContent::Failed(failure) => &mut failure.message,
            ReplyContent::Empty => return content,
        };
        if let Some(clean) = self.redactor.redact(text.as_bytes()) {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
        content
    }

    /// By how much a repair may cost more than a first request: it carries the answer and its errors, and in some forms
    /// the schema once more.
    fn repair_extra(&self, job: &Job, repair: &Repair) -> Money {
        let Some(price) = &self.price else { return Money::ZERO };
        let length = |repair: Option<&Repair>| self.codec.encode(&job.prompt, &job.learned, repair).len();
        let bytes = length(Some(repair)).saturating_sub(length(None)) + 1_024;
        bound(price, u64::try_from(bytes).unwrap_or(u64::MAX), 0)
    }

    /// Usage and cost. A failure costs nothing unless it carries usage; an answer without usage is estimated at
    /// four bytes a token.
    fn account(
        &self,
        job: &Job,
        record: &mut AttemptRecord,
        usage: Option<Usage>,
        tier: Option<ServiceTier>,
        understood: &Understood,
    ) {
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
        let is_error = matches!(understood.outcome, Outcome::Failed(_));
        record.usage = match usage {
            None if is_error => {
                record.cost = Some(Money::ZERO);
                return;
            }
            None => {
                record.estimated = true;
                let system = job.prompt.system.as_ref().map_or(0, String::len);
                Some(Usage {
                    input: tokens(system + job.prompt.user.len()),
                    output: tokens(understood.text_len),
                    ..Usage::default()
                })
            }
            known => known,
        };
        record.cost = match (&self.price, &record.usage) {
            // A reply that does not name its tier was made in the one asked for.
            (Some(price), Some(usage)) => cost(price, usage, tier.unwrap_or(price.asked)),
            _ => None,
        };
    }
}

/// What a request's end tells of its key: 429 and 529 that the server had enough, 503 and a time-out that it may
/// have, and any complete reply that it had not.
fn feedback(
    outcome: &Outcome,
    record: &AttemptRecord,
    remaining: Option<f64>,
    repair_extra: Money,
) -> Feedback {
    let settlement = match outcome {
        Outcome::Failed(failure) if !failure.was_sent() => Settlement::NotSent,
        _ if record.http_status.is_none() => Settlement::Lost,
        // Where the price is unknown there is no ceiling either.
        _ => Settlement::Replied(record.cost.unwrap_or_default()),
    };
    let class = match outcome {
        Outcome::Failed(failure) => Some(&failure.class),
        _ => None,
    };
    let throttled = class == Some(&FailureClass::Throttled) || record.http_status == Some(529);
    let timed_out = matches!(class, Some(FailureClass::Timeout { .. }));
    let strained = timed_out || record.http_status == Some(503);
    // A key at fault, a lost connection and a failed server say nothing of how much the key bears.
    let speaks =
        throttled || strained || record.http_status.is_some_and(|status| status < 300 || status == 400);
    Feedback {
        pressure: speaks.then_some(Pressure { throttled, strained, remaining }),
        settlement,
        repair_extra,
        tokens: record.usage.map(|usage| usage.input.saturating_add(usage.output)).or(throttled.then_some(0)),
    }
}

fn internal(message: &str) -> Failure {
    Failure { class: FailureClass::Server, code: None, message: message.to_owned(), wait: None }
}
