//! Looking into the JSON text of a record without building its values.
//!
//! The text is known to be valid. Where it is not, a look ends early; it never panics.

use std::borrow::Cow;

use crate::base::json_text::{after_space, string_end, value_end};
use crate::prompt::field::Step;

/// The members of an object: each name with its quotes, and each value, as they stand.
pub(super) fn members(object: &str) -> Members<'_> {
    Members { text: object, at: after_space(object.as_bytes(), 0) + 1 }
}

pub(super) struct Members<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let mut start = after_space(bytes, self.at);
        if bytes.get(start) == Some(&b',') {
            start = after_space(bytes, start + 1);
        }
        if bytes.get(start) != Some(&b'"') {
            return None;
        }
        let name_end = string_end(bytes, start);
        let value = after_space(bytes, after_space(bytes, name_end) + 1);
        let value_end = value_end(bytes, value);
        self.at = value_end;
        Some((
            self.text.get(start..name_end)?,
            self.text.get(value..value_end).filter(|text| !text.is_empty())?,
        ))
    }
}

/// The elements of an array as they stand.
pub(super) fn elements(array: &str) -> Elements<'_> {
    Elements { text: array, at: after_space(array.as_bytes(), 0) + 1 }
}

pub(super) struct Elements<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let mut start = after_space(bytes, self.at);
        if bytes.get(start) == Some(&b',') {
            start = after_space(bytes, start + 1);
        }
        self.at = value_end(bytes, start);
        self.text.get(start..self.at).filter(|text| !text.is_empty())
    }
}

/// Whether a member's name, with its quotes, means `name`.
pub(super) fn is_named(raw: &str, name: &str) -> bool {
    let inner = inside(raw);
    if inner.contains('\\') { text(raw).is_some_and(|text| text == name) } else { inner == name }
}

/// The text that a JSON string means; `None` if it holds a lone surrogate.
pub(super) fn text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = inside(raw);
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// The value at some steps below `value`. Of duplicates the last wins.
pub(super) fn down<'a>(value: &'a str, steps: &[Step]) -> Option<&'a str> {
    steps.iter().try_fold(value, |value, step| match (step, value.as_bytes().first()?) {
        (Step::Key(name), b'{') => {
            members(value).filter(|(raw, _)| is_named(raw, name)).last().map(|(_, value)| value)
        }
        (Step::Index(index), b'[') => {
            let place = match usize::try_from(*index) {
                Ok(place) => place,
                Err(_) => elements(value).count().checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?,
            };
            elements(value).nth(place)
        }
        _ => None,
    })
}

fn inside(raw: &str) -> &str {
    raw.len().checked_sub(1).and_then(|end| raw.get(1..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_stand_as_written() {
        let object = r#" { "a" : 1.10 , "b\"" : [ 1, {"x":"}"} ],"c":{},"d":"é" , "e":null } "#;
        let found: Vec<_> = members(object).collect();
        let expected = [
            (r#""a""#, "1.10"),
            (r#""b\"""#, r#"[ 1, {"x":"}"} ]"#),
            (r#""c""#, "{}"),
            (r#""d""#, r#""é""#),
            (r#""e""#, "null"),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            elements(r#"[ 1, {"x":"}"} , "]" ]"#).collect::<Vec<_>>(),
            ["1", r#"{"x":"}"}"#, r#""]""#]
        );
        assert_eq!(elements("[]").count() + members("{ }").count(), 0);
    }

    #[test]
    fn paths_lead_down() {
        let row = r#"{"a":{"b":[{"c":1},{"c":2}]},"a\u0062":3,"d":1,"d":2}"#;
        let key = |name: &str| Step::Key(name.to_owned());
        assert_eq!(down(row, &[key("a"), key("b"), Step::Index(-1), key("c")]), Some("2"));
        assert_eq!(down(row, &[key("ab")]), Some("3"));
        assert_eq!(down(row, &[key("d")]), Some("2"));
        assert_eq!(down(row, &[key("a"), key("b"), Step::Index(-3)]), None);
        assert_eq!(down(row, &[key("d"), key("x")]), None);
    }

    #[test]
    fn a_lone_surrogate_is_no_text() {
        assert_eq!(text(r#""a\ud83d""#), None);
        assert_eq!(text(r#""a\ud83d\ude00""#).as_deref(), Some("a😀"));
    }

    #[test]
    fn broken_texts_end_early() {
        for broken in ["", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":[", "[,", "{\"a\":\"\\", "}"] {
            assert!(members(broken).count() <= 1 && elements(broken).count() <= broken.len(), "{broken}");
        }
    }
}
