//! Reply bodies of both wire formats.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::mock::request::{Asked, Dialect, Form};
use crate::model::Usage;

/// What a reply says.
#[derive(Debug)]
pub(super) struct Said {
    /// The answer's text.
    pub(super) text: String,
    /// Whether it stops at the limit of output tokens.
    pub(super) truncated: bool,
    /// The tokens to report.
    pub(super) usage: Usage,
    /// A number from which the reply's id is made.
    pub(super) id: u64,
}

/// A reply of status 200.
pub(super) fn answer(asked: &Asked<'_>, said: &Said) -> Vec<u8> {
    let body = match asked.dialect {
        Dialect::OpenAi => openai(asked, said),
        Dialect::Anthropic => anthropic(asked, said),
    };
    body.into_bytes()
}

/// JSON text of a string.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}

fn model_name(asked: &Asked<'_>) -> String {
    quoted(if asked.model.is_empty() { "mock" } else { &asked.model })
}

fn openai(asked: &Asked<'_>, said: &Said) -> String {
    let Said { text, truncated, usage, id } = said;
    let (content, tool_calls) = match &asked.form {
        Form::Tool(name) => (
            "null".to_owned(),
            format!(
                r#","tool_calls":[{{"id":"call_{id:016x}","type":"function","function":{{"name":{},"arguments":{}}}}}]"#,
                quoted(name),
                quoted(text)
            ),
        ),
        _ => (quoted(text), String::new()),
    };
    let reason = if *truncated { "length" } else { "stop" };
    let (input, cached, output) = (usage.input, usage.cached_input, usage.output);
    format!(
        concat!(
            r#"{{"id":"chatcmpl-{id:016x}","object":"chat.completion","created":0,"model":{model},"choices":[{{"#,
            r#""index":0,"message":{{"role":"assistant","content":{content},"refusal":null{tool_calls}}},"#,
            r#""logprobs":null,"finish_reason":"{reason}"}}],"usage":{{"prompt_tokens":{input},"#,
            r#""completion_tokens":{output},"total_tokens":{total},"#,
            r#""prompt_tokens_details":{{"cached_tokens":{cached}}},"#,
            r#""completion_tokens_details":{{"reasoning_tokens":0}}}},"system_fingerprint":null}}"#
        ),
        id = id,
        model = model_name(asked),
        content = content,
        tool_calls = tool_calls,
        reason = reason,
        input = input,
        output = output,
        total = input + output,
        cached = cached,
    )
}

fn anthropic(asked: &Asked<'_>, said: &Said) -> String {
    let Said { text, truncated, usage, id } = said;
    let is_object = || text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    // A tool's input is an object on this side; what is none comes as text, as from a model that did not call it.
    let (block, called) = match &asked.form {
        Form::Tool(name) if is_object() => (
            format!(r#"{{"type":"tool_use","id":"toolu_{id:016x}","name":{},"input":{text}}}"#, quoted(name)),
            true,
        ),
        _ => (format!(r#"{{"type":"text","text":{}}}"#, quoted(text)), false),
    };
    let reason = match (truncated, called) {
        (true, _) => "max_tokens",
        (false, true) => "tool_use",
        (false, false) => "end_turn",
    };
    format!(
        concat!(
            r#"{{"id":"msg_{id:016x}","type":"message","role":"assistant","model":{model},"content":[{block}],"#,
            r#""stop_reason":"{reason}","stop_sequence":null,"usage":{{"input_tokens":{input},"#,
            r#""cache_creation_input_tokens":0,"cache_read_input_tokens":{cached},"output_tokens":{output}}}}}"#
        ),
        id = id,
        model = model_name(asked),
        block = block,
        reason = reason,
        input = usage.input.saturating_sub(usage.cached_input),
        cached = usage.cached_input,
        output = usage.output,
    )
}

/// A reply of an error status. `code` is the code of the `OpenAI` format.
pub(super) fn error(dialect: Dialect, status: u16, code: Option<&str>, message: &str, id: &str) -> Vec<u8> {
    let body = match dialect {
        Dialect::OpenAi => {
            let kind = match status {
                429 => "requests",
                500.. => "server_error",
                _ => "invalid_request_error",
            };
            serde_json::json!({"error": {"message": message, "type": kind, "param": Value::Null, "code": code}})
        }
        Dialect::Anthropic => {
            let kind = match status {
                401 => "authentication_error",
                404 => "not_found_error",
                413 => "request_too_large",
                429 => "rate_limit_error",
                529 => "overloaded_error",
                500.. => "api_error",
                _ => "invalid_request_error",
            };
            serde_json::json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": id})
        }
    };
    body.to_string().into_bytes()
}
