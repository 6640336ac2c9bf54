//! Schemas that compile, and those that do not.

use super::*;

fn refused(schema: &Value) -> String {
    Schema::compile(schema).unwrap_err().to_string()
}

#[test]
fn properties_keep_their_order_and_follow_references() {
    let schema = json!({"type": "object", "properties": {"z": {}, "a": {}, "m": {}}});
    assert_eq!(Schema::compile(&schema).unwrap().properties(), ["z", "a", "m"]);
    let schema = json!({
        "$ref": "#/$defs/Answer",
        "$defs": {"Answer": {"allOf": [{"properties": {"b": {}}}], "properties": {"c": {}}}},
    });
    assert_eq!(Schema::compile(&schema).unwrap().properties(), ["c", "b"]);
    assert!(Schema::free_text().properties().is_empty());
}

#[test]
fn the_draft_is_the_one_that_is_named() {
    let draft4 = json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "properties": {"n": {"maximum": 1, "exclusiveMaximum": true}},
    });
    let schema = Schema::compile(&draft4).unwrap();
    assert!(!schema.accepts(&json!({"n": 1})));
    // In 2020-12, the default, the same keyword is a number.
    let newest = json!({"properties": {"n": {"exclusiveMaximum": true}}});
    assert!(refused(&newest).contains("/properties/n/exclusiveMaximum"), "{}", refused(&newest));
}

#[test]
fn an_invalid_schema_is_told_with_its_place() {
    let text = refused(&json!({"type": "object", "properties": {"ok": {"type": "bool"}}}));
    assert!(text.contains("/properties/ok/type") && text.contains("bool"), "{text}");
    let text = refused(&json!("nonsense"));
    assert!(text.contains('/'), "{text}");
    let text = refused(&json!({"properties": {"a": {"$ref": "#/$defs/None"}}}));
    assert!(text.contains("None"), "{text}");
    let text = refused(&json!({"properties": {"a": {"pattern": "("}}}));
    assert!(text.contains("pattern"), "{text}");
}

#[test]
fn nothing_is_fetched() {
    for reference in
        ["https://example.com/a.json", "http://127.0.0.1:9/a", "file:///etc/passwd", "other.json"]
    {
        let text = refused(&json!({"properties": {"a": {"items": {"$ref": reference}}}}));
        assert!(text.contains(reference) && text.contains("$defs"), "{text}");
    }
}

#[test]
fn circles_of_references_end() {
    for circle in [
        json!({"$ref": "#", "required": ["x"]}),
        json!({"not": {"$ref": "#"}, "required": ["x"]}),
        json!({"if": {"$ref": "#"}, "then": {"$ref": "#"}, "required": ["x"]}),
        json!({"allOf": [{"$ref": "#/$defs/x"}], "required": ["x"], "$defs": {
            "x": {"$ref": "#/$defs/y"}, "y": {"anyOf": [{"$ref": "#/$defs/x"}, {}]},
        }}),
    ] {
        let schema = Schema::compile(&circle).unwrap();
        assert!(!schema.accepts(&json!({"a": 1})), "{circle}");
        assert_eq!(schema.complaints(&json!({"a": 1}), 5).len(), 1, "{circle}");
        assert!(schema.properties().is_empty() && schema.countable().is_empty());
    }
    let tree = json!({"properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
    assert!(Schema::compile(&tree).unwrap().accepts(&json!({"children": [{"children": []}]})));
}

#[test]
fn complaints_are_short_sentences_with_a_place() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "grade": {"enum": ["a", "b"]}, "o": {"type": "string"}},
        "required": ["x", "n"], "additionalProperties": false,
    });
    let schema = Schema::compile(&schema).unwrap();
    let long = "x".repeat(10_000);
    let value = json!({"n": "42", "grade": long, "o": {"a": long}, "\u{1b}[31m": 1});
    let errors = schema.complaints(&value, 9).join("\n");
    assert!(errors.contains(r#"at /n: "42" is not of type "integer""#), "{errors}");
    assert!(errors.contains("at /o: value is not of type"), "{errors}");
    assert!(errors.contains(r#""x" is a required property"#), "{errors}");
    assert!(!errors.contains('\u{1b}') && errors.len() < 1_600, "{errors}");
    assert_eq!(schema.complaints(&value, 2).len(), 2);
}

#[test]
fn what_a_property_can_be() {
    let schema = json!({
        "properties": {
            "flag": {"type": "boolean"}, "word": {"type": "string"}, "grade": {"$ref": "#/$defs/Grade"},
            "any": {}, "fixed": {"const": 1}, "or": {"anyOf": [{"type": "null"}, {"enum": ["ok"]}]},
        },
        "required": ["flag", "grade", "word", "or"],
        "$defs": {"Grade": {"enum": ["good", "bad"]}},
    });
    let schema = Schema::compile(&schema).unwrap();
    for (name, value, expected) in [
        ("flag", json!(true), true),
        ("flag", json!("pass"), false),
        ("word", json!("pass"), true),
        ("word", json!(true), false),
        ("grade", json!("good"), true),
        ("grade", json!("pass"), false),
        ("any", json!(3), true),
        ("fixed", json!(1.0), true),
        ("fixed", json!(2), false),
        ("or", json!("ok"), true),
        ("or", json!("pass"), false),
    ] {
        assert_eq!(schema.can_be(name, &value), expected, "{name} {value}");
    }
    assert_eq!(schema.countable(), ["flag", "grade"]);
}
