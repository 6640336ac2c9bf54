//! Replies.

use std::borrow::Cow;

use reqwest::Url;
use serde_json::Value;

use crate::base::WallTime;
use crate::model::{Decoded, Failure, FailureClass, HttpReply, Learned, ReplyContent, Usage};
use crate::provider::errors::{ServerError, unwrapped};
use crate::provider::openai::body::{self, Body};
use crate::provider::openai::{OpenaiRequest, plain, usage};
use crate::provider::{limits, message, quirks};

/// Reads a reply to a request that was encoded with `learned`.
pub(crate) fn decode(
    request: &OpenaiRequest,
    reply: &HttpReply,
    learned: &Learned,
    now: WallTime,
) -> Decoded {
    let (content, usage) = match plain::answer(reply) {
        Some((text, usage)) => (ReplyContent::Text(text), usage),
        None => Reader { request, reply, learned, now }.read(),
    };
    Decoded { content, usage, request_id: request_id(reply) }
}

/// The id that the provider's support asks for.
fn request_id(reply: &HttpReply) -> Option<String> {
    let names = ["x-request-id", "request-id", "apim-request-id", "x-ms-request-id"];
    let id = names.iter().find_map(|name| reply.header(name))?.trim();
    (!id.is_empty()).then(|| id.chars().filter(|c| !c.is_control()).take(200).collect())
}

/// A reply and all that its reading depends on.
struct Reader<'a> {
    request: &'a OpenaiRequest,
    reply: &'a HttpReply,
    learned: &'a Learned,
    now: WallTime,
}

impl Reader<'_> {
    fn read(&self) -> (ReplyContent, Option<Usage>) {
        let status = self.reply.status;
        if (300..400).contains(&status) {
            return (ReplyContent::Failed(self.redirected()), None);
        }
        match body::read(self.reply) {
            Body::Json(value) => {
                let value = unwrapped(&value);
                (self.read_json(value), usage::read(value))
            }
            Body::Text(text) => (self.failed(&ServerError::from_text(status, &text)), None),
            Body::CutStream => {
                (self.server_failed("the event stream in the reply ends before its end"), None)
            }
        }
    }

    fn read_json(&self, value: &Value) -> ReplyContent {
        let status = self.reply.status;
        if !(200..300).contains(&status) || is_error(value) {
            return self.failed(&ServerError::from_json(status, value));
        }
        let choice = value.get("choices").and_then(Value::as_array).and_then(|choices| choices.first());
        let Some(choice) = choice else {
            return self.server_failed("the server answered without choices");
        };
        if has_content(choice.get("error")) {
            return self.failed(&ServerError::from_json(status, choice));
        }
        match choice.get("message") {
            Some(message @ Value::Object(_)) => self.read_choice(choice, message),
            _ => self.server_failed("the server answered without a message"),
        }
    }

    fn read_choice(&self, choice: &Value, message: &Value) -> ReplyContent {
        let mut parts = text_of(message.get("content"));
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            parts.refusal.push_str(refusal);
        }
        if !parts.refusal.trim().is_empty() {
            return ReplyContent::Refused(message::clean(&parts.refusal));
        }
        let text = parts.text.map_or_else(String::new, Cow::into_owned);
        match choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default() {
            "length" | "max_tokens" | "model_length" => ReplyContent::Truncated(text),
            "content_filter" | "content_filtered" | "sensitive" => ReplyContent::Filtered(filtered(choice)),
            reason @ ("error" | "insufficient_system_resource" | "network_error") => {
                self.server_failed(&format!("the server stopped the answer with finish_reason {reason}"))
            }
            _ if !text.trim().is_empty() => ReplyContent::Text(text),
            _ if calls_tool(message) => {
                ReplyContent::Unusable("the model called a tool instead of answering".to_owned())
            }
            _ if parts.unknown => ReplyContent::Unusable(
                "the content of the message is neither a text nor a list of parts".to_owned(),
            ),
            _ => ReplyContent::Empty,
        }
    }

    fn failed(&self, error: &ServerError) -> ReplyContent {
        let mut wait = limits::throttled(self.reply, error, self.now);
        let mut class = error.class(wait.is_some());
        let teachable = match class {
            FailureClass::Rejected => matches!(error.status(), 200..300 | 400 | 422),
            FailureClass::Server => matches!(error.status(), 500 | 501),
            _ => false,
        };
        if teachable && let Some(lesson) = quirks::lesson(error, &self.request.sent(self.learned)) {
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
    fn server_failed(&self, message: &str) -> ReplyContent {
        let wait = limits::retry_after(self.reply, self.now);
        let message = message.to_owned();
        ReplyContent::Failed(Failure { class: FailureClass::Server, code: None, message, wait })
    }

    /// A redirect is never followed: a key must not go where nobody sent it.
    fn redirected(&self) -> Failure {
        let target = self.reply.header("location").map(shown_target).filter(|target| !target.is_empty());
        let advice = "set base_url to the final address";
        let message = match target {
            Some(target) => message::clean_with_advice(&format!("server redirects to {target}"), advice),
            None => format!("server redirects without a target: {advice}"),
        };
        Failure { class: FailureClass::Rejected, code: None, message, wait: None }
    }
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

/// Whether a body of a successful status is an error: relays send such.
fn is_error(value: &Value) -> bool {
    let no_choices = !value.get("choices").is_some_and(Value::is_array);
    let status = value.get("statusCode").or_else(|| value.get("status")).and_then(Value::as_u64);
    has_content(value.get("error"))
        || value.get("object").is_some_and(|object| object == "error")
        || (no_choices && status.is_some_and(|status| status >= 400))
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

/// What a filter says of the answer: Azure names the categories.
fn filtered(choice: &Value) -> String {
    let results = choice.get("content_filter_results").and_then(Value::as_object);
    let found = results.into_iter().flatten();
    let found = found.filter(|(_, result)| result.get("filtered").and_then(Value::as_bool) == Some(true));
    let names: Vec<&str> = found.map(|(name, _)| name.as_str()).collect();
    if names.is_empty() {
        "the provider's content filter cut the answer".to_owned()
    } else {
        message::clean(&format!("the provider's content filter cut the answer: {}", names.join(", ")))
    }
}

/// Whether a message calls a tool.
pub(super) fn calls_tool(message: &Value) -> bool {
    has_content(message.get("tool_calls")) || has_content(message.get("function_call"))
}

/// The content of a message.
#[derive(Debug, Default)]
pub(super) struct Parts<'a> {
    /// Its text, if it has any.
    pub(super) text: Option<Cow<'a, str>>,
    /// What its refusal parts say.
    pub(super) refusal: String,
    /// Whether it has a shape that means nothing to us.
    pub(super) unknown: bool,
}

/// The text of a content that is a text or a list of parts. Parts that hold reasoning are passed over.
pub(super) fn text_of(content: Option<&Value>) -> Parts<'_> {
    let mut parts = Parts::default();
    match content {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => parts.text = Some(Cow::Borrowed(text)),
        Some(Value::Array(items)) => {
            let mut text = String::new();
            for item in items {
                match item.get("type").and_then(Value::as_str) {
                    Some("text" | "output_text") | None => {
                        let part = item.as_str().or_else(|| item.get("text")?.as_str());
                        text.push_str(part.unwrap_or_default());
                    }
                    Some("refusal") => {
                        parts
                            .refusal
                            .push_str(item.get("refusal").and_then(Value::as_str).unwrap_or_default());
                    }
                    Some(_) => {}
                }
            }
            parts.text = Some(Cow::Owned(text));
        }
        Some(_) => parts.unknown = true,
    }
    parts
}
