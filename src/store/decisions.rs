//! Decisions of people: kept by the content of a row, the newest one counts.

use rusqlite::{OptionalExtension as _, Row, TransactionBehavior, params};

use crate::base::{Digest, WallTime};
use crate::model::PersonDecision;
use crate::store::runs::{signed, unsigned};
use crate::store::{Reader, Store, StoreError};

fn read(row: &Row<'_>) -> rusqlite::Result<PersonDecision> {
    Ok(PersonDecision {
        positive: row.get(0)?,
        reviewer: row.get(1)?,
        note: row.get(2)?,
        run: row.get(3)?,
        row: unsigned(row.get(4)?),
        decided: WallTime(row.get(5)?),
    })
}

const NEWEST: &str = "SELECT positive, reviewer, note, run, row, decided FROM decisions WHERE content = ?1 \
                      ORDER BY id DESC LIMIT 1";
const HISTORY: &str = "SELECT positive, reviewer, note, run, row, decided FROM decisions WHERE content = ?1 \
                       ORDER BY id";

impl Store {
    /// Keeps decisions, each with the digest of its content: all of them or none. One that says what the newest of
    /// its content says is left out. Returns how many were kept.
    pub fn decide(&self, decisions: &[(Digest, PersonDecision)]) -> Result<u64, StoreError> {
        let write = || {
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let mut kept = 0;
            for (content, new) in decisions {
                let newest =
                    transaction.prepare_cached(NEWEST)?.query_row([content.as_bytes()], read).optional()?;
                if newest.is_some_and(|newest| newest.says_as(new)) {
                    continue;
                }
                transaction
                    .prepare_cached(
                        "INSERT INTO decisions (content, positive, reviewer, note, run, row, decided) \
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                    )?
                    .execute(params![
                        content.as_bytes(),
                        new.positive,
                        new.reviewer,
                        new.note,
                        new.run,
                        signed(new.row),
                        new.decided.0
                    ])?;
                kept += 1;
            }
            transaction.commit()?;
            Ok(kept)
        };
        write().map_err(|source| self.sqlite(source))
    }
}

impl Reader {
    /// Whether any person has decided anything, so that looking for it is worth its time.
    pub fn has_decisions(&self) -> Result<bool, StoreError> {
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM decisions)", [], |row| row.get(0))
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The newest decision about a content.
    pub fn decision(&self, content: &Digest) -> Result<Option<PersonDecision>, StoreError> {
        self.connection
            .prepare_cached(NEWEST)
            .and_then(|mut statement| statement.query_row([content.as_bytes()], read).optional())
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// Every decision about a content, the oldest first.
    pub fn decisions(&self, content: &Digest) -> Result<Vec<PersonDecision>, StoreError> {
        self.connection
            .prepare_cached(HISTORY)
            .and_then(|mut statement| statement.query_map([content.as_bytes()], read)?.collect())
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::store;

    fn decision(positive: bool, note: &str, at: i64) -> PersonDecision {
        PersonDecision {
            positive,
            reviewer: "ann".to_owned(),
            note: note.to_owned(),
            run: "0190".to_owned(),
            row: 7,
            decided: WallTime(at),
        }
    }

    #[test]
    fn the_newest_counts_and_the_older_stay() {
        let (_dir, store) = store();
        let reader = store.reader().unwrap();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        assert!(!reader.has_decisions().unwrap());
        assert_eq!(reader.decision(&one).unwrap(), None);
        let first = decision(true, "", 1_000);
        assert_eq!(store.decide(&[(one, first.clone()), (two, first.clone())]).unwrap(), 2);
        assert!(reader.has_decisions().unwrap());
        // The same again says nothing new, whenever it is said.
        assert_eq!(store.decide(&[(one, decision(true, "", 2_000))]).unwrap(), 0);
        let (second, third) = (decision(false, "", 3_000), decision(true, "", 4_000));
        assert_eq!(store.decide(&[(one, second.clone()), (one, third.clone())]).unwrap(), 2);
        assert_eq!(reader.decision(&one).unwrap(), Some(third.clone()));
        assert_eq!(reader.decisions(&one).unwrap(), [first.clone(), second, third]);
        assert_eq!(reader.decisions(&two).unwrap(), [first]);
        assert_eq!(reader.decisions(&Digest::of(b"none")).unwrap(), []);
    }

    #[test]
    fn all_or_none() {
        let (_dir, store) = store();
        store
            .connection
            .execute_batch(
                "CREATE TRIGGER refuse BEFORE INSERT ON decisions WHEN new.row = 9 BEGIN SELECT raise(ABORT, 'no'); END",
            )
            .unwrap();
        let bad = PersonDecision { row: 9, ..decision(true, "", 1) };
        store.decide(&[(Digest::of(b"one"), decision(true, "", 1)), (Digest::of(b"two"), bad)]).unwrap_err();
        assert!(!store.reader().unwrap().has_decisions().unwrap());
    }
}
