//! Answers that come as the arguments of a tool.

use serde_json::Value;

use crate::provider::failing::has_content;
use crate::provider::raw::{self, Step};
use crate::provider::wording::TOOL;

/// The arguments of the call of our tool, as text; `None` if no tool was called. Servers send them as a text or as an
/// object, and some under a name of their own. `body` is the text that the message was read from.
pub(super) fn arguments(message: &Value, body: &str) -> Option<String> {
    let calls = message.get("tool_calls").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let ours = |call: &Value| call.pointer("/function/name").is_some_and(|name| name == TOOL);
    let message_at = [Step::Member("choices"), Step::Item(0), Step::Member("message")];
    if calls.is_empty() {
        let arguments = message.get("function_call")?.get("arguments")?;
        let steps = [&message_at[..], &[Step::Member("function_call"), Step::Member("arguments")]].concat();
        return text(arguments, body, &steps);
    }
    let at = calls.iter().position(ours).unwrap_or(0);
    let arguments = calls.get(at)?.get("function")?.get("arguments")?;
    let within =
        [Step::Member("tool_calls"), Step::Item(at), Step::Member("function"), Step::Member("arguments")];
    text(arguments, body, &[&message_at[..], &within].concat())
}

fn text(arguments: &Value, body: &str, steps: &[Step<'_>]) -> Option<String> {
    match arguments {
        Value::String(text) => Some(unwrapped(text)),
        Value::Object(_) | Value::Array(_) => {
            Some(raw::part(body, steps).map_or_else(|| arguments.to_string(), str::to_owned))
        }
        _ => None,
    }
}

/// Some servers encode the arguments twice: the text of a JSON text. One layer is taken off.
fn unwrapped(text: &str) -> String {
    if text.trim_start().starts_with('"')
        && let Ok(inner) = serde_json::from_str::<String>(text)
        && inner.trim_start().starts_with(['{', '['])
    {
        return inner;
    }
    text.to_owned()
}

/// Whether a message calls a tool.
pub(super) fn is_called(message: &Value) -> bool {
    has_content(message.get("tool_calls")) || has_content(message.get("function_call"))
}
