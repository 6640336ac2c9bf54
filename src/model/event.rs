//! What happens during a run, as facts.

use std::time::Duration;

use crate::base::{Moment, Ticket, WallTime};
use crate::model::{Ending, KeyFault, Reason, Status};

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
    /// A request is handed to the transport with the key of this index.
    AttemptStarted {
        /// Which request.
        ticket: Ticket,
        /// Index of the key.
        key: usize,
    },
    /// A request has ended.
    AttemptFinished {
        /// Which request.
        ticket: Ticket,
        /// What it meant for its sample.
        ending: Ending,
        /// From sending to its end.
        took: Duration,
    },
    /// A row has its final state for this execution and is on disk.
    RowFinished {
        /// Which row.
        row: u64,
        /// Its status.
        status: Status,
        /// Why.
        reason: Reason,
    },
    /// A key waits because the server said so.
    KeyWaits {
        /// Index of the key.
        key: usize,
        /// Until when.
        until: Moment,
        /// The same as civil time.
        until_wall: WallTime,
    },
    /// A key is used no more.
    KeyOut {
        /// Index of the key.
        key: usize,
        /// Why.
        fault: KeyFault,
        /// The server's words.
        message: String,
    },
    /// A refusal taught something about the endpoint; fit for a person.
    Learned {
        /// What is done differently from now on.
        message: String,
    },
    /// No new work begins, for this reason, as `Stop` of the scheduler names it.
    Stopping {
        /// Why, fit for a person.
        message: String,
    },
}
