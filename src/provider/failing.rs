//! Replies that are failures, in any wire format.

use serde_json::Value;
use url::Url;

use crate::base::WallTime;
use crate::model::{Failure, FailureClass, HttpReply, Lesson, ReplyContent};
use crate::provider::errors::ServerError;
use crate::provider::{limits, message};

/// What the reading of a failure depends on besides its error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failing<'a> {
    /// The reply.
    pub(super) reply: &'a HttpReply,
    /// The time, for dates that servers send.
    pub(super) now: WallTime,
}

impl Failing<'_> {
    /// An error of the server. `lesson` says what it teaches; it is asked only where an error can teach: of a
    /// rejection, and of a 500, since some servers answer so to a form that they do not know.
    pub(super) fn told(&self, error: &ServerError, lesson: impl FnOnce() -> Option<Lesson>) -> ReplyContent {
        let mut wait = limits::throttled(self.reply, error, self.now);
        let mut class = error.class(wait.is_some());
        let teachable = match class {
            FailureClass::Rejected => matches!(error.status(), 200..300 | 400 | 422),
            FailureClass::Server => matches!(error.status(), 500 | 501),
            _ => false,
        };
        if teachable && let Some(lesson) = lesson() {
            class = FailureClass::Teaches(lesson);
        }
        match class {
            FailureClass::Throttled => {}
            FailureClass::Server => wait = limits::retry_after(self.reply, self.now),
            _ => wait = None,
        }
        ReplyContent::Failed(Failure { class, code: error.code(), message: error.message(), wait })
    }

    /// A failure of the server that only we can put into words.
    pub(super) fn unsaid(&self, message: &str) -> ReplyContent {
        let wait = limits::retry_after(self.reply, self.now);
        let message = message.to_owned();
        ReplyContent::Failed(Failure { class: FailureClass::Server, code: None, message, wait })
    }

    /// A redirect is never followed: a key must not go where nobody sent it.
    pub(super) fn redirected(&self) -> ReplyContent {
        let target = self.reply.header("location").map(shown_target).filter(|target| !target.is_empty());
        let advice = "set base_url to the final address";
        let message = match target {
            Some(target) => message::clean_with_advice(&format!("server redirects to {target}"), advice),
            None => format!("server redirects without a target: {advice}"),
        };
        ReplyContent::Failed(Failure { class: FailureClass::Rejected, code: None, message, wait: None })
    }
}

/// The id that the provider's support asks for: the first of these headers that the reply has.
pub(super) fn request_id(reply: &HttpReply, names: &[&str]) -> Option<String> {
    shown_id(names.iter().find_map(|name| reply.header(name))?)
}

/// An id as it is kept; `None` if it is blank.
pub(super) fn shown_id(id: &str) -> Option<String> {
    let id = id.trim();
    (!id.is_empty()).then(|| id.chars().filter(|c| !c.is_control()).take(200).collect())
}

/// A target without query and credential.
fn shown_target(location: &str) -> String {
    let Ok(mut url) = Url::parse(location.trim()) else {
        let path = location.trim().split(['?', '#']).next().unwrap_or_default();
        return path.rsplit('@').next().unwrap_or_default().to_owned();
    };
    // Both fail only for URLs that can hold no credential.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// Whether a member says something: some servers send `"error": null`, or an empty one, with every answer.
pub(super) fn has_content(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Bool(true)) => true,
    }
}
