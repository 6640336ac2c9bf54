//! One attempt: from a prompt to an outcome and the record of it.

use std::sync::Arc;
use std::time::Duration;

use crate::answer::Unread;
use crate::base::{Clock, Money, Redactor, RunId, SystemClock, WallTime};
use crate::mock::MockModel;
use crate::model::{
    AttemptRecord, Ending, Failure, FailureClass, HttpReply, Learned, Lesson, Prompt, Reason, Repair,
    ReplyContent, Usage,
};
use crate::policy::{Assignment, Outcome};
use crate::provider::{Codec, Price, cost};
use crate::run::history::RowJudge;
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
}

impl Worker {
    pub(super) async fn attempt(self: Arc<Self>, job: Job) -> Done {
        let begun = self.clock.now();
        let body = self.codec.encode(&job.prompt, &job.learned, job.repair.as_deref());
        let ticket = job.assignment.ticket;
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
        let took = self.clock.now().since(begun);
        self.read(&job, reply, took)
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
            raw: bytes::Bytes::new(),
        }
    }

    fn read(&self, job: &Job, reply: Result<HttpReply, Failure>, took: Duration) -> Done {
        let mut record = self.record(job, took);
        let mut done_repair = None;
        let reply = match reply {
            Ok(reply) => reply,
            Err(failure) => {
                record.error = Some(self.redactor.redact_text(&failure.message));
                let outcome = Outcome::Failed(failure);
                return Done {
                    assignment: job.assignment,
                    outcome,
                    record,
                    took,
                    repair: None,
                    lesson: None,
                    learned: Arc::clone(&job.learned),
                };
            }
        };
        let decoded = self.codec.decode(&reply, &job.learned, self.clock.wall());
        record.http_status = Some(reply.status);
        record.request_id = decoded.request_id;
        record.raw = reply.body;
        let mut lesson = None;
        let mut text_len = 0;
        let outcome = match decoded.content {
            ReplyContent::Text(text) => {
                text_len = text.len();
                match self.judge.reader().read(&text) {
                    Ok((answer, vote)) => {
                        record.answer = Some(answer.text);
                        record.extracted = answer.extracted;
                        Outcome::Valid(vote)
                    }
                    Err(Unread::Empty) => {
                        unusable(&mut record, Reason::Empty, "the answer holds no text".to_owned())
                    }
                    Err(Unread::Truncated) => unusable(
                        &mut record,
                        Reason::Truncated,
                        "the answer ends inside of its thinking".to_owned(),
                    ),
                    Err(Unread::Invalid { errors }) => {
                        let first = errors.first().map_or("it is no JSON", String::as_str);
                        let message = cut(&format!("the answer does not satisfy the schema: {first}"));
                        done_repair = Some(Repair { answer: text, errors });
                        unusable(&mut record, Reason::InvalidAnswer, message)
                    }
                }
            }
            ReplyContent::Truncated(text) => {
                text_len = text.len();
                let message = "the answer stops at the length limit".to_owned();
                unusable(&mut record, Reason::Truncated, message)
            }
            ReplyContent::Refused(words) => {
                text_len = words.len();
                let message = cut(&format!("the model refused: {words}"));
                unusable(&mut record, Reason::Refused, message)
            }
            ReplyContent::Filtered(words) => {
                let message = if words.is_empty() {
                    "a content filter cut the answer".to_owned()
                } else {
                    cut(&format!("a content filter cut the answer: {words}"))
                };
                unusable(&mut record, Reason::Filtered, message)
            }
            ReplyContent::Empty => {
                unusable(&mut record, Reason::Empty, "the answer holds no text".to_owned())
            }
            ReplyContent::Unusable(why) => {
                done_repair = Some(Repair { answer: String::new(), errors: vec![why.clone()] });
                unusable(&mut record, Reason::InvalidAnswer, cut(&why))
            }
            ReplyContent::Failed(failure) => {
                record.error = Some(failure.message.clone());
                if let FailureClass::Teaches(taught) = &failure.class {
                    lesson = Some(taught.clone());
                }
                if failure.class == FailureClass::InvalidAnswer {
                    let errors = vec![failure.message.clone()];
                    done_repair = Some(Repair { answer: String::new(), errors });
                }
                Outcome::Failed(failure)
            }
        };
        self.account(job, &mut record, decoded.usage, &outcome, text_len);
        Done {
            assignment: job.assignment,
            outcome,
            record,
            took,
            repair: done_repair,
            lesson,
            learned: Arc::clone(&job.learned),
        }
    }

    /// Usage and cost. A failure costs nothing unless it carries usage; an answer without usage is estimated at
    /// four bytes a token.
    fn account(
        &self,
        job: &Job,
        record: &mut AttemptRecord,
        usage: Option<Usage>,
        outcome: &Outcome,
        text_len: usize,
    ) {
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(4)).unwrap_or(u64::MAX);
        let is_error = matches!(outcome, Outcome::Failed(_));
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
                    output: tokens(text_len),
                    ..Usage::default()
                })
            }
            known => known,
        };
        record.cost = match (&self.price, &record.usage) {
            (Some(price), Some(usage)) => Some(cost(price, usage)),
            _ => None,
        };
    }
}

fn unusable(record: &mut AttemptRecord, reason: Reason, message: String) -> Outcome {
    record.error = Some(message);
    Outcome::Unusable(reason)
}

fn internal(message: &str) -> Failure {
    Failure { class: FailureClass::Server, code: None, message: message.to_owned(), wait: None }
}

/// At most 300 characters.
fn cut(text: &str) -> String {
    match text.char_indices().nth(300) {
        Some((at, _)) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}
