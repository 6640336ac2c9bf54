//! What an answer is, from the highest layer that says so.

use std::path::Path;

use serde_json::Value;

use crate::answer::{ColumnType, parse_column, preset_verdict, schema_of_columns};
use crate::cli::settings::ConfigFile;
use crate::cli::settings::error::SettingsError;
use crate::cli::settings::layers::{Layers, Origin};
use crate::cli::settings::resolve::Invocation;
use crate::cli::settings::values::bad;
use crate::model::AnswerSettings;

pub(super) fn answer(layers: &Layers, invocation: &Invocation) -> Result<AnswerSettings, SettingsError> {
    let mut verdict = layers.text("answer.verdict")?.map(|given| given.value);
    let mut confidence = layers.text("answer.confidence")?.map(|given| given.value);
    let mut pass = layers.list("answer.pass")?.map(|given| given.value);
    let schema = match shape(layers, invocation)? {
        Shape::None => None,
        Shape::Schema(schema) => Some(schema),
        Shape::Verdict => {
            let preset = preset_verdict();
            verdict.get_or_insert_with(|| preset.verdict.to_owned());
            confidence.get_or_insert_with(|| preset.confidence.to_owned());
            pass.get_or_insert_with(|| preset.pass.clone());
            Some(preset.schema)
        }
    };
    let repair = layers.integer("answer.repair", 0, 100)?.map_or(1, |given| given.value);
    Ok(AnswerSettings {
        schema,
        verdict,
        pass: pass.unwrap_or_else(|| vec![Value::Bool(true), Value::String("pass".to_owned())]),
        confidence,
        agree_on: layers.words("answer.agree_on")?.map(|given| given.value),
        repair: u32::try_from(repair).unwrap_or(100),
    })
}

enum Shape {
    None,
    Schema(Value),
    Verdict,
}

/// The form of an answer, from the highest layer that says one.
fn shape(layers: &Layers, invocation: &Invocation) -> Result<Shape, SettingsError> {
    let mut found: Vec<(u8, &'static str, Shape)> = Vec::new();
    if !invocation.columns.is_empty() {
        let columns = invocation
            .columns
            .iter()
            .map(|text| {
                parse_column(text).map_err(|error| SettingsError::Conflict(format!("--column: {error}")))
            })
            .collect::<Result<Vec<_>, _>>()?;
        found.push((3, "--column", Shape::Schema(closed(&columns)?)));
    }
    if let Some(given) = layers.text("answer.schema")? {
        let path = layers.path(&given.origin, &given.value);
        found.push((given.origin.rank(), "answer.schema", Shape::Schema(read_schema(&path, &given.origin)?)));
    }
    if let Some(given) = layers.choice("answer.preset", &[("verdict", ())])? {
        found.push((given.origin.rank(), "answer.preset", Shape::Verdict));
    }
    if let Some((origin, columns)) = layers.file().and_then(ConfigFile::columns) {
        let columns = columns
            .iter()
            .map(|(name, value)| column(name, value).map(|kind| (name.clone(), kind)))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|problem| bad(&origin, "answer.columns", problem))?;
        found.push((origin.rank(), "answer.columns", Shape::Schema(closed(&columns)?)));
    }
    found.sort_by_key(|(rank, ..)| std::cmp::Reverse(*rank));
    if let [(first, one, _), (second, two, _), ..] = found.as_slice()
        && first == second
    {
        return Err(SettingsError::Conflict(format!(
            "`{one}` and `{two}` both say what an answer is: leave one out"
        )));
    }
    Ok(found.into_iter().next().map_or(Shape::None, |(_, _, shape)| shape))
}

fn closed(columns: &[(String, ColumnType)]) -> Result<Value, SettingsError> {
    for (at, (name, _)) in columns.iter().enumerate() {
        if columns[..at].iter().any(|(other, _)| other == name) {
            return Err(SettingsError::Conflict(format!("the column `{name}` is given twice")));
        }
    }
    Ok(schema_of_columns(columns))
}

fn column(name: &str, value: &Value) -> Result<ColumnType, String> {
    match value {
        Value::String(text) => ColumnType::parse(name, text).map_err(|error| error.to_string()),
        Value::Array(values) => {
            ColumnType::of_values(name, values.clone()).map_err(|error| error.to_string())
        }
        other => Err(format!("column `{name}` must be a type or a list of values, not {other}")),
    }
}

fn read_schema(path: &Path, origin: &Origin) -> Result<Value, SettingsError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        bad(origin, "answer.schema", format!("names {}, which cannot be read: {error}", path.display()))
    })?;
    serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(&text)).map_err(|error| {
        bad(origin, "answer.schema", format!("names {}, which is no JSON: {error}", path.display()))
    })
}
