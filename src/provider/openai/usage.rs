//! Token counts as compatible servers report them.

use serde::Deserialize;
use serde_json::Value;

use crate::model::Usage;
use crate::provider::count::{number, whole};

/// The usage in a body; `None` if it is missing, null or all zero, as some servers send it, or tells of the input or of
/// the output only: then it is unknown, and never nothing.
///
/// Cached tokens are part of the prompt tokens everywhere here: `OpenAI` says so in `prompt_tokens_details`, `DeepSeek`
/// by `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`, which add up to the prompt.
pub(super) fn read(body: &Value) -> Option<Usage> {
    of(body.get("usage")?)
}

/// [`read`] for the usage alone.
fn of(usage: &Value) -> Option<Usage> {
    let count = |names: &[&str]| names.iter().find_map(|name| number(usage.get(*name)?));
    let part =
        |groups: [&str; 2], name: &str| groups.iter().find_map(|group| number(usage.get(*group)?.get(name)?));
    let counts = Counts {
        prompt: count(&["prompt_tokens", "input_tokens"]),
        completion: count(&["completion_tokens", "output_tokens"]),
        total: count(&["total_tokens"]),
        hits: count(&["prompt_cache_hit_tokens"]),
        misses: count(&["prompt_cache_miss_tokens"]),
        cached: part(INPUT, "cached_tokens"),
        cache_write: part(INPUT, "cache_write_tokens"),
        reasoning: part(OUTPUT, "reasoning_tokens"),
    };
    counts.usage()
}

/// Where the parts of the input stand.
const INPUT: [&str; 2] = ["prompt_tokens_details", "input_tokens_details"];
/// Where the parts of the output stand.
const OUTPUT: [&str; 2] = ["completion_tokens_details", "output_tokens_details"];

/// A usage whose counts are all plain numbers, as nearly all are.
#[derive(Debug, Deserialize)]
pub(super) struct PlainUsage {
    prompt_tokens: Option<u64>,
    input_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    output_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_cache_hit_tokens: Option<u64>,
    prompt_cache_miss_tokens: Option<u64>,
    prompt_tokens_details: Option<InputParts>,
    input_tokens_details: Option<InputParts>,
    completion_tokens_details: Option<OutputParts>,
    output_tokens_details: Option<OutputParts>,
}

#[derive(Debug, Deserialize)]
struct InputParts {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct OutputParts {
    reasoning_tokens: Option<u64>,
}

impl PlainUsage {
    /// What [`read`] makes of the same counts.
    pub(super) fn usage(&self) -> Option<Usage> {
        let input = [&self.prompt_tokens_details, &self.input_tokens_details];
        let output = [&self.completion_tokens_details, &self.output_tokens_details];
        let counts = Counts {
            prompt: whole(self.prompt_tokens).or(whole(self.input_tokens)),
            completion: whole(self.completion_tokens).or(whole(self.output_tokens)),
            total: whole(self.total_tokens),
            hits: whole(self.prompt_cache_hit_tokens),
            misses: whole(self.prompt_cache_miss_tokens),
            cached: input.into_iter().flatten().find_map(|parts| whole(parts.cached_tokens)),
            cache_write: input.into_iter().flatten().find_map(|parts| whole(parts.cache_write_tokens)),
            reasoning: output.into_iter().flatten().find_map(|parts| whole(parts.reasoning_tokens)),
        };
        counts.usage()
    }
}

/// The counts that a usage names, by whatever names.
#[derive(Debug, Clone, Copy)]
struct Counts {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    hits: Option<u64>,
    misses: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
}

impl Counts {
    fn usage(self) -> Option<Usage> {
        let Self { completion, total, hits, .. } = self;
        let by_cache = || Some(hits?.saturating_add(self.misses?));
        let by_total = || Some(total?.saturating_sub(completion?));
        let input = self.prompt.or_else(by_cache).or_else(by_total)?;
        let output = completion.or_else(|| Some(total?.saturating_sub(input)))?;
        let reasoning = self.reasoning.unwrap_or(0);
        // Where the three add up to the total, the server keeps reasoning apart from the output, and bills both.
        let apart = reasoning > 0 && total == Some(input.saturating_add(output).saturating_add(reasoning));
        let output = if apart { output.saturating_add(reasoning) } else { output };
        let cached_input = self.cached.or(hits).unwrap_or(0).min(input);
        let cache_write = self.cache_write.unwrap_or(0).min(input - cached_input);
        let reasoning = reasoning.min(output);
        let usage = Usage { input, cached_input, cache_write, output, reasoning, ..Usage::default() };
        (input > 0 || output > 0).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(usage: &Value) -> Option<[u64; 5]> {
        let usage = read(&json!({ "usage": usage }))?;
        Some([usage.input, usage.cached_input, usage.cache_write, usage.output, usage.reasoning])
    }

    #[test]
    fn conventions() {
        for (usage, expected) in [
            (json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}), [10, 0, 0, 5, 0]),
            (
                json!({"prompt_tokens": 1200, "completion_tokens": 90, "total_tokens": 1290,
                    "prompt_tokens_details": {"cached_tokens": 1024, "cache_write_tokens": 100},
                    "completion_tokens_details": {"reasoning_tokens": 64}}),
                [1200, 1024, 100, 90, 64],
            ),
            (
                json!({"prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40,
                    "completion_tokens": 7}),
                [100, 60, 0, 7, 0],
            ),
            (
                json!({"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40, "completion_tokens": 7}),
                [100, 60, 0, 7, 0],
            ),
            (json!({"prompt_tokens": "12", "completion_tokens": 5.0}), [12, 0, 0, 5, 0]),
            (
                json!({"input_tokens": 3, "output_tokens": 4, "input_tokens_details": {"cached_tokens": 1}}),
                [3, 1, 0, 4, 0],
            ),
            (json!({"completion_tokens": 5, "total_tokens": 15}), [10, 0, 0, 5, 0]),
            (
                json!({"prompt_tokens": 10, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 99}}),
                [10, 10, 0, 0, 0],
            ),
            (
                json!({"prompt_tokens": 2_000_000_000_000_u64, "input_tokens": 3, "output_tokens": 4}),
                [3, 0, 0, 4, 0],
            ),
            (
                json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 45,
                    "completion_tokens_details": {"reasoning_tokens": 30}}),
                [10, 0, 0, 35, 30],
            ),
        ] {
            assert_eq!(counts(&usage), Some(expected), "{usage}");
            if let Ok(plain) = serde_json::from_value::<PlainUsage>(usage.clone()) {
                assert_eq!(plain.usage(), read(&json!({ "usage": usage })), "{usage}");
            }
        }
    }

    #[test]
    fn nothing_is_unknown() {
        for usage in [
            json!(null),
            json!({}),
            json!([]),
            json!("12"),
            json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
            json!({"prompt_tokens": "many", "completion_tokens": 1e300}),
            json!({"prompt_tokens": -3, "completion_tokens": 5, "prompt_tokens_details": null}),
            // A half of it is no price.
            json!({"prompt_tokens": 12}),
            json!({"completion_tokens": 5}),
        ] {
            assert_eq!(counts(&usage), None, "{usage}");
        }
    }
}
