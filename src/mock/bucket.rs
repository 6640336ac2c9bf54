//! The rate limit of one key.

use std::time::Duration;

use crate::base::Moment;
use crate::mock::RateLimit;

/// A token bucket: a token comes every `per / requests`, and the bucket holds a tenth of a second's tokens, at least
/// one. So a limit of 50/s takes 5 requests at once and then one every 20 ms; limits up to 10/s take one at a time.
///
/// A refused request is told when the next token comes that no other refused request has been told of, so that ten
/// requests refused together do not all come back for the same token. Promises end where the bucket would be full:
/// a key that is held until the latest promise then finds all of the promised tokens, and nothing was lost.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Nanoseconds between two tokens.
    interval: u64,
    /// How many tokens it holds.
    size: u64,
    /// When it is full again.
    full: Moment,
    /// The moment of the latest token that was promised.
    promised: Moment,
    /// Begin of the current window of length `per`, and the requests admitted in it: what the headers tell.
    window: (Moment, u64),
    limit: RateLimit,
}

/// What a bucket says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Admission {
    /// How long to wait, in whole milliseconds, if it is refused.
    pub(super) wait: Option<Duration>,
    /// Requests left in the current window; 0 if it is refused.
    pub(super) remaining: u64,
    /// How long until the window ends, or the wait if it is refused.
    pub(super) reset: Duration,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(limit: RateLimit, now: Moment) -> Self {
        let per = u64::try_from(limit.per.as_nanos()).unwrap_or(u64::MAX);
        let interval = (per / u64::from(limit.requests.max(1))).max(1);
        let size = (100_000_000 / interval).max(1);
        Self { interval, size, full: now, promised: Moment::ORIGIN, window: (now, 0), limit }
    }

    /// Takes a token for a request that comes now, or refuses it with a wait.
    pub(super) fn take(&mut self, now: Moment) -> Admission {
        let elapsed = now.since(self.window.0);
        if elapsed >= self.limit.per {
            self.window = (now, 0);
        }
        let span = Duration::from_nanos(self.interval.saturating_mul(self.size - 1));
        let missing = self.full.since(now);
        if missing <= span {
            self.full = self.full.max(now).after(Duration::from_nanos(self.interval));
            self.window.1 += 1;
            let remaining = u64::from(self.limit.requests).saturating_sub(self.window.1);
            let reset = self.limit.per.saturating_sub(now.since(self.window.0));
            return Admission { wait: None, remaining, reset };
        }
        let next = now.after(missing.saturating_sub(span));
        let unpromised = self.promised.after(Duration::from_nanos(self.interval));
        let told = next.max(unpromised).min(self.full);
        self.promised = told;
        let wait = whole_millis(told.since(now));
        Admission { wait: Some(wait), remaining: 0, reset: wait }
    }

    /// The limit in one window.
    pub(super) fn limit(&self) -> u32 {
        self.limit.requests
    }
}

/// Rounded up to whole milliseconds, at least one.
pub(super) fn whole_millis(wait: Duration) -> Duration {
    let millis = wait.as_nanos().div_ceil(1_000_000).max(1);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIFTY: RateLimit = RateLimit { requests: 50, per: Duration::from_secs(1) };

    fn at(millis: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(millis))
    }

    fn waits(bucket: &mut Bucket, now: Moment, count: usize) -> Vec<Option<u128>> {
        (0..count).map(|_| bucket.take(now).wait.map(|wait| wait.as_millis())).collect()
    }

    #[test]
    fn a_burst_then_one_token_an_interval() {
        let mut bucket = Bucket::new(FIFTY, at(0));
        let told = waits(&mut bucket, at(0), 12);
        let refused = [20, 40, 60, 80, 100, 100, 100].map(Some);
        assert_eq!(told, [vec![None; 5], refused.to_vec()].concat());
        assert_eq!(waits(&mut bucket, at(100), 6), [vec![None; 5], vec![Some(20)]].concat());
    }

    #[test]
    fn who_comes_back_at_the_told_time_is_admitted() {
        let mut bucket = Bucket::new(RateLimit { requests: 7, per: Duration::from_secs(1) }, at(0));
        assert_eq!(bucket.take(at(0)).wait, None);
        let mut now = at(0);
        for _ in 0..100 {
            let wait = bucket.take(now).wait.unwrap();
            now = now.after(wait);
            assert_eq!(bucket.take(now).wait, None);
        }
    }

    #[test]
    fn never_more_than_the_limit_and_a_bucket_in_any_window() {
        let mut bucket = Bucket::new(FIFTY, at(0));
        let admitted: Vec<u64> =
            (0..5_000).filter(|&millis| bucket.take(at(millis)).wait.is_none()).collect();
        assert!(admitted.len() >= 250);
        for (index, &first) in admitted.iter().enumerate() {
            let inside = admitted[index..].iter().filter(|&&later| later < first + 1_000).count();
            assert!(inside <= 55, "{inside}");
        }
    }

    #[test]
    fn headers_tell_of_a_window() {
        let mut bucket = Bucket::new(FIFTY, at(0));
        assert_eq!(bucket.take(at(0)).remaining, 49);
        let later = bucket.take(at(400));
        assert_eq!((later.remaining, later.reset), (48, Duration::from_millis(600)));
        assert_eq!(bucket.take(at(1_000)).remaining, 49);
    }
}
