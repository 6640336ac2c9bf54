//! The credentials' names.

use crate::cli::settings::error::SettingsError;
use crate::cli::settings::layers::{Layers, Raw};
use crate::cli::settings::resolve::Invocation;
use crate::cli::settings::values::{bad, shown};
use crate::model::{CallSettings, KeySettings, KeySource, ProviderKind};
use crate::provider::begins_like_a_key;

/// The highest number that a limit of a key may be.
const MOST: u64 = 1 << 40;

/// What is said of a name that is none, without a word of it.
const NO_VARIABLE: &str =
    "not the name of a variable: a key is never given as text, put it into a variable and name that";

/// Whether a text may be the name of a variable, and does not look like a key.
fn names_a_variable(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins_well && text.chars().all(is_part) && !begins_like_a_key(text)
}

/// The keys: from flags, else from the file, else the provider's usual variable.
pub(super) fn keys(
    layers: &Layers,
    invocation: &Invocation,
    call: &CallSettings,
) -> Result<Vec<KeySettings>, SettingsError> {
    let mut keys = Vec::new();
    for text in &invocation.key_env {
        let Some((label, variable)) =
            text.split_once('=').filter(|(label, name)| !label.is_empty() && !name.is_empty())
        else {
            // What was typed may be a key.
            return Err(SettingsError::Conflict("--key-env: write LABEL=VARIABLE".to_owned()));
        };
        if !names_a_variable(variable) {
            return Err(SettingsError::Conflict(format!("--key-env {label}: {NO_VARIABLE}")));
        }
        let source = KeySource::Variable(variable.to_owned());
        keys.push(KeySettings { label: label.to_owned(), source, concurrency: 0, rpm: 0, tpm: 0 });
    }
    if keys.is_empty()
        && let Some(file) = layers.file()
    {
        for (at, table) in file.keys().iter().enumerate() {
            let origin = file.origin(table.line);
            let text = |name: &str| match table.members.get(name) {
                None => Ok(None),
                Some(Raw::Text(text)) => Ok(Some(text.clone())),
                Some(other) => {
                    Err(bad(&origin, &format!("keys.{name}"), format!("must be text, not {}", shown(other))))
                }
            };
            let source = match (text("env")?, text("file")?) {
                (Some(variable), None) if names_a_variable(&variable) => KeySource::Variable(variable),
                (Some(_), None) => return Err(bad(&origin, "keys.env", NO_VARIABLE)),
                (None, Some(path)) => KeySource::File(layers.path(&origin, &path)),
                _ => {
                    return Err(bad(
                        &origin,
                        "keys",
                        "needs either `env` or `file`, the name of where the key is",
                    ));
                }
            };
            let number = |name: &str| match table.members.get(name) {
                None => Ok(0),
                Some(Raw::Number(text)) if text.parse::<u64>().is_ok_and(|value| value <= MOST) => {
                    Ok(text.parse::<u64>().unwrap_or(0))
                }
                Some(other) => {
                    let problem = format!("must be a whole number, not {}", shown(other));
                    Err(bad(&origin, &format!("keys.{name}"), problem))
                }
            };
            let concurrency = u32::try_from(number("concurrency")?).unwrap_or(u32::MAX);
            let (rpm, tpm) = (number("rpm")?, number("tpm")?);
            let label = text("label")?.unwrap_or_else(|| format!("key-{}", at + 1));
            keys.push(KeySettings { label, source, concurrency, rpm, tpm });
        }
    }
    for (at, key) in keys.iter().enumerate() {
        if keys[..at].iter().any(|other| other.label == key.label) {
            return Err(SettingsError::Conflict(format!(
                "two keys are labelled `{}`: give each its own label",
                key.label
            )));
        }
    }
    if keys.is_empty() {
        let source = match call.provider {
            ProviderKind::Openai => KeySource::DefaultVariable("OPENAI_API_KEY".to_owned()),
            ProviderKind::Anthropic => KeySource::DefaultVariable("ANTHROPIC_API_KEY".to_owned()),
            ProviderKind::Mock => KeySource::Nothing,
        };
        keys.push(KeySettings { label: "default".to_owned(), source, concurrency: 0, rpm: 0, tpm: 0 });
    }
    Ok(keys)
}
