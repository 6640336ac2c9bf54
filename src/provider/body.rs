//! The body of a reply, read as JSON where it can be.

use std::borrow::Cow;

use serde_json::Value;

use crate::model::HttpReply;
use crate::provider::sse::Merged;

/// A body.
#[derive(Debug)]
pub(super) enum Body<'a> {
    /// A JSON value, or what the chunks of an event stream add up to.
    Json {
        /// The value.
        value: Value,
        /// Its text as it came; empty where it was put together or mended.
        text: Cow<'a, str>,
    },
    /// Anything else, outer white space cut.
    Text(Cow<'a, str>),
    /// An event stream that ends before its end.
    CutStream,
}

/// Reads a body. Keep-alive blank lines, a byte order mark, bytes that are no UTF-8 and an event stream that nobody
/// asked for are all read through; `merge` knows the events of the wire format.
pub(super) fn read(reply: &HttpReply, merge: impl FnOnce(&str) -> Merged) -> Body<'_> {
    let text = trimmed(String::from_utf8_lossy(&reply.body));
    let json = past_comments(&text);
    if json.starts_with(['{', '[', '"'])
        && let Some(value) = parse(json)
    {
        let is_all = json.len() == text.len();
        return Body::Json { value, text: if is_all { text } else { Cow::Owned(json.to_owned()) } };
    }
    let typed = reply.header("content-type").is_some_and(|kind| kind.contains("text/event-stream"));
    if typed || ["data:", "event:", "id:", "retry:", ":"].iter().any(|start| text.starts_with(start)) {
        match merge(&text) {
            Merged::Whole(value) => return Body::Json { value, text: Cow::Borrowed("") },
            Merged::Cut => return Body::CutStream,
            Merged::NoStream => {}
        }
    }
    Body::Text(text)
}

/// The text behind lines that only keep the connection alive: comments of an event stream, which some servers send
/// before a body that is none.
fn past_comments(text: &str) -> &str {
    let mut rest = text;
    while rest.starts_with(':') {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

fn trimmed(text: Cow<'_, str>) -> Cow<'_, str> {
    let outer = |c: char| c.is_whitespace() || c == '\u{feff}';
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(outer)),
        Cow::Owned(text) => Cow::Owned(text.trim_matches(outer).to_owned()),
    }
}

/// JSON, with a second look at texts that hold half of a surrogate pair: a model that is cut inside an emoji makes
/// servers send such escapes, and the rest of the reply is good.
pub(super) fn parse(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(_) => serde_json::from_str(&with_whole_surrogates(text)?).ok(),
    }
}

/// The text with lone surrogate escapes replaced by U+FFFD; `None` if there is none.
fn with_whole_surrogates(text: &str) -> Option<String> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(step) = text.get(at..)?.find('\\') {
        let start = at + step;
        match (unit(text, start), unit(text, start + 6)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at = start + 12,
            (Some(0xD800..=0xDFFF), _) => {
                mended.push_str(text.get(copied..start)?);
                mended.push_str("\\ufffd");
                at = start + 6;
                copied = at;
            }
            (Some(_), _) => at = start + 6,
            // The escaped character goes along, so that `\\ud800` is seen as a backslash and text.
            (None, _) => at = start + 1 + text.get(start + 1..)?.chars().next()?.len_utf8(),
        }
    }
    if mended.is_empty() {
        return None;
    }
    mended.push_str(text.get(copied..)?);
    Some(mended)
}

/// The code unit of the escape `\uXXXX` at this place.
fn unit(text: &str, at: usize) -> Option<u16> {
    let escape = text.get(at..at + 6)?;
    u16::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_a_pair_does_not_spoil_the_reply() {
        let text = |json: &str| parse(json).and_then(|value| value["c"].as_str().map(str::to_owned));
        assert_eq!(text(r#"{"c":"a\ud83d"}"#).as_deref(), Some("a\u{fffd}"));
        assert_eq!(text(r#"{"c":"\ude00\ud83d\ude00\n"}"#).as_deref(), Some("\u{fffd}\u{1f600}\n"));
        assert_eq!(text(r#"{"c":"\\ud83d \ud83d"}"#).as_deref(), Some("\\ud83d \u{fffd}"));
        assert_eq!(text(r#"{"c":"\ud83dx""#), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(body in proptest::collection::vec(any::<u8>(), 0..200), json in "[{\\[\"a:,0-9\\\\ud8\\]}]{0,60}") {
            for body in [body, json.into_bytes()] {
                let reply = HttpReply { status: 200, headers: Vec::new(), body: body.into() };
                if let Body::Text(text) = read(&reply, |_| Merged::NoStream) {
                    prop_assert_eq!(text.trim(), text.as_ref());
                }
            }
        }
    }
}
