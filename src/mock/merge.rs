//! One schema out of several that hold at once.

use serde_json::{Map, Value};

/// What a reference within the schema points to; `None` if it points nowhere or out of the document.
pub(super) fn resolve<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    if fragment.is_empty() {
        return Some(root);
    }
    if fragment.contains('%') {
        return root.pointer(&fragment.replace("%25", "%").replace("%24", "$").replace("%20", " "));
    }
    root.pointer(fragment)
}

/// The conjunction of `base` and `other`, as far as it can be written as one schema: bounds tighten, properties and
/// required names unite, listed values intersect, and where both say a different thing `other` wins.
pub(super) fn merge(base: &mut Map<String, Value>, other: &Value) {
    let Value::Object(other) = other else { return };
    for (name, theirs) in other {
        let Some(ours) = base.get_mut(name) else {
            base.insert(name.clone(), theirs.clone());
            continue;
        };
        match (name.as_str(), ours, theirs) {
            ("properties", Value::Object(ours), Value::Object(theirs)) => {
                for (property, schema) in theirs {
                    match ours.get_mut(property) {
                        Some(Value::Object(mine)) => merge(mine, schema),
                        _ => {
                            ours.insert(property.clone(), schema.clone());
                        }
                    }
                }
            }
            ("required" | "allOf", Value::Array(ours), Value::Array(theirs)) => {
                for value in theirs {
                    if !ours.contains(value) {
                        ours.push(value.clone());
                    }
                }
            }
            ("enum", Value::Array(ours), Value::Array(theirs)) => ours.retain(|value| theirs.contains(value)),
            ("type", ours, theirs) => narrow_type(ours, theirs),
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems", ours, theirs) => {
                if theirs.as_f64() > ours.as_f64() {
                    *ours = theirs.clone();
                }
            }
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems", ours, theirs) => {
                if theirs.as_f64() < ours.as_f64() {
                    *ours = theirs.clone();
                }
            }
            (_, ours, theirs) => *ours = theirs.clone(),
        }
    }
}

fn narrow_type(ours: &mut Value, theirs: &Value) {
    let has = |list: &Value, word: &Value| match list {
        Value::Array(words) => words.contains(word),
        only => only == word,
    };
    let number_holds = |list: &Value, word: &Value| {
        has(list, word) || (word == "integer" && has(list, &Value::String("number".to_owned())))
    };
    let words = match theirs {
        Value::Array(words) => words.clone(),
        word => vec![word.clone()],
    };
    let both: Vec<Value> = words.into_iter().filter(|word| number_holds(ours, word)).collect();
    if !both.is_empty() {
        *ours = Value::Array(both);
    }
}
