//! The most that a request can cost.

use crate::base::Money;
use crate::provider::{Price, Rates};

/// The most that a request of at most so many input and output tokens can cost: all of its input at the dearest of
/// the rates for input (ordinary, or written to a cache), and at the rates for long requests where it may be one.
pub fn bound(price: &Price, input: u64, output: u64) -> Money {
    let of = |rates: &Rates| {
        let dearest = rates.cache_write.map_or(rates.input, |write| write.max(rates.input));
        dearest.times(input) + rates.output.times(output)
    };
    let ordinary = of(&price.rates);
    match &price.long_context {
        Some(long) if input > long.above => ordinary.max(of(&long.rates)),
        _ => ordinary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::PriceTable;

    #[test]
    fn the_dearest_rate_counts() {
        let plain = Price::per_million(1.into(), None, None, 4.into()).unwrap();
        assert_eq!(bound(&plain, 10, 100), Money::from_pico(410_000_000));
        let writes = Price::per_million(1.into(), None, Some(2.into()), 4.into()).unwrap();
        assert_eq!(bound(&writes, 10, 100), Money::from_pico(420_000_000));
        let long = PriceTable::built_in().price("gpt-6-astra").unwrap();
        assert!(bound(long, 300_000, 0) > Money::from_pico(300_000 * 12_500_000));
    }
}
