//! Looking things up beside the writer.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Row, Rows};

use crate::base::{AttemptKey, Ticket};
use crate::model::{AttemptRecord, Ending, StoredAnswer};
use crate::store::batch::{BAD_INPUT, REPLAY};
use crate::store::connection::{Purpose, connect};
use crate::store::record::{COLUMNS, Columns, columns, ending};
use crate::store::{Replayed, RowHistory, StoreError};

const VALID: &str = "SELECT id, answer FROM attempts WHERE hash = ?1 AND ending = 0 AND shadowed = 0";
const FAILED: &str = "SELECT id, ending FROM attempts WHERE hash = ?1 AND ending BETWEEN 1 AND 99 \
                      AND id BETWEEN ?2 AND ?3 ORDER BY id";
const OTHERS: &str = "SELECT EXISTS (SELECT 1 FROM attempts WHERE id < ?1) \
                      OR EXISTS (SELECT 1 FROM attempts WHERE id > ?2)";
const ATTEMPTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM attempts a LEFT JOIN labels l ON l.id = a.label WHERE a.id BETWEEN ?1 AND ?2 ORDER BY a.id"
);
const ATTEMPTS_RAW: &str = concat!(
    "SELECT ",
    columns!(),
    ", ifnull(a.raw, b.body) FROM attempts a LEFT JOIN labels l ON l.id = a.label LEFT JOIN bodies b ON b.id = a.id \
     WHERE a.id BETWEEN ?1 AND ?2 ORDER BY a.id"
);
const EXCEPTIONS: &str = concat!(
    "SELECT ",
    columns!(),
    ", r.id, r.kind, r.source, r.error FROM rows r LEFT JOIN attempts a ON a.id = r.source \
     LEFT JOIN labels l ON l.id = a.label WHERE r.id BETWEEN ?1 AND ?2 ORDER BY r.id"
);
const EXCEPTIONS_RAW: &str = concat!(
    "SELECT ",
    columns!(),
    ", r.id, r.kind, r.source, r.error, ifnull(a.raw, b.body) FROM rows r LEFT JOIN attempts a ON a.id = r.source \
     LEFT JOIN labels l ON l.id = a.label LEFT JOIN bodies b ON b.id = a.id \
     WHERE r.id BETWEEN ?1 AND ?2 ORDER BY r.id"
);
const CLOSED: &str = "SELECT id, ending FROM attempts INDEXED BY attempts_closed \
                      WHERE ending < 100 AND id BETWEEN ?1 AND ?2 ORDER BY id";
const REPLAYED: &str = "SELECT r.id, a.ending FROM rows r CROSS JOIN attempts a INDEXED BY attempts_closed \
                        WHERE a.ending < 100 AND a.id = r.source AND r.kind = 1 AND r.id BETWEEN ?1 AND ?2 \
                        ORDER BY r.id";

/// A connection that only reads. It sees every commit that was made before a call, and holds nothing up: no call
/// but [`Reader::hold`] keeps a snapshot open after it returns.
#[derive(Debug)]
pub struct Reader {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
}

