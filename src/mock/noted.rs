//! Bounds that stand in a description.

use serde_json::{Map, Value};

/// What a note may bound.
const BOUNDS: [&str; 12] = [
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
];

/// Gives a schema the bounds that its descriptions end with, as JSON, where the bound itself is missing. Clients write
/// them there for a provider that does not take the keyword, and a good model keeps to what it reads.
pub(super) fn heed(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            for bound in noted(members) {
                members.entry(bound.0).or_insert(bound.1);
            }
            members.values_mut().for_each(heed);
        }
        Value::Array(items) => items.iter_mut().for_each(heed),
        _ => {}
    }
}

fn noted(members: &Map<String, Value>) -> Vec<(String, Value)> {
    let text = members.get("description").and_then(Value::as_str).unwrap_or_default();
    let last = text.rsplit("\n\n").next().unwrap_or_default();
    let bounds: Option<Map<String, Value>> =
        if last.ends_with('}') { serde_json::from_str(last).ok() } else { None };
    bounds.into_iter().flatten().filter(|(name, _)| BOUNDS.contains(&name.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_note_bounds_and_never_loosens() {
        let mut schema = json!({ "type": "object", "properties": {
            "a": { "type": "integer", "description": "Grade.\n\n{\"minimum\":1,\"maximum\":5,\"type\":\"string\"}",
                "maximum": 3 },
            "b": { "type": "array", "items": { "type": "number", "description": "{\"maximum\":1}" } },
            "description": { "type": "string", "description": "As in {}" } } });
        heed(&mut schema);
        let property = |name: &str| schema["properties"][name].clone();
        assert_eq!((&property("a")["minimum"], &property("a")["maximum"]), (&json!(1), &json!(3)));
        assert_eq!(property("a")["type"], "integer");
        assert_eq!(property("b")["items"]["maximum"], 1);
        assert_eq!(property("description").as_object().unwrap().len(), 2);
    }
}
