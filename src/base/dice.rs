//! Reproducible randomness: a value from a seed and the numbers of what it is for.

/// A `SplitMix64` sequence (Steele, Lea and Flood, 2014). Seeded by what the value is for (row, sample, attempt),
/// so that the same run draws the same jitter whatever the order of its events.
#[derive(Debug, Clone)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// A sequence for `seed` and the numbers in `about`.
    pub fn new(seed: u64, about: &[u64]) -> Self {
        let mut dice = Self { state: seed };
        for &number in about {
            dice.state = dice.next_u64() ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        dice
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A value in 0.0..1.0.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A value in 0..bound, 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_subject_same_value_other_subject_other_value() {
        let draw = |about: &[u64]| Dice::new(7, about).next_u64();
        assert_eq!(draw(&[1, 2]), draw(&[1, 2]));
        assert_ne!(draw(&[1, 2]), draw(&[2, 1]));
        let mut dice = Dice::new(1, &[]);
        assert!((0..1_000).all(|_| (0.0..1.0).contains(&dice.fraction()) && dice.below(6) < 6));
    }
}
