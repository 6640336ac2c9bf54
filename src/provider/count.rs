//! Counts as servers write them.

use serde_json::Value;

/// The most that any request can have.
const MOST: f64 = 1e12;
const MOST_WHOLE: u64 = 1_000_000_000_000;

/// A count that is plainly a whole number, where it can be one.
pub(super) fn whole(number: Option<u64>) -> Option<u64> {
    number.filter(|number| *number <= MOST_WHOLE)
}

/// A count: an integer, a float or a text of either. Anything else, and what no request can have, is no count.
pub(super) fn number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => match number.as_u64() {
            Some(number) => return whole(Some(number)),
            None => number.as_f64()?,
        },
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    if (0.0..=MOST).contains(&number) { format!("{number:.0}").parse().ok() } else { None }
}
