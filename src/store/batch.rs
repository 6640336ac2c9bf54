//! One commit: a batch of entries in one transaction.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, Transaction, TransactionBehavior, ffi, params};

use crate::base::{AttemptKey, CrashPoint, Ticket};
use crate::model::{AttemptRecord, Ending};
use crate::store::connection::{Purpose, carry_over, checkpoint, connect};
use crate::store::record::{INSERT, LONGEST_INLINE, insert};
use crate::store::runs::signed;
use crate::store::{Entry, StoreError};

/// An entry with the token by which its sender knows it.
pub(super) type Sent = (Option<u64>, Entry);

/// Kinds of rows that are no plain attempts.
pub(super) const REPLAY: i64 = 1;
/// A row that cannot be asked about.
pub(super) const BAD_INPUT: i64 = 2;

/// The connection that writes batches.
#[derive(Debug)]
pub(super) struct Batches {
    connection: Connection,
    path: PathBuf,
    /// Numbers of key labels.
    labels: HashMap<String, i64>,
    /// The log, to take it to the disk.
    log: Option<Arc<File>>,
}

/// What became of a batch that was committed.
#[derive(Debug)]
pub(super) struct Committed {
    /// Tokens of what is on disk now.
    pub(super) tokens: Vec<u64>,
    /// Why an entry was left out, if one was: it could not be numbered. All others are in.
    pub(super) refused: Option<StoreError>,
}

impl Batches {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = connect(path, Purpose::Write)?;
        // Commits go to the disk together, in `sync`, and are carried over beside the next ones.
        connection
            .execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0")
            .map_err(|source| StoreError::from_sqlite(path, source))?;
        Ok(Self { connection, path: path.to_owned(), labels: HashMap::new(), log: None })
    }

    /// Writes a batch: all of it, apart from what has no place in the store, or nothing.
    pub(super) fn write(&mut self, batch: &[Sent]) -> Result<Committed, StoreError> {
        let Self { connection, path, labels, .. } = self;
        let mut refused = None;
        let result = commit(connection, labels, batch, &mut refused);
        if result.is_err() {
            // Labels of a transaction that was undone have no numbers.
            labels.clear();
        }
        let tokens = result.map_err(|source| StoreError::from_sqlite(path, source))?;
        Ok(Committed { tokens, refused })
    }

    /// Takes every commit so far to the disk. `SQLite` appends commits to the log and carries them over into the file
    /// only after a sync of its own, so the log is all that has to be there; a cut tail of it is left out as a whole.
    pub(super) fn sync(&mut self) -> Result<(), StoreError> {
        let synced = self.log()?.sync_data();
        self.synced(synced)
    }

    /// The log, for whoever takes it to the disk and says with [`Batches::synced`] what came of it.
    pub(super) fn log(&mut self) -> Result<Arc<File>, StoreError> {
        if let Some(log) = &self.log {
            return Ok(Arc::clone(log));
        }
        let mut name = self.path.clone().into_os_string();
        name.push("-wal");
        let log = File::open(name).map(Arc::new).map_err(|source| StoreError::from_io(&self.path, source))?;
        self.log = Some(Arc::clone(&log));
        Ok(log)
    }

    /// What came of a sync, as an error of this store.
    pub(super) fn synced(&self, result: io::Result<()>) -> Result<(), StoreError> {
        result.map_err(|source| StoreError::from_io(&self.path, source))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Carries over what is left of the log, so that it begins anew with the next commit.
    pub(super) fn carry_over(&self) {
        // What cannot be carried over stays in the log, where it is as safe.
        let _ = carry_over(&self.connection, &self.path);
    }

    pub(super) fn checkpoint(&self) -> Result<(), StoreError> {
        checkpoint(&self.connection, &self.path)
    }

    #[cfg(test)]
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

fn commit(
    connection: &mut Connection,
    labels: &mut HashMap<String, i64>,
    batch: &[Sent],
    refused: &mut Option<StoreError>,
) -> rusqlite::Result<Vec<u64>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut tokens = Vec::with_capacity(batch.len());
    {
        let mut write =
            Write { insert: transaction.prepare_cached(INSERT)?, transaction: &transaction, labels };
        let mut progress = BTreeMap::new();
        for (token, entry) in batch {
            if let Entry::Progress { run, .. } = entry {
                progress.insert(*run, entry);
            } else if let Err(error) = write.entry(entry)? {
                refused.get_or_insert(error);
                continue;
            }
            tokens.extend(token);
        }
        for entry in progress.into_values() {
            if let Err(error) = write.entry(entry)? {
                refused.get_or_insert(error);
            }
        }
    }
    if batch.iter().any(|(_, entry)| entry.is_attempt()) {
        CrashPoint::AttemptsWriting.pass();
    }
    transaction.commit()?;
    Ok(tokens)
}

struct Write<'t> {
    transaction: &'t Transaction<'t>,
    insert: CachedStatement<'t>,
    labels: &'t mut HashMap<String, i64>,
}

