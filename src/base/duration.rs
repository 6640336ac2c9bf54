//! Durations as people write them: `50ms`, `1.5s`, `1m30s`, `2h`.

use std::fmt::Write as _;
use std::time::Duration;

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("`{0}` has no unit: write `{0}s`, `{0}ms` or `{0}m`")]
    NoUnit(String),
    /// Anything else.
    #[error("`{0}` is no duration: write it as in 50ms, 1.5s, 1m30s or 2h")]
    Malformed(String),
}

/// Reads a duration made of numbers with the units `h`, `m`, `s`, `ms`, `us`, `ns`, each at most once and in
/// that order, as in `1m30s`. A bare number is an error, `0` too.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    const UNITS: [(&str, f64); 6] =
        [("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];
    let malformed = || DurationError::Malformed(text.to_owned());
    let mut rest = text.trim();
    if !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(DurationError::NoUnit(rest.to_owned()));
    }
    let mut total = Duration::ZERO;
    let mut next_unit = 0;
    if rest.is_empty() {
        return Err(malformed());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(malformed)?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let value: f64 = number.parse().map_err(|_| malformed())?;
        let place = UNITS.iter().position(|(name, _)| *name == unit).ok_or_else(malformed)?;
        if place < next_unit {
            return Err(malformed());
        }
        next_unit = place + 1;
        let part = Duration::try_from_secs_f64(value * UNITS[place].1).map_err(|_| malformed())?;
        total = total.checked_add(part).ok_or_else(malformed)?;
        rest = tail;
    }
    Ok(total)
}

/// Writes a duration in the form that [`parse_duration`] reads, whole milliseconds, as in `1m30s` or `250ms`.
pub fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let (hours, minutes, seconds, rest) =
        (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60, millis % 1_000);
    let mut text = String::new();
    for (value, unit) in [(hours, "h"), (minutes, "m"), (seconds, "s"), (rest, "ms")] {
        if value > 0 {
            let _ = write!(text, "{value}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [
            ("50ms", 50),
            ("1.5s", 1_500),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("0s", 0),
            ("1h2m3s4ms", 3_723_004),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn refuses_the_rest() {
        assert_eq!(parse_duration("30"), Err(DurationError::NoUnit("30".to_owned())));
        for text in ["", "s", "1x", "1s1m", "-1s", "1..5s", "1s 2", "9e9h", "1s1s"] {
            assert!(matches!(parse_duration(text), Err(DurationError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn prints_what_it_reads() {
        for text in ["50ms", "1s500ms", "1m30s", "2h", "0s"] {
            assert_eq!(parse_duration(text).map(format_duration).as_deref(), Ok(text));
        }
    }
}
