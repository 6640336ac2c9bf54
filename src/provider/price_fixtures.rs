//! Prices every case of `fixtures/prices.json`.
//!
//! A case holds `model`, the tier `asked` for where it is another than the ordinary one, and either the `body` of a
//! reply in the form of Chat Completions (of Messages, for Claude) or a `usage` in this program's own convention (`tier`: what the reply says of
//! it); and the `cost` in USD, reckoned by hand from the table: `null` where it is unknown.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::base::WallTime;
use crate::model::{
    CallSettings, HttpReply, Learned, ProviderKind, Sampling, ServiceTier, Structured, Usage,
};
use crate::provider::{Codec, PriceTable, bound, cost};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    about: String,
    model: String,
    asked: Option<String>,
    body: Option<Value>,
    usage: Option<Usage>,
    tier: Option<String>,
    cost: Option<String>,
}

impl Case {
    fn used(&self) -> (Usage, Option<ServiceTier>) {
        let Some(body) = &self.body else {
            return (self.usage.unwrap(), self.tier.as_deref().map(ServiceTier::from_word));
        };
        let call = CallSettings {
            provider: if self.model.contains("claude") {
                ProviderKind::Anthropic
            } else {
                ProviderKind::Openai
            },
            endpoint: "http://127.0.0.1:8000/v1/chat/completions".to_owned(),
            own_host: false,
            model: self.model.clone(),
            max_output_tokens: 1024,
            structured: Structured::Auto,
            sampling: Sampling::default(),
            extra: Map::new(),
            cache: false,
            mock_seed: 0,
        };
        let body = body.to_string().into_bytes().into();
        let reply = HttpReply { status: 200, headers: Vec::new(), body };
        let decoded = Codec::new(&call, None).unwrap().decode(&reply, &Learned::default(), WallTime(0));
        (decoded.usage.unwrap(), decoded.tier)
    }
}

#[test]
fn every_case_costs_what_the_table_says() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../../fixtures/prices.json")).unwrap();
    assert!(cases.len() >= 30);
    for case in &cases {
        let asked = case.asked.as_deref().map_or(ServiceTier::Standard, ServiceTier::from_word);
        let price = PriceTable::built_in().price(&case.model).and_then(|price| price.asking(asked));
        let (usage, tier) = case.used();
        let paid = price.and_then(|price| cost(&price, &usage, tier.unwrap_or(price.asked)));
        assert_eq!(paid.map(|paid| paid.to_string()), case.cost, "{}", case.about);
        // Nothing that a request costs is above its bound.
        if let (Some(price), Some(paid)) = (price, paid)
            && tier != Some(ServiceTier::Priority)
        {
            let price = price.keeping_long(usage.cache_write_long > 0);
            assert!(paid <= bound(&price, usage.input, usage.output), "{}", case.about);
        }
    }
}
