//! Reads a raw value as what its key wants.

use std::str::FromStr;
use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::base::parse_duration;
use crate::cli::keys::{self, Key};
use crate::cli::settings::error::SettingsError;
use crate::cli::settings::layers::{Layers, Origin, Raw};

/// A value that somebody gave, with where.
#[derive(Debug, Clone)]
pub(super) struct Given<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
}

pub(super) fn bad(origin: &Origin, key: &str, problem: impl Into<String>) -> SettingsError {
    SettingsError::BadValue { origin: origin.to_string(), key: key.to_owned(), problem: problem.into() }
}

impl Layers {
    fn key(id: &str) -> Result<&'static Key, SettingsError> {
        keys::find(id).ok_or_else(|| SettingsError::Conflict(format!("no key is called `{id}`")))
    }

    fn read<T>(
        &self,
        id: &str,
        wanted: &str,
        read: impl FnOnce(&Raw) -> Option<T>,
    ) -> Result<Option<Given<T>>, SettingsError> {
        let Some((origin, raw)) = self.raw(Self::key(id)?) else { return Ok(None) };
        match read(&raw) {
            Some(value) => Ok(Some(Given { value, origin })),
            None => Err(bad(&origin, id, format!("must be {wanted}, not {}", shown(&raw)))),
        }
    }

    pub(super) fn text(&self, id: &str) -> Result<Option<Given<String>>, SettingsError> {
        self.read(id, "text", |raw| match raw {
            Raw::Text(text) => Some(text.clone()),
            _ => None,
        })
    }

    pub(super) fn integer(
        &self,
        id: &str,
        least: u64,
        most: u64,
    ) -> Result<Option<Given<u64>>, SettingsError> {
        let wanted = if most == u64::MAX {
            format!("a whole number of at least {least}")
        } else {
            format!("a whole number from {least} to {most}")
        };
        self.read(id, &wanted, |raw| {
            number_text(raw)?.parse().ok().filter(|value| (least..=most).contains(value))
        })
    }

    pub(super) fn signed(&self, id: &str) -> Result<Option<Given<i64>>, SettingsError> {
        self.read(id, "a whole number", |raw| number_text(raw)?.parse().ok())
    }

    /// A decimal from 0 to `most`, exact.
    pub(super) fn decimal(&self, id: &str, most: Decimal) -> Result<Option<Given<Decimal>>, SettingsError> {
        let wanted = format!("a number from 0 to {most}");
        self.read(id, &wanted, |raw| {
            let text = number_text(raw)?;
            let value = Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()?;
            (Decimal::ZERO <= value && value <= most).then_some(value)
        })
    }

    /// A JSON number, as written.
    pub(super) fn number(&self, id: &str) -> Result<Option<Given<serde_json::Number>>, SettingsError> {
        self.read(id, "a number", |raw| serde_json::Number::from_str(number_text(raw)?).ok())
    }

    pub(super) fn switch(&self, id: &str, default: bool) -> Result<bool, SettingsError> {
        let given = self.read(id, "true or false", |raw| match raw {
            Raw::Switch(value) => Some(*value),
            Raw::Text(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
            _ => None,
        })?;
        Ok(given.map_or(default, |given| given.value))
    }

    pub(super) fn duration(&self, id: &str, default: &str) -> Result<Duration, SettingsError> {
        let Some((origin, raw)) = self.raw(Self::key(id)?) else {
            return parse_duration(default).map_err(|error| SettingsError::Conflict(error.to_string()));
        };
        match &raw {
            Raw::Text(text) | Raw::Number(text) => {
                parse_duration(text).map_err(|error| bad(&origin, id, format!("is no duration: {error}")))
            }
            other => Err(bad(&origin, id, format!("must be a duration, not {}", shown(other)))),
        }
    }

    pub(super) fn choice<T: Copy>(
        &self,
        id: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<Given<T>>, SettingsError> {
        let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
        let wanted = format!("one of {}", words.join(", "));
        self.read(id, &wanted, |raw| match raw {
            Raw::Text(text) => choices.iter().find(|(word, _)| word == text).map(|(_, value)| *value),
            _ => None,
        })
    }

    /// A list of JSON values: an array of the file, or text between commas, each read as JSON where it is JSON.
    pub(super) fn list(&self, id: &str) -> Result<Option<Given<Vec<Value>>>, SettingsError> {
        self.read(id, "a list", |raw| match raw {
            Raw::Json(Value::Array(items)) => Some(items.clone()),
            Raw::Json(_) => None,
            Raw::Switch(value) => Some(vec![Value::Bool(*value)]),
            Raw::Number(text) => Some(vec![word(text)]),
            Raw::Text(text) => match serde_json::from_str(text) {
                Ok(Value::Array(items)) => Some(items),
                Ok(single) if !text.contains(',') => Some(vec![single]),
                _ => Some(text.split(',').map(str::trim).filter(|item| !item.is_empty()).map(word).collect()),
            },
        })
    }

    pub(super) fn words(&self, id: &str) -> Result<Option<Given<Vec<String>>>, SettingsError> {
        let Some(given) = self.list(id)? else { return Ok(None) };
        let value = given
            .value
            .into_iter()
            .map(|value| match value {
                Value::String(text) => text,
                other => other.to_string(),
            })
            .collect();
        Ok(Some(Given { value, origin: given.origin }))
    }
}

fn word(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn number_text(raw: &Raw) -> Option<&str> {
    match raw {
        Raw::Text(text) | Raw::Number(text) => Some(text.trim()),
        _ => None,
    }
}

/// A value in a message, short enough for a line.
pub(super) fn shown(raw: &Raw) -> String {
    let text = match raw {
        Raw::Text(text) => format!("{text:?}"),
        Raw::Number(text) => text.clone(),
        Raw::Switch(value) => value.to_string(),
        Raw::Json(value) => value.to_string(),
    };
    if text.chars().count() > 60 { text.chars().take(57).chain("...".chars()).collect() } else { text }
}
