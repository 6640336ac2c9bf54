//! Why a request brought no answer.

use std::time::Duration;

use crate::model::Structured;

/// A failed request: what class of failure, and what the server said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The class, which decides what happens next.
    pub class: FailureClass,
    /// The server's own code for it, such as `insufficient_quota`, or [`Failure::NEVER_SENT`].
    pub code: Option<String>,
    /// The server's text without ids, at most 300 characters, or a fixed sentence of ours.
    pub message: String,
    /// How long the server asked to wait, if its hint is usable: positive and finite.
    pub wait: Option<Duration>,
}

impl Failure {
    /// The code of a failure before which nothing was sent.
    pub const NEVER_SENT: &'static str = "never_sent";

    /// Whether the request reached the network.
    pub fn was_sent(&self) -> bool {
        self.code.as_deref() != Some(Self::NEVER_SENT)
    }
}

/// The classes of failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailureClass {
    /// No connection, or it broke before the reply was whole.
    Connection,
    /// No complete reply in time. `total`: the attempt's whole time ran out, not just the connect time-out.
    Timeout {
        /// Whether it was the attempt's whole time.
        total: bool,
    },
    /// The server failed: 408, 409, 425, 5xx, 529, or a 200 that says so or is no JSON at all.
    Server,
    /// 429 of the rate kind.
    Throttled,
    /// The credential is at fault, not the row.
    Key(KeyFault),
    /// The model does not exist or is closed to us.
    UnknownModel,
    /// The prompt does not fit the context, or the request is too large.
    TooLong,
    /// The provider's policy forbids the prompt.
    Policy,
    /// The answer was not the JSON that was asked for, by the server's own check.
    InvalidAnswer,
    /// Any other rejection: 400, 403, 404, 413, 422, 3xx.
    Rejected,
    /// A rejection that says how to ask differently; the request is sent again at once in the other form.
    Teaches(Lesson),
}

/// What is wrong with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyFault {
    /// 401: not known or not valid.
    Unauthorized,
    /// 403 with a permission or region code.
    Forbidden,
    /// A quota or billing code: no money left.
    Quota,
}

/// What a rejection teaches about the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lesson {
    /// `max_tokens` must be `max_completion_tokens`, or the other way round.
    SwapLengthParameter,
    /// This parameter is not taken.
    DropParameter(String),
    /// This form of structured output is not taken.
    WeakerStructured {
        /// How many steps down from the strongest form the next one is.
        steps: u8,
        /// The form that was refused.
        refused: Structured,
        /// The form that comes next.
        next: Structured,
    },
}

impl std::fmt::Display for KeyFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Quota => "no quota left",
        })
    }
}
