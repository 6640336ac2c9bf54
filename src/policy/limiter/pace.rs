//! Requests and tokens a minute.

use std::collections::VecDeque;
use std::time::Duration;

use crate::base::Moment;

/// Keeps requests a minute and tokens a minute under limits, evenly: a full bucket at the start would send nearly
/// twice the limit in the first minute, so there is no bucket but a shortest gap between two requests, and for tokens
/// a window of the last minute besides.
#[derive(Debug, Clone)]
pub struct Pace {
    gap: Duration,
    tokens_a_minute: u64,
    next: Moment,
    /// Requests of the last minute with the tokens that they count for, oldest first, and the sum of the tokens.
    window: VecDeque<(Moment, u64, u64)>,
    sum: u64,
    serial: u64,
}

const MINUTE: Duration = Duration::from_secs(60);
/// Requests are counted where they arrive, and some travel faster than others.
const SLACK: Duration = Duration::from_millis(250);

impl Pace {
    /// A pace of at most so many requests and tokens a minute; 0 for no limit. `since`: when the last request of an
    /// earlier execution may have gone at the latest; everything is measured from there.
    pub fn new(requests: u64, tokens: u64, since: Option<Moment>) -> Self {
        let gap = if requests == 0 {
            Duration::ZERO
        } else {
            MINUTE.mul_f64(1.0 / count(requests)) + spread(requests)
        };
        let mut next = since.map_or(Moment::ORIGIN, |since| since.after(gap));
        if let Some(since) = since.filter(|_| tokens > 0) {
            // How many tokens went is not known: the minute is taken to be full.
            next = next.max(since.after(MINUTE + SLACK));
        }
        Self { gap, tokens_a_minute: tokens, next, window: VecDeque::new(), sum: 0, serial: 0 }
    }

    /// Whether there is any limit.
    pub fn is_limited(&self) -> bool {
        !self.gap.is_zero() || self.tokens_a_minute > 0
    }

    /// When a request that counts for `tokens` may go, at the earliest. A request that is larger than the whole limit
    /// may go when nothing else has gone for a minute.
    pub fn opens_at(&self, tokens: u64) -> Moment {
        if self.tokens_a_minute == 0 {
            return self.next;
        }
        let mut left = self.sum;
        let mut at = self.next;
        for &(sent, cost, _) in &self.window {
            if left == 0 || left.saturating_add(tokens) <= self.tokens_a_minute {
                break;
            }
            left -= cost;
            at = at.max(sent.after(MINUTE + SLACK));
        }
        at
    }

    /// A request goes that counts for `tokens`. Returns its number, for [`Pace::settle`].
    pub fn on_send(&mut self, now: Moment, tokens: u64) -> u64 {
        self.next = now.after(self.gap);
        self.serial += 1;
        if self.tokens_a_minute > 0 {
            while let Some(&(sent, cost, _)) =
                self.window.front().filter(|entry| entry.0.after(MINUTE + SLACK) <= now)
            {
                self.window.pop_front();
                self.sum -= cost;
                debug_assert!(sent <= now);
            }
            self.window.push_back((now, tokens, self.serial));
            self.sum += tokens;
        }
        self.serial
    }

    /// The request with this number has used so many tokens in truth.
    pub fn settle(&mut self, number: u64, tokens: u64) {
        if let Ok(at) = self.window.binary_search_by_key(&number, |entry| entry.2)
            && let Some(entry) = self.window.get_mut(at)
        {
            self.sum = self.sum - entry.1 + tokens;
            entry.1 = tokens;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits are far below 2^53")]
fn count(number: u64) -> f64 {
    number as f64
}

/// The slack of a minute, spread over its requests.
fn spread(requests: u64) -> Duration {
    SLACK.mul_f64(1.0 / count(requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends whenever it may; returns when each request went.
    fn run(pace: &mut Pace, tokens: u64, actual: u64, until: Duration) -> Vec<Duration> {
        let (mut now, mut sent) = (Moment::ORIGIN, Vec::new());
        loop {
            now = now.max(pace.opens_at(tokens));
            if now.offset() >= until {
                return sent;
            }
            let number = pace.on_send(now, tokens);
            pace.settle(number, actual);
            sent.push(now.offset());
        }
    }

    fn most_in_a_minute(sent: &[Duration]) -> usize {
        sent.iter()
            .map(|start| sent.iter().filter(|at| **at >= *start && **at <= *start + MINUTE).count())
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn requests_are_spread_over_the_minute() {
        let sent = run(&mut Pace::new(60, 0, None), 0, 0, 5 * MINUTE);
        assert_eq!(most_in_a_minute(&sent), 60);
        assert!(sent.len() >= 295, "{}", sent.len());
        let fast = run(&mut Pace::new(6_000, 0, None), 0, 0, MINUTE);
        assert!((5_950..=6_000).contains(&fast.len()), "{}", fast.len());
    }

    #[test]
    fn a_second_execution_goes_on_where_the_first_stopped() {
        let pace = Pace::new(60, 0, Some(Moment::ORIGIN));
        assert!(pace.opens_at(0) >= Moment::from_origin(Duration::from_secs(1)));
        let pace = Pace::new(0, 1_000, Some(Moment::ORIGIN));
        assert!(pace.opens_at(10) >= Moment::from_origin(MINUTE));
    }

    #[test]
    fn tokens_of_any_minute_stay_under_the_limit() {
        let sent = run(&mut Pace::new(0, 1_000, None), 300, 300, 5 * MINUTE);
        assert_eq!(most_in_a_minute(&sent), 3);
        let settled = run(&mut Pace::new(0, 1_000, None), 300, 100, 5 * MINUTE);
        assert_eq!(most_in_a_minute(&settled), 8, "what was not used is given back");
    }

    #[test]
    fn a_request_over_the_whole_limit_goes_alone() {
        let sent = run(&mut Pace::new(0, 1_000, None), 5_000, 5_000, 3 * MINUTE);
        assert_eq!(sent.len(), 3);
    }
}
