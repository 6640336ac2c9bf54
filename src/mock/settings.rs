//! How the mock server behaves.

use std::str::FromStr;
use std::time::Duration;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::base::Money;
use crate::mock::MockError;

/// How the mock server behaves. The default is a server that answers everything at once, for free.
#[derive(Debug, Clone, Default)]
pub struct MockSettings {
    /// The port on 127.0.0.1; 0 for any free one.
    pub port: u16,
    /// How long an answer takes.
    pub latency: Duration,
    /// By how much the latency varies in both directions, uniformly.
    pub jitter: Duration,
    /// The most requests a key may send in a time; `None` for no limit.
    pub rate_limit: Option<RateLimit>,
    /// The most requests in flight over all keys; `None` for no limit.
    pub concurrency_limit: Option<u32>,
    /// The share of requests, 0 to 1, that end in a 500, a 503 or a reply that is cut off.
    pub error_rate: f64,
    /// The share of answers, 0 to 1, that do not satisfy their schema.
    pub bad_answer_rate: f64,
    /// Keys that are answered with 401.
    pub fail_keys: Vec<String>,
    /// What tokens cost; `None` for nothing.
    pub price: Option<MockPrice>,
    /// The seed of answers, errors and jitter.
    pub seed: u64,
}

/// A number of requests in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// How many, at least 1.
    pub requests: u32,
    /// In which time; longer than nothing.
    pub per: Duration,
}

impl FromStr for RateLimit {
    type Err = MockError;

    /// Reads `50/s`, `600/m` or `1000/h`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || MockError::RateLimit(text.to_owned());
        let (count, unit) = text.split_once('/').ok_or_else(malformed)?;
        let per = match unit.trim() {
            "s" | "sec" | "second" => 1,
            "m" | "min" | "minute" => 60,
            "h" | "hour" => 3_600,
            _ => return Err(malformed()),
        };
        let requests = count.trim().parse().ok().filter(|count| *count > 0).ok_or_else(malformed)?;
        Ok(Self { requests, per: Duration::from_secs(per) })
    }
}

/// What tokens cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MockPrice {
    /// One input token.
    pub input: Money,
    /// One output token.
    pub output: Money,
}

impl FromStr for MockPrice {
    type Err = MockError;

    /// Reads `input=1,output=4`, in USD per million tokens; one that is not named costs nothing.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || MockError::Price(text.to_owned());
        let mut price = Self { input: Money::ZERO, output: Money::ZERO };
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(malformed)?;
            let dollars: Decimal = value.trim().parse().map_err(|_| malformed())?;
            // One dollar per million tokens is a million units of 10^-12 USD a token.
            let units = dollars
                .checked_mul(Decimal::from(1_000_000))
                .and_then(|units| units.round().to_i64())
                .filter(|units| *units >= 0)
                .ok_or_else(malformed)?;
            match name.trim() {
                "input" => price.input = Money::from_pico(units),
                "output" => price.output = Money::from_pico(units),
                _ => return Err(malformed()),
            }
        }
        Ok(price)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        let rate =
            |text: &str| text.parse::<RateLimit>().ok().map(|rate| (rate.requests, rate.per.as_secs()));
        assert_eq!(rate("50/s"), Some((50, 1)));
        assert_eq!(rate("600/m"), Some((600, 60)));
        assert_eq!(rate(" 3 / h"), Some((3, 3_600)));
        for text in ["50", "0/s", "-1/s", "1.5/s", "50/d", "/s", ""] {
            assert_eq!(rate(text), None, "{text}");
        }
    }

    #[test]
    fn prices_are_read() {
        let price: MockPrice = "input=1, output=0.25".parse().unwrap();
        assert_eq!((price.input.pico(), price.output.pico()), (1_000_000, 250_000));
        for text in ["", "1", "input=", "input=-1", "inputs=1", "input=1e99"] {
            assert!(text.parse::<MockPrice>().is_err(), "{text}");
        }
    }
}
