//! Replies.

use serde_json::Value;

use crate::base::WallTime;
use crate::model::{Decoded, HttpReply, Learned, ReplyContent, ServiceTier, Structured, Usage};
use crate::provider::anthropic::lesson::lesson;
use crate::provider::anthropic::{AnthropicRequest, stream, usage};
use crate::provider::body::{self, Body};
use crate::provider::errors::{ServerError, unwrapped};
use crate::provider::failing::{Failing, has_content, request_id, shown_id};
use crate::provider::message;
use crate::provider::raw::{self, Step};
use crate::provider::wording::TOOL;

/// Reads a reply to a request that was encoded with `learned`.
pub(crate) fn decode(
    request: &AnthropicRequest,
    reply: &HttpReply,
    learned: &Learned,
    now: WallTime,
) -> Decoded {
    let reader = Reader { request, learned, failing: Failing { reply, now } };
    let (content, spent, id) = reader.read();
    let (usage, tier) = spent.unwrap_or_default();
    // A gateway may put an id of its own under the other name.
    let of_gateway = || request_id(reply, &["x-request-id"]);
    Decoded {
        content,
        usage,
        tier,
        request_id: request_id(reply, &["request-id"]).or(id).or_else(of_gateway),
    }
}

/// Tokens, and the tier that they were spent in.
type Spent = (Option<Usage>, Option<ServiceTier>);

/// A reply and all that its reading depends on.
struct Reader<'a> {
    request: &'a AnthropicRequest,
    learned: &'a Learned,
    failing: Failing<'a>,
}

impl Reader<'_> {
    /// The content, the usage with its tier, and the id that stands in the body of an error.
    fn read(&self) -> (ReplyContent, Option<Spent>, Option<String>) {
        let status = self.failing.reply.status;
        if (300..400).contains(&status) {
            return (self.failing.redirected(), None, None);
        }
        match body::read(self.failing.reply, stream::merge) {
            Body::Json { value, text } => {
                let value = unwrapped(&value);
                let id = value.get("request_id").and_then(Value::as_str).and_then(shown_id);
                let tier = value.pointer("/usage/service_tier").and_then(Value::as_str);
                let spent = (usage::read(value), tier.map(ServiceTier::from_word));
                (self.read_json(value, &text), Some(spent), id)
            }
            Body::Text(text) => (self.failed(&ServerError::from_text(status, &text)), None, None),
            Body::CutStream => {
                (self.failing.unsaid("the event stream in the reply ends before its end"), None, None)
            }
        }
    }

    fn read_json(&self, value: &Value, body: &str) -> ReplyContent {
        let status = self.failing.reply.status;
        let is_error =
            has_content(value.get("error")) || value.get("type").is_some_and(|kind| kind == "error");
        if !(200..300).contains(&status) || is_error {
            return self.failed(&ServerError::from_json(status, value));
        }
        match value.get("content") {
            Some(Value::Array(blocks)) => self.read_message(value, &Blocks::read(blocks, body)),
            Some(Value::String(text)) => {
                self.read_message(value, &Blocks { text: text.clone(), ..Blocks::default() })
            }
            _ => self.failing.unsaid("the server answered without content"),
        }
    }

    fn read_message(&self, message: &Value, blocks: &Blocks) -> ReplyContent {
        let by_tool = self.request.form(self.learned) == Some(Structured::Tool);
        let called = blocks.input.as_ref().filter(|_| by_tool);
        let text = || called.unwrap_or(&blocks.text).clone();
        match message.get("stop_reason").and_then(Value::as_str).unwrap_or_default() {
            "max_tokens" | "model_context_window_exceeded" => ReplyContent::Truncated(text()),
            "refusal" => ReplyContent::Refused(refusal(message, &blocks.text)),
            "pause_turn" => ReplyContent::Unusable("the model paused in the middle of its turn".to_owned()),
            _ if !text().trim().is_empty() => ReplyContent::Text(text()),
            _ if blocks.input.is_some() => {
                ReplyContent::Unusable("the model called a tool instead of answering".to_owned())
            }
            _ => ReplyContent::Empty,
        }
    }

    fn failed(&self, error: &ServerError) -> ReplyContent {
        let form = self.request.form(self.learned);
        self.failing.told(error, || lesson(error, form, &self.request.sent(self.learned)))
    }
}

/// The content blocks of a message, by their types: their places say nothing.
#[derive(Debug, Default)]
struct Blocks {
    /// All texts, one behind the other.
    text: String,
    /// The JSON text of the input of the tool that was called, ours before any other.
    input: Option<String>,
}

impl Blocks {
    /// `body` is the text that the blocks were read from.
    fn read(blocks: &[Value], body: &str) -> Self {
        let mut read = Self::default();
        let mut is_ours = false;
        for (at, block) in blocks.iter().enumerate() {
            match block.get("type").and_then(Value::as_str) {
                Some("text") => {
                    read.text.push_str(block.get("text").and_then(Value::as_str).unwrap_or_default());
                }
                Some("tool_use") if !is_ours => {
                    let ours = block.get("name").is_some_and(|name| name == TOOL);
                    if ours || read.input.is_none() {
                        read.input = Some(input(block, at, body));
                        is_ours = ours;
                    }
                }
                _ => {}
            }
        }
        read
    }
}

/// The input of a tool as it stands in the body; a stream gives it as text.
fn input(block: &Value, at: usize, body: &str) -> String {
    match block.get("input") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => {
            let steps = [Step::Member("content"), Step::Item(at), Step::Member("input")];
            raw::part(body, &steps).map_or_else(|| value.to_string(), str::to_owned)
        }
    }
}

/// What the model, or the provider on its behalf, says of a refusal.
fn refusal(message: &Value, text: &str) -> String {
    let detail = |name: &str| {
        let detail = message.get("stop_details")?.get(name)?.as_str()?;
        (!detail.trim().is_empty()).then_some(detail)
    };
    let said = match (detail("category"), detail("explanation")) {
        (Some(category), Some(explanation)) => format!("{category}: {explanation}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => text.to_owned(),
    };
    message::clean(&said)
}
