//! How long a request waits before it is tried again.

use std::time::Duration;

use crate::base::{Dice, Ticket};
use crate::model::RetrySettings;

/// The wait after `failures` failures in a row (1 or more): exponential with full jitter, that is uniform between
/// nothing and `base × 2^(failures - 1)`, at most `max_backoff` ("Exponential Backoff And Jitter", Brooker, 2015).
/// A wait that the server asked for is a floor under it. The jitter is drawn from `seed` and the ticket, so that a
/// run that is simulated again waits the same.
pub fn backoff(
    retry: &RetrySettings,
    seed: u64,
    ticket: Ticket,
    failures: u32,
    floor: Option<Duration>,
) -> Duration {
    let doublings = failures.saturating_sub(1).min(32);
    let ceiling =
        retry.base.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(retry.max_backoff);
    let mut dice = Dice::new(seed, &[ticket.row, u64::from(ticket.sample), u64::from(ticket.attempt)]);
    let wait = ceiling.mul_f64(dice.fraction());
    floor.map_or(wait, |floor| wait.max(floor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> RetrySettings {
        RetrySettings {
            attempts: 5,
            base: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
            max_wait: Duration::from_secs(120),
            outage_patience: Duration::from_secs(1_800),
            throttle_patience: Duration::from_secs(1_800),
        }
    }

    #[test]
    fn grows_to_the_cap_and_never_over_it() {
        let longest = |failures| {
            (0..2_000)
                .map(|row| {
                    backoff(&settings(), 7, Ticket { row, sample: 1, attempt: failures }, failures, None)
                })
                .max()
                .unwrap()
        };
        for (failures, ceiling) in [(1, 1.0), (2, 2.0), (3, 4.0), (7, 60.0), (4_000, 60.0)] {
            let most = longest(failures).as_secs_f64();
            assert!(most <= ceiling && most > 0.95 * ceiling, "{failures}: {most}");
        }
    }

    #[test]
    fn the_server_sets_a_floor() {
        let ticket = Ticket { row: 1, sample: 1, attempt: 1 };
        let floor = Duration::from_secs(90);
        assert_eq!(backoff(&settings(), 7, ticket, 1, Some(floor)), floor);
    }
}
