//! Every key with the value that counts and where it came from, for people and for pipelines.

use serde_json::{Value, json};

use crate::cli::keys::{KEYS, Key};
use crate::cli::settings::file::{ConfigFile, PRICE_MEMBERS};
use crate::cli::settings::layers::{Layers, Raw};
use crate::cli::settings::resolve::{Invocation, Resolved};
use crate::model::{KeySettings, KeySource, Settings};
use crate::provider::reads_like_a_credential;

/// A key, its value, and where that came from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effective {
    /// The name in the file with its section.
    pub(crate) key: String,
    /// The value; `null` where there is none.
    pub(crate) value: Value,
    /// A flag, a variable, a line of the file, or `default`.
    pub(crate) origin: String,
}

const DEFAULT: &str = "default";

/// The keys that say what an answer is. The highest layer counts; of the others it is said that they do not.
const SHAPES: [&str; 2] = ["answer.schema", "answer.preset"];

/// All keys, in the order of the help, then the tables. `resolved` is absent where the configuration has a mistake:
/// values are then as they were written. `is_set` looks whether a credential is there; its text is not asked for.
pub(crate) fn effective(
    layers: &Layers,
    invocation: &Invocation,
    resolved: Option<&Resolved>,
    is_set: &dyn Fn(&KeySource) -> bool,
) -> Vec<Effective> {
    let settings = resolved.map(|resolved| &resolved.settings);
    let winner = shape(layers, invocation);
    let mut all = Vec::with_capacity(KEYS.len() + 8);
    for key in KEYS {
        let mut entry = of_key(layers, key, settings);
        if SHAPES.contains(&key.id) && entry.origin != DEFAULT && winner.0 != key.id {
            entry = set_aside(entry, &winner.1);
        }
        all.push(entry);
    }
    let columns = columns(layers, invocation);
    all.push(if columns.origin == DEFAULT || winner.0 == columns.key {
        columns
    } else {
        set_aside(columns, &winner.1)
    });
    let extra = layers.in_file("request.extra");
    all.push(Effective {
        key: "request.extra".to_owned(),
        value: settings
            .map_or(Value::Null, |settings| masked("", &Value::Object(settings.call.extra.clone()))),
        origin: extra.map_or_else(|| DEFAULT.to_owned(), |(origin, _)| origin.to_string()),
    });
    if let Some(resolved) = resolved {
        all.extend(price(layers, invocation, resolved));
        let keys = &resolved.settings.keys;
        all.extend(keys.iter().enumerate().map(|(at, key)| credential(layers, invocation, at, key, is_set)));
    }
    all
}

fn set_aside(entry: Effective, winner: &str) -> Effective {
    Effective { value: Value::Null, origin: format!("{}, set aside for {winner}", entry.origin), ..entry }
}

fn of_key(layers: &Layers, key: &Key, settings: Option<&Settings>) -> Effective {
    let given = layers.raw(key);
    let mut origin = given.as_ref().map_or_else(|| DEFAULT.to_owned(), |(origin, _)| origin.to_string());
    let written = given.as_ref().map_or_else(|| default_of(key), |(_, raw)| value_of(key, raw));
    let mut value =
        settings.and_then(|settings| resolved(key.id, settings, given.is_some())).unwrap_or(written);
    let file_id = format!("{}_file", key.id);
    if let Some((from_file, _)) = crate::cli::keys::find(&file_id).and_then(|file| layers.raw(file))
        && given.as_ref().is_none_or(|(origin, _)| origin.rank() < from_file.rank())
    {
        origin = from_file.to_string();
    }
    let preset = crate::cli::keys::find("answer.preset").and_then(|preset| layers.raw(preset));
    if given.is_none()
        && ["answer.verdict", "answer.pass", "answer.confidence"].contains(&key.id)
        && let Some((preset, _)) = preset
    {
        origin = format!("{preset}, the preset");
    }
    if key.id == "base_url"
        && let Value::String(url) = &value
    {
        value = Value::String(without_secrets(url));
    }
    Effective { key: key.id.to_owned(), value, origin }
}

