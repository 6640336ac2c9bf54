//! Adaptive concurrency: additive increase, multiplicative decrease, with a memory of what was safe.

/// What a reply says about the pressure that its key is under.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pressure {
    /// The server throttled the request, or said that it is overloaded: 429, 529.
    pub throttled: bool,
    /// The server failed in a way that may be overload: 503, or no first byte in time. A few of them are noise.
    pub strained: bool,
    /// The smallest share of a rate limit that remains, by the reply's headers.
    pub remaining: Option<f64>,
}

/// The concurrency limit of a key.
///
/// It starts at a quarter of the cap and doubles each round trip until the cap, or until the server throttles. From
/// then on it searches between the highest limit that was safe and the lowest that was not, as BIC does (Xu, Harfoush
/// and Rhee, 2004), and when the two are neighbours it stays at the safe one and tries the other after twenty clean
/// round trips. A throttled reply at a limit that had been safe halves the limit. One round trip cuts it once,
/// however many of its requests are throttled: those were all sent under the same limit.
#[derive(Debug, Clone)]
pub struct Aimd {
    cap: f64,
    limit: f64,
    /// The highest limit under which a whole round trip was clean.
    safe: Option<f64>,
    /// The lowest limit under which the server throttled.
    unsafe_at: Option<f64>,
    /// Requests are numbered; those sent before the last change of the limit say nothing about it.
    sent: u64,
    changed_at: u64,
    /// Since the last change: clean replies, and strained ones.
    clean: u32,
    strained: u32,
    /// Whether as many requests were in flight as the limit allows, since the last change.
    reached: bool,
}

impl Aimd {
    /// Below this share of a rate limit the concurrency is eased down: a colleague may be using the same key.
    const LOW_WATER: f64 = 0.15;
    /// Clean round trips at a safe limit after which the next higher one is tried.
    const PATIENCE: f64 = 20.0;

    /// A limiter that never exceeds `cap`, which is at least 1.
    pub fn new(cap: u32) -> Self {
        let cap = f64::from(cap.max(1));
        Self {
            cap,
            limit: (cap / 4.0).ceil().max(1.0),
            safe: None,
            unsafe_at: None,
            sent: 0,
            changed_at: 0,
            clean: 0,
            strained: 0,
            reached: false,
        }
    }

