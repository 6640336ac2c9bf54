//! A short notation for the columns of an answer, and the schema that it stands for.

use serde_json::{Map, Number, Value, json};

use crate::answer::ColumnError;

/// The type of an answer column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnType {
    kind: Kind,
    nullable: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// `boolean`, `string`, `number` or `integer`, with inclusive bounds where they are given.
    Plain(&'static str, Option<(Number, Number)>),
    /// One of these values.
    Enum(Vec<Value>),
    /// A list of such values.
    List(Box<ColumnType>),
}

const PLAIN: [&str; 4] = ["boolean", "string", "number", "integer"];

impl ColumnType {
    /// Reads a type: `boolean`, `string`, `number`, `integer`, `number 0..1`, `integer 1..5`, any of these or an
    /// enum with `[]` for a list of them, an enum `a|b` or a JSON list of values; `?` at the end lets it be null.
    ///
    /// # Errors
    ///
    /// A [`ColumnError`] that names `column`.
    pub fn parse(column: &str, text: &str) -> Result<Self, ColumnError> {
        let text = text.trim();
        if text.ends_with("??") || text.matches("[]").count() > 8 {
            let (column, text) = (column.to_owned(), text.to_owned());
            return Err(ColumnError::UnknownType { column, text, hint: String::new() });
        }
        if let Some(inner) = text.strip_suffix('?') {
            return Ok(Self { nullable: true, ..Self::parse(column, inner)? });
        }
        if let Ok(Value::Array(values)) = serde_json::from_str(text) {
            return Self::one_of(column, text, values);
        }
        if let Some(inner) = text.strip_suffix("[]") {
            let kind = Kind::List(Box::new(Self::parse(column, inner)?));
            return Ok(Self { kind, nullable: false });
        }
        let (word, range) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        if let Some(kind) = PLAIN.into_iter().find(|kind| *kind == word) {
            let bounds = match range.trim() {
                "" => None,
                range => Some(bounds(kind, range).ok_or_else(|| ColumnError::BadRange {
                    column: column.to_owned(),
                    text: range.to_owned(),
                })?),
            };
            return Ok(Self { kind: Kind::Plain(kind, bounds), nullable: false });
        }
        if text.contains('|') {
            let values = text.split('|').map(|value| Value::from(value.trim())).collect();
            return Self::one_of(column, text, values);
        }
        let near = PLAIN
            .into_iter()
            .map(|kind| (strsim::jaro_winkler(kind, word), kind))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let hint = near.map(|(_, kind)| format!(", did you mean `{kind}`?")).unwrap_or_default();
        Err(ColumnError::UnknownType { column: column.to_owned(), text: text.to_owned(), hint })
    }

    /// The type whose values are exactly these.
    ///
    /// # Errors
    ///
    /// No value, an empty text, or a value that stands twice.
    pub fn of_values(column: &str, values: Vec<Value>) -> Result<Self, ColumnError> {
        let text = Value::Array(values.clone()).to_string();
        Self::one_of(column, &text, values)
    }

    fn one_of(column: &str, text: &str, values: Vec<Value>) -> Result<Self, ColumnError> {
        let twice =
            values.iter().enumerate().any(|(at, value)| values.iter().take(at).any(|have| have == value));
        if values.is_empty() || twice || values.iter().any(|value| value.as_str() == Some("")) {
            return Err(ColumnError::BadValues { column: column.to_owned(), text: text.to_owned() });
        }
        Ok(Self { kind: Kind::Enum(values), nullable: false })
    }

    fn schema(&self) -> Value {
        let kind = |name: &str| if self.nullable { json!([name, "null"]) } else { json!(name) };
        match &self.kind {
            Kind::Plain(name, None) => json!({ "type": kind(name) }),
            Kind::Plain(name, Some((least, most))) => {
                json!({ "type": kind(name), "minimum": least, "maximum": most })
            }
            Kind::Enum(values) => {
                let mut values = values.clone();
                if self.nullable && !values.contains(&Value::Null) {
                    values.push(Value::Null);
                }
                let texts = values.iter().all(|value| value.is_string() || value.is_null());
                // The type is said too where it can be: some servers want it beside an enum.
                if texts {
                    json!({ "type": kind("string"), "enum": values })
                } else {
                    json!({ "enum": values })
                }
            }
            Kind::List(items) => json!({ "type": kind("array"), "items": items.schema() }),
        }
    }
}

fn bounds(kind: &str, range: &str) -> Option<(Number, Number)> {
    let (least, most) = range.split_once("..")?;
    let (least, most): (Number, Number) = (least.trim().parse().ok()?, most.trim().parse().ok()?);
    let whole = |number: &Number| number.is_i64() || number.is_u64();
    let fits = match kind {
        "number" => true,
        "integer" => whole(&least) && whole(&most),
        _ => false,
    };
    (fits && least.as_f64()? <= most.as_f64()?).then_some((least, most))
}

