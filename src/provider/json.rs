//! JSON text, written piece by piece.

use serde_json::Value;

/// `,"name":value`.
pub(super) fn member(name: &str, value: &Value) -> Vec<u8> {
    let mut text = b",".to_vec();
    push_text(&mut text, name);
    text.push(b':');
    text.extend_from_slice(value.to_string().as_bytes());
    text
}

/// A JSON string.
pub(super) fn push_text(body: &mut Vec<u8>, text: &str) {
    // Writing text to memory cannot fail; should it ever, the mark keeps the body valid JSON.
    let before = body.len();
    if serde_json::to_writer(&mut *body, text).is_err() {
        body.truncate(before);
        body.extend_from_slice(b"\"\"");
    }
}
