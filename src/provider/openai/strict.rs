//! Whether a schema keeps to what `OpenAI` takes with `strict: true`, and one that does in its place.

use serde_json::{Map, Value};

use crate::provider::derive::{Rules, derive};

const RULES: Rules = Rules { all_required: true, recursion: true, formats: &FORMATS, takes };

fn takes(bound: &str, value: &Value) -> bool {
    match bound {
        "pattern" => true,
        "multipleOf" | "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "minItems"
        | "maxItems" => value.is_number(),
        _ => false,
    }
}

/// A schema that the strict form takes, where this one does not keep to it; `None` if it does, or if there is none
/// whose answers this one accepts. A property that may be absent is asked for as one that may be null, which is done
/// only if null is valid.
///
/// Only `OpenAI`'s own hosts get one that had to drop a bound: there the strict form is worth more than the bound,
/// while other servers check more keywords than `OpenAI` does.
pub(super) fn derived(schema: &Value, own_host: bool) -> Option<Value> {
    if is_strict(schema) {
        return None;
    }
    let derived = derive(schema, &RULES)?;
    ((own_host || !derived.is_looser) && is_strict(&derived.schema)).then_some(derived.schema)
}

/// Whether the schema as it stands is one that the strict form takes. Anything not known to be taken makes it not
/// strict, since a wrong `true` is a rejection and a wrong `false` only a weaker promise.
///
/// Source: `OpenAI`'s guide to structured outputs, "Supported schemas".
pub(super) fn is_strict(schema: &Value) -> bool {
    let mut walk = Walk::default();
    let rooted = schema.get("type").is_some_and(|kind| kind == "object") && schema.get("anyOf").is_none();
    rooted && walk.schema(schema, 1, true) && walk.is_within_limits()
}

/// Sums over the whole schema.
#[derive(Debug, Default)]
struct Walk {
    properties: usize,
    enum_values: usize,
    text: usize,
}

impl Walk {
    const MOST_PROPERTIES: usize = 5_000;
    const MOST_ENUM_VALUES: usize = 1_000;
    const MOST_TEXT: usize = 120_000;
    const DEEPEST: usize = 10;

    fn is_within_limits(&self) -> bool {
        self.properties <= Self::MOST_PROPERTIES
            && self.enum_values <= Self::MOST_ENUM_VALUES
            && self.text <= Self::MOST_TEXT
    }

    fn schema(&mut self, schema: &Value, depth: usize, root: bool) -> bool {
        let Value::Object(members) = schema else { return false };
        if depth > Self::DEEPEST {
            return false;
        }
        if let Some(reference) = members.get("$ref") {
            let local = reference.as_str().is_some_and(|path| path == "#" || path.starts_with("#/$defs/"));
            return local && members.len() == 1;
        }
        let typed = members.contains_key("type") || members.contains_key("anyOf");
        let known = members.iter().all(|(name, value)| self.keyword(name, value, depth, root));
        typed && known && is_closed(members) && has_items(members)
    }

    fn keyword(&mut self, name: &str, value: &Value, depth: usize, root: bool) -> bool {
        match name {
            "type" => is_type(value),
            "properties" => self.properties(value, depth),
            "$defs" if root => self.definitions(value),
            "$schema" => root,
            "items" => self.schema(value, depth + 1, false),
            "anyOf" => value.as_array().is_some_and(|options| {
                !options.is_empty() && options.iter().all(|option| self.schema(option, depth, false))
            }),
            "enum" => self.values(value),
            "const" => {
                self.text += length(value);
                true
            }
            "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
            "required"
            | "additionalProperties"
            | "description"
            | "title"
            | "pattern"
            | "multipleOf"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "minItems"
            | "maxItems" => true,
            _ => false,
        }
    }

    fn properties(&mut self, value: &Value, depth: usize) -> bool {
        let Value::Object(properties) = value else { return false };
        self.properties += properties.len();
        properties.iter().all(|(name, schema)| {
            self.text += name.chars().count();
            self.schema(schema, depth + 1, false)
        })
    }

    fn definitions(&mut self, value: &Value) -> bool {
        let Value::Object(definitions) = value else { return false };
        definitions.iter().all(|(name, schema)| {
            self.text += name.chars().count();
            self.schema(schema, 1, false)
        })
    }

