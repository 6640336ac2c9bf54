//! How long a server asks to wait.

use std::time::Duration;

use crate::base::{WallTime, parse_duration};
use crate::model::HttpReply;
use crate::provider::errors::ServerError;

/// The wait that `retry-after-ms` or `retry-after` asks for. A value that is no usable wait (0, negative, not finite,
/// junk, a date in the past) counts as absent.
pub(super) fn retry_after(reply: &HttpReply, now: WallTime) -> Option<Duration> {
    let millis = || seconds(reply.header("retry-after-ms")?).and_then(|value| usable(value / 1_000.0));
    let plain = || {
        let value = reply.header("retry-after")?.trim();
        match seconds(value) {
            Some(value) => usable(value),
            None => until(http_date(value)?, now),
        }
    };
    millis().or_else(plain)
}

/// The wait of a throttled reply: its `retry-after`; else the longest reset among the limits that have nothing left;
/// else Gemini's `RetryInfo`; else what the message says.
pub(super) fn throttled(reply: &HttpReply, error: &ServerError, now: WallTime) -> Option<Duration> {
    let headers =
        reply.headers.iter().chain(error.headers()).map(|(name, value)| (name.as_str(), value.as_str()));
    let headers: Vec<(&str, &str)> = headers.collect();
    retry_after(reply, now)
        .or_else(|| longest_reset(&headers, now))
        .or_else(|| error.retry_delay().and_then(duration))
        .or_else(|| in_message(error.text()))
}

/// The longest reset among limits whose remaining is 0. Names differ from provider to provider, but everywhere the
/// two headers of a limit differ in these two words only (`x-ratelimit-remaining-tokens`, `x-ratelimit-reset-tokens`).
fn longest_reset(headers: &[(&str, &str)], now: WallTime) -> Option<Duration> {
    let reset_of = |name: &str| {
        let name = name.replacen("remaining", "reset", 1);
        headers.iter().find(|(have, _)| *have == name).map(|(_, value)| *value)
    };
    headers
        .iter()
        .filter(|(name, value)| name.contains("remaining") && seconds(value) == Some(0.0))
        .filter_map(|(name, _)| reset(reset_of(name)?, now))
        .max()
}

/// A reset as providers write it: RFC 3339, seconds, seconds or milliseconds since the epoch, or a duration such as
/// `6m0s`.
fn reset(value: &str, now: WallTime) -> Option<Duration> {
    let value = value.trim();
    match seconds(value) {
        Some(stamp) if stamp >= 1e12 => usable((stamp - millis(now)) / 1_000.0),
        Some(stamp) if stamp >= 1e9 => usable(stamp - millis(now) / 1_000.0),
        Some(wait) => usable(wait),
        None => match value.parse::<jiff::Timestamp>() {
            Ok(stamp) => until(WallTime(stamp.as_millisecond()), now),
            Err(_) => duration(value),
        },
    }
}

/// The wait in a sentence such as `Please try again in 6m0s.` or `Please retry after 20 seconds`.
fn in_message(text: &str) -> Option<Duration> {
    let lower = text.to_ascii_lowercase();
    ["try again in ", "retry in ", "retry after "].iter().find_map(|phrase| {
        let after = &lower[lower.find(phrase)? + phrase.len()..];
        let mut words = after.split_whitespace().map(|word| word.trim_end_matches(['.', ',', ';', ')', '!']));
        let first = words.next()?;
        let Some(number) = seconds(first) else { return duration(first) };
        let unit = match words.next()? {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            _ => return None,
        };
        usable(number * unit)
    })
}

/// A duration with units, as Go prints it.
fn duration(text: &str) -> Option<Duration> {
    let text = text.trim().replace(['µ', 'μ'], "u");
    parse_duration(&text).ok().filter(|wait| !wait.is_zero())
}

/// A plain number of any size and sign; words that Rust reads as one (`inf`, `nan`) are none.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+' | b'e' | b'E'));
    if digits { text.parse().ok() } else { None }
}

/// A wait in seconds, if it is positive and finite.
fn usable(seconds: f64) -> Option<Duration> {
    if seconds > 0.0 {
        Duration::try_from_secs_f64(seconds).ok().filter(|wait| !wait.is_zero())
    } else {
        None
    }
}

fn until(moment: WallTime, now: WallTime) -> Option<Duration> {
    Some(moment.since(now)).filter(|wait| !wait.is_zero())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a time in milliseconds fits a double exactly for 285,000 years"
)]
fn millis(now: WallTime) -> f64 {
    now.0 as f64
}

