//! JSON as pipelines read it: decimals are exact texts, never binary fractions.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::base::Money;
use crate::model::{StatusCounts, Usage};

/// A JSON number with this text, or `null`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Number(Option<String>);

impl Number {
    /// An amount of money; `null` where it is unknown.
    pub(super) fn money(amount: Option<Money>) -> Self {
        Self(amount.map(|amount| amount.to_string()))
    }

    /// A decimal as it stands; `null` where it is unknown.
    pub(super) fn exact(value: Option<rust_decimal::Decimal>) -> Self {
        Self(value.map(|value| value.to_string()))
    }

    /// A value to `places` decimals without trailing zeros; `null` for a value that is unknown or not finite.
    pub(super) fn decimal(value: Option<f64>, places: usize) -> Self {
        Self(value.filter(|value| value.is_finite()).map(|value| cut(&format!("{value:.places$}"))))
    }

    /// Seconds to three decimals.
    pub(super) fn seconds(time: Option<Duration>) -> Self {
        Self(time.map(|time| {
            let millis = time.as_micros().saturating_add(500) / 1_000;
            cut(&format!("{}.{:03}", millis / 1_000, millis % 1_000))
        }))
    }
}

fn cut(text: &str) -> String {
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The texts above are numbers by construction; a text that is none would become null.
        self.0.clone().and_then(|text| RawValue::from_string(text).ok()).serialize(serializer)
    }
}

/// Whole milliseconds, half up.
pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_micros().saturating_add(500) / 1_000).unwrap_or(u64::MAX)
}

/// Rows by status.
#[derive(Debug, Serialize)]
pub(super) struct Statuses {
    pass: u64,
    fail: u64,
    review: u64,
    error: u64,
    skipped: u64,
}

impl From<StatusCounts> for Statuses {
    fn from(counts: StatusCounts) -> Self {
        let StatusCounts { pass, fail, review, error, skipped } = counts;
        Self { pass, fail, review, error, skipped }
    }
}

/// Tokens of a whole run.
#[derive(Debug, Serialize)]
pub(super) struct Tokens {
    input: u64,
    cached_input: u64,
    output: u64,
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self { input: usage.input, cached_input: usage.cached_input, output: usage.output }
    }
}

/// One line of JSON. The types of this room hold texts, integers and numbers only, which cannot fail to serialise.
pub(super) fn line(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_and_short() {
        let text = |number: Number| line(&number);
        assert_eq!(text(Number::money(None)), "null");
        assert_eq!(text(Number::money(Some(Money::from_pico(1_000)))), "0.000000001");
        assert_eq!(text(Number::money(Some(Money::from_pico(3_000_000_000_000)))), "3");
        assert_eq!(text(Number::decimal(Some(480.0), 2)), "480");
        assert_eq!(text(Number::decimal(Some(0.126), 2)), "0.13");
        assert_eq!(text(Number::decimal(Some(-0.001), 2)), "0");
        assert_eq!(text(Number::decimal(Some(f64::NAN), 2)), "null");
        assert_eq!(text(Number::decimal(Some(f64::INFINITY), 2)), "null");
        assert_eq!(text(Number::seconds(Some(Duration::from_millis(125_300)))), "125.3");
        assert_eq!(text(Number::seconds(Some(Duration::from_secs(100)))), "100");
        assert_eq!(text(Number::seconds(None)), "null");
    }
}
