//! What tokens cost.

use rust_decimal::Decimal;
use serde_json::Value;

use crate::cli::settings::error::SettingsError;
use crate::cli::settings::file::PRICE_MEMBERS;
use crate::cli::settings::layers::{Layers, Raw};
use crate::cli::settings::resolve::Invocation;
use crate::cli::settings::values::{bad, shown};
use crate::model::{CallSettings, ProviderKind, ServiceTier};
use crate::provider::{Price, PriceTable};

/// The price of what is called: `--price`, else `[price]`, else the built-in table. `None` where it is unknown, be it
/// that of the model or that of the tier that the requests ask for.
pub(super) fn price(
    layers: &Layers,
    invocation: &Invocation,
    call: &CallSettings,
) -> Result<Option<Price>, SettingsError> {
    let tier = call.extra.get("service_tier").and_then(Value::as_str);
    let price = model_price(layers, invocation, call)?;
    let price = price.map(|price| price.keeping_long(call.extra.values().any(keeps_long)));
    Ok(price.and_then(|price| price.asking(tier.map_or(ServiceTier::Standard, ServiceTier::from_word))))
}

/// What multiplies the table's price: where requests are to be processed, and how fast. `None` where the table does not
/// say what a wish costs.
fn multiplier(call: &CallSettings) -> Option<Decimal> {
    let of = |name: &str| PriceTable::built_in().multiplier(&call.model, name);
    let asked = |name: &str| call.extra.get(name).and_then(Value::as_str);
    if call.provider != ProviderKind::Anthropic {
        // The provider's own hosts of a region; of older models no surcharge is known.
        let is_in = |region: &&str| call.endpoint.starts_with(&format!("https://{region}.api.openai.com/"));
        return Some(
            ["us", "eu"]
                .iter()
                .find(|region| is_in(region))
                .and_then(|region| of(region))
                .unwrap_or(Decimal::ONE),
        );
    }
    let speed = asked("speed").filter(|speed| *speed != "standard").map_or(Some(Decimal::ONE), of)?;
    let place = asked("inference_geo").filter(|place| *place != "global").map_or(Some(Decimal::ONE), of)?;
    Some(speed * place)
}

/// Whether a member of the request asks a cache to keep what is written to it for longer than providers do by
/// themselves: 5 minutes, or 30.
fn keeps_long(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.iter().any(|(name, value)| match (name.as_str(), value.as_str()) {
            ("ttl", Some(time)) => !matches!(time, "5m" | "30m"),
            _ => keeps_long(value),
        }),
        Value::Array(items) => items.iter().any(keeps_long),
        _ => false,
    }
}

fn model_price(
    layers: &Layers,
    invocation: &Invocation,
    call: &CallSettings,
) -> Result<Option<Price>, SettingsError> {
    let mut rates: Vec<(String, Decimal)> = Vec::new();
    if let Some(text) = &invocation.price {
        for part in text.split(',') {
            let rate = part.split_once('=').and_then(|(name, rate)| {
                Some((name.trim().to_owned(), Decimal::from_str_exact(rate.trim()).ok()?))
            });
            let Some(rate) = rate else {
                return Err(SettingsError::Conflict(format!(
                    "--price {text}: write it as in input=1,output=4, in USD per million tokens"
                )));
            };
            rates.push(rate);
        }
    } else {
        for id in PRICE_MEMBERS {
            if let Some((origin, raw)) = layers.in_file(id) {
                let rate = match &raw {
                    Raw::Number(text) => Decimal::from_str_exact(text).ok(),
                    _ => None,
                };
                let Some(rate) = rate else {
                    return Err(bad(
                        &origin,
                        id,
                        format!("must be a number of USD per million tokens, not {}", shown(&raw)),
                    ));
                };
                rates.push((id.trim_start_matches("price.").to_owned(), rate));
            }
        }
    }
    if rates.is_empty() {
        let price = PriceTable::built_in().price(&call.model).copied();
        return Ok(price.and_then(|price| Some(price.times(multiplier(call)?))));
    }
    let known = ["input", "cached_input", "cache_write", "output"];
    if let Some((name, _)) = rates.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        return Err(SettingsError::Conflict(format!("price: `{name}` is none of {}", known.join(", "))));
    }
    let rate = |wanted: &str| rates.iter().find(|(name, _)| name == wanted).map(|(_, rate)| *rate);
    let (Some(input), Some(output)) = (rate("input"), rate("output")) else {
        return Err(SettingsError::Conflict(
            "a price needs both input and output, in USD per million tokens".to_owned(),
        ));
    };
    Price::per_million(input, rate("cached_input"), rate("cache_write"), output)
        .map(Some)
        .map_err(|error| SettingsError::Conflict(error.to_string()))
}
