//! How many tokens a text has.

use std::fmt;

/// Counts the tokens of texts for one model: exactly where its encoding is public, else by characters.
#[derive(Debug, Clone, Copy)]
pub struct TokenCounter {
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    /// With an encoding of `OpenAI`'s.
    Exact { tokenizer: &'static bpe_openai::Tokenizer, name: &'static str },
    /// By characters: so many tenths of a character of a Latin script are a token, and half as many of others.
    Ratio { tenths: u64 },
    /// By bytes, as the built-in provider counts.
    Bytes,
}

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact { name, .. } => f.write_str(name),
            Self::Ratio { tenths } => write!(f, "{tenths}/10 characters"),
            Self::Bytes => f.write_str("4 bytes"),
        }
    }
}

impl TokenCounter {
    /// A counter for a model. An encoding is loaded, which takes a tenth of a second and 65 MB.
    ///
    /// `OpenAI`'s models count by `o200k_base`, which is not confirmed for `gpt-6`; `gpt-4` and `gpt-3.5` by
    /// `cl100k_base` (tiktoken's table of models).
    pub fn new(model: &str) -> Self {
        let way = match encoding(model) {
            Some("cl100k_base") => Way::Exact { tokenizer: bpe_openai::cl100k_base(), name: "cl100k_base" },
            Some(_) => Way::Exact { tokenizer: bpe_openai::o200k_base(), name: "o200k_base" },
            None => Way::Ratio { tenths: tenths(model) },
        };
        Self { way }
    }

    /// A counter that only looks at characters: cheap, and right to about a quarter.
    pub fn by_ratio(model: &str) -> Self {
        Self { way: Way::Ratio { tenths: tenths(model) } }
    }

    /// A counter as the built-in provider counts.
    pub fn by_bytes() -> Self {
        Self { way: Way::Bytes }
    }

    /// The tokens of a text.
    pub fn count(&self, text: &str) -> u64 {
        match self.way {
            Way::Exact { tokenizer, .. } => tokenizer.count(text) as u64,
            Way::Ratio { tenths } => {
                let wide = text.chars().filter(|c| *c >= '\u{250}').count() as u64;
                let narrow = text.chars().count() as u64 - wide;
                (narrow * 10 + wide * 20).div_ceil(tenths)
            }
            Way::Bytes => (text.len() as u64).div_ceil(4),
        }
    }

    /// Whether the counts are those that a provider bills.
    pub fn is_exact(&self) -> bool {
        !matches!(self.way, Way::Ratio { .. })
    }

    /// How it counts, fit for a person.
    pub fn describe(&self) -> String {
        match self.way {
            Way::Exact { name, .. } => format!("counted exactly, by {name}"),
            Way::Ratio { tenths } => {
                format!(
                    "guessed at {}.{} characters a token, half as many of scripts other than Latin",
                    tenths / 10,
                    tenths % 10
                )
            }
            Way::Bytes => "counted as the built-in provider does, four bytes a token".to_owned(),
        }
    }
}

/// The name of a model without the vendor before it.
fn bare(model: &str) -> &str {
    model.rsplit('/').next().unwrap_or(model)
}

/// The encoding of a model, if it is public.
fn encoding(model: &str) -> Option<&'static str> {
    let name = bare(model);
    let is = |stem: &str| name == stem || name.strip_prefix(stem).is_some_and(|rest| rest.starts_with('-'));
    let o200k = ["gpt-5", "gpt-6", "gpt-4.5", "gpt-4.1", "gpt-4o", "chatgpt-4o", "gpt-oss", "o1", "o3", "o4"];
    // Versions such as gpt-5.4 count as their family does.
    let versioned = ["gpt-5.", "gpt-6."];
    if o200k.into_iter().any(is) || versioned.iter().any(|start| name.starts_with(start)) {
        Some("o200k_base")
    } else if ["gpt-4", "gpt-3.5", "gpt-35"].into_iter().any(is) {
        Some("cl100k_base")
    } else {
        None
    }
}

/// Characters of English in ten tokens. Claude has no public tokenizer: 3.5 up to version 4.6, and 2.7 from 4.7 on,
/// which has a new one; for others 4 is the usual guess.
fn tenths(model: &str) -> u64 {
    let name = bare(model);
    if !name.contains("claude") {
        return 40;
    }
    // Dates have eight digits, versions one or two.
    let mut version =
        name.split(['-', '.', '@']).filter_map(|part| part.parse::<u32>().ok().filter(|_| part.len() <= 2));
    match (version.next(), version.next().unwrap_or(0)) {
        (Some(major), minor) if (major, minor) <= (4, 6) => 35,
        _ => 27,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_go_by_whole_names() {
        for name in [
            "gpt-5.4-mini",
            "gpt-4o-2024-08-06",
            "openai/gpt-4.1",
            "o3",
            "o4-mini",
            "gpt-6.1-sol",
            "gpt-oss-20b",
        ] {
            assert_eq!(encoding(name), Some("o200k_base"), "{name}");
        }
        for name in ["gpt-4", "gpt-4-turbo", "gpt-3.5-turbo"] {
            assert_eq!(encoding(name), Some("cl100k_base"), "{name}");
        }
        for name in ["qwen3", "claude-opus-4-8", "o30", "gpt-50", "", "gpt-4ever"] {
            assert_eq!(encoding(name), None, "{name}");
        }
    }

    #[test]
    fn claude_counts_by_version() {
        for (name, tenths) in [
            ("claude-3-5-sonnet-20241022", 35),
            ("claude-sonnet-4-6", 35),
            ("claude-sonnet-4-20250514", 35),
            ("claude-opus-4-7", 27),
            ("claude-haiku-5-5", 27),
            ("anthropic/claude-sonnet-5", 27),
            ("claude-next", 27),
            ("llama3", 40),
        ] {
            assert_eq!(super::tenths(name), tenths, "{name}");
        }
    }

    #[test]
    fn counts() {
        let ratio = TokenCounter::by_ratio("llama3");
        assert_eq!((ratio.count(""), ratio.count("abcde"), ratio.count("日本")), (0, 2, 1));
        assert!(!ratio.is_exact() && ratio.describe().contains("4.0 characters"));
        let exact = TokenCounter::new("gpt-4o");
        assert_eq!(exact.count("hello world"), 2);
        assert!(exact.is_exact() && exact.describe().contains("o200k_base"));
        assert_eq!(TokenCounter::by_bytes().count("abcde"), 2);
    }
}
