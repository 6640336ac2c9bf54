//! How fast rows finish.

use std::collections::VecDeque;
use std::time::Duration;

use crate::base::Moment;

/// Rows a minute over a sliding window. It keeps at most about sixty points, however often it is told.
#[derive(Debug, Clone)]
pub struct Rate {
    window: Duration,
    /// Moments with the rows that were done by then; the first is the newest one at or before the window's edge.
    points: VecDeque<(Moment, u64)>,
}

impl Rate {
    /// The window that suits a progress line.
    pub const WINDOW: Duration = Duration::from_secs(60);
    const POINTS: u32 = 60;
    /// No rate is told of a shorter time: it would jump.
    const SHORTEST: Duration = Duration::from_secs(1);

    /// A rate over `window`.
    pub fn new(window: Duration) -> Self {
        Self { window, points: VecDeque::new() }
    }

    /// At `now`, `done` rows were finished, counted from any fixed point: give the rows replayed or finished by
    /// earlier executions as well or leave them out, but always alike.
    pub fn record(&mut self, now: Moment, done: u64) {
        let spacing = self.window / Self::POINTS;
        let close = self.points.len() >= 2
            && self.points.get(self.points.len() - 2).is_some_and(|(at, _)| now.since(*at) < spacing);
        if close {
            self.points.pop_back();
        }
        self.points.push_back((now, done));
        while self.points.get(1).is_some_and(|(at, _)| now.since(*at) >= self.window) {
            self.points.pop_front();
        }
    }

    /// Rows a minute up to `now`; a stall lowers it. `None` within the first second.
    pub fn per_minute(&self, now: Moment) -> Option<f64> {
        let (start, before) = *self.points.front()?;
        let (_, done) = *self.points.back()?;
        let time = now.since(start);
        if time < Self::SHORTEST {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a rate for people; counts are far below 2^53")]
        Some(done.saturating_sub(before) as f64 * 60.0 / time.as_secs_f64())
    }

    /// The time that `left` further rows take at this rate; `None` where nothing moves.
    pub fn eta(&self, now: Moment, left: u64) -> Option<Duration> {
        let rate = self.per_minute(now).filter(|rate| *rate > 0.0)?;
        #[expect(clippy::cast_precision_loss, reason = "a rate for people; counts are far below 2^53")]
        Duration::try_from_secs_f64(left as f64 * 60.0 / rate).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn a_steady_run_has_a_steady_rate() {
        let mut rate = Rate::new(Rate::WINDOW);
        rate.record(at(0), 100);
        assert_eq!(rate.per_minute(at(500)), None);
        for second in 1..=300 {
            rate.record(at(second * 1_000), 100 + second * 2);
        }
        assert_eq!(rate.per_minute(at(300_000)), Some(120.0));
        assert_eq!(rate.eta(at(300_000), 240), Some(Duration::from_secs(120)));
        assert_eq!(rate.eta(at(300_000), 0), Some(Duration::ZERO));
    }

    #[test]
    fn a_stall_lowers_the_rate_and_leaves_the_window() {
        let mut rate = Rate::new(Duration::from_secs(10));
        rate.record(at(0), 0);
        rate.record(at(5_000), 10);
        assert_eq!(rate.per_minute(at(10_000)), Some(60.0));
        rate.record(at(20_000), 10);
        rate.record(at(40_000), 10);
        assert_eq!(rate.per_minute(at(40_000)), Some(0.0));
        assert_eq!(rate.eta(at(40_000), 5), None);
    }

    #[test]
    fn memory_is_bounded_however_often_it_is_told() {
        let mut rate = Rate::new(Rate::WINDOW);
        for step in 0..100_000 {
            rate.record(at(step * 10), step);
            assert!(rate.points.len() <= 64);
        }
        let found = rate.per_minute(at(999_990)).unwrap();
        assert!((found - 6_000.0).abs() < 60.0, "{found}");
    }

    #[test]
    fn a_clock_that_stands_still_divides_nothing() {
        let mut rate = Rate::new(Duration::ZERO);
        rate.record(at(5), 1);
        rate.record(at(5), 2);
        assert_eq!(rate.per_minute(at(5)), None);
        assert_eq!(Rate::new(Rate::WINDOW).per_minute(at(5)), None);
    }
}
