//! The id column: its values, and whether they are unique.

use std::fmt;

use rusqlite::{Connection, OptionalExtension};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::base::Digest;
use crate::model::{Header, InputRow, RowContent};

/// The value of `column` as JSON text: a JSON string for CSV, the text as it stands for JSONL, where the last of
/// repeated members counts. `None` where the row has no such member, has `null`, or is malformed.
pub(super) fn id_of(row: &InputRow, header: Option<&Header>, column: &str) -> Option<String> {
    match &row.content {
        RowContent::Fields(values) => {
            let at = header?.iter().position(|name| name == column)?;
            serde_json::to_string(values.get(at)?.as_ref()).ok()
        }
        RowContent::Object(line) => {
            let mut reader = serde_json::Deserializer::from_str(line);
            let found = reader.deserialize_map(Member(column)).ok()??;
            (found.get() != "null").then(|| found.get().to_owned())
        }
        RowContent::Bad { .. } => None,
    }
}

struct Member<'n>(&'n str);

impl<'de> Visitor<'de> for Member<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Key<'de>>()? {
            if key.0 == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A key, borrowed from the line unless it has escapes.
#[derive(serde::Deserialize)]
struct Key<'k>(#[serde(borrow)] std::borrow::Cow<'k, str>);

/// Ids seen so far, in a temporary database that `SQLite` deletes by itself.
pub(super) struct IdIndex {
    database: Connection,
}

impl IdIndex {
    pub(super) fn new() -> rusqlite::Result<Self> {
        // An empty name is a private database in a temporary file; its pages go there when the cache is full.
        let database = Connection::open("")?;
        database.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;
             CREATE TABLE ids (id BLOB PRIMARY KEY, row INTEGER NOT NULL) WITHOUT ROWID;
             BEGIN;",
        )?;
        Ok(Self { database })
    }

    /// Adds the id of a row; the row that has it already, if there is one.
    pub(super) fn add(&mut self, id: &str, row: u64) -> rusqlite::Result<Option<u64>> {
        let key = Digest::of(id.as_bytes()).short();
        let row = i64::try_from(row).unwrap_or(i64::MAX);
        let added = self
            .database
            .prepare_cached("INSERT OR IGNORE INTO ids (id, row) VALUES (?1, ?2)")?
            .execute((key, row))?;
        if added > 0 {
            return Ok(None);
        }
        let first: Option<i64> = self
            .database
            .prepare_cached("SELECT row FROM ids WHERE id = ?1")?
            .query_row((key,), |found| found.get(0))
            .optional()?;
        Ok(first.map(i64::cast_unsigned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_an_id_again() {
        let mut index = IdIndex::new().unwrap();
        assert_eq!(index.add("\"a\"", 1).unwrap(), None);
        assert_eq!(index.add("\"b\"", 2).unwrap(), None);
        assert_eq!(index.add("\"a\"", 3).unwrap(), Some(1));
    }

    #[test]
    fn ids_are_json_text() {
        let row = |content| InputRow { number: 1, line: 1, content };
        let object = |line: &str| row(RowContent::Object(line.into()));
        let id = |line: &str| id_of(&object(line), None, "id");
        assert_eq!(id(r#"{"id": 1.10, "x": 2}"#).as_deref(), Some("1.10"));
        assert_eq!(id(r#"{"id":1,"\u0069d": {"a": [1]} }"#).as_deref(), Some(r#"{"a": [1]}"#));
        assert_eq!(id(r#"{"x":{"id":1}}"#), None);
        assert_eq!(id(r#"{"id":null}"#), None);
        let header: Header = ["a".to_owned(), "id".to_owned()].into();
        let fields = row(RowContent::Fields(vec!["1".into(), "x\"\n".into()]));
        assert_eq!(id_of(&fields, Some(&header), "id").as_deref(), Some(r#""x\"\n""#));
        assert_eq!(id_of(&fields, Some(&header), "no"), None);
    }
}
