//! Reads `verify.toml` into values with their lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toml::de::{DeTable, DeValue};

use crate::cli::keys::KEYS;
use crate::cli::settings::error::SettingsError;
use crate::cli::settings::layers::{Origin, Raw};

/// A parsed configuration file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    values: BTreeMap<String, (usize, Raw)>,
    keys: Vec<KeyTable>,
    columns: Option<(usize, Vec<(String, Value)>)>,
    /// Names that nobody knows: they are told together with what is wrong with the values.
    unknown: Vec<SettingsError>,
}

/// One `[[keys]]` table.
#[derive(Debug)]
pub(super) struct KeyTable {
    pub(super) line: usize,
    pub(super) members: BTreeMap<String, Raw>,
}

/// Names that a `[[keys]]` table may have.
const KEY_MEMBERS: [&str; 6] = ["label", "env", "file", "concurrency", "rpm", "tpm"];

/// Tables that are read whole, not key by key.
const WHOLE: [&str; 2] = ["answer.columns", "request.extra"];

/// Members of `[price]`.
pub(super) const PRICE_MEMBERS: [&str; 4] =
    ["price.input", "price.cached_input", "price.cache_write", "price.output"];

impl ConfigFile {
    /// Looks for the configuration: beside the input, else in the working directory or its parents.
    pub(crate) fn discover(input_folder: Option<&Path>, working_directory: &Path) -> Option<PathBuf> {
        let beside = input_folder.map(|folder| folder.join("verify.toml"));
        let above = working_directory.ancestors().map(|folder| folder.join("verify.toml"));
        beside.into_iter().chain(above).find(|path| path.is_file())
    }

    /// Reads and checks the names in a file.
    pub(crate) fn read(path: &Path) -> Result<Self, SettingsError> {
        let unreadable = |source| SettingsError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(path, text.strip_prefix('\u{feff}').unwrap_or(&text))
    }

    fn parse(path: &Path, text: &str) -> Result<Self, SettingsError> {
        let line_of = |at: usize| text.get(..at).map_or(1, |before| before.matches('\n').count() + 1);
        let table = DeTable::parse(text).map_err(|error| SettingsError::Malformed {
            path: path.to_owned(),
            line: error.span().map_or(1, |span| line_of(span.start)),
            message: error.message().to_owned(),
        })?;
        let mut file = Self {
            path: path.to_owned(),
            values: BTreeMap::new(),
            keys: Vec::new(),
            columns: None,
            unknown: Vec::new(),
        };
        file.walk("", table.get_ref(), &line_of)?;
        Ok(file)
    }

    /// Takes out what is wrong with the names in the file.
    pub(crate) fn take_unknown(&mut self) -> Vec<SettingsError> {
        std::mem::take(&mut self.unknown)
    }

    /// The folder that paths in the file are relative to.
    pub(crate) fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn value(&self, id: &str) -> Option<(Origin, Raw)> {
        self.values.get(id).map(|(line, raw)| (self.origin(*line), raw.clone()))
    }

    pub(super) fn keys(&self) -> &[KeyTable] {
        &self.keys
    }

    pub(super) fn columns(&self) -> Option<(Origin, &[(String, Value)])> {
        self.columns.as_ref().map(|(line, columns)| (self.origin(*line), columns.as_slice()))
    }

    pub(super) fn origin(&self, line: usize) -> Origin {
        Origin::File { path: self.path.clone(), line }
    }

    fn walk(
        &mut self,
        prefix: &str,
        table: &DeTable<'_>,
        line_of: &dyn Fn(usize) -> usize,
    ) -> Result<(), SettingsError> {
        for (name, value) in table {
            let line = line_of(name.span().start);
            let id = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            match value.get_ref() {
                DeValue::Array(tables) if id == "keys" => {
                    for table in tables {
                        let key = self.key_table(table.get_ref(), line_of(table.span().start), line_of)?;
                        self.keys.push(key);
                    }
                }
                DeValue::Table(columns) if id == "answer.columns" => {
                    let columns = columns
                        .iter()
                        .map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref())))
                        .collect();
                    self.columns = Some((line, columns));
                }
                DeValue::Table(inner) if !WHOLE.contains(&id.as_str()) => {
                    if !is_section(&id) {
                        self.note_unknown(&id, line);
                        continue;
                    }
                    self.walk(&id, inner, line_of)?;
                }
                other => {
                    if !is_known(&id) {
                        self.note_unknown(&id, line);
                        continue;
                    }
                    self.values.insert(id, (line, raw(other)));
                }
            }
        }
        Ok(())
    }

    fn key_table(
        &mut self,
        value: &DeValue<'_>,
        line: usize,
        line_of: &dyn Fn(usize) -> usize,
    ) -> Result<KeyTable, SettingsError> {
        let DeValue::Table(table) = value else {
            return Err(SettingsError::Malformed {
                path: self.path.clone(),
                line,
                message: "`keys` must be tables: write [[keys]]".to_owned(),
            });
        };
        let mut members = BTreeMap::new();
        for (name, value) in table {
            let text: &str = name.get_ref();
            if !KEY_MEMBERS.contains(&text) {
                self.note_unknown(&format!("keys.{text}"), line_of(name.span().start));
                continue;
            }
            members.insert(text.to_owned(), raw(value.get_ref()));
        }
        Ok(KeyTable { line, members })
    }

    fn note_unknown(&mut self, id: &str, line: usize) {
        let names = all_names();
        let hint = closest(id, names.iter().map(String::as_str));
        let path = self.path.clone();
        self.unknown.push(SettingsError::UnknownKey { path, line, key: id.to_owned(), hint });
    }
}

