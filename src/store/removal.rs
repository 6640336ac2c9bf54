//! Taking runs out of the store.

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::base::AttemptKey;
use crate::store::runs::signed;
use crate::store::{Store, StoreError};

/// Answers that are removed leave the other ones of their requests as the ones to be found.
const UNSHADOW: &str = "UPDATE attempts SET shadowed = 0 WHERE id IN (SELECT min(id) FROM attempts \
     WHERE ending = 0 AND shadowed = 1 AND hash NOT IN (SELECT hash FROM attempts WHERE ending = 0 AND shadowed = 0) \
     GROUP BY hash)";

impl Store {
    /// Removes these runs with all that is filed under them, in one step: all of them or none. Attempts that rows
    /// of other runs replay stay, and go when the last of those is removed. With `keep_answers`, all valid answers stay, to be found by their hashes: another
    /// process may be about to replay one.
    ///
    /// Returns how many attempts were removed. A number without a run removes nothing.
    pub fn remove_runs(&self, runs: &[u64], keep_answers: bool) -> Result<u64, StoreError> {
        let write = || {
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            for &run in runs {
                let (low, high) = keys_of(run);
                transaction.execute("DELETE FROM rows WHERE id BETWEEN ?1 AND ?2", [low, high])?;
                for table in ["executions WHERE run", "progress WHERE run", "runs WHERE seq"] {
                    transaction.execute(&format!("DELETE FROM {table} = ?1"), [signed(run)])?;
                }
            }
            let mut removed = 0;
            for run in without_record(&transaction)? {
                let (low, high) = keys_of(run);
                removed += transaction.execute(
                    "DELETE FROM attempts WHERE id BETWEEN ?1 AND ?2 AND NOT (?3 AND ending = 0) \
                     AND id NOT IN (SELECT source FROM rows WHERE source BETWEEN ?1 AND ?2)",
                    params![low, high, keep_answers],
                )?;
                transaction.execute(
                    "DELETE FROM bodies WHERE id BETWEEN ?1 AND ?2 \
                     AND NOT EXISTS (SELECT 1 FROM attempts WHERE attempts.id = bodies.id)",
                    [low, high],
                )?;
            }
            if removed > 0 {
                transaction.execute(UNSHADOW, [])?;
            }
            transaction.commit()?;
            Ok(removed as u64)
        };
        write().map_err(|source| self.sqlite(source))
    }
}

fn keys_of(run: u64) -> (i64, i64) {
    let (low, high) = AttemptKey::rows(run.min(AttemptKey::MAX_RUN), 0, AttemptKey::MAX_ROW);
    (low.as_i64(), high.as_i64())
}

/// Numbers under which attempts are filed and that no run has any more: those of runs that are being removed, and of
/// earlier ones of which others have replayed answers.
fn without_record(connection: &Connection) -> rusqlite::Result<Vec<u64>> {
    let mut next = connection.prepare("SELECT id FROM attempts WHERE id > ?1 ORDER BY id LIMIT 1")?;
    let mut has_record = connection.prepare("SELECT 1 FROM runs WHERE seq = ?1")?;
    let mut found = Vec::new();
    let mut after = 0_i64;
    while let Some(id) = next.query_row([after], |row| row.get(0)).optional()? {
        let run = AttemptKey::from_i64(id).run();
        if !has_record.exists([signed(run)])? {
            found.push(run);
        }
        after = keys_of(run).1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::WallTime;
    use crate::model::{AttemptRecord, Ending, Reason};
    use crate::store::samples::{ended, entry, hash, new_run, store, valid};
    use crate::store::{Entry, Writer};

    /// Two runs. Row 1 of the second replays row 1 of the first; both have bought the same answer for row 3.
    fn two_runs() -> (tempfile::TempDir, Store) {
        let (dir, store) = store();
        for at in [1_000, 2_000] {
            store.create_run(&new_run(1, at)).unwrap();
            store.begin_execution(1, 7, WallTime(at)).unwrap();
        }
        let writer = Writer::start(&store, Box::new(|_| {})).unwrap();
        let long = AttemptRecord { raw: vec![b'x'; 9_000].into(), ..valid(1, 1, 1) };
        let failed = AttemptRecord {
            raw: vec![b'y'; 9_000].into(),
            ..ended(2, 1, 1, Ending::Failed(Reason::Rejected))
        };
        for record in [long, failed, valid(3, 1, 1)] {
            writer.push(None, entry(1, record));
        }
        writer.push(None, Entry::BadInput { run: 1, row: 4, error: "bad".to_owned() });
        let from = AttemptKey::new(1, valid(1, 1, 1).ticket).unwrap();
        writer.push(None, Entry::Replay { run: 2, row: 1, sample: 1, from });
        writer.push(None, entry(2, valid(3, 1, 1)));
        writer.flush().unwrap();
        writer.close().unwrap();
        (dir, store)
    }

    fn count(store: &Store, table: &str) -> i64 {
        store.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn answers_that_other_runs_replay_stay() {
        let (_dir, store) = two_runs();
        assert_eq!(store.remove_runs(&[1], false).unwrap(), 2);
        assert_eq!(store.runs().unwrap().len(), 1);
        assert_eq!((count(&store, "attempts"), count(&store, "bodies"), count(&store, "rows")), (2, 1, 1));
        assert_eq!(count(&store, "executions WHERE run = 1"), 0);
        let mut reader = store.reader().unwrap();
        let replayed = reader.with_raw(2, 1).unwrap().replays.remove(0).source.unwrap();
        assert_eq!((replayed.ending, replayed.raw.len()), (Ending::Valid, 9_000));
        // The second run's own answer is the one that is found now.
        assert_eq!(reader.lookup(&hash("3 1")).unwrap().unwrap().key.run(), 2);
        assert_eq!(store.create_run(&new_run(1, 3_000)).unwrap().seq, 3);
    }

    #[test]
    fn an_answer_that_outlived_its_run_goes_with_the_last_that_replays_it() {
        let (_dir, store) = two_runs();
        store.remove_runs(&[1], false).unwrap();
        store.remove_runs(&[2], false).unwrap();
        assert_eq!((count(&store, "attempts"), count(&store, "bodies")), (0, 0));
    }

    #[test]
    fn a_run_that_nobody_needs_goes_whole_and_all_can_go_at_once() {
        let (_dir, store) = two_runs();
        store.remove_runs(&[2], false).unwrap();
        assert_eq!(store.reader().unwrap().row(2, 3).unwrap().attempts, []);
        assert!(store.reader().unwrap().lookup(&hash("3 1")).unwrap().is_some());
        store.remove_runs(&[1, 2, 9], false).unwrap();
        let tables = ["runs", "executions", "progress", "attempts", "bodies", "rows"];
        assert!(tables.iter().all(|table| count(&store, table) == 0));
    }

    #[test]
    fn answers_can_be_kept_for_others() {
        let (_dir, store) = two_runs();
        assert_eq!(store.remove_runs(&[1], true).unwrap(), 1);
        assert_eq!(store.reader().unwrap().lookup(&hash("3 1")).unwrap().unwrap().key.run(), 1);
        assert_eq!(store.runs().unwrap().len(), 1);
    }
}