/// A date of RFC 9110, the two obsolete forms included.
fn http_date(text: &str) -> Option<WallTime> {
    let since = httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok().map(WallTime)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sunday, 29 November 2026, 12:00:00 UTC.
    const NOW: WallTime = WallTime(1_795_953_600_000);

    fn reply(headers: &[(&str, &str)]) -> HttpReply {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HttpReply { status: 429, headers, body: bytes::Bytes::new() }
    }

    fn wait(headers: &[(&str, &str)], message: &str) -> Option<Duration> {
        let error = ServerError::from_json(429, &serde_json::json!({ "error": { "message": message } }));
        throttled(&reply(headers), &error, NOW)
    }

    fn asked(headers: &[(&str, &str)], message: &str) -> Option<u128> {
        wait(headers, message).map(|wait| wait.as_millis())
    }

    #[test]
    fn retry_after_in_every_form() {
        for (value, millis) in [
            ("3", Some(3_000)),
            (" 1.5 ", Some(1_500)),
            ("86400", Some(86_400_000)),
            ("Sun, 29 Nov 2026 12:00:04 GMT", Some(4_000)),
            ("Sunday, 29-Nov-26 12:00:04 GMT", Some(4_000)),
            ("Sun Nov 29 12:00:04 2026", Some(4_000)),
            ("Sun, 29 Nov 2026 11:59:00 GMT", None),
            ("0", None),
            ("-0", None),
            ("-1", None),
            ("inf", None),
            ("NaN", None),
            ("1e400", None),
            ("1e300", None),
            ("abc", None),
            ("1 minute", None),
            ("", None),
        ] {
            assert_eq!(asked(&[("retry-after", value)], ""), millis, "{value}");
        }
    }

    #[test]
    fn the_order_of_sources() {
        let all = [
            ("retry-after-ms", "250"),
            ("retry-after", "3"),
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "6m0s"),
        ];
        assert_eq!(asked(&all, "try again in 2s"), Some(250));
        assert_eq!(asked(&all[1..], "try again in 2s"), Some(3_000));
        assert_eq!(asked(&all[2..], "try again in 2s"), Some(360_000));
        assert_eq!(asked(&[], "try again in 2s"), Some(2_000));
        assert_eq!(asked(&[("retry-after-ms", "x"), ("retry-after", "3")], ""), Some(3_000));
        assert_eq!(asked(&[], "busy"), None);
    }

    #[test]
    fn the_longest_reset_of_an_empty_limit() {
        let limits = |requests: &str, tokens: &str| {
            asked(
                &[
                    ("x-ratelimit-remaining-requests", requests),
                    ("x-ratelimit-reset-requests", "2m59.56s"),
                    ("x-ratelimit-remaining-tokens", tokens),
                    ("x-ratelimit-reset-tokens", "7.66s"),
                ],
                "",
            )
        };
        assert_eq!(limits("0", "0"), Some(179_560));
        assert_eq!(limits("5", "0"), Some(7_660));
        assert_eq!(limits("5", "9"), None);
        assert_eq!(limits("-1", "x"), None);
        for (reset, millis) in [
            ("10", Some(10_000)),
            ("20ms", Some(20)),
            ("1h2m3s", Some(3_723_000)),
            ("500µs", Some(0)),
            ("2026-11-29T12:00:30Z", Some(30_000)),
            ("2026-11-29T11:00:30Z", None),
            ("1795953605000", Some(5_000)),
            ("1795953605", Some(5_000)),
            ("1788220800000", None),
            ("0s", None),
            ("-5", None),
            ("soon", None),
        ] {
            let headers = [
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", reset),
            ];
            assert_eq!(asked(&headers, ""), millis, "{reset}");
        }
    }

    #[test]
    fn waits_in_sentences() {
        for (text, millis) in [
            ("Limit 500, Used 500. Please try again in 120ms.", Some(120)),
            ("Please try again in 6m0s. Visit", Some(360_000)),
            ("Try again in 1.2s.", Some(1_200)),
            ("Please retry after 20 seconds.", Some(20_000)),
            ("Please retry in 37.5s", Some(37_500)),
            ("try again in 0s", None),
            ("try again in a moment", None),
            ("try again in 5", None),
            ("try again in -5 seconds", None),
        ] {
            assert_eq!(asked(&[], text), millis, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_header_gives_a_positive_wait_or_none(value in "\\PC{0,30}", number in any::<f64>()) {
            for value in [value, number.to_string()] {
                let headers = [("retry-after", value.as_str()), ("x-remaining", "0"), ("x-reset", value.as_str())];
                prop_assert_ne!(wait(&headers, &format!("try again in {value}")), Some(Duration::ZERO));
            }
        }
    }
}