    /// Requests that may be in flight now: from 1 to the cap.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the limit lies between 1 and a cap that was a u32"
    )]
    pub fn limit(&self) -> u32 {
        self.limit.clamp(1.0, self.cap) as u32
    }

    /// A request goes, the `in_flight`-th at once. Returns its number, for [`Aimd::on_reply`].
    pub fn on_send(&mut self, in_flight: u32) -> u64 {
        self.sent += 1;
        self.reached |= in_flight >= self.limit();
        self.sent
    }

    /// A reply came to the request with this number.
    pub fn on_reply(&mut self, number: u64, pressure: Pressure) {
        if number <= self.changed_at {
            return;
        }
        if pressure.throttled {
            self.cut();
            return;
        }
        if pressure.strained {
            self.strained += 1;
            // A single failure is noise; a tenth of a round trip is overload.
            if self.strained >= 2 && f64::from(self.strained) > 0.1 * f64::from(self.clean + self.strained) {
                self.cut();
            }
            return;
        }
        if pressure.remaining.is_some_and(|share| share < Self::LOW_WATER) {
            self.ease();
            return;
        }
        self.clean += 1;
        self.grow();
    }

    /// The server throttled under the current limit.
    fn cut(&mut self) {
        self.unsafe_at = Some(self.limit);
        let next = if let Some(safe) = self.safe.filter(|safe| *safe < self.limit) {
            safe
        } else {
            // What was safe is so no longer, or nothing is known yet.
            self.safe = None;
            self.limit / 2.0
        };
        self.change(next);
    }

    /// Little of the rate limit remains: a tenth less, once a round trip.
    fn ease(&mut self) {
        self.clean += 1;
        if f64::from(self.clean) >= self.limit {
            self.change(self.limit * 0.9);
        }
    }

    fn grow(&mut self) {
        if !self.reached {
            return;
        }
        let round = f64::from(self.clean) >= self.limit.floor();
        match self.unsafe_at {
            // Nothing is known to be too much: each clean reply makes room for one more, so that a round trip doubles
            // the limit.
            None => {
                if self.limit < self.cap {
                    self.limit = (self.limit + 1.0).min(self.cap);
                }
                if round {
                    self.safe = Some(self.limit);
                }
            }
            Some(bad) if round => {
                self.safe = Some(self.safe.map_or(self.limit, |safe| safe.max(self.limit)));
                let gap = bad.floor() - self.limit.floor();
                if gap > 1.0 {
                    self.change(self.limit + (gap / 2.0).floor().max(1.0));
                } else if f64::from(self.clean) >= Self::PATIENCE * self.limit.floor() {
                    let next = self.limit + 1.0;
                    if self.limit >= bad {
                        // What had been too much is so no longer.
                        self.unsafe_at = None;
                    }
                    self.change(next);
                } else if self.limit >= bad {
                    self.unsafe_at = None;
                    self.change(self.limit);
                }
            }
            Some(_) => {}
        }
    }

    fn change(&mut self, limit: f64) {
        self.limit = limit.clamp(1.0, self.cap);
        self.changed_at = self.sent;
        self.clean = 0;
        self.strained = 0;
        self.reached = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Pressure = Pressure { throttled: false, strained: false, remaining: None };
    const THROTTLED: Pressure = Pressure { throttled: true, strained: false, remaining: None };

    /// Round trips against a server that bears `bears` requests at once: returns the limits and the throttled share.
    fn rounds(aimd: &mut Aimd, bears: u32, count: usize) -> (Vec<u32>, f64) {
        let (mut limits, mut throttled, mut all) = (Vec::new(), 0, 0);
        for _ in 0..count {
            let numbers: Vec<u64> = (1..=aimd.limit()).map(|n| aimd.on_send(n)).collect();
            for (number, place) in numbers.into_iter().zip(1..) {
                all += 1;
                throttled += u32::from(place > bears);
                aimd.on_reply(number, if place > bears { THROTTLED } else { CLEAN });
            }
            limits.push(aimd.limit());
        }
        (limits, f64::from(throttled) / f64::from(all))
    }

    #[test]
    fn starts_low_and_doubles_to_the_cap() {
        let mut aimd = Aimd::new(100);
        assert_eq!(aimd.limit(), 25);
        let (limits, _) = rounds(&mut aimd, 1_000, 4);
        assert_eq!(limits, [50, 100, 100, 100]);
    }

    #[test]
    fn finds_what_a_server_bears_and_stays_there() {
        for bears in [1, 2, 5, 17, 63] {
            let mut aimd = Aimd::new(64);
            rounds(&mut aimd, bears, 40);
            let (limits, share) = rounds(&mut aimd, bears, 400);
            assert!(limits.iter().all(|limit| limit.abs_diff(bears) <= 1), "{bears}: {limits:?}");
            // One that bears a single request is tried with two every twenty round trips, which is a twentieth.
            assert!(share < if bears == 1 { 0.05 } else { 0.03 }, "{bears}: {share}");
        }
    }

    #[test]
    fn follows_a_server_down_and_up() {
        let mut aimd = Aimd::new(200);
        rounds(&mut aimd, 100, 30);
        let (limits, _) = rounds(&mut aimd, 10, 12);
        assert!(limits.last().is_some_and(|limit| (9..=11).contains(limit)), "{limits:?}");
        let (limits, _) = rounds(&mut aimd, 100, 30);
        assert!(limits.iter().max().is_some_and(|limit| *limit >= 95), "{limits:?}");
    }

    #[test]
    fn growth_needs_demand_and_noise_is_no_overload() {
        let mut aimd = Aimd::new(64);
        for _ in 0..1_000 {
            let number = aimd.on_send(1);
            aimd.on_reply(number, CLEAN);
        }
        assert_eq!(aimd.limit(), 16, "a limit that was never reached has proved nothing");
        let mut aimd = Aimd::new(64);
        for n in 0..4_000 {
            let number = aimd.on_send(aimd.limit());
            aimd.on_reply(number, Pressure { strained: n % 40 == 39, ..CLEAN });
        }
        assert_eq!(aimd.limit(), 64);
    }

    #[test]
    fn little_headroom_eases_it_down() {
        let mut aimd = Aimd::new(64);
        rounds(&mut aimd, 1_000, 4);
        for _ in 0..20 {
            for n in 1..=aimd.limit() {
                let number = aimd.on_send(n);
                aimd.on_reply(number, Pressure { remaining: Some(0.1), ..CLEAN });
            }
        }
        assert!(aimd.limit() < 16, "{}", aimd.limit());
    }

    #[test]
    fn never_leaves_its_bounds() {
        let mut dice = crate::base::Dice::new(1, &[]);
        for cap in [1, 2, 3, 7, 100] {
            let mut aimd = Aimd::new(cap);
            for _ in 0..5_000 {
                let number = aimd.on_send(1 + u32::try_from(dice.below(u64::from(cap))).unwrap());
                let pressure = Pressure {
                    throttled: dice.below(5) == 0,
                    strained: dice.below(5) == 0,
                    remaining: (dice.below(3) == 0).then(|| dice.fraction()),
                };
                aimd.on_reply(number, pressure);
                assert!((1..=cap).contains(&aimd.limit()));
            }
        }
    }
}