impl Write<'_> {
    /// Writes an entry. The inner error is about the entry alone and leaves the transaction as it was.
    fn entry(&mut self, entry: &Entry) -> rusqlite::Result<Result<(), StoreError>> {
        let key = |run: u64, ticket: Ticket| {
            AttemptKey::new(run, ticket).map_err(|source| StoreError::Number { ticket, source })
        };
        match entry {
            Entry::Attempt { run, record } => match key(*run, record.ticket) {
                Ok(key) => return self.attempt(key, record),
                Err(error) => return Ok(Err(error)),
            },
            // The numbers of endings that are tried again are those of failures, and 100.
            Entry::TakenUp { attempt } => self.run(
                "UPDATE attempts SET ending = ending + 100 WHERE id = ?1 AND ending BETWEEN 1 AND 99",
                params![attempt.as_i64()],
            )?,
            // Attempts count from 1, so that 0 is free for what stands before them.
            Entry::Replay { run, row, sample, from } => {
                match key(*run, Ticket { row: *row, sample: *sample, attempt: 0 }) {
                    Ok(key) => self.run(
                        "INSERT OR REPLACE INTO rows (id, kind, source) VALUES (?1, ?2, ?3)",
                        params![key.as_i64(), REPLAY, from.as_i64()],
                    )?,
                    Err(error) => return Ok(Err(error)),
                }
            }
            Entry::BadInput { run, row, error } => {
                match key(*run, Ticket { row: *row, sample: 0, attempt: 0 }) {
                    Ok(key) => self.run(
                        "INSERT OR REPLACE INTO rows (id, kind, error) VALUES (?1, ?2, ?3)",
                        params![key.as_i64(), BAD_INPUT, error],
                    )?,
                    Err(error) => return Ok(Err(error)),
                }
            }
            Entry::Learned { endpoint, model, learned } => {
                let json = serde_json::to_string(learned)
                    .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
                self.run(
                    "INSERT OR REPLACE INTO learned (endpoint, model, json) VALUES (?1, ?2, ?3)",
                    params![endpoint, model, json],
                )?;
            }
            Entry::Answered { endpoint, model, key_label } => self.run(
                "INSERT OR IGNORE INTO answered (endpoint, model, label) VALUES (?1, ?2, ?3)",
                params![endpoint, model, key_label],
            )?,
            Entry::KeyWait { endpoint, key_label, noted, until: Some(until) } => self.run(
                "INSERT OR REPLACE INTO key_waits (endpoint, label, noted, until) VALUES (?1, ?2, ?3, ?4)",
                params![endpoint, key_label, noted.0, until.0],
            )?,
            Entry::KeyWait { endpoint, key_label, until: None, .. } => self.run(
                "DELETE FROM key_waits WHERE endpoint = ?1 AND label = ?2",
                params![endpoint, key_label],
            )?,
            Entry::Lease { run, money, calls } => self.run(
                "UPDATE leases SET money = ?2, calls = ?3 WHERE run = ?1",
                params![signed(*run), money.pico(), signed(*calls)],
            )?,
            Entry::RowDone => {}
            Entry::Progress { run, json } => self.run(
                "INSERT OR REPLACE INTO progress (run, json) VALUES (?1, ?2)",
                params![signed(*run), json],
            )?,
        }
        Ok(Ok(()))
    }

    fn attempt(
        &mut self,
        key: AttemptKey,
        record: &AttemptRecord,
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let label = self.label(&record.key_label)?;
        let mut added = insert(&mut self.insert, key, record, label, false);
        if record.ending == Ending::Valid && is(&added, ffi::SQLITE_CONSTRAINT_UNIQUE) {
            // Two jobs have bought the same answer at once. The index keeps the first; this one was paid for too.
            added = insert(&mut self.insert, key, record, label, true);
        }
        if is(&added, ffi::SQLITE_CONSTRAINT_PRIMARYKEY) || is(&added, ffi::SQLITE_CONSTRAINT_ROWID) {
            return Ok(Err(StoreError::Taken { ticket: record.ticket }));
        }
        added?;
        if record.raw.len() > LONGEST_INLINE {
            self.run(
                "INSERT INTO bodies (id, body) VALUES (?1, ?2)",
                params![key.as_i64(), record.raw.as_ref()],
            )?;
        }
        Ok(Ok(()))
    }

    fn label(&mut self, label: &str) -> rusqlite::Result<i64> {
        if let Some(&number) = self.labels.get(label) {
            return Ok(number);
        }
        self.run("INSERT OR IGNORE INTO labels (label) VALUES (?1)", params![label])?;
        let number = self
            .transaction
            .prepare_cached("SELECT id FROM labels WHERE label = ?1")?
            .query_row([label], |row| row.get(0))?;
        self.labels.insert(label.to_owned(), number);
        Ok(number)
    }

    fn run(&self, sql: &str, params: impl rusqlite::Params) -> rusqlite::Result<()> {
        self.transaction.prepare_cached(sql)?.execute(params).map(|_| ())
    }
}

fn is(result: &rusqlite::Result<()>, code: std::ffi::c_int) -> bool {
    result.as_ref().is_err_and(|error| error.sqlite_extended_error_code() == Some(code))
}
