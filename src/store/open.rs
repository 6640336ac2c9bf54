//! The store as a whole: opening it, what it knows of endpoints, closing it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::base::WallTime;
use crate::model::Learned;
use crate::store::connection::{Purpose, checkpoint, connect};
use crate::store::folder::{make_file, prepare_folder};
use crate::store::migrate::{STEPS, migrate};
use crate::store::{Reader, StoreError};

/// How often making a store is tried beside other processes that do the same, 20 ms apart.
const TRIES: u32 = 100;

/// An open store: the runs and the facts about endpoints. Attempts go through a [`Writer`](crate::store::Writer)
/// and come back through a [`Reader`], each with a connection of its own.
#[derive(Debug)]
pub struct Store {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
}

impl Store {
    /// Opens the store in the state folder `dir`, and makes both where they are missing.
    ///
    /// Errors: [`StoreError::Unwritable`], [`StoreError::Full`], [`StoreError::Newer`], [`StoreError::Damaged`],
    /// [`StoreError::Foreign`], [`StoreError::Busy`].
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        prepare_folder(dir)?;
        let path = dir.join("store.db");
        make_file(&path).map_err(|source| StoreError::from_io(dir, source))?;
        Self::connect(path)
    }

    /// Opens the store in the state folder `dir`, for commands that make none.
    ///
    /// Errors: [`StoreError::Missing`] if there is none, and those of [`Store::open`].
    pub fn open_existing(dir: &Path) -> Result<Self, StoreError> {
        let path = dir.join("store.db");
        match path.try_exists() {
            Ok(true) => Self::connect(path),
            Ok(false) => Err(StoreError::Missing { path }),
            Err(source) => Err(StoreError::from_io(dir, source)),
        }
    }

    fn connect(path: PathBuf) -> Result<Self, StoreError> {
        let mut tries = 0;
        loop {
            let opened = connect(&path, Purpose::Write).and_then(|mut connection| {
                migrate(&mut connection, &path, STEPS)?;
                Ok(connection)
            });
            match opened {
                Ok(connection) => return Ok(Self { connection, path }),
                // Switching a new file to its log needs it alone, and SQLite does not wait there by itself.
                Err(StoreError::Busy { .. }) if tries < TRIES => {
                    tries += 1;
                    std::thread::park_timeout(Duration::from_millis(20));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A reader with a connection of its own.
    pub fn reader(&self) -> Result<Reader, StoreError> {
        Reader::open(&self.path)
    }

    /// What was learned about a model at an endpoint; the default if nothing was.
    pub fn learned(&self, endpoint: &str, model: &str) -> Result<Learned, StoreError> {
        let json: Option<String> = self
            .connection
            .query_row(
                "SELECT json FROM learned WHERE endpoint = ?1 AND model = ?2",
                [endpoint, model],
                |row| row.get(0),
            )
            .optional()
            .map_err(|source| self.sqlite(source))?;
        json.map_or_else(
            || Ok(Learned::default()),
            |json| {
                serde_json::from_str(&json)
                    .map_err(|_| self.unreadable(format!("what was learned about {model} at {endpoint}")))
            },
        )
    }

    /// Whether a reply with content has come for this model at this endpoint with the key of this label.
    pub fn answered(&self, endpoint: &str, model: &str, key_label: &str) -> Result<bool, StoreError> {
        self.connection
            .query_row(
                "SELECT 1 FROM answered WHERE endpoint = ?1 AND model = ?2 AND label = ?3",
                [endpoint, model, key_label],
                |_| Ok(()),
            )
            .optional()
            .map(|found| found.is_some())
            .map_err(|source| self.sqlite(source))
    }

    /// Until when the server has asked the key of this label to wait; it may be past. `None` if it did not, or if that
    /// was noted later than `now`: the clock has been set back since, and nobody knows what is left of the wait.
    pub fn key_wait(
        &self,
        endpoint: &str,
        key_label: &str,
        now: WallTime,
    ) -> Result<Option<WallTime>, StoreError> {
        self.connection
            .query_row(
                "SELECT until FROM key_waits WHERE endpoint = ?1 AND label = ?2 AND noted <= ?3",
                params![endpoint, key_label, now.0],
                |row| row.get(0).map(WallTime),
            )
            .optional()
            .map_err(|source| self.sqlite(source))
    }

    /// Carries the log over into the file and cuts it to nothing, so that the one file is the store. Writers and
    /// readers are closed before.
    pub fn close(self) -> Result<(), StoreError> {
        checkpoint(&self.connection, &self.path)?;
        let Self { connection, path } = self;
        connection.close().map_err(|(_, source)| StoreError::from_sqlite(&path, source))
    }

    pub(super) fn sqlite(&self, source: rusqlite::Error) -> StoreError {
        StoreError::from_sqlite(&self.path, source)
    }

    pub(super) fn unreadable(&self, what: String) -> StoreError {
        StoreError::Unreadable { path: self.path.clone(), what }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::samples::{new_run, store};

    #[test]
    fn files_are_private_and_the_folder_is_ignored() {
        let (dir, store) = store();
        let state = store.path().parent().unwrap().to_owned();
        assert_eq!(fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(state.clone()), 0o700);
            for name in ["store.db", "store.db-wal", "store.db-shm", ".gitignore"] {
                assert_eq!(mode(state.join(name)), 0o600, "{name}");
            }
        }
        drop(dir);
    }

    #[test]
    fn durable_by_configuration() {
        let (_dir, store) = store();
        let pragma = |name: &str| -> String {
            store
                .connection
                .query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, rusqlite::types::Value>(0))
                .map(|value| format!("{value:?}"))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
        assert_eq!(pragma("synchronous"), "Integer(2)");
    }

    #[test]
    fn a_missing_store_is_not_made() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join(".verify");
        let error = Store::open_existing(&state).unwrap_err();
        assert!(matches!(error, StoreError::Missing { .. }), "{error:?}");
        assert!(!state.exists());
        Store::open(&state).unwrap().close().unwrap();
        Store::open_existing(&state).unwrap();
    }

    #[test]
    fn garbage_and_torn_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.db");
        fs::File::create(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, &[7; 9_000]))
            .unwrap();
        let check = || {
            let error = Store::open(dir.path()).unwrap_err();
            assert!(matches!(error, StoreError::Damaged { .. }), "{error:?}");
            let message = error.to_string();
            assert!(
                message.contains(path.to_str().unwrap()) && message.contains("move the file"),
                "{message}"
            );
        };
        check();

        fs::remove_file(&path).unwrap();
        Store::open(dir.path()).unwrap().close().unwrap();
        let whole = fs::metadata(&path).unwrap().len();
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(whole / 2 / 4096 * 4096).unwrap();
        check();
    }

    #[test]
    fn closing_leaves_one_file() {
        let (dir, store) = store();
        store.create_run(&new_run(1, 1_000)).unwrap();
        let path = store.path().to_owned();
        store.close().unwrap();
        let log = fs::metadata(path.with_file_name("store.db-wal")).map_or(0, |data| data.len());
        assert_eq!(log, 0);
        let copy = dir.path().join("copy");
        fs::create_dir(&copy).unwrap();
        fs::copy(&path, copy.join("store.db")).unwrap();
        assert_eq!(Store::open(&copy).unwrap().runs().unwrap().len(), 1);
    }

    #[test]
    fn a_new_store_is_made_by_many_at_once() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            let openers: Vec<_> = (0..6).map(|_| scope.spawn(|| Store::open(dir.path()))).collect();
            for opener in openers {
                opener.join().unwrap().unwrap();
            }
        });
    }
}
