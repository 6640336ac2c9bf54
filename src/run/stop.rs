//! What stops a run, from outside and from inside.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::base::{Clock, Moment, WallTime};
use crate::model::{Reason, Settings};
use crate::policy::{Ceiling, Claim, Halt, Signal, StopCause};
use crate::run::error::RunError;

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

/// How long an output may still take after a first signal that comes while it is made.
const LATE_GRACE: Duration = Duration::from_millis(300);
/// After how many rows of the output signals are looked for.
const ROWS_A_LOOK: u32 = 64;

/// Listens for a first signal while the output is made, when nothing is asked any more.
#[derive(Debug)]
pub(super) struct LateStop<'a> {
    stops: &'a mut Stops,
    clock: &'a dyn Clock,
    signal: Option<(Signal, Moment)>,
    rows: u32,
}

impl<'a> LateStop<'a> {
    pub(super) fn new(stops: &'a mut Stops, clock: &'a dyn Clock) -> Self {
        Self { stops, clock, signal: None, rows: 0 }
    }

    /// The signal that has come.
    pub(super) fn signal(&self) -> Option<Signal> {
        self.signal.map(|(signal, _)| signal)
    }

    /// To be called before each row of the output.
    ///
    /// Errors: [`RunError::Interrupted`], once a signal has come and the time is over that a small output may take.
    pub(super) fn check(&mut self) -> Result<(), RunError> {
        self.rows = (self.rows + 1) % ROWS_A_LOOK;
        if self.rows == 1 { self.look() } else { Ok(()) }
    }

    /// Now, by the run's clock.
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// As [`LateStop::check`], with a look at the signals each time.
    pub(super) fn look(&mut self) -> Result<(), RunError> {
        while let Ok(stop) = self.stops.try_recv() {
            match (stop, self.signal) {
                (StopSignal::Gentle(signal), None) => {
                    self.signal = Some((signal, self.clock.now().after(LATE_GRACE)));
                }
                // It was told twice.
                (StopSignal::Now(signal), Some(_)) => return Err(RunError::Interrupted(signal)),
                // A second one of which the asking has taken the first: who listens for signals ends the process.
                _ => {}
            }
        }
        match self.signal {
            Some((signal, until)) if until <= self.clock.now() => Err(RunError::Interrupted(signal)),
            _ => Ok(()),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ManualClock;

    /// Asks before so many rows of an output, each of which takes a millisecond.
    fn rows(late: &mut LateStop<'_>, clock: &ManualClock, count: u32) -> Result<(), RunError> {
        (0..count).try_for_each(|_| {
            clock.advance(Duration::from_millis(1));
            late.check()
        })
    }

    #[test]
    fn a_signal_while_the_output_is_made_lets_it_end_if_that_is_soon() {
        let clock = ManualClock::default();
        let (sender, mut stops) = stops();
        let mut late = LateStop::new(&mut stops, &clock);
        rows(&mut late, &clock, 1_000).unwrap();
        sender.try_send(StopSignal::Gentle(Signal::Terminate)).unwrap();
        rows(&mut late, &clock, 300).unwrap();
        assert_eq!(late.signal(), Some(Signal::Terminate));
        let given_up = rows(&mut late, &clock, 130).unwrap_err();
        assert!(matches!(given_up, RunError::Interrupted(Signal::Terminate)), "{given_up}");
        assert!(given_up.to_string().starts_with("SIGTERM came while"), "{given_up}");
    }

    #[test]
    fn a_second_signal_gives_the_output_up_at_once_and_one_that_is_old_does_not() {
        let clock = ManualClock::default();
        let (sender, mut stops) = stops();
        let mut late = LateStop::new(&mut stops, &clock);
        // The asking has taken the first of these: the partial output of a stopped run is made as ever.
        sender.try_send(StopSignal::Now(Signal::Interrupt)).unwrap();
        rows(&mut late, &clock, 2_000).unwrap();
        assert_eq!(late.signal(), None);
        sender.try_send(StopSignal::Gentle(Signal::Interrupt)).unwrap();
        sender.try_send(StopSignal::Now(Signal::Hangup)).unwrap();
        assert!(matches!(rows(&mut late, &clock, ROWS_A_LOOK), Err(RunError::Interrupted(Signal::Hangup))));
    }
}
