//! The table of known prices.

use std::collections::HashMap;
use std::sync::LazyLock;

use rust_decimal::Decimal;
use serde::Deserialize;

use crate::model::ServiceTier;
use crate::provider::price::{per_token, scale};
use crate::provider::{LongContext, Price, Rates, TierRates, Tiers};

/// Prices and two abilities of the models that are known, from `prices.json`, which says where they come from.
#[derive(Debug, Default)]
pub struct PriceTable {
    models: HashMap<String, Entry>,
}

#[derive(Debug)]
struct Entry {
    price: Price,
    reasons: bool,
    forces_tools: bool,
    cache_min: Option<u64>,
    multipliers: HashMap<String, Decimal>,
}

/// The table as it comes with the program.
pub(super) const TABLE: &str = include_str!("prices.json");

static BUILT_IN: LazyLock<PriceTable> = LazyLock::new(|| PriceTable::read(TABLE));

impl PriceTable {
    /// The table that the program comes with, read at its first use.
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads a table. The built-in one is checked by a test, so an entry that cannot be read only means that its
    /// model is unpriced, as any unknown model is.
    fn read(text: &str) -> Self {
        let file: File = serde_json::from_str(text).unwrap_or_default();
        let models = file.models.into_iter().filter_map(|model| {
            let rates = model.rates.read(None)?;
            let read = |other: &RawRates| other.read(Some(&rates));
            let long =
                |long: &Long| Some(LongContext { above: long.above_input_tokens, rates: read(&long.rates)? });
            let long_context = model.long_context.as_ref().and_then(long);
            let tier = |rates: &Option<RawRates>, long: Option<&RawRates>| {
                Some(TierRates { rates: read(rates.as_ref()?)?, long: long.and_then(read) })
            };
            let long_batch = model.long_context.as_ref().and_then(|long| long.batch.as_ref());
            let tiers = Some(Tiers {
                batch: tier(&model.batch, long_batch),
                flex: tier(&model.flex, None),
                priority: tier(&model.priority, None),
            });
            let asked = ServiceTier::Standard;
            let price = Price { rates, long_context, tiers, asked, keeps_long: false };
            let entry = Entry {
                price,
                reasons: model.supports_reasoning,
                forces_tools: model.supports_forced_tool_use != Some(false),
                cache_min: model.cache_min_tokens,
                multipliers: model
                    .multipliers
                    .iter()
                    .chain(&model.regional_uplift)
                    .filter_map(|(name, by)| Some((name.clone(), decimal(by)?)))
                    .collect(),
            };
            Some((model.id, entry))
        });
        Self { models: models.collect() }
    }

    /// The price of a model; `None` if it is unknown, which is never the same as free.
    pub fn price(&self, model: &str) -> Option<&Price> {
        self.find(model).map(|entry| &entry.price)
    }

    /// Whether the model is known to reason before it answers, so that it needs room for more output.
    pub fn reasons(&self, model: &str) -> bool {
        self.find(model).is_some_and(|entry| entry.reasons)
    }

    /// The fewest tokens of a prompt's beginning that the model's provider keeps in a cache, where that is known.
    pub fn cache_min(&self, model: &str) -> Option<u64> {
        self.find(model)?.cache_min
    }

    /// What multiplies the model's price for requests that ask for this: a place of processing, or a speed.
    pub fn multiplier(&self, model: &str, name: &str) -> Option<Decimal> {
        self.find(model)?.multipliers.get(name).copied()
    }

    /// Whether the model takes a tool that it must call; what is not known is taken to be so.
    pub(super) fn forces_tools(&self, model: &str) -> bool {
        self.find(model).is_none_or(|entry| entry.forces_tools)
    }

    fn find(&self, model: &str) -> Option<&Entry> {
        matched(model, |name| self.models.get(name))
    }
}

/// A model by its name: as it stands; else without `-2026-03-17`, `-20260317` or `-latest`; each also without
/// leading `models/` or `vendor/`. Never by a prefix: `gpt-5` is not `gpt-5.4`.
pub(super) fn matched<T>(model: &str, mut known: impl FnMut(&str) -> Option<T>) -> Option<T> {
    let mut name = model;
    loop {
        let found = known(name);
        if found.is_some() {
            return found;
        }
        if let Some(found) = undated(name).and_then(&mut known) {
            return Some(found);
        }
        name = name.split_once('/')?.1;
    }
}

