//! An attempt as it is kept.

use crate::base::{AttemptKey, Money, Ticket, WallTime};
use crate::model::{Reason, Usage};

/// What an attempt meant for its sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// A valid answer: the sample is done.
    Valid,
    /// The sample is done without an answer, for this reason.
    Failed(Reason),
    /// The sample goes on: this attempt failed for this reason and another one follows.
    Retried(Reason),
    /// Throttled; another one follows, and it does not count as a try.
    Throttled,
    /// The key was at fault, or the request taught us to ask differently; another one follows, uncounted.
    Deferred(Reason),
    /// The run stopped while the request was under way.
    Abandoned,
}

impl Ending {
    /// Whether the sample ends with it.
    pub const fn closes(self) -> bool {
        matches!(self, Self::Valid | Self::Failed(_))
    }

    /// The number under which the store keeps it: 0 valid, 1..=99 failed, 101..=199 retried, 200 throttled,
    /// 201..=299 deferred, 300 abandoned. Numbers of reasons are those of [`Ending::REASONS`] and never change.
    pub fn code(self) -> i64 {
        let place = |reason: Reason| {
            Self::REASONS
                .iter()
                .position(|&known| known == reason)
                .map_or(0, |at| i64::try_from(at).unwrap_or(0))
        };
        match self {
            Self::Valid => 0,
            Self::Failed(reason) => 1 + place(reason),
            Self::Retried(reason) => 101 + place(reason),
            Self::Throttled => 200,
            Self::Deferred(reason) => 201 + place(reason),
            Self::Abandoned => 300,
        }
    }

    /// The ending with this number.
    pub fn from_code(code: i64) -> Option<Self> {
        let reason =
            |base: i64| usize::try_from(code - base).ok().and_then(|at| Self::REASONS.get(at).copied());
        match code {
            0 => Some(Self::Valid),
            1..=99 => reason(1).map(Self::Failed),
            101..=199 => reason(101).map(Self::Retried),
            200 => Some(Self::Throttled),
            201..=299 => reason(201).map(Self::Deferred),
            300 => Some(Self::Abandoned),
            _ => None,
        }
    }

    /// Reasons by their stored number. New ones go to the end.
    pub const REASONS: [Reason; 12] = [
        Reason::RateLimited,
        Reason::Timeout,
        Reason::Connection,
        Reason::ServerError,
        Reason::Rejected,
        Reason::TooLong,
        Reason::Refused,
        Reason::Filtered,
        Reason::Truncated,
        Reason::Empty,
        Reason::InvalidAnswer,
        Reason::BadInput,
    ];
}

/// One HTTP request made for a sample, with all that is kept of it: one insert in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Row, sample and attempt.
    pub ticket: Ticket,
    /// What it meant for the sample.
    pub ending: Ending,
    /// The first 16 bytes of the request's hash. Always set; the store indexes it for valid answers.
    pub hash: [u8; 16],
    /// The label of the key that it was sent with.
    pub key_label: String,
    /// The HTTP status, if a reply came.
    pub http_status: Option<u16>,
    /// When it was sent.
    pub started: WallTime,
    /// Milliseconds from sending to the whole reply or the failure.
    pub millis: u64,
    /// Its tokens; `None` where nothing is known.
    pub usage: Option<Usage>,
    /// Whether `usage` is our estimate.
    pub estimated: bool,
    /// Its cost; `None` where the price or the usage is unknown.
    pub cost: Option<Money>,
    /// What it may have cost although no complete reply came: its worst case. `None` where a reply came, where
    /// nothing was sent, and where the price is unknown.
    pub possible: Option<Money>,
    /// Whether it was a repair: the request carried an invalid answer and its errors.
    pub repair: bool,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The valid answer on one line, where there is one.
    pub answer: Option<String>,
    /// Whether the answer had to be cut out of a longer text.
    pub extracted: bool,
    /// What went wrong, fit for the output, where something did.
    pub error: Option<String>,
    /// The body of the reply as it came, without credentials; empty where none came.
    pub raw: bytes::Bytes,
}

impl AttemptRecord {
    /// Whether a complete reply came, of any status but 429: what `usage.attempts` counts.
    pub fn is_answered(&self) -> bool {
        self.http_status.is_some_and(|status| status != 429)
    }

    /// Whether the reply was a 429 of any kind, or one of the rate kind within another status.
    pub fn is_throttled(&self) -> bool {
        self.http_status == Some(429)
            || matches!(self.ending, Ending::Throttled | Ending::Failed(Reason::RateLimited))
    }
}

/// A valid answer, or a final failure, that the store holds for a hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The attempt that bought it.
    pub key: AttemptKey,
    /// Valid, or the final failure.
    pub ending: Ending,
    /// The answer on one line; empty for a failure.
    pub answer: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_stay() {
        let mut all = vec![Ending::Valid, Ending::Throttled, Ending::Abandoned];
        for reason in Ending::REASONS {
            all.extend([Ending::Failed(reason), Ending::Retried(reason), Ending::Deferred(reason)]);
        }
        for ending in all {
            assert_eq!(Ending::from_code(ending.code()), Some(ending));
        }
        assert_eq!(Ending::Failed(Reason::InvalidAnswer).code(), 11);
        assert_eq!(Ending::Retried(Reason::Timeout).code(), 102);
        assert_eq!(Ending::from_code(250), None);
    }
}
