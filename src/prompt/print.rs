//! How a value prints: a string as itself, anything else as its JSON text.

use std::fmt::{self, Write};

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use crate::prompt::record::{JsonNode, JsonNumber};

/// Lists and maps that a template builds may be nested so deep.
const DEEPEST: usize = 128;

/// Writes a value as the prompt shows it.
pub(super) fn write_text(out: &mut impl Write, value: &Value) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => Ok(out.write_str(text)?),
        None => write_json(out, value, 0),
    }
}

/// A value as the prompt shows it.
pub(super) fn text_of(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write_text(&mut text, value)?;
    Ok(text)
}

/// The JSON text of a value: for a value of the row as it stands in the input.
pub(super) fn json_of(value: &Value) -> Result<String, Error> {
    let mut text = String::new();
    write_json(&mut text, value, 0)?;
    Ok(text)
}

fn write_json(out: &mut impl Write, value: &Value, depth: usize) -> Result<(), Error> {
    if depth > DEEPEST {
        return Err(Error::new(ErrorKind::InvalidOperation, "a list is nested too deeply to print"));
    }
    if value.downcast_object_ref::<JsonNode>().is_some() || JsonNumber::of(value).is_some() {
        return Ok(write!(out, "{value}")?);
    }
    match value.kind() {
        ValueKind::String => Ok(write_string(out, value.as_str().unwrap_or_default())?),
        ValueKind::None => Ok(out.write_str("null")?),
        ValueKind::Bool => Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
        ValueKind::Map => {
            for (at, key) in value.try_iter()?.enumerate() {
                out.write_str(if at == 0 { "{" } else { "," })?;
                write_string(out, &text_of(&key)?)?;
                out.write_str(":")?;
                write_json(out, &value.get_item(&key)?, depth + 1)?;
            }
            Ok(out.write_str(if value.len() == Some(0) { "{}" } else { "}" })?)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            out.write_str("[")?;
            for (at, item) in value.try_iter()?.enumerate() {
                if at > 0 {
                    out.write_str(",")?;
                }
                write_json(out, &item, depth + 1)?;
            }
            Ok(out.write_str("]")?)
        }
        ValueKind::Invalid => Err(Error::new(ErrorKind::BadEscape, value.to_string())),
        _ => Ok(write!(out, "{value}")?),
    }
}

fn write_string(out: &mut impl Write, text: &str) -> fmt::Result {
    write!(out, "{}", serde_json::Value::from(text))
}

/// A JSON text with line breaks, each level indented by so many blanks. Tokens stay as they are.
pub(super) fn indented(json: &str, by: usize) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut letters = json.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', depth.saturating_mul(by).min(1_000)));
    };
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' | '\r' => {}
            '{' | '[' => {
                out.push(letter);
                while letters.peek().is_some_and(char::is_ascii_whitespace) {
                    letters.next();
                }
                if let Some(close) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                out.push(letter);
                while let Some(letter) = letters.next() {
                    out.push(letter);
                    match letter {
                        '"' => break,
                        '\\' => out.extend(letters.next()),
                        _ => {}
                    }
                }
            }
            _ => out.push(letter),
        }
    }
    out
}
