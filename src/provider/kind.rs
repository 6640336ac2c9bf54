//! Which provider a model's name belongs to.

use crate::model::ProviderKind;

/// The provider whose models carry such a name: `claude*` is Anthropic's; `gpt*`, `chatgpt*`, `o4*`, `o1`, `o3` and
/// their variants (`o3-mini`) are `OpenAI`'s. `None` for any other name: then only a base URL says whom to call.
pub fn infer_provider(model: &str) -> Option<ProviderKind> {
    let family =
        |name: &str| model == name || model.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    if model.starts_with("claude") {
        return Some(ProviderKind::Anthropic);
    }
    let openai = ["gpt", "chatgpt", "o4"].iter().any(|start| model.starts_with(start));
    (openai || family("o1") || family("o3")).then_some(ProviderKind::Openai)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_provider() {
        for name in ["gpt-5.4-mini", "chatgpt-4o-latest", "o1", "o3", "o3-mini", "o4-mini", "gpt-oss-120b"] {
            assert_eq!(infer_provider(name), Some(ProviderKind::Openai), "{name}");
        }
        for name in ["claude-haiku-5-5", "claude"] {
            assert_eq!(infer_provider(name), Some(ProviderKind::Anthropic), "{name}");
        }
        for name in ["", "mistral-large-latest", "o10", "o3x", "openai/gpt-5", "llama3", "my-gpt"] {
            assert_eq!(infer_provider(name), None, "{name}");
        }
    }
}
