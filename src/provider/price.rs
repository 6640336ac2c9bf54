//! What tokens cost.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use crate::base::Money;
use crate::model::{ServiceTier, Usage};
use crate::provider::ProviderError;

/// The price of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// The rates of an ordinary request.
    pub rates: Rates,
    /// The rates of a long one, where they differ.
    pub long_context: Option<LongContext>,
    /// The rates of the other tiers. `None` for a price that somebody has set: it holds for every tier.
    pub tiers: Option<Tiers>,
    /// The tier that requests ask for.
    pub asked: ServiceTier,
    /// Whether requests ask a cache to keep what they write for longer than usual.
    pub keeps_long: bool,
}

/// Rates of the tiers besides the ordinary one; `None` where a tier has no known price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tiers {
    /// Requests that are handed in as a file.
    pub batch: Option<TierRates>,
    /// Slower ones.
    pub flex: Option<TierRates>,
    /// Faster ones.
    pub priority: Option<TierRates>,
}

/// Rates of one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TierRates {
    /// The rates of a request of ordinary length.
    pub rates: Rates,
    /// The rates of a long one, where the table has them. Else a long request multiplies the tier's rates as it
    /// multiplies the ordinary ones.
    pub long: Option<Rates>,
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
    /// One that the cache keeps for longer than usual; `None` where that costs what `cache_write` does.
    pub cache_write_long: Option<Money>,
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
            cache_write_long: None,
            output: per_token("output", output)?,
        };
        let asked = ServiceTier::Standard;
        Ok(Self { rates, long_context: None, tiers: None, asked, keeps_long: false })
    }

    /// This price for requests that ask for `tier`; `None` if nothing is known of what that costs.
    pub fn asking(self, tier: ServiceTier) -> Option<Self> {
        let asking = Self { asked: tier, ..self };
        asking.rates_of(tier, 0).map(|_| asking)
    }

    /// This price for requests that ask a cache to keep what they write for longer than usual, or do not.
    #[must_use]
    pub fn keeping_long(self, keeps_long: bool) -> Self {
        Self { keeps_long, ..self }
    }

    /// This price with every rate multiplied; half up below 10^-12 USD.
    #[must_use]
    pub fn times(self, by: Decimal) -> Self {
        let tier = |tier: TierRates| TierRates {
            rates: tier.rates.times(by),
            long: tier.long.map(|long| long.times(by)),
        };
        Self {
            rates: self.rates.times(by),
            long_context: self.long_context.map(|long| LongContext { rates: long.rates.times(by), ..long }),
            tiers: self.tiers.map(|tiers| Tiers {
                batch: tiers.batch.map(tier),
                flex: tiers.flex.map(tier),
                priority: tiers.priority.map(tier),
            }),
            ..self
        }
    }

    /// The rates of a request in a tier with so many input tokens; `None` if the tier has no known price.
    pub fn rates_of(&self, tier: ServiceTier, input: u64) -> Option<Rates> {
        let long = self.long_context.as_ref().filter(|long| input > long.above).map(|long| &long.rates);
        let tier = match (tier, &self.tiers) {
            (ServiceTier::Standard, _) | (_, None) => return Some(*long.unwrap_or(&self.rates)),
            (ServiceTier::Batch, Some(tiers)) => tiers.batch,
            (ServiceTier::Flex, Some(tiers)) => tiers.flex,
            (ServiceTier::Priority, Some(tiers)) => tiers.priority,
        }?;
        Some(match long {
            None => tier.rates,
            Some(long) => tier.long.unwrap_or_else(|| tier.rates.scaled(&self.rates, long)),
        })
    }
}

impl Rates {
    fn times(self, by: Decimal) -> Self {
        let rate = |rate: Money| {
            let units = (Decimal::from(rate.pico()) * by)
                .round_dp_with_strategy(0, rust_decimal::RoundingStrategy::MidpointAwayFromZero);
            Money::from_pico(units.to_i64().unwrap_or(i64::MAX))
        };
        Self {
            input: rate(self.input),
            cached_input: self.cached_input.map(rate),
            cache_write: self.cache_write.map(rate),
            cache_write_long: self.cache_write_long.map(rate),
            output: rate(self.output),
        }
    }

    /// These rates, changed as `from` is changed by becoming `to`; half up below 10^-12 USD.
    fn scaled(&self, from: &Self, to: &Self) -> Self {
        let input = |rate: Money| scale(rate, from.input, to.input);
        let by = |rate: Option<Money>, from: Option<Money>, to: Option<Money>| {
            rate.map(|rate| match (from, to) {
                (Some(from), Some(to)) => scale(rate, from, to),
                _ => input(rate),
            })
        };
        Self {
            input: input(self.input),
            cached_input: by(self.cached_input, from.cached_input, to.cached_input),
            cache_write: by(self.cache_write, from.cache_write, to.cache_write),
            cache_write_long: by(self.cache_write_long, from.cache_write_long, to.cache_write_long),
            output: scale(self.output, from.output, to.output),
        }
    }
}

