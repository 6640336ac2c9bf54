//! Tells an outage of the service from failures of rows.

use std::time::Duration;

use crate::base::Moment;

/// Counts transient failures over all keys. Ten in a row without an answer between are an outage: if nothing ever
/// answered, the run cannot go on; else it pauses, and one probe goes after 1, 2, 4 … 60 seconds until one answers.
#[derive(Debug, Clone)]
pub struct Breaker {
    patience: Duration,
    in_a_row: u32,
    ever_answered: bool,
    outage: Option<Outage>,
}

#[derive(Debug, Clone)]
struct Outage {
    since: Moment,
    probe_at: Moment,
    interval: Duration,
    probing: bool,
}

/// What a transient failure means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerVerdict {
    /// Nothing beyond the row.
    GoOn,
    /// An outage has just been found: pause.
    Pause,
    /// The outage goes on.
    StillOut,
    /// Nothing has ever answered in this execution: stop.
    NeverAnswered,
}

impl Breaker {
    /// Failures in a row that make an outage.
    pub const THRESHOLD: u32 = 10;
    const FIRST_PROBE: Duration = Duration::from_secs(1);
    const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

    /// A closed breaker that waits out an outage of at most `patience`.
    pub fn new(patience: Duration) -> Self {
        Self { patience, in_a_row: 0, ever_answered: false, outage: None }
    }

    /// A reply came that shows that the service works: an answer of the model, or a rejection of the row. Ends an
    /// outage; says whether there was one.
    pub fn on_reply(&mut self, answered: bool) -> bool {
        self.in_a_row = 0;
        self.ever_answered |= answered;
        self.outage.take().is_some()
    }

    /// Whether failures have come since the last reply, so that the next few decide between rows and an outage.
    pub fn is_doubtful(&self) -> bool {
        self.in_a_row > 0
    }

    /// A request failed for a transient reason.
    pub fn on_failure(&mut self, now: Moment) -> BreakerVerdict {
        self.in_a_row = self.in_a_row.saturating_add(1);
        if let Some(outage) = &mut self.outage {
            if outage.probing {
                outage.probing = false;
                outage.interval = (outage.interval * 2).min(Self::LONGEST_INTERVAL);
                outage.probe_at = now.after(outage.interval);
            }
            return BreakerVerdict::StillOut;
        }
        if self.in_a_row < Self::THRESHOLD {
            return BreakerVerdict::GoOn;
        }
        if !self.ever_answered {
            return BreakerVerdict::NeverAnswered;
        }
        self.outage = Some(Outage {
            since: now,
            probe_at: now.after(Self::FIRST_PROBE),
            interval: Self::FIRST_PROBE,
            probing: false,
        });
        BreakerVerdict::Pause
    }

    /// Whether the run is paused.
    pub fn is_open(&self) -> bool {
        self.outage.is_some()
    }

    /// Whether a request may go: always without an outage, else one probe when its time has come.
    pub fn may_send(&self, now: Moment) -> bool {
        self.outage.as_ref().is_none_or(|outage| !outage.probing && outage.probe_at <= now)
    }

    /// A request goes; during an outage it is the probe.
    pub fn on_send(&mut self) {
        if let Some(outage) = &mut self.outage {
            outage.probing = true;
        }
    }

    /// The probe ended without telling whether the service works (throttled, or its key was at fault): the next
    /// request may probe at once.
    pub fn on_inconclusive(&mut self) {
        if let Some(outage) = &mut self.outage {
            outage.probing = false;
        }
    }

    /// Whether patience with the outage has ended.
    pub fn is_exhausted(&self, now: Moment) -> bool {
        self.outage.as_ref().is_some_and(|outage| now.since(outage.since) >= self.patience)
    }

    /// When to look again: at the next probe, or when patience ends.
    pub fn wakes_at(&self) -> Option<Moment> {
        self.outage.as_ref().map(|outage| {
            let end = outage.since.after(self.patience);
            if outage.probing { end } else { outage.probe_at.min(end) }
        })
    }

    /// Whether the model has answered anything in this execution.
    pub fn has_answered(&self) -> bool {
        self.ever_answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::from_origin(Duration::from_secs(seconds))
    }

    #[test]
    fn ten_failures_before_any_answer_stop_the_run() {
        let mut breaker = Breaker::new(Duration::from_secs(60));
        for _ in 1..Breaker::THRESHOLD {
            assert_eq!(breaker.on_failure(at(0)), BreakerVerdict::GoOn);
        }
        assert_eq!(breaker.on_failure(at(0)), BreakerVerdict::NeverAnswered);
    }

    #[test]
    fn an_outage_is_probed_on_a_growing_interval_until_one_answers() {
        let mut breaker = Breaker::new(Duration::from_secs(600));
        breaker.on_reply(true);
        for _ in 1..Breaker::THRESHOLD {
            breaker.on_failure(at(0));
        }
        assert_eq!(breaker.on_failure(at(0)), BreakerVerdict::Pause);
        let mut now = at(0);
        for gap in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert!(!breaker.may_send(now));
            let next = breaker.wakes_at().unwrap();
            assert_eq!(next.since(now), Duration::from_secs(gap));
            now = next;
            assert!(breaker.may_send(now));
            breaker.on_send();
            assert!(!breaker.may_send(now), "one probe at a time");
            assert_eq!(breaker.on_failure(now), BreakerVerdict::StillOut);
        }
        assert!(breaker.on_reply(true));
        assert!(breaker.may_send(now) && !breaker.is_open());
    }

    #[test]
    fn patience_ends() {
        let mut breaker = Breaker::new(Duration::from_secs(5));
        breaker.on_reply(true);
        for _ in 0..Breaker::THRESHOLD {
            breaker.on_failure(at(0));
        }
        assert!(!breaker.is_exhausted(at(4)));
        assert!(breaker.is_exhausted(at(5)));
    }
}
