//! Schemas that Anthropic's structured output takes.

use serde_json::Value;

use crate::provider::derive::{Rules, derive};

const RULES: Rules = Rules { all_required: false, recursion: false, formats: &FORMATS, takes };

const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// The most properties that may be absent, in one request.
const MOST_OPTIONAL: usize = 24;
/// The most places with several types, in one request.
const MOST_UNIONS: usize = 16;

fn takes(bound: &str, value: &Value) -> bool {
    match bound {
        "minItems" => matches!(value.as_u64(), Some(0 | 1)),
        "pattern" => value.as_str().is_some_and(is_simple),
        _ => false,
    }
}

/// Whether a regular expression does without what the grammar cannot say: groups that look around, references to
/// groups, borders of words.
fn is_simple(pattern: &str) -> bool {
    let mut escaped = false;
    let plain = pattern.chars().all(|c| {
        let refused = escaped && (c.is_ascii_digit() || matches!(c, 'b' | 'B' | 'k'));
        escaped = c == '\\' && !escaped;
        !refused
    });
    plain && !pattern.contains("(?")
}

/// The schema within Anthropic's restrictions; `None` if it cannot be had, and then another form is needed.
///
/// Source: Anthropic's guide to structured outputs, "JSON Schema limitations".
pub(super) fn derived(schema: &Value) -> Option<Value> {
    let derived = derive(schema, &RULES)?;
    let fits = derived.optional <= MOST_OPTIONAL && derived.unions <= MOST_UNIONS;
    fits.then_some(derived.schema)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn restrictions() {
        let object = |property: Value| json!({ "type": "object", "properties": { "p": property } });
        let property = |property: Value| derived(&object(property)).map(|d| d["properties"]["p"].clone());
        for kept in [
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
            json!({ "type": "string", "pattern": "^[a-z]{2}\\\\1$" }),
            json!({ "type": "string", "format": "uri" }),
        ] {
            assert_eq!(property(kept.clone()), Some(kept));
        }
        for (name, value) in [
            ("minItems", json!(2)),
            ("maxItems", json!(3)),
            ("minimum", json!(0)),
            ("multipleOf", json!(2)),
            ("pattern", json!("(?=a)")),
            ("pattern", json!("(a)\\1")),
            ("pattern", json!("\\bword")),
            ("format", json!("regex")),
        ] {
            let mut schema = json!({ "type": "array", "items": { "type": "string" } });
            schema[name] = value;
            let without = property(schema).unwrap();
            assert!(without.get(name).is_none() && without["description"].is_string(), "{without}");
        }
    }

    #[test]
    fn too_many_choices_need_another_form() {
        let many = |count: usize, property: Value| {
            let properties: serde_json::Map<String, Value> =
                (0..count).map(|n| (format!("p{n}"), property.clone())).collect();
            let names: Vec<&String> = properties.keys().collect();
            json!({ "type": "object", "properties": properties, "required": names })
        };
        let open = |count| {
            let mut schema = many(count, json!({ "type": "string" }));
            schema["required"] = json!([]);
            schema
        };
        assert!(derived(&open(24)).is_some() && derived(&open(25)).is_none());
        let union = json!({ "type": ["string", "null"] });
        assert!(derived(&many(16, union.clone())).is_some() && derived(&many(17, union)).is_none());
    }
}
