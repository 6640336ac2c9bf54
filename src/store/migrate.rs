//! From an older format to the newest, in steps.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use crate::base::CrashPoint;
use crate::store::StoreError;

/// The steps; the format's number is how many of them a store has gone. A step that was released never changes.
pub(super) const STEPS: &[&str] =
    &[include_str!("schema/0001.sql"), include_str!("schema/0002.sql"), include_str!("schema/0003.sql")];

/// Brings a store to the format of `steps`: all that it lacks in one transaction, or nothing.
///
/// Errors: [`StoreError::Newer`] for a format beyond the steps, [`StoreError::Foreign`] for a database of something
/// else, [`StoreError::Damaged`], [`StoreError::Busy`], [`StoreError::Full`].
pub(super) fn migrate(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let sqlite = |source| StoreError::from_sqlite(path, source);
    let known = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let found = version(connection, path, known)?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).map_err(sqlite)?;
    if found == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sqlite)?;
    // Another process may have been faster: only now nobody else can be at it.
    let found = version(&transaction, path, known)?;
    for step in steps.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(step).map_err(sqlite)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(sqlite)?;
    CrashPoint::StoreMigrating.pass();
    transaction.commit().map_err(sqlite)?;
    CrashPoint::StoreMigrated.pass();
    Ok(())
}

fn version(connection: &Connection, path: &Path, known: i64) -> Result<i64, StoreError> {
    let sqlite = |source| StoreError::from_sqlite(path, source);
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(sqlite)?;
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(sqlite)?;
    let is_ours = connection
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map(|id: i64| id == 0x7672_6679)
        .map_err(sqlite)?;
    if tables > 0 && !is_ours {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if !(0..=known).contains(&found) {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    #[test]
    fn an_older_store_goes_the_missing_steps_only() {
        let path = Path::new("store.db");
        let mut connection = fresh();
        let first = [STEPS[0]];
        let both = [STEPS[0], "CREATE TABLE extra (id INTEGER PRIMARY KEY)"];
        migrate(&mut connection, path, &first).unwrap();
        connection.execute("INSERT INTO labels VALUES (1, 'kept')", []).unwrap();
        migrate(&mut connection, path, &both).unwrap();
        migrate(&mut connection, path, &both).unwrap();
        let kept: String = connection.query_row("SELECT label FROM labels", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, "kept");
        assert_eq!(version(&connection, path, 2).unwrap(), 2);

        let error = migrate(&mut connection, path, &first).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains("format 2") && message.contains("up to 1"), "{message}");
    }

    #[test]
    fn a_step_that_fails_changes_nothing() {
        let path = Path::new("store.db");
        let mut connection = fresh();
        migrate(&mut connection, path, STEPS).unwrap();
        let step = "CREATE TABLE extra (id INTEGER PRIMARY KEY); CREATE TABLE labels (id)";
        let broken: Vec<&str> = STEPS.iter().copied().chain([step]).collect();
        let before = version(&connection, path, 99).unwrap();
        migrate(&mut connection, path, &broken).unwrap_err();
        assert_eq!(version(&connection, path, 99).unwrap(), before);
        let extra: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(extra, 0);
    }

    #[test]
    fn a_database_of_something_else_is_left_alone() {
        let mut connection = fresh();
        connection.execute_batch("CREATE TABLE theirs (id)").unwrap();
        let error = migrate(&mut connection, Path::new("store.db"), STEPS).unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    }
}
