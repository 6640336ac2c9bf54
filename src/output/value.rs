//! How single values are printed.

use std::borrow::Cow;

use rust_decimal::{Decimal, RoundingStrategy};

/// A share as people see it: 4 places, half up, trailing zeros cut.
pub(super) fn decimal(value: Decimal) -> String {
    value.round_dp_with_strategy(4, RoundingStrategy::MidpointAwayFromZero).normalize().to_string()
}

/// A JSON value as a CSV cell: a string without quotes and escapes, `null` empty, anything else its JSON text.
pub(super) fn cell(json: &str) -> Cow<'_, str> {
    if json == "null" {
        return Cow::Borrowed("");
    }
    let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner {
        Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        Some(_) => serde_json::from_str::<String>(json).map_or(Cow::Borrowed(json), Cow::Owned),
        None => Cow::Borrowed(json),
    }
}

/// A cell that no spreadsheet takes for a formula: one that begins with `=`, `+`, `-`, `@`, their full-width forms, a
/// tab or a line end gets a `'` before it, unless it is a plain number.
pub(super) fn neutral(cell: &str) -> Cow<'_, str> {
    if cell.starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠', '\t', '\r', '\n']) && !is_number(cell)
    {
        Cow::Owned(format!("'{cell}"))
    } else {
        Cow::Borrowed(cell)
    }
}

/// Digits with an optional sign, fraction and exponent.
fn is_number(cell: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = cell.strip_prefix(['+', '-']).unwrap_or(cell);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let exponent_fits = exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole.is_empty() || digits(whole)) && digits(fraction),
        None => digits(mantissa),
    };
    exponent_fits && mantissa_fits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_four_places() {
        for (text, printed) in [
            ("0.93", "0.93"),
            ("1.0", "1"),
            ("0", "0"),
            ("0.66665", "0.6667"),
            ("0.66664", "0.6666"),
            ("0.99995", "1"),
        ] {
            assert_eq!(decimal(text.parse().unwrap()), printed);
        }
    }

    #[test]
    fn cells_of_json_values() {
        for (json, text) in [
            ("\"a\"", "a"),
            (r#""a\n\u00e9\"""#, "a\né\""),
            (r#""\ud83d""#, r#""\ud83d""#),
            ("null", ""),
            ("\"null\"", "null"),
            ("1.10", "1.10"),
            ("true", "true"),
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            ("\"\"", ""),
        ] {
            assert_eq!(cell(json), text);
        }
    }

    #[test]
    fn formulas_are_neutralised_and_numbers_are_not() {
        for formula in [
            "=1+1", "@x", "\t=1", "\r=1", "\n=1", "＝1", "-", "+a", "-1+2", "-1e", "-.", "--1", "+1-1", "-1 ",
        ] {
            assert_eq!(neutral(formula), format!("'{formula}"));
        }
        for plain in ["-5", "+3.20", "-1e-5", "-.5", "a=1", "", "'=1"] {
            assert_eq!(neutral(plain), plain);
        }
    }
}
