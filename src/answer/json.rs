//! Strict JSON: a value, the place where it ends, and its text without white space.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::base::json_text::{string_end, value_end};

/// A complete JSON value that was read from the beginning of a text.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The value.
    pub(super) value: Value,
    /// Bytes from the beginning of the text to its end.
    pub(super) end: usize,
    /// A member name that stands twice in one object.
    pub(super) duplicate: Option<String>,
}

/// Why there is no complete JSON value at the beginning of a text.
#[derive(Debug)]
pub(super) struct Broken {
    /// What is wrong, as a fragment.
    pub(super) why: String,
    /// Line and column of the text, from 1.
    pub(super) line: usize,
    /// Column in bytes, from 1; 0 at the end of a line.
    pub(super) column: usize,
    /// Whether the text ends before the value does.
    pub(super) cut: bool,
    /// Whether it is nested too deeply.
    pub(super) deep: bool,
}

/// Reads the JSON value at the beginning of `text`. Values nested more than 127 deep are refused.
pub(super) fn read_prefix(text: &str) -> Result<Parsed, Broken> {
    let duplicate = RefCell::new(None);
    let mut stream = serde_json::Deserializer::from_str(text);
    let value = Strict { duplicate: &duplicate }.deserialize(&mut stream).map_err(|error| broken(&error))?;
    let end = stream.into_iter::<serde::de::IgnoredAny>().byte_offset();
    Ok(Parsed { value, end, duplicate: duplicate.into_inner() })
}

fn broken(error: &serde_json::Error) -> Broken {
    let full = error.to_string();
    // The place is told apart from the reason, so that a place inside a longer text can be told.
    let why = full.rfind(" at line ").map_or(full.as_str(), |at| &full[..at]).to_owned();
    let deep = why.starts_with("recursion limit");
    Broken { why, line: error.line(), column: error.column(), cut: error.is_eof(), deep }
}

/// Reads a value and notes the first member name that stands twice.
#[derive(Clone, Copy)]
struct Strict<'a> {
    duplicate: &'a RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = members.next_value_seed(self)?;
            if object.contains_key(&name) {
                self.duplicate.borrow_mut().get_or_insert_with(|| name.clone());
            }
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// The text of a valid JSON value on one line: white space between tokens is dropped, all else stays.
pub(super) fn compact(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    let bytes = json.as_bytes();
    // A run is copied as a whole; it begins and ends at ASCII, so at a character boundary.
    let (mut at, mut from) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b' ' | b'\t' | b'\n' | b'\r' => {
                line.push_str(json.get(from..at).unwrap_or_default());
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    line.push_str(json.get(from..).unwrap_or_default());
    line
}

/// The text of a top-level member of a compact JSON object that has each member once.
pub(super) fn member<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let bytes = object.as_bytes();
    let mut at = 1;
    while bytes.get(at) == Some(&b'"') {
        let colon = string_end(bytes, at);
        let key = object.get(at..colon)?;
        let end = value_end(bytes, colon + 1);
        let inner = key.get(1..key.len().checked_sub(1)?)?;
        let same = if inner.contains('\\') {
            serde_json::from_str::<String>(key).is_ok_and(|key| key == name)
        } else {
            inner == name
        };
        if same {
            return object.get(colon + 1..end);
        }
        at = end + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_where_the_value_ends() {
        for (text, end) in
            [(r#"{"a":1} x"#, 7), (" [1, 2]\n{", 7), ("1.50 ", 4), ("1.50", 4), (r#""é"x"#, 4), ("true,", 4)]
        {
            assert_eq!(read_prefix(text).unwrap().end, end, "{text}");
        }
    }

    #[test]
    fn duplicates_are_noted_at_any_depth() {
        assert_eq!(read_prefix(r#"{"a":[{"b":1,"b":2}]}"#).unwrap().duplicate.as_deref(), Some("b"));
        assert_eq!(read_prefix(r#"{"a":{"a":1}}"#).unwrap().duplicate, None);
        assert_eq!(read_prefix(r#"{"a":1,"\u0061":1}"#).unwrap().duplicate.as_deref(), Some("a"));
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = "[".repeat(200_000);
        assert!(read_prefix(&deep).unwrap_err().deep);
        assert!(read_prefix(&"[".repeat(50)).unwrap_err().cut);
    }

    #[test]
    fn one_line_keeps_numbers_escapes_and_order() {
        let text = "{ \"z\" : 1.10,\n\t\"a\":[ 1e2 , -0 ] ,\"\\u0041 \\\" {\": \"x  y\" }";
        assert_eq!(compact(text), r#"{"z":1.10,"a":[1e2,-0],"\u0041 \" {":"x  y"}"#);
    }

    #[test]
    fn members_are_found_by_their_meaning() {
        let object = r#"{"a":{"n":1},"s":"}{,\"","\u006e":0.90,"l":[1,{"n":2}],"e":"é"}"#;
        assert_eq!(member(object, "n"), Some("0.90"));
        assert_eq!(member(object, "a"), Some(r#"{"n":1}"#));
        assert_eq!(member(object, "e"), Some("\"é\""));
        assert_eq!(member(object, "x"), None);
        assert_eq!(member("{}", "x"), None);
        assert_eq!(member("[1]", "x"), None);
    }
}
