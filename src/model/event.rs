//! What happens during a run, as facts.

use std::time::Duration;

use crate::base::{Moment, Money, Ticket};
use crate::model::{Ending, KeyFault, Reason, Status, Usage};

/// One fact, in the order in which it became true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the stream, from 1, without gaps.
    pub seq: u64,
    /// When, on the run's clock.
    pub at: Moment,
    /// What.
    pub kind: EventKind,
}

/// The kinds of fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventKind {
    /// The run has rows that ended in earlier executions: so many are passed over.
    RowsPassed {
        /// How many.
        count: u64,
    },
    /// A request has ended.
    AttemptFinished(AttemptFact),
    /// A request has failed in a way that this execution has not met before.
    Failed {
        /// Row number.
        row: u64,
        /// What went wrong, as it stands in the output.
        message: String,
        /// The whole reply, at most 65,536 bytes of it; empty where there was none.
        text: String,
    },
    /// A sample takes a stored answer; no request is made for it.
    SampleReplayed {
        /// Row number.
        row: u64,
        /// Sample number.
        sample: u16,
    },
    /// A row has its final state for this execution and is on disk.
    RowFinished {
        /// Row number.
        row: u64,
        /// Its status.
        status: Status,
        /// Why.
        reason: Reason,
    },
    /// A key waits because the server said so.
    KeyWaits {
        /// Label of the key.
        key: String,
        /// How long from now.
        wait: Duration,
    },
    /// A key that had worked failed; it rests, and is tried once more.
    KeyCools {
        /// Label of the key.
        key: String,
        /// The server's words.
        message: String,
    },
    /// A key is used no more.
    KeyOut {
        /// Label of the key.
        key: String,
        /// Why.
        fault: KeyFault,
        /// The server's words.
        message: String,
    },
    /// Nearly everything fails: the run pauses and probes.
    OutageBegins {
        /// What failed last.
        message: String,
    },
    /// The service answers again.
    OutageEnds,
    /// A refusal taught something about the endpoint.
    Learned {
        /// What is done differently from now on, as a sentence.
        message: String,
    },
    /// No new work begins; requests in flight may still end.
    Stopping {
        /// Why, fit for a person.
        message: String,
        /// Requests in flight.
        in_flight: u32,
    },
}

/// What is counted of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttemptFact {
    /// Which request.
    pub ticket: Ticket,
    /// What it meant for its sample.
    pub ending: Ending,
    /// From sending to its end.
    pub took: Duration,
    /// Its tokens, where they are known.
    pub usage: Option<Usage>,
    /// Whether the tokens are our estimate.
    pub estimated: bool,
    /// Its cost, where it is known.
    pub cost: Option<Money>,
    /// Whether a complete reply came.
    pub replied: bool,
    /// Whether it was a 429, of any kind.
    pub throttled: bool,
    /// What it is among the requests of its sample.
    pub turn: Turn,
}

/// What a request is among those of its sample, as they are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The first try, or one that was throttled, which is none.
    First,
    /// Another try of the same.
    Retry,
    /// It asks again after an invalid answer, carrying it.
    Repair,
}

impl Turn {
    /// What a request is that was throttled or not, that repairs or not, and whose sample was tried before or not.
    pub fn of(throttled: bool, repairs: bool, tried: bool) -> Self {
        match (throttled, repairs, tried) {
            (false, true, _) => Self::Repair,
            (false, false, true) => Self::Retry,
            _ => Self::First,
        }
    }
}
