//! The most that a request can cost.

use crate::base::Money;
use crate::model::ServiceTier;
use crate::provider::{Price, Rates};

/// The most that a request of at most so many input and output tokens can cost: all of its input at the dearest of
/// the rates for input (ordinary, written to a cache that keeps it as long as the request may ask, or read from one), at
/// the rates for long requests where it may be one, in the tier that it asks for or in the ordinary one, which servers may fall back to.
pub fn bound(price: &Price, input: u64, output: u64) -> Money {
    let of = |rates: Rates| {
        let long = rates.cache_write_long.filter(|_| price.keeps_long);
        let kinds = [Some(rates.input), rates.cache_write, long, rates.cached_input];
        let dearest = kinds.into_iter().flatten().max().unwrap_or(rates.input);
        dearest.times(input) + rates.output.times(output)
    };
    let tiers = [price.asked, ServiceTier::Standard];
    // A request of this size may turn out to be short.
    let rates = tiers.into_iter().flat_map(|tier| [price.rates_of(tier, 0), price.rates_of(tier, input)]);
    rates.flatten().map(of).max().unwrap_or(Money::ZERO)
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
        let claude = PriceTable::built_in().price("claude-opus-4-8").unwrap();
        assert_eq!(bound(claude, 1_000, 10).to_string(), "0.0065");
        assert_eq!(bound(&claude.keeping_long(true), 1_000, 10).to_string(), "0.01025");
        let long = PriceTable::built_in().price("gpt-6-astra").unwrap();
        assert!(bound(long, 300_000, 0) > Money::from_pico(300_000 * 12_500_000));
    }

    #[test]
    fn the_tier_that_is_asked_for_counts_and_no_cheaper_one() {
        let price = PriceTable::built_in().price("gpt-5.4-mini").unwrap();
        let asking = |tier| bound(&price.asking(tier).unwrap(), 1_000, 100).to_string();
        assert_eq!(asking(ServiceTier::Standard), "0.0012");
        // What asks for less may be served, and billed, as an ordinary request.
        assert_eq!(asking(ServiceTier::Flex), "0.0012");
        assert_eq!(asking(ServiceTier::Priority), "0.0024");
    }
}
