//! The members of a JSON object, as written.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A key, borrowed from the text unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'k>(#[serde(borrow)] Cow<'k, str>);

/// Calls `visit` with each key of the top level, in order. `false` if the text is no object.
pub(super) fn for_each_key(text: &str, visit: &mut dyn FnMut(&str)) -> bool {
    serde_json::Deserializer::from_str(text).deserialize_map(Keys(visit)).is_ok()
}

struct Keys<'v>(&'v mut dyn FnMut(&str));

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key<'de>>()? {
            (self.0)(&key.0);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// Whether a JSON object has this member at its top level. Quick where the name does not occur in the line at all.
pub fn has_member(line: &str, name: &str) -> bool {
    if !line.contains(name) && !line.contains('\\') {
        return false;
    }
    let mut found = false;
    for_each_key(line, &mut |key| found |= key == name);
    found
}

/// Known names in their order, to find the members of many objects by.
#[derive(Debug)]
pub(super) struct Names {
    names: Vec<String>,
    places: HashMap<String, usize>,
}

impl Names {
    pub(super) fn new(names: &[String]) -> Self {
        let places = names.iter().enumerate().map(|(at, name)| (name.clone(), at)).collect();
        Self { names: names.to_vec(), places }
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The place of `name`. Objects mostly have their members in one order, so the place after the one found last is
    /// tried first.
    fn place(&self, name: &str, likely: usize) -> Option<usize> {
        if self.names.get(likely).is_some_and(|known| known == name) {
            return Some(likely);
        }
        self.places.get(name).copied()
    }

    /// The texts of an object's members by place; `None` where it has no such member. Of repeated members the last
    /// counts, other members are passed over.
    pub(super) fn values<'t>(&self, text: &'t str) -> Vec<Option<&'t str>> {
        let mut values = vec![None; self.names.len()];
        let wanted = Wanted { names: self, values: &mut values };
        // A text that is no object has no members.
        let _ = serde_json::Deserializer::from_str(text).deserialize_map(wanted);
        values
    }
}

struct Wanted<'n, 'v, 't> {
    names: &'n Names,
    values: &'v mut Vec<Option<&'t str>>,
}

impl<'de> Visitor<'de> for Wanted<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut likely = 0;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            match self.names.place(&key.0, likely) {
                Some(place) => {
                    self.values[place] = Some(map.next_value::<&'de RawValue>()?.get());
                    likely = place + 1;
                }
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_of_the_top_level_only() {
        assert!(has_member(r#"{"a":1,"verify":{}}"#, "verify"));
        assert!(has_member(r#"{"\u0076erify":1}"#, "verify"));
        assert!(!has_member(r#"{"a":{"verify":1},"b":"verify"}"#, "verify"));
        assert!(!has_member(r#"{"verify2":1}"#, "verify"));
    }

    #[test]
    fn values_are_texts_as_written() {
        let names = Names::new(&["a", "b", "c"].map(str::to_owned));
        let text = r#"{"c": [1, 2.0], "x":0, "a":1, "a":1e400}"#;
        assert_eq!(names.values(text), [Some("1e400"), None, Some("[1, 2.0]")]);
        assert_eq!(names.values("5"), [None, None, None]);
    }
}
