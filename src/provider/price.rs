//! What tokens cost.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::base::Money;
use crate::model::Usage;
use crate::provider::ProviderError;

/// The price of a model, standard tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// The rates of an ordinary request.
    pub rates: Rates,
    /// The rates of a long one, where they differ.
    pub long_context: Option<LongContext>,
}

/// Prices of one token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rates {
    /// An ordinary input token.
    pub input: Money,
    /// An input token read from a cache; `None` where no such price is known: then it costs what `input` costs.
    pub cached_input: Option<Money>,
    /// An input token written to a cache; `None` where writing costs nothing besides `input`.
    pub cache_write: Option<Money>,
    /// An output token, reasoning included.
    pub output: Money,
}

/// Rates for requests with many input tokens. They hold for all tokens of such a request, not only for those above
/// the bound (documented by `OpenAI`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongContext {
    /// A request with more input tokens than this is long.
    pub above: u64,
    /// Its rates.
    pub rates: Rates,
}

impl Price {
    /// A price from decimals in USD per million tokens, as a person sets it.
    ///
    /// # Errors
    /// A rate below 0 or over 1,000,000 USD.
    pub fn per_million(
        input: Decimal,
        cached_input: Option<Decimal>,
        cache_write: Option<Decimal>,
        output: Decimal,
    ) -> Result<Self, ProviderError> {
        let optional = |name, rate: Option<Decimal>| rate.map(|rate| per_token(name, rate)).transpose();
        let rates = Rates {
            input: per_token("input", input)?,
            cached_input: optional("cached_input", cached_input)?,
            cache_write: optional("cache_write", cache_write)?,
            output: per_token("output", output)?,
        };
        Ok(Self { rates, long_context: None })
    }
}

/// USD per million tokens as money per token, half up below 10^-12 USD.
pub(super) fn per_token(name: &'static str, rate: Decimal) -> Result<Money, ProviderError> {
    let most = Decimal::from(1_000_000);
    let refused = || ProviderError::Price { name, value: rate.to_string() };
    if rate < Decimal::ZERO || rate > most {
        return Err(refused());
    }
    let units = (rate * most).round_dp_with_strategy(0, rust_decimal::RoundingStrategy::MidpointAwayFromZero);
    units.to_i64().map(Money::from_pico).ok_or_else(refused)
}

/// The cost of an attempt: ordinary input is what is neither read from nor written to a cache.
pub fn cost(price: &Price, usage: &Usage) -> Money {
    let rates = match &price.long_context {
        Some(long) if usage.input > long.above => &long.rates,
        _ => &price.rates,
    };
    let ordinary = usage.input.saturating_sub(usage.cached_input).saturating_sub(usage.cache_write);
    rates.input.times(ordinary)
        + rates.cached_input.unwrap_or(rates.input).times(usage.cached_input)
        + rates.cache_write.unwrap_or(rates.input).times(usage.cache_write)
        + rates.output.times(usage.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    #[test]
    fn every_kind_of_token_has_its_rate() {
        let price =
            Price::per_million(dollars("1"), Some(dollars("0.1")), Some(dollars("1.25")), dollars("4"))
                .unwrap();
        let usage = Usage { input: 1_000, cached_input: 300, cache_write: 200, output: 50, reasoning: 20 };
        // 500 at 1, 300 at 0.1, 200 at 1.25, 50 at 4 USD per million.
        assert_eq!(cost(&price, &usage).to_string(), "0.00098");
        let plain = Price::per_million(dollars("1"), None, None, dollars("4")).unwrap();
        assert_eq!(cost(&plain, &usage).to_string(), "0.0012");
        assert_eq!(cost(&price, &Usage::default()), Money::ZERO);
    }

    #[test]
    fn a_long_request_pays_the_long_rates_for_all_of_it() {
        let mut price = Price::per_million(dollars("1"), None, None, dollars("1")).unwrap();
        let double = Price::per_million(dollars("2"), None, None, dollars("2")).unwrap().rates;
        price.long_context = Some(LongContext { above: 100, rates: double });
        let usage = |input| Usage { input, output: 10, ..Usage::default() };
        assert_eq!(cost(&price, &usage(100)), Money::from_pico(110_000_000));
        assert_eq!(cost(&price, &usage(101)), Money::from_pico(222_000_000));
    }

    #[test]
    fn prices_are_exact_and_in_range() {
        let smallest = Price::per_million(dollars("0.000001"), None, None, dollars("0")).unwrap();
        assert_eq!(smallest.rates.input, Money::from_pico(1));
        for rate in ["-0.1", "1000001"] {
            let error = Price::per_million(dollars("1"), None, None, dollars(rate)).unwrap_err();
            assert!(matches!(error, ProviderError::Price { name: "output", .. }), "{error}");
        }
    }
}
