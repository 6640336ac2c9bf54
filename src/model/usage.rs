//! Token counts, in one convention for all providers.

use std::ops::AddAssign;

/// Tokens of one attempt, or a sum of them. `input` counts all input tokens; `cached_input` and `cache_write`
/// are parts of it, whatever the provider's own convention (`Anthropic` reports three disjoint counts, the others a
/// subset). `output` includes reasoning tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// All input tokens.
    pub input: u64,
    /// Those of `input` that were read from a cache.
    pub cached_input: u64,
    /// Those of `input` that were written to a cache.
    pub cache_write: u64,
    /// Those of `cache_write` that a cache keeps for longer than usual, which costs more. It is there to price the
    /// attempt; the store keeps the cost, and reads 0 here.
    #[serde(default, skip_serializing)]
    pub cache_write_long: u64,
    /// All output tokens.
    pub output: u64,
    /// Those of `output` that were spent on reasoning.
    pub reasoning: u64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.cache_write_long = self.cache_write_long.saturating_add(other.cache_write_long);
        self.output = self.output.saturating_add(other.output);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
