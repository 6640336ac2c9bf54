//! An event stream, merged into the message that it stands for.
//!
//! Nobody asks for one here, but a gateway may send one all the same, and `extra` may ask.

use serde_json::{Map, Value, json};

use crate::provider::body;
use crate::provider::sse::{Merged, events};

/// Merges the events of a message. Pings, comments and unknown events are passed over; an error, which may come after
/// a status of success, stands for the whole.
pub(super) fn merge(text: &str) -> Merged {
    let mut message = Message::default();
    for event in events(text) {
        let Some(event) = body::parse(event.trim()) else { continue };
        message.seen = true;
        match event.get("type").and_then(Value::as_str).unwrap_or_default() {
            "error" => return Merged::Whole(event),
            "message_stop" => message.ended = true,
            kind => message.add(kind, &event),
        }
    }
    match (message.seen, message.ended) {
        (false, _) => Merged::NoStream,
        (true, false) => Merged::Cut,
        (true, true) => Merged::Whole(message.into_value()),
    }
}

#[derive(Debug, Default)]
struct Message {
    seen: bool,
    ended: bool,
    blocks: Vec<Block>,
    stop_reason: Value,
    stop_details: Value,
    usage: Map<String, Value>,
}

#[derive(Debug, Default)]
struct Block {
    index: u64,
    start: Value,
    /// What the deltas add: text, or the JSON text of a tool's input.
    text: String,
    input: String,
}

impl Message {
    fn add(&mut self, kind: &str, event: &Value) {
        match kind {
            "message_start" => self.add_usage(event.pointer("/message/usage")),
            "content_block_start" => {
                let start = event.get("content_block").cloned().unwrap_or_default();
                self.block(event).start = start;
            }
            "content_block_delta" => {
                let piece = |name: &str| event.get("delta").and_then(|delta| delta.get(name)?.as_str());
                let (text, input) = (piece("text"), piece("partial_json"));
                let block = self.block(event);
                block.text.push_str(text.unwrap_or_default());
                block.input.push_str(input.unwrap_or_default());
            }
            "message_delta" => {
                for (name, slot) in
                    [("stop_reason", &mut self.stop_reason), ("stop_details", &mut self.stop_details)]
                {
                    if let Some(value) = event.pointer(&format!("/delta/{name}")).filter(|v| !v.is_null()) {
                        *slot = value.clone();
                    }
                }
                self.add_usage(event.get("usage"));
            }
            _ => {}
        }
    }

    /// The block that an event is about.
    fn block(&mut self, event: &Value) -> &mut Block {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        let at = self.blocks.iter().position(|block| block.index == index).unwrap_or_else(|| {
            self.blocks.push(Block { index, ..Block::default() });
            self.blocks.len() - 1
        });
        &mut self.blocks[at]
    }

    /// Counts are cumulative: a later one takes the place of an earlier one.
    fn add_usage(&mut self, usage: Option<&Value>) {
        let members = usage.and_then(Value::as_object).into_iter().flatten();
        for (name, value) in members.filter(|(_, value)| !value.is_null()) {
            self.usage.insert(name.clone(), value.clone());
        }
    }

    fn into_value(self) -> Value {
        let content: Vec<Value> = self.blocks.into_iter().map(Block::into_value).collect();
        json!({
            "type": "message",
            "content": content,
            "stop_reason": self.stop_reason,
            "stop_details": self.stop_details,
            "usage": self.usage,
        })
    }
}

impl Block {
    fn into_value(self) -> Value {
        let mut block = self.start;
        if let Value::Object(members) = &mut block {
            if !self.text.is_empty() {
                let before = members.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
                members.insert("text".to_owned(), Value::from(before + &self.text));
            }
            if !self.input.is_empty() {
                members.insert("input".to_owned(), Value::from(self.input));
            }
        }
        block
    }
}
