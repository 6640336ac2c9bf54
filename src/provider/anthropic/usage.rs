//! Token counts.

use serde_json::Value;

use crate::model::Usage;
use crate::provider::count::number;

/// The usage in a body; `None` if it is missing or all zero. The three input counts are disjoint here: what was read
/// from the cache and what was written to it are not part of `input_tokens`. Output includes thinking.
pub(super) fn read(body: &Value) -> Option<Usage> {
    let usage = body.get("usage")?;
    let count = |name: &str| usage.get(name).and_then(number).unwrap_or(0);
    let (cached_input, cache_write) =
        (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
    let input = count("input_tokens").saturating_add(cached_input).saturating_add(cache_write);
    let output = count("output_tokens");
    let thinking = usage.pointer("/output_tokens_details/thinking_tokens").and_then(number).unwrap_or(0);
    let usage = Usage { input, cached_input, cache_write, output, reasoning: thinking.min(output) };
    (input > 0 || output > 0).then_some(usage)
}
