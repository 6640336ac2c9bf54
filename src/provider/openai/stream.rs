//! An event stream, merged into the reply that it stands for.
//!
//! Nobody asks for one here, but some servers know nothing else, and some relays send one whatever is asked.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::provider::openai::decode;
use crate::provider::sse::{Merged, events};
use crate::provider::{body, failing};

/// Merges the chunks of the first choice. Comments and unknown events are passed over.
pub(super) fn merge(text: &str) -> Merged {
    let mut completion = Completion::default();
    for event in events(text) {
        if event.trim() == "[DONE]" {
            completion.ended = true;
            break;
        }
        let Some(chunk) = body::parse(event.trim()) else { continue };
        completion.seen = true;
        if failing::has_content(chunk.get("error")) {
            return Merged::Whole(chunk);
        }
        completion.add(&chunk);
    }
    match (completion.seen, completion.ended) {
        (false, _) => Merged::NoStream,
        (true, false) => Merged::Cut,
        (true, true) => Merged::Whole(completion.into_value()),
    }
}

#[derive(Debug, Default)]
struct Completion {
    seen: bool,
    ended: bool,
    content: String,
    refusal: String,
    /// Name and arguments of each tool call, by its index.
    calls: BTreeMap<u64, (String, String)>,
    finish_reason: Value,
    error: Value,
    usage: Value,
    filter: Value,
}

impl Completion {
    fn add(&mut self, chunk: &Value) {
        if let Some(usage) = chunk.get("usage").filter(|usage| !usage.is_null()) {
            self.usage = usage.clone();
        }
        let choices = chunk.get("choices").and_then(Value::as_array).into_iter().flatten();
        let first = |choice: &&Value| choice.get("index").is_none_or(|index| index.as_f64() == Some(0.0));
        for choice in choices.filter(first) {
            if let Some(part) = choice.get("delta").or_else(|| choice.get("message")) {
                let text = decode::text_of(part.get("content"));
                self.content.push_str(text.text.as_deref().unwrap_or_default());
                self.refusal.push_str(&text.refusal);
                self.refusal.push_str(part.get("refusal").and_then(Value::as_str).unwrap_or_default());
                self.add_calls(part);
            }
            if let Some(error) = choice.get("error").filter(|error| !error.is_null()) {
                self.error = error.clone();
            }
            if let Some(filter) = choice.get("content_filter_results") {
                self.filter = filter.clone();
            }
            if let Some(reason) = choice.get("finish_reason").filter(|reason| !reason.is_null()) {
                self.finish_reason = reason.clone();
                self.ended |= reason.as_str().is_some_and(|reason| !reason.is_empty());
            }
        }
    }

    /// The first piece of a call names it; its arguments come in pieces.
    fn add_calls(&mut self, part: &Value) {
        let listed = part.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        let old = part.get("function_call").filter(|call| !call.is_null());
        for (function, index) in listed
            .map(|call| (call.get("function"), call.get("index").and_then(Value::as_u64)))
            .chain(old.map(|call| (Some(call), None)))
        {
            let (name, arguments) = self.calls.entry(index.unwrap_or(0)).or_default();
            let piece = |member: &str| function.and_then(|function| function.get(member)?.as_str());
            name.push_str(piece("name").unwrap_or_default());
            arguments.push_str(piece("arguments").unwrap_or_default());
        }
    }

    fn into_value(self) -> Value {
        let calls = self.calls.into_values();
        let calls =
            calls.map(|(name, text)| json!({ "function": { "name": name, "arguments": text } })).collect();
        let tool_calls = Value::Array(calls);
        json!({
            "choices": [{
                "message": { "content": self.content, "refusal": self.refusal, "tool_calls": tool_calls },
                "finish_reason": self.finish_reason,
                "error": self.error,
                "content_filter_results": self.filter,
            }],
            "usage": self.usage,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(stream: &str) -> Option<String> {
        match merge(stream) {
            Merged::Whole(value) => value["choices"][0]["message"]["content"].as_str().map(str::to_owned),
            _ => None,
        }
    }

    #[test]
    fn lines_may_end_and_fold_in_every_way() {
        let two = [
            "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
            "{\"choices\":[{\"delta\":{\"content\":\"b\"}}]}",
        ];
        for stream in [
            format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", two[0], two[1]),
            format!("data:{}\r\n\r\n: keep-alive\r\n\r\ndata:{}\r\n\r\ndata:[DONE]", two[0], two[1]),
            format!("event: x\nid: 1\ndata: {}\ndata: {}\ndata: [DONE]", two[0], two[1]),
            "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"ab\"}}]}\n\ndata: [DONE]".to_owned(),
        ] {
            assert_eq!(text(&stream).as_deref(), Some("ab"), "{stream}");
        }
    }

    #[test]
    fn a_stream_without_its_end_is_cut() {
        assert!(matches!(merge("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"), Merged::Cut));
        assert!(matches!(merge(": OPENROUTER PROCESSING\n\n"), Merged::NoStream));
    }
}
