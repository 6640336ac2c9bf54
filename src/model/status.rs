//! What became of a row.

use std::fmt;

/// The status of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The answer is valid and its verdict positive and automatic.
    Pass,
    /// The answer is valid and its verdict negative and automatic.
    Fail,
    /// A person must decide.
    Review,
    /// There is no usable answer.
    Error,
    /// Not finished.
    Skipped,
}

impl Status {
    /// Every status, in the order of the table that people see.
    pub const ALL: [Self; 5] = [Self::Pass, Self::Fail, Self::Review, Self::Error, Self::Skipped];

    /// The word in the output.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Review => "review",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why a row has its status: one bounded word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word in the output.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// The samples agree and the verdict is automatic.
    Agreed = "agreed",
    /// The answer is valid, and no verdict is configured.
    Valid = "valid",
    /// A person has decided.
    Reviewed = "reviewed",
    /// Samples contradict each other.
    Split = "split",
    /// A sample failed finally beside valid ones.
    SampleFailed = "sample_failed",
    /// The mean confidence is below the threshold.
    LowConfidence = "low_confidence",
    /// Throttled until patience ended.
    RateLimited = "rate_limited",
    /// No complete reply in time.
    Timeout = "timeout",
    /// No connection, or it broke.
    Connection = "connection",
    /// The server failed.
    ServerError = "server_error",
    /// The server rejected the request.
    Rejected = "rejected",
    /// The prompt does not fit.
    TooLong = "too_long",
    /// The model or the provider's policy declined.
    Refused = "refused",
    /// A content filter cut the answer.
    Filtered = "filtered",
    /// The answer stops at the length limit.
    Truncated = "truncated",
    /// There was no text.
    Empty = "empty",
    /// The answer does not satisfy the schema.
    InvalidAnswer = "invalid_answer",
    /// The input record cannot be used.
    BadInput = "bad_input",
    /// The ceiling left no money for it.
    Budget = "budget",
    /// The time ran out.
    Deadline = "deadline",
    /// A signal stopped the run.
    Interrupted = "interrupted",
    /// The run could not go on.
    Stopped = "stopped",
}

impl Reason {
    /// Whether it says that the service failed, not the row: continuing the run asks again.
    pub const fn is_operational(self) -> bool {
        matches!(self, Self::RateLimited | Self::Timeout | Self::Connection | Self::ServerError)
    }

    /// Whether it says why a row was not finished.
    pub const fn is_skipped(self) -> bool {
        matches!(self, Self::Budget | Self::Deadline | Self::Interrupted | Self::Stopped)
    }

    /// The reason with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
