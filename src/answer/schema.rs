//! The schema of the answers, compiled.

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value, json};

use crate::answer::AnswerError;

/// How far references and `allOf` are followed to find the properties of the root.
const MOST_STEPS: usize = 32;

/// A compiled schema, or free text.
#[derive(Clone, Default)]
pub struct Schema {
    compiled: Option<Arc<Compiled>>,
    properties: Vec<String>,
}

struct Compiled {
    root: Value,
    validator: jsonschema::Validator,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema")
            .field("free_text", &self.compiled.is_none())
            .field("properties", &self.properties)
            .finish()
    }
}

impl Schema {
    /// Compiles a JSON Schema of the draft that its `$schema` names, 2020-12 without one.
    ///
    /// # Errors
    ///
    /// A schema that breaks its draft's rules, or that refers to anything outside of itself: nothing is fetched.
    pub fn compile(schema: &Value) -> Result<Self, AnswerError> {
        let validator = jsonschema::options().offline().build(schema).map_err(|error| {
            if matches!(error.kind(), ValidationErrorKind::Referencing(_))
                && let Some((path, reference)) = outside_reference(schema, &mut String::new())
            {
                return AnswerError::OutsideReference { reference, path };
            }
            let path = error.instance_path().to_string();
            let why = bounded(&error.to_string());
            AnswerError::InvalidSchema { path: if path.is_empty() { "/".to_owned() } else { path }, why }
        })?;
        let compiled = Compiled { root: schema.clone(), validator };
        let mut properties = Vec::new();
        for part in compiled.root_parts() {
            for name in members(part, "properties") {
                if !properties.contains(name) {
                    properties.push(name.clone());
                }
            }
        }
        Ok(Self { compiled: Some(Arc::new(compiled)), properties })
    }

    /// Free text: every text that is not blank is an answer.
    pub fn free_text() -> Self {
        Self::default()
    }

    /// Whether answers are free text.
    pub fn is_free_text(&self) -> bool {
        self.compiled.is_none()
    }

    /// The top-level properties in the order of the schema. Root references and `allOf` are followed.
    pub fn properties(&self) -> &[String] {
        &self.properties
    }

    /// Whether a value satisfies it; free text is satisfied by everything.
    pub(super) fn accepts(&self, value: &Value) -> bool {
        self.compiled.as_ref().is_none_or(|compiled| compiled.validator.is_valid(value))
    }

    /// What is wrong with a value: at most `most` sentences with the place in it.
    pub(super) fn complaints(&self, value: &Value, most: usize) -> Vec<String> {
        let Some(compiled) = &self.compiled else { return Vec::new() };
        let errors = compiled.validator.iter_errors(value).take(most);
        errors
            .map(|error| {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { "/" } else { &place };
                // Only a small value is quoted.
                let small = match error.instance().as_ref() {
                    Value::String(text) => text.len() <= 80,
                    Value::Array(_) | Value::Object(_) => false,
                    _ => true,
                };
                let what = if small { error.to_string() } else { error.masked().to_string() };
                bounded(&format!("at {place}: {what}"))
            })
            .collect()
    }

    /// Whether a top-level property can have this value, as far as the schema tells.
    pub(super) fn can_be(&self, property: &str, value: &Value) -> bool {
        let Some(compiled) = &self.compiled else { return true };
        let parts: Vec<Value> = compiled.property_parts(property).into_iter().cloned().collect();
        let mut probe = Map::new();
        for keyword in ["$schema", "$id", "id", "$defs", "definitions"] {
            if let Some(value) = compiled.root.get(keyword) {
                probe.insert(keyword.to_owned(), value.clone());
            }
        }
        probe.insert("properties".to_owned(), json!({ property: { "allOf": parts } }));
        // A reference into a part that the probe lacks leaves the question open.
        let instance = json!({ property: value });
        jsonschema::options()
            .offline()
            .build(&Value::Object(probe))
            .map_or(true, |validator| validator.is_valid(&instance))
    }

    /// The required top-level properties with few values: booleans, enums and integers.
    pub(super) fn countable(&self) -> Vec<String> {
        let Some(compiled) = &self.compiled else { return Vec::new() };
        let required = |name: &String| {
            compiled.root_parts().iter().any(|part| {
                let names = part.get("required").and_then(Value::as_array);
                names.is_some_and(|names| names.iter().any(|have| have.as_str() == Some(name)))
            })
        };
        let counts = |name: &String| compiled.property_parts(name).iter().any(|part| is_countable(part));
        self.properties.iter().filter(|name| required(name) && counts(name)).cloned().collect()
    }
}

impl Compiled {
    /// The root and what it refers to: parts that hold for the whole answer.
    fn root_parts(&self) -> Vec<&Value> {
        self.parts(&self.root)
    }

    fn property_parts(&self, name: &str) -> Vec<&Value> {
        self.root_parts()
            .into_iter()
            .filter_map(|part| part.get("properties")?.get(name))
            .flat_map(|part| self.parts(part))
            .collect()
    }

    fn parts<'a>(&'a self, start: &'a Value) -> Vec<&'a Value> {
        let mut parts = vec![start];
        let mut at = 0;
        while let Some(&part) = parts.get(at)
            && parts.len() < MOST_STEPS
        {
            let target = part.get("$ref").and_then(Value::as_str).and_then(|text| local(&self.root, text));
            let all = part.get("allOf").and_then(Value::as_array).into_iter().flatten();
            parts.extend(target.into_iter().chain(all));
            at += 1;
        }
        parts
    }
}

/// The part of a schema that a reference of the form `#/a/b` means.
fn local<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&pointer.replace("%25", "%"))
}

fn members<'a>(part: &'a Value, keyword: &str) -> impl Iterator<Item = &'a String> {
    part.get(keyword).and_then(Value::as_object).into_iter().flat_map(Map::keys)
}

fn is_countable(part: &Value) -> bool {
    let countable = |name: &Value| matches!(name.as_str(), Some("boolean" | "integer"));
    let null = |name: &Value| name.as_str() == Some("null");
    part.get("enum").is_some()
        || part.get("const").is_some()
        || part.get("type").is_some_and(|kind| match kind {
            Value::Array(kinds) => {
                kinds.iter().any(countable) && kinds.iter().all(|kind| countable(kind) || null(kind))
            }
            kind => countable(kind),
        })
}

/// The first reference that does not begin with `#`, and its place.
fn outside_reference(part: &Value, path: &mut String) -> Option<(String, String)> {
    let length = path.len();
    let mut step = |name: &str, part: &Value| {
        path.push('/');
        path.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let found = outside_reference(part, path);
        let place = path.clone();
        path.truncate(length);
        found.or_else(|| {
            let reference = part.as_str()?;
            (name == "$ref" && !reference.starts_with('#')).then(|| (place, reference.to_owned()))
        })
    };
    match part {
        Value::Object(members) => members.iter().find_map(|(name, part)| step(name, part)),
        Value::Array(items) => items.iter().enumerate().find_map(|(at, part)| step(&at.to_string(), part)),
        _ => None,
    }
}

/// At most 300 characters of a sentence, without control characters.
pub(super) fn bounded(sentence: &str) -> String {
    let mut clean: String =
        sentence.chars().take(300).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if clean.len() < sentence.len() && sentence.chars().nth(300).is_some() {
        clean.push('…');
    }
    clean
}

#[cfg(test)]
mod tests;
