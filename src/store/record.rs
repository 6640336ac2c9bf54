//! An attempt as columns: the one insert, and reading it back.

use std::path::Path;

use rusqlite::types::Null;
use rusqlite::{Row, Statement, ToSql, params};

use crate::base::{AttemptKey, Money, WallTime};
use crate::model::{AttemptRecord, Ending, Usage};
use crate::store::StoreError;
use crate::store::runs::{signed, unsigned};

/// Longer bodies go to a table of their own, so that the pages of attempts stay dense.
pub(super) const LONGEST_INLINE: usize = 4_096;

/// The insert of an attempt.
pub(super) const INSERT: &str = "INSERT INTO attempts (id, ending, shadowed, hash, label, http_status, started, millis, \
     input, cached_input, cache_write, output, reasoning, estimated, cost, repair, extracted, request_id, error, answer, \
     raw, possible) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)";

/// The columns that [`Columns::read`] takes, of an attempt `a` and its label `l`.
macro_rules! columns {
    () => {
        "a.id, a.ending, a.hash, l.label, a.http_status, a.started, a.millis, a.input, a.cached_input, a.cache_write, \
         a.output, a.reasoning, a.estimated, a.cost, a.repair, a.extracted, a.request_id, a.error, a.answer, a.possible"
    };
}
pub(super) use columns;

/// How many columns that are.
pub(super) const COLUMNS: usize = 20;

/// Adds an attempt. `shadowed`: its hash has a valid answer already, and the index keeps that one.
pub(super) fn insert(
    statement: &mut Statement<'_>,
    key: AttemptKey,
    record: &AttemptRecord,
    label: i64,
    shadowed: bool,
) -> rusqlite::Result<()> {
    let usage = record.usage.as_ref();
    let tokens = |count: fn(&Usage) -> u64| usage.map(|usage| signed(count(usage)));
    let inline = !record.raw.is_empty() && record.raw.len() <= LONGEST_INLINE;
    let raw: &dyn ToSql = if inline { &record.raw.as_ref() } else { &Null };
    statement.execute(params![
        key.as_i64(),
        record.ending.code(),
        shadowed,
        record.hash,
        label,
        record.http_status,
        record.started.0,
        signed(record.millis),
        tokens(|usage| usage.input),
        tokens(|usage| usage.cached_input),
        tokens(|usage| usage.cache_write),
        tokens(|usage| usage.output),
        tokens(|usage| usage.reasoning),
        record.estimated,
        record.cost.map(Money::pico),
        record.repair,
        record.extracted,
        record.request_id,
        record.error,
        record.answer,
        raw,
        record.possible.map(Money::pico),
    ])?;
    Ok(())
}

/// An attempt as the columns have it, before its ending is read.
#[derive(Debug)]
pub(super) struct Columns {
    key: AttemptKey,
    code: i64,
    record: AttemptRecord,
}

impl Columns {
    /// Reads [`columns!`] from column `at` on, without the body; `None` where the join found no attempt.
    pub(super) fn read(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Self>> {
        let Some(key) = row.get::<_, Option<i64>>(at)?.map(AttemptKey::from_i64) else {
            return Ok(None);
        };
        let count = |place: usize| row.get::<_, Option<i64>>(at + place).map(|n| n.map(unsigned));
        let usage = match count(7)? {
            Some(input) => Some(Usage {
                input,
                cached_input: count(8)?.unwrap_or(0),
                cache_write: count(9)?.unwrap_or(0),
                cache_write_long: 0,
                output: count(10)?.unwrap_or(0),
                reasoning: count(11)?.unwrap_or(0),
            }),
            None => None,
        };
        let record = AttemptRecord {
            ticket: key.ticket(),
            ending: Ending::Abandoned,
            hash: row.get(at + 2)?,
            key_label: row.get::<_, Option<String>>(at + 3)?.unwrap_or_default(),
            http_status: row.get(at + 4)?,
            started: WallTime(row.get(at + 5)?),
            millis: unsigned(row.get(at + 6)?),
            usage,
            estimated: row.get(at + 12)?,
            cost: row.get::<_, Option<i64>>(at + 13)?.map(Money::from_pico),
            repair: row.get(at + 14)?,
            extracted: row.get(at + 15)?,
            request_id: row.get(at + 16)?,
            error: row.get(at + 17)?,
            answer: row.get(at + 18)?,
            possible: row.get::<_, Option<i64>>(at + 19)?.map(Money::from_pico),
            raw: bytes::Bytes::new(),
        };
        Ok(Some(Self { key, code: row.get(at + 1)?, record }))
    }

    /// Adds the body.
    pub(super) fn with_raw(mut self, raw: Option<Vec<u8>>) -> Self {
        self.record.raw = raw.unwrap_or_default().into();
        self
    }

    /// The attempt, if this version knows its ending.
    pub(super) fn into_record(self, path: &Path) -> Result<AttemptRecord, StoreError> {
        let ending = ending(path, self.key, self.code)?;
        Ok(AttemptRecord { ending, ..self.record })
    }
}

/// The ending with this number, of the attempt `key`.
pub(super) fn ending(path: &Path, key: AttemptKey, code: i64) -> Result<Ending, StoreError> {
    Ending::from_code(code).ok_or_else(|| StoreError::Unreadable {
        path: path.to_owned(),
        what: format!("ending {code} for row {} of run number {}", key.ticket().row, key.run()),
    })
}
