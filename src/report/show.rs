//! One row's story: the prompt, every attempt, and why the row has its status.

mod story;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::model::{AttemptRecord, Ending, PersonDecision, Prompt, RowResult, Usage};
use crate::report::json::{Number, line};

/// What `verify show RUN ROW` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShowRow {
    /// Row number, from 1.
    pub row: u64,
    /// What became of it; `None` while it is not finished.
    pub result: Option<RowResult>,
    /// The free text that the configuration gives the prompt's version; text only, not in the object.
    pub version: String,
    /// The rendered prompt; `None` where it cannot be rendered.
    pub prompt: Option<Prompt>,
    /// What people have decided about it, the oldest first; text only, not in the object.
    pub decisions: Vec<PersonDecision>,
    /// The samples, ascending.
    pub samples: Vec<ShowSample>,
}

/// One sample of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShowSample {
    /// Its number, from 1.
    pub n: u16,
    /// Where its answer was replayed from, as in `run 0193… row 7`; `None` where this row bought it. Text only.
    pub replayed_from: Option<String>,
    /// Its attempts, oldest first; for a replayed sample those that bought the answer.
    pub attempts: Vec<AttemptRecord>,
}

/// What an attempt meant for its sample, as one word: `valid`; the reason why it brought no answer; `throttled`;
/// `deferred` where the key was at fault or the request was sent again in another form; `abandoned` where the run
/// stopped meanwhile.
pub fn outcome_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Valid => "valid",
        Ending::Failed(reason) | Ending::Retried(reason) => reason.as_str(),
        Ending::Throttled => "throttled",
        Ending::Deferred(_) => "deferred",
        Ending::Abandoned => "abandoned",
    }
}

#[derive(Serialize)]
struct Object<'a> {
    row: u64,
    status: Option<&'static str>,
    prompt: PromptObject<'a>,
    samples: Vec<SampleObject<'a>>,
}

#[derive(Serialize)]
struct PromptObject<'a> {
    system: Option<&'a str>,
    user: Option<&'a str>,
}

#[derive(Serialize)]
struct SampleObject<'a> {
    n: u16,
    attempts: Vec<AttemptObject<'a>>,
}

#[derive(Serialize)]
struct AttemptObject<'a> {
    n: u32,
    key: &'a str,
    http_status: Option<u16>,
    outcome: &'static str,
    ms: u64,
    raw: Option<String>,
    usage: Option<UsageObject>,
    cost_usd: Number,
    request_id: Option<&'a str>,
    started: String,
}

#[derive(Serialize)]
struct UsageObject {
    #[serde(flatten)]
    usage: Usage,
    estimated: bool,
}

impl<'a> From<&'a AttemptRecord> for AttemptObject<'a> {
    fn from(attempt: &'a AttemptRecord) -> Self {
        Self {
            n: attempt.ticket.attempt,
            key: &attempt.key_label,
            http_status: attempt.http_status,
            outcome: outcome_word(attempt.ending),
            ms: attempt.millis,
            raw: raw_text(attempt),
            usage: attempt.usage.map(|usage| UsageObject { usage, estimated: attempt.estimated }),
            cost_usd: Number::money(attempt.cost),
            request_id: attempt.request_id.as_deref(),
            started: attempt.started.to_rfc3339(),
        }
    }
}

/// The body of the reply as text, bytes that are not UTF-8 replaced; `None` where no reply came.
fn raw_text(attempt: &AttemptRecord) -> Option<String> {
    let came = attempt.http_status.is_some() || !attempt.raw.is_empty();
    came.then(|| String::from_utf8_lossy(&attempt.raw).into_owned())
}

impl ShowRow {
    /// The object on one line, without a line end. `docs/show.schema.json` describes it. Raw replies are whole.
    pub fn to_json(&self) -> String {
        line(&Object {
            row: self.row,
            status: self.result.as_ref().map(|result| result.status.as_str()),
            prompt: PromptObject {
                system: self.prompt.as_ref().and_then(|prompt| prompt.system.as_deref()),
                user: self.prompt.as_ref().map(|prompt| prompt.user.as_str()),
            },
            samples: self
                .samples
                .iter()
                .map(|sample| SampleObject {
                    n: sample.n,
                    attempts: sample.attempts.iter().map(AttemptObject::from).collect(),
                })
                .collect(),
        })
    }

    /// The story for people, with a line end. Long texts are cut, with a note; lines are as long as they were.
    pub fn to_text(&self, color: bool) -> String {
        story::text(self, color)
    }

    /// One sentence that says why the row has its status.
    pub fn why(&self) -> String {
        story::why(self)
    }
}