/// Reads `NAME=TYPE`.
///
/// # Errors
///
/// A [`ColumnError`] that names the column.
pub fn parse_column(text: &str) -> Result<(String, ColumnType), ColumnError> {
    let no_name = || ColumnError::NoName { text: text.to_owned() };
    let (name, kind) = text.split_once('=').ok_or_else(no_name)?;
    let name = name.trim();
    if name.is_empty() {
        return Err(no_name());
    }
    Ok((name.to_owned(), ColumnType::parse(name, kind)?))
}

/// The schema of these columns: a closed object that requires them all, in this order.
pub fn schema_of_columns(columns: &[(String, ColumnType)]) -> Value {
    let properties: Map<String, Value> =
        columns.iter().map(|(name, kind)| (name.clone(), kind.schema())).collect();
    let required: Vec<&String> = properties.keys().collect();
    json!({ "type": "object", "required": required, "additionalProperties": false, "properties": properties })
}

/// A preset: a schema and the settings that fit it.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// The schema.
    pub schema: Value,
    /// The property that decides.
    pub verdict: &'static str,
    /// Its values that mean pass.
    pub pass: Vec<Value>,
    /// The property that holds the confidence.
    pub confidence: &'static str,
}

/// The preset `verdict`: claim, observed, match, confidence, reasoning.
pub fn preset_verdict() -> Preset {
    let text = |name: &str| (name.to_owned(), plain("string", None));
    let grades = ["pass", "fail", "partial"].into_iter().map(Value::from).collect();
    let columns = [
        text("claim"),
        text("observed"),
        ("match".to_owned(), ColumnType { kind: Kind::Enum(grades), nullable: false }),
        ("confidence".to_owned(), plain("number", Some((0.into(), 1.into())))),
        text("reasoning"),
    ];
    Preset {
        schema: schema_of_columns(&columns),
        verdict: "match",
        pass: vec![Value::from("pass")],
        confidence: "confidence",
    }
}

const fn plain(name: &'static str, bounds: Option<(Number, Number)>) -> ColumnType {
    ColumnType { kind: Kind::Plain(name, bounds), nullable: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Value {
        ColumnType::parse("c", text).unwrap().schema()
    }

    #[test]
    fn types_are_read() {
        for (text, expected) in [
            ("boolean", json!({"type": "boolean"})),
            ("string?", json!({"type": ["string", "null"]})),
            ("number 0..1", json!({"type": "number", "minimum": 0, "maximum": 1})),
            ("number -0.5..0.5?", json!({"type": ["number", "null"], "minimum": -0.5, "maximum": 0.5})),
            ("integer 1..5", json!({"type": "integer", "minimum": 1, "maximum": 5})),
            ("string[]", json!({"type": "array", "items": {"type": "string"}})),
            (
                "integer 1..5[]?",
                json!({"type": ["array", "null"], "items": {"type": "integer", "minimum": 1, "maximum": 5}}),
            ),
            ("a|b", json!({"type": "string", "enum": ["a", "b"]})),
            (r#"["a","b"]"#, json!({"type": "string", "enum": ["a", "b"]})),
            ("[1, 2]?", json!({"enum": [1, 2, null]})),
            ("a | b?", json!({"type": ["string", "null"], "enum": ["a", "b", null]})),
            ("a|b[]", json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}})),
        ] {
            assert_eq!(schema(text), expected, "{text}");
        }
    }

    #[test]
    fn wrong_types_are_named() {
        for text in [
            "",
            "?",
            "text",
            "bool",
            "number 1..0",
            "number 0",
            "integer 0.5..1",
            "string 1..2",
            "a|",
            "a|a",
            "[]",
            "string??",
            "string?[]?[]?[]?[]?[]?[]?[]?[]?[]",
        ] {
            assert!(ColumnType::parse("c", text).is_err(), "{text}");
        }
        let error = parse_column("ok=bolean").unwrap_err().to_string();
        assert!(error.contains("did you mean `boolean`") && error.contains("`ok`"), "{error}");
        assert!(parse_column("grade").is_err() && parse_column("=a|b").is_err());
    }

    #[test]
    fn columns_make_a_closed_object_in_order() {
        let columns: Vec<_> =
            ["z=boolean", "a=string?", "grade=a|b"].map(|text| parse_column(text).unwrap()).into();
        let schema = schema_of_columns(&columns);
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["z", "a", "grade"]);
        assert_eq!(schema["required"], json!(["z", "a", "grade"]));
        assert_eq!(schema["additionalProperties"], json!(false));
    }

    #[test]
    fn the_preset_fits_itself() {
        let preset = preset_verdict();
        let names: Vec<_> = preset.schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(names, ["claim", "observed", "match", "confidence", "reasoning"]);
        assert_eq!(preset.schema["properties"]["match"]["enum"], json!(["pass", "fail", "partial"]));
    }
}
