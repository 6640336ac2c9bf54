//! Money in integers.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// An amount in units of 10^-12 USD. A price of one dollar per million tokens is a million units a token, so a
/// cost is exact. Sums saturate at about 9.2 million dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(i64);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount of `units` times 10^-12 USD.
    pub const fn from_pico(units: i64) -> Self {
        Self(units)
    }

    /// The amount in units of 10^-12 USD.
    pub const fn pico(self) -> i64 {
        self.0
    }

    /// This amount `count` times. Saturates.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX)))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// Dollars to 9 places, half up, trailing zeros cut: `0.0012`, `3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = (i128::from(self.0) + 500).div_euclid(1_000);
        let (sign, nanos) = if nanos < 0 { ("-", -nanos) } else { ("", nanos) };
        let text = format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_nine_places_half_up() {
        for (units, text) in [
            (0, "0"),
            (1_200_000_000, "0.0012"),
            (3_000_000_000_000, "3"),
            (499, "0"),
            (500, "0.000000001"),
            (1_499, "0.000000001"),
            (-1_200_000_000, "-0.0012"),
        ] {
            assert_eq!(Money::from_pico(units).to_string(), text, "{units}");
        }
    }

    #[test]
    fn sums_saturate() {
        let most = Money::from_pico(i64::MAX);
        assert_eq!([most, most].into_iter().sum::<Money>(), most);
        assert_eq!(Money::from_pico(3).times(4), Money::from_pico(12));
    }
}