    /// The values of one `enum`. One of more than 250 texts may hold 15,000 characters.
    fn values(&mut self, value: &Value) -> bool {
        let Value::Array(values) = value else { return false };
        let text: usize = values.iter().map(length).sum();
        self.enum_values += values.len();
        self.text += text;
        !values.is_empty() && (values.len() <= 250 || text <= 15_000)
    }
}

const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

fn is_type(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    let known = |kind: &Value| kind.as_str().is_some_and(|kind| TYPES.contains(&kind));
    match value {
        Value::Array(kinds) => !kinds.is_empty() && kinds.iter().all(known),
        kind => known(kind),
    }
}

fn has_type(members: &Map<String, Value>, name: &str) -> bool {
    match members.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == name),
        Some(kind) => kind == name,
        None => false,
    }
}

/// Whether an object lists every property as required and allows no other.
fn is_closed(members: &Map<String, Value>) -> bool {
    if !has_type(members, "object") {
        return !members.contains_key("properties");
    }
    let Some(Value::Object(properties)) = members.get("properties") else { return false };
    let required = members.get("required").and_then(Value::as_array);
    let listed = |name: &String| required.is_some_and(|list| list.iter().any(|have| have == name.as_str()));
    members.get("additionalProperties") == Some(&Value::Bool(false)) && properties.keys().all(listed)
}

fn has_items(members: &Map<String, Value>) -> bool {
    !has_type(members, "array") || members.contains_key("items")
}

/// Characters of a text, of any other value as JSON.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        other => other.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(property: &Value) -> Value {
        json!({ "type": "object", "properties": { "p": property }, "required": ["p"], "additionalProperties": false })
    }

    #[test]
    fn what_the_strict_form_takes() {
        for property in [
            json!({ "type": "boolean" }),
            json!({ "type": ["string", "null"], "description": "d" }),
            json!({ "type": "number", "minimum": 0, "maximum": 1 }),
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
            json!({ "anyOf": [{ "type": "string", "format": "date" }, { "type": "null" }] }),
            json!({ "$ref": "#" }),
            with(&json!({ "type": "integer" })),
        ] {
            assert!(is_strict(&with(&property)), "{property}");
        }
    }

    #[test]
    fn what_is_derived() {
        let open = json!({ "type": "object", "properties": {
            "z": { "enum": ["a", "b"], "default": "a" },
            "n": { "type": ["number", "null"], "minimum": 0 } }, "required": ["z"] });
        let closed = json!({ "type": "object", "properties": {
            "z": { "enum": ["a", "b"], "type": "string" },
            "n": { "type": ["number", "null"], "minimum": 0 } },
            "required": ["z", "n"], "additionalProperties": false });
        for own_host in [false, true] {
            assert_eq!(derived(&open, own_host), Some(closed.clone()));
            assert_eq!(derived(&closed, own_host), None, "it is strict already");
        }
        let bounded = with(&json!({ "type": "string", "minLength": 2 }));
        assert_eq!(derived(&bounded, false), None, "another server may check the length");
        let noted = derived(&bounded, true).unwrap();
        assert_eq!(
            noted["properties"]["p"],
            json!({ "type": "string", "description": r#"{"minLength":2}"# })
        );
        // Null would be asked for where it is not valid.
        let optional = json!({ "type": "object", "properties": { "p": { "type": "string" } } });
        assert_eq!(derived(&optional, true), None);
    }

    #[test]
    fn what_it_refuses() {
        for property in [
            json!(true),
            json!({}),
            json!({ "type": "string", "minLength": 1 }),
            json!({ "type": "string", "format": "uri" }),
            json!({ "type": "string", "default": "x" }),
            json!({ "type": "array" }),
            json!({ "allOf": [{ "type": "string" }] }),
            json!({ "enum": ["a"] }),
            json!({ "$ref": "other.json" }),
            json!({ "$ref": "#", "description": "d" }),
            json!({ "type": "object", "properties": { "q": { "type": "string" } }, "additionalProperties": false }),
            json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] }),
            json!({ "type": "string", "enum": (0..1_001).map(|n| n.to_string()).collect::<Vec<_>>() }),
        ] {
            assert!(!is_strict(&with(&property)), "{property}");
        }
        for root in [
            json!(true),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "object" }),
        ] {
            assert!(!is_strict(&root), "{root}");
        }
        let deep = (0..12).fold(json!({ "type": "string" }), |inner, _| with(&inner));
        assert!(!is_strict(&deep));
    }
}
