//! Token counts.

use serde_json::Value;

use crate::model::Usage;
use crate::provider::count::number;

/// The usage in a body; `None` if it is missing, all zero, or tells of the input or of the output only. The three input counts are disjoint here: what was read
/// from the cache and what was written to it are not part of `input_tokens`. What was written is told by how long the
/// cache keeps it, too; a server that tells only that says no other sum. Output includes thinking.
pub(super) fn read(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    let count = |name: &str| usage.get(name).and_then(number).unwrap_or(0);
    let kept = |name: &str| {
        usage.get("cache_creation").and_then(|kept| kept.get(name)).and_then(number).unwrap_or(0)
    };
    let (short, long) = (kept("ephemeral_5m_input_tokens"), kept("ephemeral_1h_input_tokens"));
    let cached_input = count("cache_read_input_tokens");
    let cache_write = count("cache_creation_input_tokens").max(short.saturating_add(long));
    let input = count("input_tokens").saturating_add(cached_input).saturating_add(cache_write);
    let output = usage.get("output_tokens").and_then(number)?;
    let inputs = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    inputs.iter().find_map(|name| usage.get(*name).and_then(number))?;
    let thinking = usage.pointer("/output_tokens_details/thinking_tokens").and_then(number).unwrap_or(0);
    let reasoning = thinking.min(output);
    let usage = Usage { input, cached_input, cache_write, cache_write_long: long, output, reasoning };
    (input > 0 || output > 0).then_some(usage)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_and_written_stands_beside_the_input() {
        let counts = |usage: &Value| {
            let usage = read(&json!({ "usage": usage })).unwrap();
            [usage.input, usage.cached_input, usage.cache_write, usage.cache_write_long, usage.output]
        };
        for (usage, expected) in [
            (json!({ "input_tokens": 100, "output_tokens": 5 }), [100, 0, 0, 0, 5]),
            (
                json!({ "input_tokens": 100, "cache_read_input_tokens": 2000, "output_tokens": 5 }),
                [2100, 2000, 0, 0, 5],
            ),
            (
                json!({ "input_tokens": 100, "cache_creation_input_tokens": 1500, "output_tokens": 5 }),
                [1600, 0, 1500, 0, 5],
            ),
            (
                json!({ "input_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 1500,
                    "cache_creation": { "ephemeral_5m_input_tokens": 500, "ephemeral_1h_input_tokens": 1000 },
                    "output_tokens": 5 }),
                [1630, 30, 1500, 1000, 5],
            ),
            (
                json!({ "input_tokens": 1, "cache_creation": { "ephemeral_1h_input_tokens": 7 }, "output_tokens": 3 }),
                [8, 0, 7, 7, 3],
            ),
            (
                json!({ "input_tokens": 1, "cache_creation_input_tokens": 7, "cache_creation": null, "output_tokens": 2 }),
                [8, 0, 7, 0, 2],
            ),
        ] {
            assert_eq!(counts(&usage), expected, "{usage}");
        }
    }

    #[test]
    fn half_of_it_is_unknown() {
        for usage in [json!({}), json!({ "input_tokens": 9 }), json!({ "output_tokens": 9 }), json!(null)] {
            assert_eq!(read(&json!({ "usage": usage })), None, "{usage}");
        }
    }
}
