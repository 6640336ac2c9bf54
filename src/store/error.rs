//! What can go wrong with a store.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use crate::base::{AttemptKeyError, Ticket};

/// An error of the store. Each names the file or the thing, and the next step.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The state folder cannot be made or written.
    #[error("the state folder {} cannot be written: {source}; give its owner access, or choose another with --state", dir.display())]
    Unwritable {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no store to read.
    #[error("there is no store at {}: nothing has been run here yet, or --state names another folder", path.display())]
    Missing {
        /// Where the store was looked for.
        path: PathBuf,
    },
    /// A newer version of the program made the store.
    #[error("the store {} has format {found}, and this version of verify reads formats up to {known}: update verify, or choose another folder with --state", path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that this program reads.
        known: i64,
    },
    /// The file is no database, or a broken one.
    #[error("the store {} is damaged ({source}): put a copy back, or move the file away to begin a new store", path.display())]
    Damaged {
        /// The store.
        path: PathBuf,
        /// What `SQLite` said.
        source: rusqlite::Error,
    },
    /// The file is a database of something else.
    #[error("{} is a database, but no store of verify: choose another folder with --state", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// No space is left.
    #[error("no space is left for the store {}: every row that counts as done is kept, with all that was paid for it; free some space and run the same command again", path.display())]
    Full {
        /// The store.
        path: PathBuf,
    },
    /// Another process holds the store for too long.
    #[error("the store {} is locked by another process: wait for it to end, then run the same command again", path.display())]
    Busy {
        /// The store.
        path: PathBuf,
    },
    /// Any other error of the database.
    #[error("the store {} failed: {source}; what was committed is kept, run the same command again", path.display())]
    Database {
        /// The store.
        path: PathBuf,
        /// What `SQLite` said.
        source: rusqlite::Error,
    },
    /// A stored value that this version cannot read.
    #[error("the store {} holds {what}, which this version of verify cannot read: update verify", path.display())]
    Unreadable {
        /// The store.
        path: PathBuf,
        /// The value and its place.
        what: String,
    },
    /// The store has numbered as many runs as it can.
    #[error("the store has numbered {most} runs and cannot number another: begin a new one with --state")]
    TooManyRuns {
        /// The highest number of a run.
        most: u64,
    },
    /// No run has this id.
    #[error("no run {text}: `verify runs` lists them")]
    UnknownRun {
        /// What was asked for.
        text: String,
    },
    /// There is no run at all.
    #[error("there is no run yet: begin one with `verify run INPUT`")]
    NoRuns,
    /// More than one run begins like this.
    #[error("{count} runs begin with {text}, {newest} is the newest of them: give more characters of the id")]
    AmbiguousRun {
        /// What was asked for.
        text: String,
        /// How many runs match.
        count: u64,
        /// The id of the newest of them.
        newest: String,
    },
    /// Too little of an id.
    #[error("{text:?} is too short for a run: give at least 4 characters of its id, or `last`")]
    ShortRun {
        /// What was asked for.
        text: String,
    },
    /// A run, row, sample or attempt beyond what the store can number.
    #[error("row {row}, sample {sample}: {source}", row = ticket.row, sample = ticket.sample)]
    Number {
        /// The attempt.
        ticket: Ticket,
        /// Which number, and its bound.
        source: AttemptKeyError,
    },
    /// An attempt of this number is stored already; the stored one is kept.
    #[error("row {row}, sample {sample}: attempt {attempt} is stored already, a second one was refused; this is a bug", row = ticket.row, sample = ticket.sample, attempt = ticket.attempt)]
    Taken {
        /// The attempt.
        ticket: Ticket,
    },
    /// The writer's thread could not be started.
    #[error("the thread that writes the store could not be started: {source}")]
    Thread {
        /// What the system said.
        source: io::Error,
    },
    /// The writer's thread has ended before its time.
    #[error(
        "the thread that writes the store has ended; what was committed is kept, run the same command again"
    )]
    WriterEnded,
}

impl StoreError {
    /// An error of the file system, for something in the folder `dir`.
    pub(super) fn from_io(dir: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::StorageFull {
            return Self::Full { path: dir.to_owned() };
        }
        Self::Unwritable { dir: dir.to_owned(), source }
    }

    /// Sorts an error of `SQLite` about the store at `path`.
    pub(super) fn from_sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                let dir = path.parent().map_or_else(PathBuf::new, Path::to_owned);
                Self::Unwritable { dir, source: io::Error::other(source) }
            }
            // What stands in the place of the log cannot be taken away.
            Some(_) if source.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_DELETE) => {
                let dir = path.parent().map_or_else(PathBuf::new, Path::to_owned);
                Self::Unwritable { dir, source: io::Error::other(source) }
            }
            // The index of the log is a file of its own, whose growth fails under this name on a full disk.
            Some(_) if source.sqlite_extended_error_code() == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => {
                Self::Full { path }
            }
            _ => Self::Database { path, source },
        }
    }
}
