//! How long replies take, in bounded memory.

use std::time::Duration;

/// A histogram of latencies with log-linear buckets: exact below 64 µs, then 64 buckets an octave, so that a
/// quantile is off by at most 0.8 %. It takes at most 16 KB, whatever it counts.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    /// Counts by bucket, as far as the longest latency seen needs it.
    buckets: Vec<u64>,
    count: u64,
    shortest: u64,
    longest: u64,
}

impl Latencies {
    const STEPS: u64 = 64;
    /// About 19 hours in microseconds; longer latencies count as this.
    const MOST: u64 = (1 << 36) - 1;

    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a latency.
    pub fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).min(Self::MOST);
        let bucket = bucket_of(micros);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.shortest = if self.count == 0 { micros } else { self.shortest.min(micros) };
        self.longest = self.longest.max(micros);
        self.count += 1;
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The median; `None` without any latency.
    pub fn p50(&self) -> Option<Duration> {
        self.percentile(50)
    }

    /// The latency that 95 % do not exceed; `None` without any latency.
    pub fn p95(&self) -> Option<Duration> {
        self.percentile(95)
    }

    /// The nearest-rank percentile, `percent` in 1..=100.
    fn percentile(&self, percent: u64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        let rank = u128::from(self.count) * u128::from(percent);
        let rank = rank.div_ceil(100).max(1);
        let mut seen = 0_u128;
        let bucket = self.buckets.iter().position(|&count| {
            seen += u128::from(count);
            seen >= rank
        })?;
        Some(Duration::from_micros(middle_of(bucket).clamp(self.shortest, self.longest)))
    }
}

fn bucket_of(micros: u64) -> usize {
    let octave = u64::from(micros.max(1).ilog2()).saturating_sub(6);
    // The value shifted by its octave lies in 64..128, or below 64 in the first octave.
    let bucket = octave * Latencies::STEPS + (micros >> octave);
    usize::try_from(bucket).unwrap_or(usize::MAX)
}

fn middle_of(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    let octave = (bucket / Latencies::STEPS).saturating_sub(1);
    let low = (bucket - octave * Latencies::STEPS) << octave;
    low + ((1_u64 << octave) - 1) / 2
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_unknown_and_one_value_is_exact() {
        let mut latencies = Latencies::new();
        assert_eq!((latencies.p50(), latencies.p95()), (None, None));
        latencies.record(Duration::from_millis(812));
        assert_eq!(latencies.p50(), Some(Duration::from_millis(812)));
        assert_eq!(latencies.p95(), Some(Duration::from_millis(812)));
        assert_eq!(latencies.count(), 1);
    }

    #[test]
    fn memory_stays_small_at_the_extremes() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::MAX);
        latencies.record(Duration::ZERO);
        assert_eq!(latencies.p50(), Some(Duration::ZERO));
        assert!(latencies.buckets.len() * 8 <= 16_384, "{}", latencies.buckets.len());
    }

    proptest! {
        #[test]
        fn percentiles_are_within_two_per_cent(
            mut micros in proptest::collection::vec(0_u64..20_000_000_000, 1..400),
        ) {
            let mut latencies = Latencies::new();
            for &value in &micros {
                latencies.record(Duration::from_micros(value));
            }
            micros.sort_unstable();
            for (percent, found) in [(50, latencies.p50()), (95, latencies.p95())] {
                let exact = micros[(micros.len() * percent).div_ceil(100) - 1];
                let found = u64::try_from(found.unwrap().as_micros()).unwrap();
                prop_assert!(found.abs_diff(exact) * 50 <= exact, "p{percent}: {found} for {exact}");
            }
        }

        #[test]
        fn buckets_grow_with_values(low in 0_u64..1 << 36, step in 0_u64..1 << 20) {
            prop_assert!(bucket_of(low) <= bucket_of(low + step));
            prop_assert_eq!(bucket_of(middle_of(bucket_of(low))), bucket_of(low));
        }
    }
}
