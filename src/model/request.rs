//! What is asked of a provider.

/// The rendered prompt of a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Prompt {
    /// The system prompt, if one is configured.
    pub system: Option<String>,
    /// The user prompt.
    pub user: String,
}

/// An answer that was not valid, and why: what a repair request carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The text that the model had answered.
    pub answer: String,
    /// What is wrong with it, one sentence each.
    pub errors: Vec<String>,
}

/// What the program has learned about a model at an endpoint from its refusals. Kept in the store, never hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Learned {
    /// How many steps down from the strongest structured form the server made us go, where the form is ours to
    /// choose. `OpenAI` and compatible servers: 0 none, 1 `json_object`, 2 prompt only. Anthropic: 0 none, 1 a forced
    /// tool, 2 prompt only.
    pub structured_steps: u8,
    /// Whether the name of the length limit (`max_tokens`, `max_completion_tokens`) is swapped.
    pub swap_length_parameter: bool,
    /// Parameters that the server refused and that are left out.
    pub dropped: Vec<String>,
}
