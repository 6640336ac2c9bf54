//! Replies.

use std::borrow::Cow;

use serde_json::Value;

use crate::base::WallTime;
use crate::model::{Decoded, HttpReply, Learned, ReplyContent, ServiceTier, Usage};
use crate::provider::body::{self, Body};
use crate::provider::errors::{ServerError, unwrapped};
use crate::provider::failing::{Failing, has_content, request_id};
use crate::provider::openai::{OpenaiRequest, plain, stream, tool, usage};
use crate::provider::{message, quirks};

/// Reads a reply to a request that was encoded with `learned`.
pub(crate) fn decode(
    request: &OpenaiRequest,
    reply: &HttpReply,
    learned: &Learned,
    now: WallTime,
) -> Decoded {
    // Where a tool is asked for, a text may stand beside its call.
    let plain = if request.wants_tool(learned) { None } else { plain::answer(reply) };
    let (content, usage, tier) = match plain {
        Some((text, usage, tier)) => (ReplyContent::Text(text), usage, tier),
        None => Reader { request, reply, learned, failing: Failing { reply, now } }.read(),
    };
    let names = ["x-request-id", "request-id", "apim-request-id", "x-ms-request-id"];
    Decoded { content, usage, tier, request_id: request_id(reply, &names) }
}

/// A reply and all that its reading depends on.
struct Reader<'a> {
    request: &'a OpenaiRequest,
    reply: &'a HttpReply,
    learned: &'a Learned,
    failing: Failing<'a>,
}

impl Reader<'_> {
    fn read(&self) -> (ReplyContent, Option<Usage>, Option<ServiceTier>) {
        let status = self.reply.status;
        if (300..400).contains(&status) {
            return (self.failing.redirected(), None, None);
        }
        match body::read(self.reply, stream::merge) {
            Body::Json { value, text } => {
                let value = unwrapped(&value);
                let tier = value.get("service_tier").and_then(Value::as_str).map(ServiceTier::from_word);
                (self.read_json(value, &text), usage::read(value), tier)
            }
            Body::Text(text) => (self.failed(&ServerError::from_text(status, &text)), None, None),
            Body::CutStream => {
                (self.failing.unsaid("the event stream in the reply ends before its end"), None, None)
            }
        }
    }

    fn read_json(&self, value: &Value, body: &str) -> ReplyContent {
        let status = self.reply.status;
        if !(200..300).contains(&status) || is_error(value) {
            return self.failed(&ServerError::from_json(status, value));
        }
        let choice = value.get("choices").and_then(Value::as_array).and_then(|choices| choices.first());
        let Some(choice) = choice else {
            return self.failing.unsaid("the server answered without choices");
        };
        if has_content(choice.get("error")) {
            return self.failed(&ServerError::from_json(status, choice));
        }
        match choice.get("message") {
            Some(message @ Value::Object(_)) => self.read_choice(choice, message, body),
            _ => self.failing.unsaid("the server answered without a message"),
        }
    }

    fn read_choice(&self, choice: &Value, message: &Value, body: &str) -> ReplyContent {
        let mut parts = text_of(message.get("content"));
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            parts.refusal.push_str(refusal);
        }
        if !parts.refusal.trim().is_empty() {
            return ReplyContent::Refused(message::clean(&parts.refusal));
        }
        let called = self.request.wants_tool(self.learned).then(|| tool::arguments(message, body)).flatten();
        let text = called.or_else(|| parts.text.map(Cow::into_owned)).unwrap_or_default();
        match choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default() {
            "length" | "max_tokens" | "model_length" => ReplyContent::Truncated(text),
            "content_filter" | "content_filtered" | "sensitive" => ReplyContent::Filtered(filtered(choice)),
            reason @ ("error" | "abort" | "insufficient_system_resource" | "network_error") => {
                self.failing.unsaid(&format!("the server stopped the answer with finish_reason {reason}"))
            }
            _ if !text.trim().is_empty() => ReplyContent::Text(text),
            _ if tool::is_called(message) => {
                ReplyContent::Unusable("the model called a tool instead of answering".to_owned())
            }
            _ if parts.unknown => ReplyContent::Unusable(
                "the content of the message is neither a text nor a list of parts".to_owned(),
            ),
            _ => ReplyContent::Empty,
        }
    }

    fn failed(&self, error: &ServerError) -> ReplyContent {
        self.failing.told(error, || quirks::lesson(error, &self.request.sent(self.learned)))
    }
}

/// Whether a body of a successful status is an error: relays send such.
fn is_error(value: &Value) -> bool {
    let no_choices = !value.get("choices").is_some_and(Value::is_array);
    let status = value.get("statusCode").or_else(|| value.get("status")).and_then(Value::as_u64);
    has_content(value.get("error"))
        || value.get("object").is_some_and(|object| object == "error")
        || (no_choices && status.is_some_and(|status| status >= 400))
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
