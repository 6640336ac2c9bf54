//! Requests of a throttled key, spread over the round trip.

use std::time::Duration;

use crate::base::Moment;

/// Keeps the requests of a key apart once its server has throttled it, as pacing does for the packets of a window
/// (Aggarwal, Savage and Anderson, 2000). All slots are free when a server's wait ends, and a burst that fills them is
/// refused by a token bucket that bears as many requests when they come one by one. The gap is a part of the round trip
/// divided by the limit, so that it is the limit, and not the gap, that bounds a steady flow.
#[derive(Debug, Clone, Default)]
pub struct Smoother {
    throttled: bool,
    /// How long answers take, of late.
    round_trip: Option<Duration>,
    next: Moment,
}

impl Smoother {
    /// The part of the round trip over which the requests of a full limit are spread.
    const SPREAD: f64 = 0.75;
    /// The weight of the newest answer in the round trip.
    const WEIGHT: f64 = 0.125;
    /// Requests that are late by so much are made up for at once: clocks and timers are coarser than short gaps.
    const SLACK: Duration = Duration::from_millis(5);

    /// An answer came after so long.
    pub fn on_answer(&mut self, took: Duration) {
        self.round_trip = Some(
            self.round_trip
                .map_or(took, |known| known.mul_f64(1.0 - Self::WEIGHT) + took.mul_f64(Self::WEIGHT)),
        );
    }

    /// The server throttled a request.
    pub fn on_throttled(&mut self) {
        self.throttled = true;
    }

    /// A request goes, under this limit of requests in flight.
    pub fn on_send(&mut self, now: Moment, limit: u32) {
        if let Some(round_trip) = self.round_trip.filter(|_| self.throttled) {
            let due = Moment::from_origin(now.offset().saturating_sub(Self::SLACK)).max(self.next);
            self.next = due.after(round_trip.mul_f64(Self::SPREAD / f64::from(limit.max(1))));
        }
    }

    /// When the next request may go; nothing where none need be kept apart.
    pub fn opens_at(&self) -> Option<Moment> {
        self.throttled.then_some(self.next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(millis))
    }

    #[test]
    fn nothing_is_kept_apart_before_a_server_throttles() {
        let mut smoother = Smoother::default();
        smoother.on_answer(Duration::from_secs(1));
        smoother.on_send(at(0), 1);
        assert_eq!(smoother.opens_at(), None);
    }

    #[test]
    fn a_full_limit_takes_a_part_of_the_round_trip() {
        let mut smoother = Smoother::default();
        smoother.on_answer(Duration::from_secs(1));
        smoother.on_throttled();
        let mut now = at(1_000);
        for _ in 0..10 {
            now = smoother.opens_at().unwrap().max(now);
            smoother.on_send(now, 10);
        }
        let took = now.since(at(1_000));
        assert!((600..=700).contains(&took.as_millis()), "{took:?}");
    }

    #[test]
    fn what_a_coarse_timer_has_missed_is_made_up_for() {
        let mut smoother = Smoother::default();
        smoother.on_answer(Duration::from_millis(100));
        smoother.on_throttled();
        let mut sent = 0;
        for millis in 0..1_000 {
            while smoother.opens_at().unwrap() <= at(millis) {
                smoother.on_send(at(millis), 300);
                sent += 1;
            }
        }
        assert!(sent > 3_900, "{sent} of 4,000 in a second");
    }
}
