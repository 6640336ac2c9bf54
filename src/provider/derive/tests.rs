use serde_json::json;

use super::*;

fn bounds(_: &str, _: &Value) -> bool {
    false
}

const OPTIONAL: Rules = Rules { all_required: false, recursion: false, formats: &["date"], takes: bounds };
const REQUIRED: Rules = Rules { all_required: true, recursion: true, ..OPTIONAL };

fn object(property: &Value) -> Value {
    json!({ "type": "object", "properties": { "p": property }, "required": ["p"] })
}

fn property(property: &Value) -> Option<Value> {
    derive(&object(property), &OPTIONAL).map(|derived| derived.schema["properties"]["p"].clone())
}

#[test]
fn bounds_move_into_the_description() {
    let derived = derive(
        &object(&json!({ "description": "How sure.", "type": "number", "minimum": 0, "maximum": 1 })),
        &OPTIONAL,
    );
    let derived = derived.unwrap();
    assert!(derived.is_looser);
    assert_eq!(
        derived.schema,
        json!({ "type": "object", "properties": { "p": {
            "description": "How sure.\n\n{\"minimum\":0,\"maximum\":1}", "type": "number" } },
            "required": ["p"], "additionalProperties": false })
    );
    assert_eq!(
        property(&json!({ "type": "string", "format": "date" })),
        Some(json!({ "type": "string", "format": "date" }))
    );
    assert_eq!(
        property(&json!({ "type": "string", "format": "uri" })),
        Some(json!({ "type": "string", "description": "{\"format\":\"uri\"}" }))
    );
}

#[test]
fn shapes_are_kept() {
    for (given, expected) in [
        (json!({ "enum": ["a", null] }), json!({ "enum": ["a", null], "type": ["string", "null"] })),
        (json!({ "const": 1 }), json!({ "const": 1, "type": "integer" })),
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "null" }], "default": null }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }),
        ),
        (
            json!({ "type": "array", "items": { "type": "string", "examples": ["x"] } }),
            json!({ "type": "array", "items": { "type": "string" } }),
        ),
    ] {
        assert_eq!(property(&given), Some(expected), "{given}");
    }
}

#[test]
fn what_cannot_be_said_is_not_derived() {
    for given in [
        json!(true),
        json!({}),
        json!({ "type": "object" }),
        json!({ "type": "object", "properties": {} }),
        json!({ "type": "object", "additionalProperties": { "type": "string" } }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": true }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["b"] }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "minProperties": 1 }),
        json!({ "type": "array" }),
        json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false }),
        json!({ "allOf": [{ "type": "string" }] }),
        json!({ "type": "string", "not": { "const": "a" } }),
        json!({ "enum": [{ "a": 1 }] }),
        json!({ "$ref": "other.json" }),
        json!({ "$ref": "#/$defs/missing" }),
        json!({ "properties": { "a": { "type": "string" } } }),
    ] {
        assert_eq!(property(&given), None, "{given}");
    }
}

#[test]
fn references_may_not_go_in_circles() {
    let with = |item: &Value| {
        json!({ "type": "object", "properties": { "p": { "$ref": "#/$defs/item", "description": "d" } },
            "required": ["p"], "$defs": { "item": item, "leaf": { "type": "string" } } })
    };
    let flat = derive(&with(&object(&json!({ "$ref": "#/$defs/leaf" }))), &OPTIONAL).unwrap();
    assert_eq!(flat.schema["properties"]["p"], json!({ "$ref": "#/$defs/item" }));
    for target in ["#/$defs/item", "#"] {
        let round = with(&object(&json!({ "$ref": target })));
        assert_eq!(derive(&round, &OPTIONAL), None, "{target}");
        assert!(derive(&round, &REQUIRED).is_some(), "{target}");
    }
}

#[test]
fn an_optional_property_becomes_null_only_where_null_is_valid() {
    let optional = |property: &Value| json!({ "type": "object", "properties": { "p": property } });
    for nullable in [
        json!({ "type": ["string", "null"] }),
        json!({ "enum": ["a", null] }),
        json!({ "anyOf": [{ "type": "string", "maxLength": 3 }, { "type": "null" }] }),
        json!({ "oneOf": [{ "type": "string" }, { "type": "null" }] }),
    ] {
        let derived = derive(&optional(&nullable), &REQUIRED).unwrap();
        assert_eq!(derived.schema["required"], json!(["p"]), "{nullable}");
    }
    for other in [
        json!({ "type": "string" }),
        json!({ "type": ["string", "null"], "enum": ["a"] }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "$ref": "#" }),
    ] {
        assert_eq!(derive(&optional(&other), &REQUIRED), None, "{other}");
    }
    let kept = derive(&optional(&json!({ "type": ["string", "null"] })), &OPTIONAL).unwrap();
    assert_eq!((kept.optional, kept.unions), (1, 1));
    assert!(kept.schema.get("required").is_none());
}

proptest::proptest! {
    /// Whatever a derived schema accepts either satisfies the original or breaks a bound that was dropped.
    #[test]
    fn derived_answers_are_answers(
        kinds in proptest::collection::vec(0_usize..6, 1..5),
        required in proptest::collection::vec(proptest::bool::ANY, 5),
        picks in proptest::collection::vec(0_usize..6, 5),
    ) {
        let property = |kind: usize| match kind {
            0 => json!({ "type": "string" }),
            1 => json!({ "type": ["integer", "null"], "default": 1 }),
            2 => json!({ "enum": ["a", null, 3] }),
            3 => json!({ "oneOf": [{ "type": "boolean" }, { "type": "null" }] }),
            4 => json!({ "type": "array", "items": { "type": "string" } }),
            _ => json!({ "type": "object", "properties": { "q": { "type": "null" } } }),
        };
        let values =
            [json!("a"), json!(3), json!(null), json!(true), json!(["x"]), json!({ "q": null })];
        let names: Vec<String> = (0..kinds.len()).map(|at| format!("p{at}")).collect();
        let properties: Map<String, Value> =
            names.iter().zip(&kinds).map(|(name, kind)| (name.clone(), property(*kind))).collect();
        let listed: Vec<&String> =
            names.iter().zip(&required).filter(|(_, required)| **required).map(|(name, _)| name).collect();
        let schema = json!({ "type": "object", "properties": properties, "required": listed });
        for rules in [&OPTIONAL, &REQUIRED] {
            let Some(derived) = derive(&schema, rules) else { continue };
            proptest::prop_assert!(!derived.is_looser);
            let answer: Map<String, Value> =
                names.iter().zip(&picks).map(|(name, pick)| (name.clone(), values[*pick].clone())).collect();
            let answer = Value::Object(answer);
            let valid = |schema: &Value| jsonschema::validator_for(schema).unwrap().is_valid(&answer);
            proptest::prop_assert!(valid(&schema) || !valid(&derived.schema), "{} {}", schema, answer);
        }
    }
}