fn all_names() -> Vec<String> {
    KEYS.iter()
        .map(|key| key.id)
        .chain(WHOLE)
        .chain(PRICE_MEMBERS)
        .map(str::to_owned)
        .chain(KEY_MEMBERS.iter().map(|name| format!("keys.{name}")))
        .collect()
}

fn is_known(id: &str) -> bool {
    all_names().iter().any(|name| name == id)
}

fn is_section(id: &str) -> bool {
    all_names().iter().any(|name| name.split_once('.').is_some_and(|(section, _)| section == id))
}

/// `; did you mean …?` for the candidate that looks most like `name`, or nothing if none does.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    let last = |text: &str| text.rsplit('.').next().unwrap_or(text).to_owned();
    candidates
        .map(|candidate| {
            // A section that both share says nothing of how alike their names are.
            let whole = match (name.rsplit_once('.'), candidate.rsplit_once('.')) {
                (Some((section, name)), Some((other, candidate))) if section == other => {
                    strsim::jaro_winkler(name, candidate)
                }
                _ => strsim::jaro_winkler(name, candidate),
            };
            // A key in the wrong section is the commonest mistake after a typo.
            let part = if last(name) == last(candidate) { 0.95 } else { 0.0 };
            (whole.max(part), candidate)
        })
        .filter(|(score, _)| *score > 0.8)
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .map_or_else(String::new, |(_, candidate)| format!("; did you mean `{candidate}`?"))
}

fn raw(value: &DeValue<'_>) -> Raw {
    match value {
        DeValue::String(text) => Raw::Text(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Raw::Number(number.as_str().replace('_', "")),
        DeValue::Float(number) => Raw::Number(number.as_str().replace('_', "")),
        DeValue::Boolean(flag) => Raw::Switch(*flag),
        other => Raw::Json(json(other)),
    }
}

fn json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
            .map_or(Value::Null, Value::from),
        DeValue::Float(number) => {
            number.as_str().replace('_', "").parse::<f64>().map_or(Value::Null, Value::from)
        }
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(stamp) => Value::String(stamp.to_string()),
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(name, value)| (name.get_ref().to_string(), json(value.get_ref())))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ConfigFile, SettingsError> {
        ConfigFile::parse(Path::new("verify.toml"), text)
    }

    #[test]
    fn values_keep_their_lines_and_numbers_their_text() {
        let file =
            parse("model = \"m\"\n[ensemble]\nauto_pass = 0.80\n[answer]\ncolumns = { a = \"string\" }\n")
                .unwrap();
        let (origin, raw) = file.value("ensemble.auto_pass").unwrap();
        assert_eq!(
            (origin.to_string().as_str(), raw),
            ("verify.toml line 3", Raw::Number("0.80".to_owned()))
        );
        assert_eq!(file.columns().unwrap().1[0].0, "a");
    }

    #[test]
    fn unknown_keys_are_named_with_line_and_suggestion() {
        let unknown = |text: &str| -> Vec<String> {
            parse(text).unwrap().take_unknown().iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            unknown("[limits]\nconcurency = 4\nrpm = 1\nx_y_z = 1\n"),
            [
                "verify.toml line 2: unknown key `limits.concurency`; did you mean `limits.concurrency`?",
                "verify.toml line 4: unknown key `limits.x_y_z`",
            ]
        );
        assert!(unknown("concurrency = 4\n")[0].contains("did you mean `limits.concurrency`?"));
        assert!(unknown("[[keys]]\nlable = \"a\"\n")[0].contains("keys.label"));
        assert!(unknown("[nonsense]\na = 1\n")[0].contains("`nonsense`"));
        assert!(parse("model = \n").unwrap_err().to_string().starts_with("verify.toml line 1"));
    }
}