/// Values that are told from others, or from the model: what is written is not all there is to them.
fn resolved(id: &str, settings: &Settings, is_given: bool) -> Option<Value> {
    let call = &settings.call;
    Some(match id {
        "model" => {
            Some(call.model.as_str()).filter(|model| !model.is_empty()).map_or(Value::Null, Value::from)
        }
        "provider" => call.provider.as_str().into(),
        "base_url" if !is_given => call.endpoint.starts_with("http").then(|| call.endpoint.clone()).into(),
        "prompt.system" => settings.prompt.system.clone().into(),
        "prompt.user" => settings.prompt.user.clone().into(),
        "answer.verdict" => settings.answer.verdict.clone().into(),
        "answer.pass" => settings.answer.pass.clone().into(),
        "answer.confidence" => settings.answer.confidence.clone().into(),
        "answer.agree_on" => settings.answer.agree_on.clone().into(),
        "answer.max_output_tokens" => call.max_output_tokens.into(),
        "limits.concurrency" => settings.limits.concurrency.into(),
        "output.path" => settings
            .output
            .path
            .as_ref()
            .map_or_else(|| "-".to_owned(), |path| path.display().to_string())
            .into(),
        _ => return None,
    })
}

/// A value as it was written, as the kind of JSON that its key wants.
fn value_of(key: &Key, raw: &Raw) -> Value {
    match raw {
        Raw::Text(text) => typed(key, text),
        Raw::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())),
        Raw::Switch(value) => Value::Bool(*value),
        Raw::Json(value) => value.clone(),
    }
}

fn typed(key: &Key, text: &str) -> Value {
    if key.is_switch() {
        return match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Value::Bool(true),
            "false" | "0" | "no" | "off" => Value::Bool(false),
            _ => Value::from(text),
        };
    }
    // Placeholders of numbers, and of choices that begin with one.
    let is_number = matches!(key.value.split('|').next(), Some("N" | "X" | "USD"));
    let number =
        serde_json::from_str(text.trim()).ok().filter(|value: &Value| is_number && value.is_number());
    number.unwrap_or_else(|| Value::from(text))
}

/// The default, which the help names, or nothing.
fn default_of(key: &Key) -> Value {
    let named = key.help.rsplit_once("[default: ").and_then(|(_, rest)| rest.strip_suffix(']'));
    named.map_or(Value::Null, |text| typed(key, text))
}

/// The key that says what an answer is, with its origin.
fn shape(layers: &Layers, invocation: &Invocation) -> (String, String) {
    let mut found: Vec<(u8, String, String)> = SHAPES
        .iter()
        .filter_map(|id| {
            let (origin, _) = layers.raw(crate::cli::keys::find(id)?)?;
            Some((origin.rank(), (*id).to_owned(), format!("{id} ({origin})")))
        })
        .collect();
    if !invocation.columns.is_empty() {
        found.push((3, "answer.columns".to_owned(), "--column".to_owned()));
    } else if let Some((origin, _)) = layers.file().and_then(ConfigFile::columns) {
        found.push((origin.rank(), "answer.columns".to_owned(), format!("answer.columns ({origin})")));
    }
    let best = found.into_iter().max_by_key(|(rank, ..)| *rank);
    best.map_or_else(Default::default, |(_, id, shown)| (id, shown))
}

fn columns(layers: &Layers, invocation: &Invocation) -> Effective {
    let key = "answer.columns".to_owned();
    if !invocation.columns.is_empty() {
        return Effective { key, value: invocation.columns.clone().into(), origin: "--column".to_owned() };
    }
    match layers.file().and_then(ConfigFile::columns) {
        None => Effective { key, value: Value::Null, origin: DEFAULT.to_owned() },
        Some((origin, columns)) => Effective {
            key,
            value: Value::Object(columns.iter().cloned().collect()),
            origin: origin.to_string(),
        },
    }
}

