//! Names of things: runs, tickets, stored attempts.

use std::fmt;
use std::str::FromStr;

use crate::base::WallTime;

/// The id of a run, a UUID version 7: ids sort by the time at which they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(uuid::Uuid);

impl RunId {
    /// A fresh id for the time `now`.
    pub fn new(now: WallTime) -> Self {
        let millis = u64::try_from(now.0).unwrap_or(0);
        let stamp = uuid::Timestamp::from_unix(
            uuid::NoContext,
            millis / 1_000,
            u32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0),
        );
        Self(uuid::Uuid::new_v7(stamp))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        uuid::Uuid::from_str(text).map(Self)
    }
}

/// Which request this is: row, sample and attempt, all counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// Row in the file's own numbering.
    pub row: u64,
    /// Sample of the row, 1..=100.
    pub sample: u16,
    /// Attempt for the sample, over all executions of the run.
    pub attempt: u32,
}

impl Ticket {
    /// The value of `X-Client-Request-Id`: `RUN-ROW-SAMPLE-ATTEMPT`.
    pub fn client_request_id(&self, run: RunId) -> String {
        format!("{run}-{}-{}-{}", self.row, self.sample, self.attempt)
    }
}

/// An attempt's key in the store: run, row, sample and attempt packed into 63 bits (14, 30, 7 and 12), so that
/// the integer order is the order of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptKey(i64);

/// A number that does not fit its place in an [`AttemptKey`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} {value} is over {most}, the most that the store can number")]
pub struct AttemptKeyError {
    what: &'static str,
    value: u64,
    most: u64,
}

impl AttemptKey {
    /// The highest sequence number of a run in one store.
    pub const MAX_RUN: u64 = (1 << 14) - 1;
    /// The highest row number.
    pub const MAX_ROW: u64 = (1 << 30) - 1;
    /// The highest sample number that the key can hold; the program allows 100.
    pub const MAX_SAMPLE: u16 = (1 << 7) - 1;
    /// The highest attempt number.
    pub const MAX_ATTEMPT: u32 = (1 << 12) - 1;

    /// Packs the numbers. `run` is the run's sequence number in its store, from 1.
    pub fn new(run: u64, ticket: Ticket) -> Result<Self, AttemptKeyError> {
        let place = |what, value: u64, most: u64| {
            if value <= most { Ok(value) } else { Err(AttemptKeyError { what, value, most }) }
        };
        let run = place("run", run, Self::MAX_RUN)?;
        let row = place("row", ticket.row, Self::MAX_ROW)?;
        let sample = place("sample", u64::from(ticket.sample), u64::from(Self::MAX_SAMPLE))?;
        let attempt = place("attempt", u64::from(ticket.attempt), u64::from(Self::MAX_ATTEMPT))?;
        Ok(Self(((run << 49) | (row << 19) | (sample << 12) | attempt).cast_signed()))
    }

    /// The key as the store keeps it.
    pub fn as_i64(self) -> i64 {
        self.0
    }

    /// A key read back from the store.
    pub fn from_i64(value: i64) -> Self {
        Self(value)
    }

    /// The run's sequence number.
    pub fn run(self) -> u64 {
        self.0.cast_unsigned() >> 49
    }

    /// Row, sample and attempt.
    pub fn ticket(self) -> Ticket {
        let bits = self.0.cast_unsigned();
        let low = |shift: u32, width: u32| (bits >> shift) & ((1 << width) - 1);
        Ticket {
            row: low(19, 30),
            sample: u16::try_from(low(12, 7)).unwrap_or(0),
            attempt: u32::try_from(low(0, 12)).unwrap_or(0),
        }
    }

    /// The smallest and the largest key of rows `first..=last` of a run.
    pub fn rows(run: u64, first: u64, last: u64) -> (Self, Self) {
        let low = (run << 49) | (first.min(Self::MAX_ROW) << 19);
        let high = (run << 49) | (last.min(Self::MAX_ROW) << 19) | ((1 << 19) - 1);
        (Self(low.cast_signed()), Self(high.cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_pack_and_sort() {
        let ticket = Ticket { row: 7, sample: 3, attempt: 2 };
        let key = AttemptKey::new(5, ticket).unwrap();
        assert_eq!((key.run(), key.ticket()), (5, ticket));
        let (low, high) = AttemptKey::rows(5, 7, 7);
        assert!(low < key && key < high);
        let next = AttemptKey::new(5, Ticket { row: 8, sample: 1, attempt: 1 }).unwrap();
        assert!(high < next);
        let most = Ticket { row: AttemptKey::MAX_ROW, sample: 127, attempt: 4095 };
        assert_eq!(AttemptKey::new(AttemptKey::MAX_RUN, most).unwrap().ticket(), most);
        assert!(AttemptKey::new(1 << 14, ticket).is_err());
    }

    #[test]
    fn run_ids_sort_by_time() {
        let (old, new) = (RunId::new(WallTime(1_000)), RunId::new(WallTime(2_000)));
        assert!(old.to_string() < new.to_string());
        assert_eq!(old.to_string().parse::<RunId>().unwrap(), old);
    }
}