/// `rate`, changed as `from` is changed by becoming `to`.
pub(super) fn scale(rate: Money, from: Money, to: Money) -> Money {
    let (rate_units, from_units, to_units) =
        (i128::from(rate.pico()), i128::from(from.pico()), i128::from(to.pico()));
    if from_units <= 0 {
        return rate.max(to);
    }
    let scaled = (2 * rate_units * to_units + from_units) / (2 * from_units);
    Money::from_pico(i64::try_from(scaled).unwrap_or(i64::MAX))
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

/// The cost of an attempt that was made in `tier`; `None` if that has no known price. Ordinary input is what is neither
/// read from nor written to a cache. Reasoning is part of the output, for every provider of the table.
pub fn cost(price: &Price, usage: &Usage, tier: ServiceTier) -> Option<Money> {
    let rates = price.rates_of(tier, usage.input)?;
    let ordinary = usage.input.saturating_sub(usage.cached_input).saturating_sub(usage.cache_write);
    let write = rates.cache_write.unwrap_or(rates.input);
    let long = usage.cache_write_long.min(usage.cache_write);
    Some(
        rates.input.times(ordinary)
            + rates.cached_input.unwrap_or(rates.input).times(usage.cached_input)
            + write.times(usage.cache_write - long)
            + rates.cache_write_long.unwrap_or(write).times(long)
            + rates.output.times(usage.output),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: ServiceTier = ServiceTier::Standard;

    fn dollars(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    fn price(input: &str, output: &str) -> Price {
        Price::per_million(dollars(input), None, None, dollars(output)).unwrap()
    }

    #[test]
    fn every_kind_of_token_has_its_rate() {
        let price =
            Price::per_million(dollars("1"), Some(dollars("0.1")), Some(dollars("1.25")), dollars("4"))
                .unwrap();
        let usage = Usage {
            input: 1_000,
            cached_input: 300,
            cache_write: 200,
            cache_write_long: 80,
            output: 50,
            reasoning: 20,
        };
        // 500 at 1, 300 at 0.1, 200 at 1.25, 50 at 4 USD per million.
        let text = |price: &Price, usage: &Usage| cost(price, usage, STANDARD).unwrap().to_string();
        assert_eq!(text(&price, &usage), "0.00098");
        let mut dearer = price;
        dearer.rates.cache_write_long = Some(Money::from_pico(2_000_000));
        assert_eq!(text(&dearer, &usage), "0.00104");
        assert_eq!(text(&self::price("1", "4"), &usage), "0.0012");
        assert_eq!(text(&price, &Usage::default()), "0");
    }

    #[test]
    fn a_long_request_pays_the_long_rates_for_all_of_it() {
        let mut price = price("1", "1");
        let double = self::price("2", "3").rates;
        price.long_context = Some(LongContext { above: 100, rates: double });
        let of = |price: &Price, input, tier| {
            cost(price, &Usage { input, output: 10, ..Usage::default() }, tier).map(Money::pico)
        };
        assert_eq!(of(&price, 100, STANDARD), Some(110_000_000));
        assert_eq!(of(&price, 101, STANDARD), Some(232_000_000));
        // Half of everything, also of what is long, unless the table knows better.
        let half = self::price("0.5", "0.5").rates;
        price.tiers = Some(Tiers { flex: Some(TierRates { rates: half, long: None }), ..Tiers::default() });
        assert_eq!(of(&price, 101, ServiceTier::Flex), Some(116_000_000));
        assert_eq!(of(&price, 101, ServiceTier::Priority), None);
        assert_eq!(price.asking(ServiceTier::Batch), None);
    }

    #[test]
    fn a_price_that_somebody_sets_holds_for_every_tier() {
        let price = price("1", "2").asking(ServiceTier::Priority).unwrap();
        let usage = Usage { input: 3, output: 4, ..Usage::default() };
        assert_eq!(cost(&price, &usage, price.asked), cost(&price, &usage, STANDARD));
    }

    #[test]
    fn prices_are_exact_and_in_range() {
        let smallest = price("0.000001", "0");
        assert_eq!(smallest.rates.input, Money::from_pico(1));
        for rate in ["-0.1", "1000001"] {
            let error = Price::per_million(dollars("1"), None, None, dollars(rate)).unwrap_err();
            assert!(matches!(error, ProviderError::Price { name: "output", .. }), "{error}");
        }
    }
}