/// The price in USD per million tokens.
fn price(layers: &Layers, invocation: &Invocation, resolved: &Resolved) -> Vec<Effective> {
    let rates = resolved.price.map(|price| price.rates);
    let is_given = invocation.price.is_some() || PRICE_MEMBERS.iter().any(|id| layers.in_file(id).is_some());
    let values = [
        rates.map(|rates| rates.input),
        rates.and_then(|rates| rates.cached_input),
        rates.and_then(|rates| rates.cache_write),
        rates.map(|rates| rates.output),
    ];
    PRICE_MEMBERS
        .iter()
        .zip(values)
        .map(|(id, rate)| {
            let origin = match (&invocation.price, layers.in_file(id)) {
                (Some(_), _) => "--price".to_owned(),
                (None, Some((origin, _))) => origin.to_string(),
                (None, None) if !is_given && rate.is_some() => "the built-in price table".to_owned(),
                (None, None) => DEFAULT.to_owned(),
            };
            let text = rate.map(|rate| rate.times(1_000_000).to_string());
            let value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
            Effective { key: (*id).to_owned(), value, origin }
        })
        .collect()
}

/// A credential: where it is, and whether it is there. Its text is never shown, not even in part.
fn credential(
    layers: &Layers,
    invocation: &Invocation,
    at: usize,
    key: &KeySettings,
    is_set: &dyn Fn(&KeySource) -> bool,
) -> Effective {
    let secret = if is_set(&key.source) { Value::from("***") } else { Value::Null };
    let mut value = match &key.source {
        KeySource::Variable(name) | KeySource::DefaultVariable(name) => {
            json!({ "env": name, "secret": secret })
        }
        KeySource::File(path) => json!({ "file": path.display().to_string(), "secret": secret }),
        KeySource::Nothing => Value::Null,
    };
    if key.concurrency > 0 {
        value["concurrency"] = key.concurrency.into();
    }
    let table = layers.file().and_then(|file| Some(file.origin(file.keys().get(at)?.line)));
    let origin = match table {
        _ if !invocation.key_env.is_empty() => "--key-env".to_owned(),
        Some(origin) => origin.to_string(),
        None => DEFAULT.to_owned(),
    };
    Effective { key: format!("keys.{}", key.label), value, origin }
}

/// Names of members and of query parameters that hold credentials.
fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = ["api_key", "apikey", "token", "secret", "password", "authorization", "signature"];
    name == "key" || name == "sig" || ends.iter().any(|end| name.ends_with(end))
}

fn masked(name: &str, value: &Value) -> Value {
    match value {
        Value::String(_) if names_a_secret(name) => Value::from("***"),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), masked(name, value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|item| masked(name, item)).collect(),
        other => other.clone(),
    }
}

/// A URL without its user, and with `***` for query values that read like credentials: it is shown beside the refusal.
fn without_secrets(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let base = match base.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match authority.rsplit_once('@') {
                Some((_, host)) => format!("{scheme}://***@{host}{path}"),
                None => base.to_owned(),
            }
        }
        None => base.to_owned(),
    };
    let Some(query) = query else { return base };
    let parts: Vec<String> = query
        .split('&')
        .map(|part| match part.split_once('=') {
            Some((name, value)) if reads_like_a_credential(name, value) || names_a_secret(name) => {
                format!("{name}=***")
            }
            _ => part.to_owned(),
        })
        .collect();
    format!("{base}?{}", parts.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_urls_and_members_are_masked() {
        assert_eq!(
            without_secrets("https://me:pw@host/v1?api-key=abc&api-version=2"),
            "https://***@host/v1?api-key=***&api-version=2"
        );
        assert_eq!(without_secrets("http://host/v1"), "http://host/v1");
        let extra = json!({"a": {"Authorization": "Bearer x"}, "max_tokens": 5, "cache_key": "k"});
        assert_eq!(
            masked("", &extra),
            json!({"a": {"Authorization": "***"}, "max_tokens": 5, "cache_key": "k"})
        );
    }

    #[test]
    fn defaults_are_those_of_the_help() {
        let default = |id: &str| default_of(crate::cli::keys::find(id).unwrap());
        assert_eq!(default("retry.attempts"), json!(5));
        assert_eq!(default("retry.base"), json!("1s"));
        assert_eq!(default("ensemble.auto_pass"), json!(0.8));
        assert_eq!(default("ensemble.early_stop"), json!(true));
        assert_eq!(default("answer.temperature"), Value::Null);
    }
}
