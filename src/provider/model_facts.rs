//! Everything that the price table says of a model, for people.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::provider::price_table::{TABLE, matched};

/// What the table says of one model: its members as they stand in `prices.json`, null ones left out. Prices are in USD
/// per million tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFacts {
    /// The model's name in the table.
    pub id: String,
    /// All members, the name among them.
    pub members: Map<String, Value>,
}

/// Where the table comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct TableSource {
    /// The package that it was taken from.
    pub package: String,
    /// That package's version.
    pub version: String,
    /// When that was published, as in `2026-11-20`.
    pub published: String,
}

impl ModelFacts {
    /// The model that `name` stands for, by the rules that runs price by.
    pub fn find<'a>(models: &'a [Self], name: &str) -> Option<&'a Self> {
        matched(name, |name| models.iter().find(|model| model.id == name))
    }

    /// A member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.get(name)
    }
}

/// The whole table in its own order, and where it comes from.
pub fn model_facts() -> (TableSource, Vec<ModelFacts>) {
    let file: File = serde_json::from_str(TABLE).unwrap_or_default();
    let models = file.models.into_iter().filter_map(|mut members| {
        members.retain(|_, value| !value.is_null());
        let id = members.get("id")?.as_str()?.to_owned();
        Some(ModelFacts { id, members })
    });
    (file.source, models.collect())
}

#[derive(Debug, Default, Deserialize)]
struct File {
    source: TableSource,
    models: Vec<Map<String, Value>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::PriceTable;

    #[test]
    fn the_table_says_where_it_comes_from_and_names_models_as_runs_do() {
        let (source, models) = model_facts();
        assert!(!source.package.is_empty() && source.published.len() == 10, "{source:?}");
        assert!(models.iter().all(|model| PriceTable::built_in().price(&model.id).is_some()));
        let found = |name| ModelFacts::find(&models, name).map(|model| model.id.as_str());
        assert_eq!(found("openai/gpt-5.4-mini-2026-03-17"), Some("gpt-5.4-mini"));
        assert_eq!(found("gpt-5.4-min"), None);
    }
}
