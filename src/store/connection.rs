//! Connections to the file, each with its bounds.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::store::StoreError;

/// How long a connection waits for another process that writes. Its commits take milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Reading and writing.
    Write,
    /// Reading beside a writer.
    Read,
}

/// Opens the file at `path`, which must exist. The page cache is bounded in KiB, whatever the size of the file; the
/// log is carried over every 4,000 pages (16 MB), as far as no reader is in the way, and cut back to 64 MB at most.
pub(super) fn connect(path: &Path, purpose: Purpose) -> Result<Connection, StoreError> {
    let (mode, pragmas) = match purpose {
        Purpose::Write => (
            OpenFlags::SQLITE_OPEN_READ_WRITE,
            "PRAGMA synchronous = FULL; PRAGMA cache_size = -4096; PRAGMA mmap_size = 0; \
             PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864; PRAGMA trusted_schema = OFF;",
        ),
        Purpose::Read => (
            OpenFlags::SQLITE_OPEN_READ_ONLY,
            "PRAGMA query_only = ON; PRAGMA cache_size = -2048; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;",
        ),
    };
    let open = || {
        // Without the flag for URIs: a folder may be called `file:x`.
        let connection = Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(32);
        connection.execute_batch(pragmas)?;
        // Without it SQLite compiles a statement anew whenever a bound value might decide for a partial index, and
        // the lookup of failures was measured to be six times dearer.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        Ok(connection)
    };
    open().map_err(|source| StoreError::from_sqlite(path, source))
}

/// Carries over what nobody reads any more and nobody is about to write, without waiting for anybody. Returns the pages
/// of the log: it begins anew with the next commit if all of them were carried over.
pub(super) fn carry_over(connection: &Connection, path: &Path) -> Result<u64, StoreError> {
    let pages = connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(1))
        .map_err(|source| StoreError::from_sqlite(path, source))?;
    // Somebody else who carries over leaves no number.
    Ok(u64::try_from(pages).unwrap_or(0))
}

/// Carries the whole log over into the file and cuts it to nothing, without waiting for anybody: where somebody is in
/// the way, it stays as it is.
pub(super) fn cut(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    truncate(connection, Duration::ZERO).map_err(|source| StoreError::from_sqlite(path, source))
}

/// Carries the whole log over into the file and cuts it to nothing. A reader that is in the way is waited for, but
/// not long: the log is then left for whoever opens the store next, and nothing is lost.
pub(super) fn checkpoint(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    truncate(connection, Duration::from_secs(1)).map_err(|source| StoreError::from_sqlite(path, source))
}

fn truncate(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(patience)?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    connection.busy_timeout(PATIENCE)
}
