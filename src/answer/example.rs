//! Answers as a schema lets them be: the shortest, and a usual one. They are for estimates; nothing depends on their
//! being valid.

use std::cell::Cell;

use serde_json::Value;

/// How deep a schema is followed. What nests deeper, or refers to itself, ends as `null`.
const DEPTH: u8 = 12;
/// Characters of a text that a model is free in.
const TEXT: u64 = 80;
/// Characters that a length in a schema can ask for here.
const MOST: u64 = 20_000;
/// Parts of a schema that are looked at, over all levels.
const PARTS: u32 = 2_000;

/// The shortest answer, as compact JSON.
pub fn shortest(schema: &Value) -> String {
    Example::new(schema, false).of(schema, DEPTH)
}

/// An answer as models usually give it: all properties, some words in each text, a few items in each array.
pub fn usual(schema: &Value) -> String {
    Example::new(schema, true).of(schema, DEPTH)
}

struct Example<'a> {
    root: &'a Value,
    usual: bool,
    left: Cell<u32>,
}

impl<'a> Example<'a> {
    fn new(root: &'a Value, usual: bool) -> Self {
        Self { root, usual, left: Cell::new(PARTS) }
    }

    fn of(&self, schema: &Value, depth: u8) -> String {
        let nothing = || "null".to_owned();
        let (Some(depth), Some(left)) = (depth.checked_sub(1), self.left.get().checked_sub(1)) else {
            return nothing();
        };
        self.left.set(left);
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return self.pick(values.iter().map(Value::to_string).collect());
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            let found = target.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return found.map_or_else(nothing, |found| self.of(found, depth));
        }
        let kinds = match schema.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if schema.get("properties").is_some() => vec!["object"],
            _ => Vec::new(),
        };
        if kinds.is_empty() {
            for name in ["anyOf", "oneOf", "allOf"] {
                if let Some(parts) = schema.get(name).and_then(Value::as_array) {
                    return self.pick(parts.iter().map(|part| self.of(part, depth)).collect());
                }
            }
            return if self.usual { nothing() } else { "0".to_owned() };
        }
        self.pick(kinds.iter().map(|kind| self.of_kind(kind, schema, depth)).collect())
    }

    /// The shortest of several, or, for a usual answer, the one in the middle that is not `null`.
    fn pick(&self, mut texts: Vec<String>) -> String {
        if self.usual {
            texts.retain(|text| text != "null");
        }
        texts.sort_by_key(String::len);
        let at = if self.usual { texts.len() / 2 } else { 0 };
        if at < texts.len() { texts.swap_remove(at) } else { "null".to_owned() }
    }

    fn of_kind(&self, kind: &str, schema: &Value, depth: u8) -> String {
        let number = |name: &str| schema.get(name).and_then(Value::as_u64);
        let between = |usual: u64, least: &str, most: &str| {
            let least = number(least).unwrap_or(0);
            let wanted = if self.usual { usual.min(number(most).unwrap_or(u64::MAX)) } else { 0 };
            wanted.max(least).min(MOST)
        };
        match kind {
            "object" => self.object(schema, depth),
            "array" => {
                let item = schema.get("items").map_or_else(|| "0".to_owned(), |item| self.of(item, depth));
                let items = between(3, "minItems", "maxItems").min(MOST / (item.len() as u64 + 1));
                let items: Vec<&str> = (0..items).map(|_| item.as_str()).collect();
                format!("[{}]", items.join(","))
            }
            "string" => {
                let length = between(TEXT, "minLength", "maxLength");
                let words = "the answer in some words as a model writes them ".chars().cycle();
                let text: String = words.take(usize::try_from(length).unwrap_or(0)).collect();
                format!("\"{text}\"")
            }
            "boolean" => "true".to_owned(),
            "integer" if self.usual => "12".to_owned(),
            "number" if self.usual => "0.85".to_owned(),
            "integer" | "number" => "0".to_owned(),
            _ => "null".to_owned(),
        }
    }

    fn object(&self, schema: &Value, depth: u8) -> String {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let known = properties
            .into_iter()
            .flatten()
            .filter(|(name, _)| self.usual || required.contains(&name.as_str()));
        let mut members: Vec<String> = known
            .map(|(name, property)| format!("{}:{}", Value::from(name.as_str()), self.of(property, depth)))
            .collect();
        let unknown =
            required.iter().filter(|name| properties.is_none_or(|known| !known.contains_key(**name)));
        members.extend(unknown.map(|name| format!("{}:0", Value::from(*name))));
        format!("{{{}}}", members.join(","))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn short_and_usual() {
        let schema = json!({
            "type": "object", "required": ["ok", "grade", "tags", "id"],
            "properties": {
                "ok": { "type": "boolean" },
                "grade": { "enum": ["excellent", "good", "a"] },
                "tags": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/tag" } },
                "note": { "type": ["string", "null"], "maxLength": 4 },
            },
            "$defs": { "tag": { "type": "string", "minLength": 2 } },
        });
        assert_eq!(shortest(&schema), r#"{"ok":true,"grade":"a","tags":["th"],"id":0}"#);
        let usual = usual(&schema);
        assert!(usual.contains(r#""grade":"good""#) && usual.contains(r#""note":"the ""#), "{usual}");
        assert!(usual.len() > 3 * 80);
    }

    #[test]
    fn schemas_without_end_have_one() {
        let own = json!({ "type": "object", "required": ["a", "b"], "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#" } } });
        assert!(shortest(&own).len() < 10_000 && shortest(&own).contains("null"));
        let long = json!({ "type": "array", "minItems": u64::MAX, "items": { "type": "string", "minLength": u64::MAX } });
        assert!(shortest(&long).len() < 400_000);
        for odd in [
            json!(true),
            json!({}),
            json!({ "$ref": "elsewhere" }),
            json!({ "anyOf": [] }),
            json!({ "enum": [] }),
        ] {
            assert!(shortest(&odd).len() < 5 && usual(&odd).len() < 5);
        }
    }
}