impl Reader {
    /// Opens a reader of the store at `path`, which must exist and have this version's format, as
    /// [`Store::open`](crate::store::Store::open) leaves it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { connection: connect(path, Purpose::Read)?, path: path.to_owned() })
    }

    /// From here to [`Reader::release`] all calls see one snapshot of the store, which spares each of them its locks and
    /// reading again what the call before has read. The log cannot begin anew meanwhile: for moments only.
    pub fn hold(&mut self) -> Result<(), StoreError> {
        self.run("BEGIN")
    }

    /// Ends what [`Reader::hold`] began.
    pub fn release(&mut self) -> Result<(), StoreError> {
        self.run("COMMIT")
    }

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(|_| ())
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The valid answer for a hash, whichever run has bought it.
    pub fn lookup(&mut self, hash: &[u8; 16]) -> Result<Option<StoredAnswer>, StoreError> {
        self.connection
            .prepare_cached(VALID)
            .and_then(|mut statement| {
                statement
                    .query_row([hash], |row| {
                        Ok(StoredAnswer {
                            key: AttemptKey::from_i64(row.get(0)?),
                            ending: Ending::Valid,
                            answer: row.get::<_, Option<String>>(1)?.unwrap_or_default(),
                        })
                    })
                    .optional()
            })
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// The final failure for a hash within a run, operational ones not counted: that of the lowest row and sample,
    /// the latest where it failed more than once.
    pub fn lookup_failure(&mut self, run: u64, hash: &[u8; 16]) -> Result<Option<StoredAnswer>, StoreError> {
        let Some((low, high)) = bounds(run, 0, AttemptKey::MAX_ROW) else { return Ok(None) };
        let mut found: Option<StoredAnswer> = None;
        let read = |row: &Row<'_>| Ok((AttemptKey::from_i64(row.get(0)?), row.get(1)?));
        let sqlite = |source| StoreError::from_sqlite(&self.path, source);
        let mut statement = self.connection.prepare_cached(FAILED).map_err(sqlite)?;
        for failure in statement.query_map((hash, low, high), read).map_err(sqlite)? {
            let (key, code) = failure.map_err(sqlite)?;
            let ending = ending(&self.path, key, code)?;
            if !matches!(ending, Ending::Failed(reason) if !reason.is_operational()) {
                continue;
            }
            if found.as_ref().is_some_and(|found| place(found.key) != place(key)) {
                break;
            }
            found = Some(StoredAnswer { key, ending, answer: String::new() });
        }
        Ok(found)
    }

    /// Whether any attempt of another run is stored. Two probes of the primary key, whatever the size of the store.
    pub fn has_other_attempts(&mut self, run: u64) -> Result<bool, StoreError> {
        let bounds = bounds(run, 0, AttemptKey::MAX_ROW).unwrap_or((0, -1));
        self.connection
            .prepare_cached(OTHERS)
            .and_then(|mut statement| statement.query_row(bounds, |row| row.get(0)))
            .map_err(|source| StoreError::from_sqlite(&self.path, source))
    }

    /// What is stored of a row, without raw bodies; nothing but its number where nothing is stored.
    pub fn row(&mut self, run: u64, row: u64) -> Result<RowHistory, StoreError> {
        self.one(run, row, false)
    }

    /// What is stored of a row, with the raw bodies of its attempts and of those that it replays.
    pub fn with_raw(&mut self, run: u64, row: u64) -> Result<RowHistory, StoreError> {
        self.one(run, row, true)
    }

    /// The next rows after `after_row` of which something is stored, at most `max`, in row order, without raw
    /// bodies. An empty answer is the end of the run.
    pub fn rows_after(
        &mut self,
        run: u64,
        after_row: u64,
        max: usize,
    ) -> Result<Vec<RowHistory>, StoreError> {
        self.histories(run, after_row.saturating_add(1), AttemptKey::MAX_ROW, max, false)
    }

    /// The rows from `first` to `last` of which something is stored, at most the first `max` of them, in row order,
    /// without raw bodies.
    pub fn rows_between(
        &mut self,
        run: u64,
        first: u64,
        last: u64,
        max: usize,
    ) -> Result<Vec<RowHistory>, StoreError> {
        self.histories(run, first, last.min(AttemptKey::MAX_ROW), max, false)
    }

    /// Calls `visit` for every sample of a run that has ended, in the order of rows and samples: with
    /// [`Ending::Valid`] if it ever got or replayed an answer, else with how it ended last. It reads an index, no
    /// attempt. Rows of bad input have no samples and are not visited.
    pub fn finished(&mut self, run: u64, visit: &mut dyn FnMut(u64, u16, Ending)) -> Result<(), StoreError> {
        let Some((low, high)) = bounds(run, 0, AttemptKey::MAX_ROW) else { return Ok(()) };
        let Self { connection, path } = self;
        let sqlite = |source| StoreError::from_sqlite(path, source);
        let transaction = connection.transaction().map_err(sqlite)?;
        let mut closed = transaction.prepare_cached(CLOSED).map_err(sqlite)?;
        let mut replayed = transaction.prepare_cached(REPLAYED).map_err(sqlite)?;
        let mut closed = closed.query((low, high)).map_err(sqlite)?;
        let mut replayed = replayed.query((low, high)).map_err(sqlite)?;
        let next = |rows: &mut Rows<'_>| -> Result<Option<(AttemptKey, Ending)>, StoreError> {
            let Some(row) = rows.next().map_err(sqlite)? else { return Ok(None) };
            let key = AttemptKey::from_i64(row.get(0).map_err(sqlite)?);
            Ok(Some((key, ending(path, key, row.get(1).map_err(sqlite)?)?)))
        };
        let (mut own, mut other) = (next(&mut closed)?, next(&mut replayed)?);
        let mut current: Option<(AttemptKey, Ending)> = None;
        loop {
            let own_is_next = match (&own, &other) {
                (Some(own), Some(other)) => own.0 < other.0,
                (own, _) => own.is_some(),
            };
            let step = if own_is_next {
                std::mem::replace(&mut own, next(&mut closed)?)
            } else if other.is_some() {
                std::mem::replace(&mut other, next(&mut replayed)?)
            } else {
                None
            };
            match (&mut current, step) {
                (Some((key, ending)), Some((new, later))) if place(*key) == place(new) => {
                    if *ending != Ending::Valid {
                        *ending = later;
                    }
                }
                (_, step) => {
                    if let Some((key, ending)) = std::mem::replace(&mut current, step) {
                        visit(key.ticket().row, key.ticket().sample, ending);
                    }
                    if current.is_none() {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn one(&mut self, run: u64, row: u64, raw: bool) -> Result<RowHistory, StoreError> {
        let found = self.histories(run, row, row, 1, raw)?.pop();
        Ok(found.unwrap_or(RowHistory { row, ..RowHistory::default() }))
    }

    fn histories(
        &mut self,
        run: u64,
        first: u64,
        last: u64,
        max: usize,
        raw: bool,
    ) -> Result<Vec<RowHistory>, StoreError> {
        let mut found: Vec<RowHistory> = Vec::new();
        let Some((low, high)) = bounds(run, first, last).filter(|_| max > 0) else { return Ok(found) };
        let Self { connection, path } = self;
        let sqlite = |source| StoreError::from_sqlite(path, source);
        // One snapshot for both statements, also within that of a caller.
        let transaction = connection.savepoint().map_err(sqlite)?;
        let sql = if raw { (ATTEMPTS_RAW, EXCEPTIONS_RAW) } else { (ATTEMPTS, EXCEPTIONS) };
        let mut attempts = transaction.prepare_cached(sql.0).map_err(sqlite)?;
        let mut exceptions = transaction.prepare_cached(sql.1).map_err(sqlite)?;
        let mut attempts = attempts.query((low, high)).map_err(sqlite)?;
        let mut exceptions = exceptions.query((low, high)).map_err(sqlite)?;
        let next_attempt = |rows: &mut Rows<'_>| -> Result<Option<AttemptRecord>, StoreError> {
            let Some(row) = rows.next().map_err(sqlite)? else { return Ok(None) };
            attempt(row, raw.then_some(COLUMNS), path)
        };
        let next_exception = |rows: &mut Rows<'_>| -> Result<Option<Exception>, StoreError> {
            let Some(row) = rows.next().map_err(sqlite)? else { return Ok(None) };
            Exception::read(row, raw, path).map(Some)
        };
        let mut own = next_attempt(&mut attempts)?;
        let mut other = next_exception(&mut exceptions)?;
        while found.len() < max {
            let rows = [own.as_ref().map(|own| own.ticket.row), other.as_ref().map(|other| other.ticket.row)];
            let Some(row) = rows.into_iter().flatten().min() else { break };
            let mut history = RowHistory { row, ..RowHistory::default() };
            while let Some(attempt) = own.take_if(|own| own.ticket.row == row) {
                history.attempts.push(attempt);
                own = next_attempt(&mut attempts)?;
            }
            while let Some(exception) = other.take_if(|other| other.ticket.row == row) {
                exception.enter(&mut history);
                other = next_exception(&mut exceptions)?;
            }
            found.push(history);
        }
        Ok(found)
    }
}

/// A row of the table of exceptions.
struct Exception {
    ticket: Ticket,
    kind: i64,
    from: Option<AttemptKey>,
    error: Option<String>,
    source: Option<AttemptRecord>,
}

impl Exception {
    fn read(row: &Row<'_>, raw: bool, path: &Path) -> Result<Self, StoreError> {
        let source = attempt(row, raw.then_some(COLUMNS + 4), path)?;
        let read = || -> rusqlite::Result<Self> {
            Ok(Self {
                ticket: AttemptKey::from_i64(row.get(COLUMNS)?).ticket(),
                kind: row.get(COLUMNS + 1)?,
                from: row.get::<_, Option<i64>>(COLUMNS + 2)?.map(AttemptKey::from_i64),
                error: row.get(COLUMNS + 3)?,
                source,
            })
        };
        read().map_err(|source| StoreError::from_sqlite(path, source))
    }

    /// Enters it into the row's history. A kind that a later version has added says nothing to this one.
    fn enter(self, history: &mut RowHistory) {
        match (self.kind, self.from) {
            (REPLAY, Some(from)) => {
                history.replays.push(Replayed { sample: self.ticket.sample, from, source: self.source });
            }
            (BAD_INPUT, _) => history.bad_input = Some(self.error.unwrap_or_default()),
            _ => {}
        }
    }
}

/// The attempt in the first columns, with the body in column `raw` if that is given.
fn attempt(row: &Row<'_>, raw: Option<usize>, path: &Path) -> Result<Option<AttemptRecord>, StoreError> {
    let read = || -> rusqlite::Result<Option<Columns>> {
        let Some(columns) = Columns::read(row, 0)? else { return Ok(None) };
        Ok(Some(match raw {
            Some(at) => columns.with_raw(row.get(at)?),
            None => columns,
        }))
    };
    let columns = read().map_err(|source| StoreError::from_sqlite(path, source))?;
    columns.map(|columns| columns.into_record(path)).transpose()
}

/// The keys of rows `first..=last`; `None` where the store can have none.
fn bounds(run: u64, first: u64, last: u64) -> Option<(i64, i64)> {
    if run > AttemptKey::MAX_RUN || first > AttemptKey::MAX_ROW {
        return None;
    }
    let (low, high) = AttemptKey::rows(run, first, last);
    Some((low.as_i64(), high.as_i64()))
}

fn place(key: AttemptKey) -> (u64, u16) {
    (key.ticket().row, key.ticket().sample)
}

#[cfg(test)]
mod tests;
