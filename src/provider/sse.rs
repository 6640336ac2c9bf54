//! Event streams.

use serde_json::Value;

/// What a text turned out to be.
#[derive(Debug)]
pub(super) enum Merged {
    /// A whole completion, or an error that came as an event.
    Whole(Value),
    /// A stream without its end.
    Cut,
    /// No event holds JSON.
    NoStream,
}

/// The data of each event: its `data:` lines joined.
pub(super) fn events(text: &str) -> Vec<String> {
    let mut events = Vec::new();
    let mut data: Option<String> = None;
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            events.extend(data.take());
        } else if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut data {
                // A server that leaves out the blank line between events still puts one whole value on a line.
                Some(before) if !is_whole(before) => {
                    before.push('\n');
                    before.push_str(value);
                }
                before => events.extend(before.replace(value.to_owned())),
            }
        }
    }
    events.extend(data);
    events
}

fn is_whole(data: &str) -> bool {
    let data = data.trim();
    data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
}
