//! What an answer is, from the highest layer that says so.

use std::path::Path;

use serde_json::Value;

use crate::answer::{ColumnType, parse_column, preset_verdict, schema_of_columns};
use crate::cli::settings::ConfigFile;
use crate::cli::settings::error::SettingsError;
use crate::cli::settings::layers::{Layers, Origin};
use crate::cli::settings::resolve::Invocation;
use crate::cli::settings::values::{Given, bad};
use crate::cli::settings::wrong::Wrong;
use crate::model::AnswerSettings;

pub(super) fn answer(layers: &Layers, invocation: &Invocation, wrong: &mut Wrong) -> Option<AnswerSettings> {
    let mut text = |id| wrong.unless(layers.text(id)).flatten().map(|given| given.value);
    let (mut verdict, mut confidence) = (text("answer.verdict"), text("answer.confidence"));
    let mut pass = wrong.unless(layers.list("answer.pass")).flatten().map(|given| given.value);
    let agree_on = wrong.unless(layers.words("answer.agree_on")).flatten().map(|given| given.value);
    let repair = wrong.given(layers.integer("answer.repair", 0, 100), 1);
    let schema = match wrong.unless(shape(layers, invocation))? {
        None => None,
        Some(Shape::Preset) => {
            let preset = preset_verdict();
            verdict.get_or_insert_with(|| preset.verdict.to_owned());
            confidence.get_or_insert_with(|| preset.confidence.to_owned());
            pass.get_or_insert_with(|| preset.pass.clone());
            Some(preset.schema)
        }
        Some(shape) => Some(wrong.unless(shape.schema(layers))?),
    };
    Some(AnswerSettings {
        schema,
        verdict,
        pass: pass.unwrap_or_else(|| vec![Value::Bool(true), Value::String("pass".to_owned())]),
        confidence,
        agree_on,
        repair: u32::try_from(repair).unwrap_or(100),
    })
}

/// What says how an answer looks, before it is read.
enum Shape<'a> {
    /// `--column`.
    Flags(&'a [String]),
    /// `answer.columns`, with its place.
    Columns(Origin, &'a [(String, Value)]),
    /// `answer.schema`.
    File(Given<String>),
    /// `answer.preset`.
    Preset,
}

impl Shape<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Flags(_) => "--column",
            Self::Columns(..) => "answer.columns",
            Self::File(_) => "answer.schema",
            Self::Preset => "answer.preset",
        }
    }

    fn rank(&self, preset: u8) -> u8 {
        match self {
            Self::Flags(_) => Origin::Flag(String::new()).rank(),
            Self::Columns(origin, _) => origin.rank(),
            Self::File(given) => given.origin.rank(),
            Self::Preset => preset,
        }
    }

    fn schema(&self, layers: &Layers) -> Result<Value, SettingsError> {
        match self {
            Self::Preset => Ok(preset_verdict().schema),
            Self::File(given) => read_schema(&layers.path(&given.origin, &given.value), &given.origin),
            Self::Flags(texts) => {
                let parsed = texts.iter().map(|text| {
                    parse_column(text).map_err(|error| SettingsError::Conflict(format!("--column: {error}")))
                });
                closed(&parsed.collect::<Result<Vec<_>, _>>()?)
            }
            Self::Columns(origin, columns) => {
                let parsed =
                    columns.iter().map(|(name, value)| column(name, value).map(|kind| (name.clone(), kind)));
                let parsed = parsed.collect::<Result<Vec<_>, _>>();
                closed(&parsed.map_err(|problem| bad(origin, "answer.columns", problem))?)
            }
        }
    }
}

/// The form of an answer, from the highest layer that says one. What a lower layer names is not even read.
fn shape<'a>(layers: &'a Layers, invocation: &'a Invocation) -> Result<Option<Shape<'a>>, SettingsError> {
    let preset = layers.choice("answer.preset", &[("verdict", ())])?;
    let preset_rank = preset.as_ref().map_or(0, |given| given.origin.rank());
    let flags = Some(invocation.columns.as_slice()).filter(|columns| !columns.is_empty());
    let columns = layers.file().and_then(ConfigFile::columns);
    let forms = [
        flags.map(Shape::Flags),
        layers.text("answer.schema")?.map(Shape::File),
        preset.map(|_| Shape::Preset),
        columns.map(|(origin, columns)| Shape::Columns(origin, columns)),
    ];
    let mut found: Vec<_> =
        forms.into_iter().flatten().map(|shape| (shape.rank(preset_rank), shape)).collect();
    found.sort_by_key(|(rank, _)| std::cmp::Reverse(*rank));
    if let [(first, one), (second, two), ..] = found.as_slice()
        && first == second
    {
        let (one, two) = (one.name(), two.name());
        return Err(SettingsError::Conflict(format!(
            "`{one}` and `{two}` both say what an answer is: leave one out"
        )));
    }
    Ok(found.into_iter().next().map(|(_, shape)| shape))
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