/// The name without the mark of its version, if it ends with one.
fn undated(name: &str) -> Option<&str> {
    if let Some(stem) = name.strip_suffix("-latest") {
        return Some(stem);
    }
    let cut = |length: usize| {
        let (stem, tail) = name.split_at_checked(name.len().checked_sub(length)?)?;
        let tail = tail.strip_prefix('-')?;
        let dated = tail.bytes().enumerate().all(|(at, byte)| match (length, at) {
            (11, 4 | 7) => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
        (dated && !stem.is_empty()).then_some(stem)
    };
    cut(11).or_else(|| cut(9))
}

#[derive(Debug, Default, Deserialize)]
struct File {
    models: Vec<Model>,
}

#[derive(Debug, Deserialize)]
struct Model {
    id: String,
    #[serde(flatten)]
    rates: RawRates,
    batch: Option<RawRates>,
    flex: Option<RawRates>,
    priority: Option<RawRates>,
    long_context: Option<Long>,
    #[serde(default)]
    supports_reasoning: bool,
    supports_forced_tool_use: Option<bool>,
    cache_min_tokens: Option<u64>,
    #[serde(default)]
    multipliers: HashMap<String, serde_json::Number>,
    #[serde(default)]
    regional_uplift: HashMap<String, serde_json::Number>,
}

#[derive(Debug, Deserialize)]
struct Long {
    above_input_tokens: u64,
    #[serde(flatten)]
    rates: RawRates,
    batch: Option<RawRates>,
}

#[derive(Debug, Deserialize)]
struct RawRates {
    input: serde_json::Number,
    cached_input: Option<serde_json::Number>,
    cache_write: Option<serde_json::Number>,
    cache_write_long: Option<RawLongWrite>,
    output: serde_json::Number,
}

#[derive(Debug, Deserialize)]
struct RawLongWrite {
    price: serde_json::Number,
}

impl RawRates {
    /// The rates. Where the table tells no price of what a cache keeps longer, it is to that of other writes as it is
    /// in the ordinary rates, `base`.
    fn read(&self, base: Option<&Rates>) -> Option<Rates> {
        let rate = |number: &serde_json::Number| per_token("table", decimal(number)?).ok();
        let optional = |number: &Option<serde_json::Number>| number.as_ref().and_then(rate);
        let cache_write = optional(&self.cache_write);
        let told = self.cache_write_long.as_ref().and_then(|long| rate(&long.price));
        let by_base = || {
            let base = base?;
            Some(scale(cache_write?, base.cache_write?, base.cache_write_long?))
        };
        Some(Rates {
            input: rate(&self.input)?,
            cached_input: optional(&self.cached_input),
            cache_write,
            cache_write_long: told.or_else(by_base),
            output: rate(&self.output)?,
        })
    }
}

fn decimal(number: &serde_json::Number) -> Option<Decimal> {
    let text = number.to_string();
    Decimal::from_str_exact(&text).or_else(|_| Decimal::from_scientific(&text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Money;

    #[test]
    fn the_whole_table_is_read() {
        let file: serde_json::Value = serde_json::from_str(include_str!("prices.json")).unwrap();
        let listed = file["models"].as_array().unwrap();
        let table = PriceTable::built_in();
        assert_eq!(table.models.len(), listed.len());
        assert!(file["source"]["sha256"].is_string());
        for model in listed {
            let entry = &table.models[model["id"].as_str().unwrap()];
            assert_eq!(entry.price.long_context.is_some(), model["long_context"].is_object());
            assert_eq!(entry.price.rates.cached_input.is_some(), model["cached_input"].is_number());
            assert_eq!(entry.price.rates.cache_write.is_some(), model["cache_write"].is_number());
            assert_eq!(entry.price.rates.cache_write_long.is_some(), model["cache_write_long"].is_object());
            assert_eq!(entry.cache_min.is_some(), model["cache_min_tokens"].is_number());
            let listed = [&model["multipliers"], &model["regional_uplift"]];
            let listed: usize = listed.iter().filter_map(|all| Some(all.as_object()?.len())).sum();
            assert_eq!(entry.multipliers.len(), listed);
            let tiers = entry.price.tiers.unwrap();
            for (tier, name) in [(tiers.batch, "batch"), (tiers.flex, "flex"), (tiers.priority, "priority")] {
                assert_eq!(tier.is_some(), model[name].is_object(), "{name}");
            }
            assert_eq!(
                tiers.batch.and_then(|batch| batch.long).is_some(),
                model["long_context"]["batch"].is_object()
            );
        }
        let sol = table.price("gpt-6.1-sol").unwrap();
        let long = sol.long_context.unwrap();
        assert_eq!((long.above, long.rates.output), (272_000, Money::from_pico(15_000_000)));
        // Twice as much as the table says of shorter writes, as for ordinary requests.
        let tiers = table.price("claude-opus-4-8").unwrap().tiers.unwrap();
        assert_eq!(tiers.batch.unwrap().rates.cache_write_long, Some(Money::from_pico(5_000_000)));
    }

    #[test]
    fn names_match_whole_or_not_at_all() {
        let table = PriceTable::built_in();
        let mini = table.price("gpt-5.4-mini");
        assert!(mini.is_some());
        for name in [
            "gpt-5.4-mini-2026-03-17",
            "gpt-5.4-mini-20260317",
            "gpt-5.4-mini-latest",
            "openai/gpt-5.4-mini",
            "models/gpt-5.4-mini",
            "openrouter/openai/gpt-5.4-mini-2026-03-17",
        ] {
            assert_eq!(table.price(name), mini, "{name}");
        }
        assert!(table.price("mistral-large-latest").is_some() && table.price("openai/gpt-oss-20b").is_some());
        for name in [
            "",
            "/",
            "gpt-5.4-min",
            "gpt-5.4-mini-x",
            "gpt-6.2-sol",
            "gpt-5.4-mini:free",
            "-latest",
            "é-latest",
        ] {
            assert_eq!(table.price(name), None, "{name}");
        }
        assert_ne!(table.price("gpt-5"), table.price("gpt-5.4"));
    }

    #[test]
    fn some_models_reason() {
        let table = PriceTable::built_in();
        assert!(table.reasons("gpt-5.4-mini") && table.reasons("o3-2025-04-16"));
        assert!(!table.reasons("gpt-4o") && !table.reasons("llama3"));
        assert!(table.forces_tools("claude-haiku-5-5") && table.forces_tools("llama3"));
        assert!(!table.forces_tools("claude-opus-5-5"));
    }
}
