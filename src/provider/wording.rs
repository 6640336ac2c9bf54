//! What we add to a conversation in our own words.

use serde_json::{Map, Value};

use crate::model::Repair;
use crate::provider::json::push_text;

/// The name of the tool whose arguments are the answer.
pub(super) const TOOL: &str = "answer";
/// What that tool is for.
pub(super) const TOOL_PURPOSE: &str = "Takes the answer.";
/// What the system prompt gains where the tool cannot be forced.
pub(super) const CALL_TOOL: &str = "Give your answer by calling the tool `answer`, and in no other way.";

/// What the system prompt gains, as JSON text without quotes. Servers refuse `json_object` unless the messages hold
/// the word JSON.
pub(super) fn instruction(schema: &Value) -> Vec<u8> {
    let text = format!(
        "Answer with JSON only: one value that satisfies the JSON Schema below, without any other text and without \
         a Markdown fence.\n\n{schema}"
    );
    let mut quoted = Vec::with_capacity(text.len() + 64);
    push_text(&mut quoted, &text);
    quoted[1..quoted.len() - 1].to_vec()
}

/// A text with what we add to it: JSON text without quotes.
pub(super) fn push_with(body: &mut Vec<u8>, text: &str, addition: &[u8]) {
    push_text(body, text);
    if !addition.is_empty() {
        body.pop();
        if !text.is_empty() {
            body.extend_from_slice(br"\n\n");
        }
        body.extend_from_slice(addition);
        body.push(b'"');
    }
}

/// The invalid answer as the model's turn, then what is wrong with it, and `addition`. Servers refuse an empty turn.
pub(super) fn push_repair(body: &mut Vec<u8>, repair: &Repair, addition: &[u8]) {
    let answer = if repair.answer.trim().is_empty() { "(no text)" } else { &repair.answer };
    body.extend_from_slice(br#",{"role":"assistant","content":"#);
    push_text(body, answer);
    let mut ask = "That answer is not valid:\n".to_owned();
    for error in &repair.errors {
        ask.push_str("- ");
        ask.push_str(error);
        ask.push('\n');
    }
    ask.push_str("Answer again with the whole corrected JSON and nothing else.");
    body.extend_from_slice(br#"},{"role":"user","content":"#);
    push_with(body, &ask, addition);
    body.push(b'}');
}

/// The schema of a tool's arguments, which must be an object; `None` where the schema is no plain one.
pub(super) fn tool_schema(schema: &Value) -> Option<Value> {
    const MIXED: [&str; 5] = ["anyOf", "oneOf", "allOf", "not", "enum"];
    let members = schema.as_object()?;
    if MIXED.iter().any(|name| members.contains_key(*name)) {
        return None;
    }
    let mut tool: Map<String, Value> = members.clone();
    tool.shift_remove("$schema");
    match members.get("type") {
        Some(kind) if kind == "object" => {}
        None if members.contains_key("properties") => {
            tool.insert("type".to_owned(), Value::from("object"));
        }
        _ => return None,
    }
    Some(Value::Object(tool))
}
