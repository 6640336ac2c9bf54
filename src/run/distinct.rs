//! Requests that a pass has met, each once, in bounded memory.

use std::collections::HashSet;

use rusqlite::Connection;

use crate::run::error::RunError;

/// Digests in memory before the rest goes to a file: some 4 MB.
const IN_MEMORY: usize = 1 << 17;

/// An exact set of request digests. The first are kept in memory, all others in a temporary database that `SQLite`
/// deletes by itself.
#[derive(Debug)]
pub(super) struct Distinct {
    first: HashSet<[u8; 16]>,
    room: usize,
    others: Option<Connection>,
}

impl Default for Distinct {
    fn default() -> Self {
        Self { first: HashSet::new(), room: IN_MEMORY, others: None }
    }
}

impl Distinct {
    /// Adds a digest. Returns whether it is new.
    pub(super) fn insert(&mut self, hash: [u8; 16]) -> Result<bool, RunError> {
        if self.first.contains(&hash) {
            return Ok(false);
        }
        if self.first.len() < self.room {
            return Ok(self.first.insert(hash));
        }
        self.spill(hash).map_err(|error| RunError::Start {
            what: "the temporary index of requests",
            source: std::io::Error::other(error),
        })
    }

    fn spill(&mut self, hash: [u8; 16]) -> rusqlite::Result<bool> {
        let others = match &self.others {
            Some(others) => others,
            None => self.others.insert(open()?),
        };
        let added =
            others.prepare_cached("INSERT OR IGNORE INTO seen (hash) VALUES (?1)")?.execute([hash])?;
        Ok(added > 0)
    }
}

fn open() -> rusqlite::Result<Connection> {
    // An empty name is a private database in a temporary file; its pages go there when the cache is full.
    let database = Connection::open("")?;
    database.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -16384;
         CREATE TABLE seen (hash BLOB PRIMARY KEY) WITHOUT ROWID;
         BEGIN;",
    )?;
    Ok(database)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Digest;

    #[test]
    fn each_is_new_once_in_memory_and_beyond() {
        let mut set = Distinct { room: 10, ..Distinct::default() };
        let hash = |number: u32| Digest::of(&number.to_le_bytes()).short();
        assert!((0..40).all(|number| set.insert(hash(number)).unwrap()));
        assert!((0..40).all(|number| !set.insert(hash(number)).unwrap()));
        assert!(set.others.is_some() && set.first.len() == 10);
    }
}
