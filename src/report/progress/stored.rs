//! The form in which the store keeps a snapshot: exact, and read by the same or a newer program.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::StatusCounts;
use crate::report::Snapshot;

/// Why a stored snapshot cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The text is no snapshot.
    #[error("the stored progress of the run is damaged; run `verify run` again, which writes it anew")]
    Malformed(#[source] serde_json::Error),
}

impl Snapshot {
    /// The snapshot as the store keeps it: JSON on one line, times in milliseconds, money in 10^-12 USD.
    pub fn to_store_json(&self) -> String {
        crate::report::json::line(self)
    }

    /// A snapshot read back. Members that are absent have their empty values; unknown ones are passed over.
    pub fn from_store_json(text: &str) -> Result<Self, SnapshotError> {
        serde_json::from_str(text).map_err(SnapshotError::Malformed)
    }
}

/// Rows by status, member by member.
#[derive(Serialize, Deserialize)]
#[serde(remote = "StatusCounts")]
pub(super) struct Counts {
    pass: u64,
    fail: u64,
    review: u64,
    error: u64,
    skipped: u64,
}

/// Rows by reason, by the words of the output; unknown words of a newer program are passed over.
pub(super) mod reasons {
    use std::collections::BTreeMap;

    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use crate::model::{Reason, ReasonCounts};

    pub(in super::super) fn serialize<S: Serializer>(
        counts: &ReasonCounts,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let words: BTreeMap<&str, u64> =
            counts.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
        words.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<ReasonCounts, D::Error> {
        let words = BTreeMap::<String, u64>::deserialize(input)?;
        Ok(words.iter().filter_map(|(word, count)| Some((Reason::from_word(word)?, *count))).collect())
    }
}

/// Civil time as milliseconds since the Unix epoch.
pub(super) mod wall {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use crate::base::WallTime;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference to the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        at: &WallTime,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        at.0.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<WallTime, D::Error> {
        i64::deserialize(input).map(WallTime)
    }
}

/// Money as an integer of 10^-12 USD, or `null`.
pub(super) mod money {
    use super::{Deserialize, Deserializer, Serialize, Serializer};
    use crate::base::Money;

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        amount: &Option<Money>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        amount.map(Money::pico).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Money>, D::Error> {
        Option::<i64>::deserialize(input).map(|pico| pico.map(Money::from_pico))
    }
}

/// A time as whole milliseconds, or `null`.
pub(super) mod time {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};
    use crate::report::json::millis;

    #[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(millis).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<u64>::deserialize(input).map(|millis| millis.map(Duration::from_millis))
    }
}
