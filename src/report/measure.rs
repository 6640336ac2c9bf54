//! Numbers and times as people read them.

use std::time::Duration;

use crate::base::Money;

/// A count with its digits in groups of three: `1,234,567`.
pub(super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its noun: `1 row`, `2 rows`.
pub(super) fn counted(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// A time to come or an age, in its two largest units, seconds rounded up: `45s`, `1m 50s`, `2h 5m`, `3d 4h`.
pub fn eta_text(time: Duration) -> String {
    let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
    let (days, hours, minutes, rest) =
        (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let two = |large: u64, unit: &str, small: u64, small_unit: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit} {small}{small_unit}") }
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{rest}s"),
        (0, 0, _) => two(minutes, "m", rest, "s"),
        (0, _, _) => two(hours, "h", minutes, "m"),
        _ => two(days, "d", hours, "h"),
    }
}

/// A measured time: milliseconds under one second, tenths of a second under a minute, then as [`eta_text`].
pub fn latency_text(time: Duration) -> String {
    let millis = time.as_micros().saturating_add(500) / 1_000;
    let tenths = time.as_millis().saturating_add(50) / 100;
    if millis < 1_000 {
        format!("{millis}ms")
    } else if tenths < 600 {
        format!("{}.{}s", tenths / 10, tenths % 10)
    } else {
        eta_text(Duration::from_secs(time.as_secs()))
    }
}

/// A rate a minute: one decimal under 100, whole above.
pub(super) fn rate_text(per_minute: f64) -> String {
    if !per_minute.is_finite() || per_minute < 0.0 {
        "?".to_owned()
    } else if per_minute < 99.95 {
        let text = format!("{per_minute:.1}");
        text.strip_suffix(".0").unwrap_or(&text).to_owned()
    } else {
        // A saturating cast: rates of this size are far below the range of the integer.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "finite, positive and saturating"
        )]
        grouped(per_minute.round() as u64)
    }
}

/// Money with its sign, `unknown` where it is not known.
pub(super) fn money_text(amount: Option<Money>) -> String {
    amount.map_or_else(|| "unknown".to_owned(), |amount| format!("${amount}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        for (count, text) in
            [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567"), (12_345, "12,345")]
        {
            assert_eq!(grouped(count), text);
        }
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(2_000, "row"), "2,000 rows");
    }

    #[test]
    fn times_to_come_have_two_units() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1s"),
            (44_001, "45s"),
            (60_000, "1m"),
            (110_000, "1m 50s"),
            (3_600_000, "1h"),
            (7_500_000, "2h 5m"),
            (7_531_000, "2h 5m"),
            (273_600_000, "3d 4h"),
        ] {
            assert_eq!(eta_text(Duration::from_millis(millis)), text, "{millis}");
        }
        assert!(eta_text(Duration::MAX).ends_with('h'));
    }

    #[test]
    fn measured_times_keep_three_figures_or_so() {
        for (micros, text) in [
            (0, "0ms"),
            (499, "0ms"),
            (500, "1ms"),
            (812_000, "812ms"),
            (999_600, "1.0s"),
            (2_449_000, "2.4s"),
            (2_450_000, "2.5s"),
            (59_960_000, "59s"),
            (125_900_000, "2m 5s"),
        ] {
            assert_eq!(latency_text(Duration::from_micros(micros)), text, "{micros}");
        }
    }

    #[test]
    fn rates_and_money() {
        for (rate, text) in [
            (0.0, "0"),
            (0.54, "0.5"),
            (12.0, "12"),
            (99.96, "100"),
            (4_800.4, "4,800"),
            (f64::NAN, "?"),
            (-1.0, "?"),
        ] {
            assert_eq!(rate_text(rate), text, "{rate}");
        }
        assert_eq!(money_text(None), "unknown");
        assert_eq!(money_text(Some(Money::from_pico(1_200_000_000))), "$0.0012");
    }
}
