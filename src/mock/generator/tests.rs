use super::*;
use serde_json::json;

fn made(schema: &Value, seed: u64, sample: u16) -> String {
    Generator::new(schema, seed, 77, sample).write()
}

/// Checks 60 answers for a schema against a validator.
fn assert_valid(schema: &Value) {
    let validator = jsonschema::validator_for(schema).unwrap();
    for seed in 0..60 {
        let text = made(schema, seed, 1);
        let value: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert!(validator.is_valid(&value), "{schema}: {text}");
    }
}

#[test]
fn answers_satisfy_their_schema() {
    for schema in [
        json!({"type": "object", "properties": {
            "ok": {"type": "boolean"}, "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "n": {"type": "integer", "minimum": 1, "maximum": 5}, "why": {"type": "string", "maxLength": 12},
            "tags": {"type": "array", "items": {"type": "string"}}, "grade": {"enum": ["a", "b"]},
            "note": {"type": ["string", "null"]}},
            "required": ["ok", "confidence", "n", "why", "tags", "grade", "note"], "additionalProperties": false}),
        json!({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5}),
        json!({"type": "integer", "minimum": 10, "multipleOf": 7}),
        json!({"type": "number", "minimum": 0.001, "maximum": 0.002}),
        json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-6}),
        json!({"type": "number", "multipleOf": 0.25, "maximum": -3}),
        json!({"type": "string", "minLength": 300, "maxLength": 301}),
        json!({"type": "string", "maxLength": 0}),
        json!({"type": "string", "pattern": "^[A-Z]{3}$"}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 5, "maxItems": 5}),
        json!({"type": "array", "prefixItems": [{"type": "boolean"}, {"const": "x\n"}], "items": false}),
        json!({"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true, "minItems": 2}),
        json!({"anyOf": [{"type": "null"}, {"type": "object", "required": ["a"]}]}),
        json!({"oneOf": [{"type": "string", "format": "date"}, {"type": "boolean"}]}),
        json!({"type": "object", "required": ["a", "b"], "allOf": [
            {"properties": {"a": {"type": "integer", "minimum": 2}}},
            {"properties": {"a": {"maximum": 2}, "b": {"$ref": "#/$defs/b"}}}], "$defs": {"b": {"const": null}}}),
        json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "required": ["next", "list"],
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                           "list": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}}}),
        json!({"type": "string", "enum": ["pass", "fail", 3], "description": "d"}),
        json!({"type": "object", "properties": {"a\"b": {"type": "boolean"}}, "required": ["a\"b", "ü"]}),
        json!(true),
        json!({}),
    ] {
        assert_valid(&schema);
    }
}

#[test]
fn formats_are_what_they_say() {
    for format in
        ["date", "time", "date-time", "email", "hostname", "uri", "ipv4", "ipv6", "uuid", "duration"]
    {
        let schema = json!({"type": "string", "format": format});
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        for seed in 0..40 {
            let text = made(&schema, seed, 1);
            assert!(validator.is_valid(&serde_json::from_str(&text).unwrap()), "{format}: {text}");
        }
    }
}

#[test]
fn confidence_is_high_and_has_two_decimals() {
    let schema = json!({"type": "object", "properties": {"confidence": {"type": "number"}}});
    for seed in 0..200 {
        let text = made(&schema, seed, 1);
        let value: Value = serde_json::from_str(&text).unwrap();
        let confidence = value["confidence"].as_f64().unwrap();
        assert!((0.8..=1.0).contains(&confidence), "{text}");
        assert!(text.len() <= r#"{"confidence":0.99}"#.len(), "{text}");
    }
}

#[test]
fn samples_agree_mostly_and_prompts_pass_mostly() {
    let schema = json!({"type": "boolean"});
    let same = (0..500).filter(|&seed| made(&schema, seed, 1) == made(&schema, seed, 2)).count();
    let passed = (0..500).filter(|&seed| made(&schema, seed, 1) == "true").count();
    assert!((470..500).contains(&same), "{same}");
    assert!((430..490).contains(&passed), "{passed}");
}

#[test]
fn a_keyword_more_changes_one_place_only() {
    let one = json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}});
    let two = json!({"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string", "minLength": 90}}});
    let read = |schema: &Value| serde_json::from_str::<Value>(&made(schema, 1, 1)).unwrap();
    assert_eq!(read(&one)["b"], read(&two)["b"]);
    assert_ne!(read(&one)["a"], read(&two)["a"]);
}

#[test]
fn schemas_without_end_get_an_answer() {
    let endless = json!({"$ref": "#"});
    let fan = json!({"type": "array", "minItems": 100_000, "items": {"$ref": "#"}});
    let must = json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
    let lost = json!({"allOf": [{"$ref": "#"}], "$ref": "http://example.com/x"});
    for schema in [endless, fan, must, lost] {
        let text = made(&schema, 1, 1);
        assert!(text.len() < 2_000_000, "{}", text.len());
    }
}
