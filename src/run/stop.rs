//! What stops a run, from outside and from inside.

use tokio::sync::mpsc;

use crate::base::{Clock, WallTime};
use crate::model::{Reason, Settings};
use crate::policy::{Ceiling, Claim, Halt, Signal, StopCause};

/// A request to stop, from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopSignal {
    /// The first signal: no new rows, requests in flight get their grace.
    Gentle(Signal),
    /// A second one: out within a second.
    Now(Signal),
    /// Standard output was closed by its reader.
    ClosedOutput,
    /// The output cannot be written any more, and why.
    Output(String),
}

/// Where stop requests are sent.
pub type StopSender = mpsc::Sender<StopSignal>;
/// Where the driver receives them.
pub type Stops = mpsc::Receiver<StopSignal>;

/// A channel for stop requests.
pub fn stops() -> (StopSender, Stops) {
    mpsc::channel(8)
}

/// Why a row that is not finished was skipped.
pub(super) fn skip_reason(cause: Option<&StopCause>) -> Reason {
    match cause {
        Some(StopCause::Signal(_)) => Reason::Interrupted,
        Some(StopCause::Budget | StopCause::Calls) => Reason::Budget,
        Some(StopCause::Deadline) => Reason::Deadline,
        Some(StopCause::Unable(_) | StopCause::Usage(_) | StopCause::ClosedOutput) | None => Reason::Stopped,
    }
}

/// A cause in words.
pub(super) fn words(cause: &StopCause) -> String {
    match cause {
        StopCause::Deadline => "the deadline has come".to_owned(),
        StopCause::Calls => "max_calls is reached".to_owned(),
        StopCause::Budget => "max_cost is reached".to_owned(),
        StopCause::Usage(text) | StopCause::Unable(text) => text.clone(),
        StopCause::ClosedOutput => "standard output was closed".to_owned(),
        StopCause::Signal(signal) => format!("{} has come, a second one leaves at once", signal.name()),
    }
}

/// What a ceiling has no room for.
pub(super) fn needed_in_words(which: Ceiling, needed: Claim, left: Claim) -> String {
    match which {
        Ceiling::Cost => format!("the next row may cost ${}, and ${} is left", needed.money, left.money),
        Ceiling::Calls => {
            format!("the next row needs {} requests, and {} are left", needed.calls, left.calls)
        }
    }
}

/// The word under which an execution's end is stored: `finished`, or why rows were skipped.
pub(super) fn ending_word(cause: Option<&StopCause>) -> &'static str {
    if cause.is_none() { "finished" } else { skip_reason(cause).as_str() }
}

/// The scheduler's halt in words, with what to do next.
pub(super) fn cause_of_halt(
    halt: &Halt,
    settings: &Settings,
    clock: &dyn Clock,
    last_fault: &str,
) -> Option<StopCause> {
    let model = &settings.call.model;
    let endpoint = host_of(&settings.call.endpoint);
    let because = |message: &str| match message.trim_end_matches('.') {
        "" => String::new(),
        words => format!(": {words}"),
    };
    let text = match halt {
        Halt::Requested => return None,
        Halt::Deadline => return Some(StopCause::Deadline),
        Halt::Ceiling { which: Ceiling::Cost, .. } => return Some(StopCause::Budget),
        Halt::Ceiling { which: Ceiling::Calls, .. } => return Some(StopCause::Calls),
        Halt::Overbilled => format!(
            "{endpoint} has billed more for a request than it can cost by the price known for `{model}`: check the price with --price"
        ),
        Halt::Throttled => {
            "throttled without an answer from any key for throttle_patience: run again later, or with fewer requests at once".to_owned()
        }
        Halt::Outage { message } => format!(
            "the service at {endpoint} has been failing for outage_patience{}: run again when it works",
            because(message)
        ),
        Halt::KeysParked { until } => {
            let wait = until.since(clock.now());
            let at = wall_text(clock.wall().after(wait));
            format!("every key must wait beyond max_wait: the first may be used again at {at}; run again then")
        }
        Halt::Unreachable { message } => {
            format!("nothing at {endpoint} has answered{}", because(message))
        }
        Halt::SameRejection { message, rows } => format!(
            "the first {rows} rows were all rejected in the same way{}; correct the request, then run again with --retry final",
            because(message)
        ),
        Halt::UnknownModel { message } => {
            format!("the model `{model}` is not known at {endpoint}{}; check --model and --base-url", because(message))
        }
        Halt::KeysOut => {
            format!("no key is left that {endpoint} accepts{}; mend the keys and run again", because(last_fault))
        }
    };
    Some(StopCause::Unable(text))
}

fn wall_text(at: WallTime) -> String {
    at.to_rfc3339()
}

/// Host and port of an endpoint, for messages.
pub(super) fn host_of(endpoint: &str) -> &str {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}
