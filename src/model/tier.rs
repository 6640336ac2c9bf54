//! Tiers of service, which have prices of their own.

/// A tier of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ServiceTier {
    /// The ordinary one.
    #[default]
    Standard,
    /// Requests that are handed in as a file and answered within a day.
    Batch,
    /// Slower, at about half the price.
    Flex,
    /// Faster, at about twice the price.
    Priority,
}

impl ServiceTier {
    /// The tier that a provider's word names, in a request or in a reply. `OpenAI` has called its fast tier both
    /// `priority` and `fast`. Words such as `auto`, `default`, `standard_only` and those of other servers name the
    /// ordinary tier.
    pub fn from_word(word: &str) -> Self {
        match word {
            "batch" => Self::Batch,
            "flex" => Self::Flex,
            "priority" | "fast" => Self::Priority,
            _ => Self::Standard,
        }
    }

    /// The word for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Batch => "batch",
            Self::Flex => "flex",
            Self::Priority => "priority",
        }
    }
}
