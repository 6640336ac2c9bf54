//! The one file that reads a clock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// A point on the run's monotonic clock: nanoseconds since an arbitrary origin.
///
/// Deciders receive it as an argument and never ask for it, so that whole runs are simulated in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(u64);

impl Moment {
    /// The origin of the clock.
    pub const ORIGIN: Self = Self(0);

    /// The moment that lies `offset` after the origin. Saturates after 584 years.
    pub fn from_origin(offset: Duration) -> Self {
        Self(nanos(offset))
    }

    /// Time since the origin.
    pub fn offset(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// The moment `wait` later. Saturates.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }

    /// Time from `earlier` to this moment, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A point in civil time: milliseconds since the Unix epoch. For records, for waits that outlive the process and
/// for reading dates that servers send; never for measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct WallTime(pub i64);

impl WallTime {
    /// The time `wait` later. Saturates.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Time from `earlier` to this one, zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with milliseconds, as in `2026-11-29T12:00:30.250Z`; the epoch if it is out of range.
    pub fn to_rfc3339(self) -> String {
        let stamp = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        format!("{stamp:.3}")
    }
}

/// What tells the time. The program has one [`SystemClock`]; tests have a [`ManualClock`].
pub trait Clock: std::fmt::Debug + Send + Sync {
    /// The monotonic time.
    fn now(&self) -> Moment;
    /// The civil time.
    fn wall(&self) -> WallTime;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    origin: std::time::Instant,
}

impl SystemClock {
    /// A clock whose origin is now.
    #[expect(clippy::disallowed_methods, reason = "this file is the one that may read the clock")]
    pub fn new() -> Self {
        Self { origin: std::time::Instant::now() }
    }

    /// The instant of the operating system that `moment` stands for, to hand to a timer.
    pub fn instant(&self, moment: Moment) -> std::time::Instant {
        self.origin + moment.offset()
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this file is the one that may read the clock")]
    fn now(&self) -> Moment {
        Moment::from_origin(std::time::Instant::now().duration_since(self.origin))
    }

    #[expect(clippy::disallowed_methods, reason = "this file is the one that may read the clock")]
    fn wall(&self) -> WallTime {
        WallTime(jiff::Timestamp::now().as_millisecond())
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanos: AtomicU64,
    wall_start: AtomicI64,
}

impl ManualClock {
    /// A clock at its origin, with `wall` as the civil time there.
    pub fn starting_at(wall: WallTime) -> Self {
        Self { nanos: AtomicU64::new(0), wall_start: AtomicI64::new(wall.0) }
    }

    /// Moves both clocks forward.
    pub fn advance(&self, by: Duration) {
        self.nanos.fetch_add(nanos(by), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.nanos.load(Ordering::SeqCst))
    }

    fn wall(&self) -> WallTime {
        WallTime(self.wall_start.load(Ordering::SeqCst)).after(self.now().offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_order_and_saturate() {
        let later = Moment::ORIGIN.after(Duration::from_millis(5));
        assert_eq!(later.since(Moment::ORIGIN), Duration::from_millis(5));
        assert_eq!(Moment::ORIGIN.since(later), Duration::ZERO);
        assert_eq!(later.after(Duration::MAX).after(Duration::MAX), Moment(u64::MAX));
    }

    #[test]
    fn wall_time_prints_as_rfc3339() {
        assert_eq!(WallTime(1_790_000_000_250).to_rfc3339(), "2026-09-21T14:13:20.250Z");
    }
}
