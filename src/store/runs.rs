//! Runs: opening, continuing, ending and finding them.

use rusqlite::{OptionalExtension as _, Row, TransactionBehavior, params};

use crate::base::{AttemptKey, Digest, RunId, WallTime};
use crate::store::{Store, StoreError};

/// A run as the store keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its number in this store, from 1: what attempts are filed under.
    pub seq: u64,
    /// Its id.
    pub id: RunId,
    /// The job's key.
    pub job: Digest,
    /// Digest of the input.
    pub input_digest: Digest,
    /// The input's path, as it is shown.
    pub input: String,
    /// The prompt's version text.
    pub version: String,
    /// Its settings as JSON, to be shown and to export with.
    pub settings: String,
    /// When it was opened.
    pub started: WallTime,
    /// When its last execution ended; `None` while one goes on, and after a crash.
    pub ended: Option<WallTime>,
    /// How its last execution ended, in a word; `None` like `ended`.
    pub ending: Option<String>,
    /// Whether something is left to do. True from its opening, and from the start of every execution, until an
    /// execution ends and says otherwise.
    pub unfinished: bool,
    /// How many executions it has had.
    pub executions: u32,
    /// Selected rows.
    pub selected: u64,
    /// The newest snapshot of its counts as JSON.
    pub progress: Option<String>,
    /// The summary of its last execution as JSON; `None` while one goes on, and after a crash.
    pub summary: Option<String>,
}

/// A run to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    /// Its id.
    pub id: RunId,
    /// The job's key.
    pub job: Digest,
    /// Digest of the input.
    pub input_digest: Digest,
    /// The input's path, as it is shown.
    pub input: String,
    /// The prompt's version text.
    pub version: String,
    /// Its settings as JSON.
    pub settings: String,
    /// Selected rows.
    pub selected: u64,
    /// Now.
    pub started: WallTime,
}

const SELECT: &str = "SELECT seq, id, job, input_digest, input, version, settings, started, ended, ending, \
                      unfinished, executions, selected, json, summary FROM runs LEFT JOIN progress ON run = seq";

impl Store {
    /// The newest run of a job.
    pub fn newest_run(&self, job: &Digest) -> Result<Option<RunRecord>, StoreError> {
        self.run_before(job, u64::MAX)
    }

    /// The newest run of a job among those numbered below `seq`.
    pub fn run_before(&self, job: &Digest, seq: u64) -> Result<Option<RunRecord>, StoreError> {
        let sql = format!("{SELECT} WHERE job = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT 1");
        self.one_run(&sql, params![job.as_bytes(), signed(seq)])
    }

    /// All runs, the newest first.
    pub fn runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        let read = || {
            let mut statement = self.connection.prepare(&format!("{SELECT} ORDER BY seq DESC"))?;
            statement.query_map([], Raw::read)?.collect::<Result<Vec<_>, _>>()
        };
        let raw = read().map_err(|source| self.sqlite(source))?;
        raw.into_iter().map(|raw| raw.into_record(self)).collect()
    }

    /// The run whose last execution was the last to write this file, going by the summaries; `None` where no run of
    /// this store has.
    pub fn last_writer(&self, file: &str) -> Result<Option<RunRecord>, StoreError> {
        let sql = format!(
            "{SELECT} WHERE ended IS NOT NULL AND summary IS NOT NULL \
             AND EXISTS (SELECT 1 FROM json_each(summary, '$.files') WHERE value = ?1) \
             ORDER BY ended DESC, seq DESC LIMIT 1"
        );
        self.one_run(&sql, [file])
    }

    /// The run that `text` names: an id, the beginning of one (4 characters or more), or `last` for the newest.
    ///
    /// Errors: [`StoreError::UnknownRun`], [`StoreError::NoRuns`], [`StoreError::AmbiguousRun`],
    /// [`StoreError::ShortRun`].
    pub fn find_run(&self, text: &str) -> Result<RunRecord, StoreError> {
        if text == "last" {
            let sql = format!("{SELECT} ORDER BY seq DESC LIMIT 1");
            return self.one_run(&sql, [])?.ok_or(StoreError::NoRuns);
        }
        if text.chars().count() < 4 {
            return Err(StoreError::ShortRun { text: text.to_owned() });
        }
        let prefix = text.to_ascii_lowercase();
        let (count, newest): (i64, Option<i64>) = self
            .connection
            .query_row(
                "SELECT count(*), max(seq) FROM runs WHERE substr(id, 1, length(?1)) = ?1",
                [prefix],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(|source| self.sqlite(source))?;
        let newest = newest.ok_or_else(|| StoreError::UnknownRun { text: text.to_owned() })?;
        let run = self.run(newest)?;
        if count > 1 {
            let count = unsigned(count);
            return Err(StoreError::AmbiguousRun {
                text: text.to_owned(),
                count,
                newest: run.id.to_string(),
            });
        }
        Ok(run)
    }

    /// Opens a run. Its number is one above every number that a run, an attempt or a row was ever filed under, so
    /// that answers which outlive their run never come under another.
    ///
    /// Errors: [`StoreError::TooManyRuns`].
    pub fn create_run(&self, new: &NewRun) -> Result<RunRecord, StoreError> {
        let write = || {
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let seq: i64 = transaction.query_row(
                "SELECT 1 + max(ifnull((SELECT max(seq) FROM runs), 0), ifnull((SELECT max(id) FROM attempts), 0) >> 49, \
                 ifnull((SELECT max(id) FROM rows), 0) >> 49)",
                [],
                |row| row.get(0),
            )?;
            if unsigned(seq) > AttemptKey::MAX_RUN {
                return Ok(None);
            }
            transaction.execute(
                "INSERT INTO runs (seq, id, job, input_digest, input, version, settings, selected, started, unfinished, \
                 executions) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 1, 0)",
                params![
                    seq,
                    new.id.to_string(),
                    new.job.as_bytes(),
                    new.input_digest.as_bytes(),
                    new.input,
                    new.version,
                    new.settings,
                    signed(new.selected),
                    new.started.0
                ],
            )?;
            transaction.commit()?;
            Ok(Some(seq))
        };
        let seq = write()
            .map_err(|source| self.sqlite(source))?
            .ok_or(StoreError::TooManyRuns { most: AttemptKey::MAX_RUN })?;
        self.run(seq)
    }

    /// Notes that process `pid` begins to execute the run, and returns the number of the execution, from 1.
    pub fn begin_execution(&self, seq: u64, pid: u32, now: WallTime) -> Result<u32, StoreError> {
        let write = || {
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let number: u32 = transaction.query_row(
                "UPDATE runs SET executions = executions + 1, ended = NULL, ending = NULL, summary = NULL, unfinished = 1 \
                 WHERE seq = ?1 RETURNING executions",
                [signed(seq)],
                |row| row.get(0),
            )?;
            transaction.execute(
                "INSERT INTO executions (run, number, pid, started) VALUES (?1, ?2, ?3, ?4)",
                params![signed(seq), number, pid, now.0],
            )?;
            transaction.commit()?;
            Ok(number)
        };
        write().map_err(|source| self.about_run(seq, source))
    }

    /// When the run's newest execution began; when the run was opened, if none has.
    pub fn execution_started(&self, run: &RunRecord) -> Result<WallTime, StoreError> {
        self.connection
            .query_row(
                "SELECT started FROM executions WHERE run = ?1 AND number = ?2",
                params![signed(run.seq), run.executions],
                |row| row.get(0),
            )
            .optional()
            .map(|started| started.map_or(run.started, WallTime))
            .map_err(|source| self.sqlite(source))
    }

    /// Whether an execution other than number `execution` of run `seq` was at work after `since`, so that requests
    /// may have been sent after it: one that ended later, or one that was killed and whose last counts are younger.
    pub fn active_since(&self, since: WallTime, seq: u64, execution: u32) -> Result<bool, StoreError> {
        self.connection
            .query_row(
                "SELECT EXISTS (SELECT 1 FROM executions AS e LEFT JOIN progress AS p ON p.run = e.run \
                 WHERE NOT (e.run = ?2 AND e.number = ?3) AND (e.started >= ?1 OR e.ended >= ?1 \
                 OR (e.ended IS NULL AND json_extract(p.json, '$.at') >= ?1)))",
                params![since.0, signed(seq), execution],
                |row| row.get(0),
            )
            .map_err(|source| self.sqlite(source))
    }

    /// Replaces what is kept of the run's settings: those of its newest execution.
    pub fn update_settings(&self, seq: u64, settings: &str) -> Result<(), StoreError> {
        self.connection
            .execute("UPDATE runs SET settings = ?2 WHERE seq = ?1", params![signed(seq), settings])
            .map(|_| ())
            .map_err(|source| self.about_run(seq, source))
    }

    /// Keeps the summary of the run's newest execution, as JSON.
    pub fn save_summary(&self, seq: u64, summary: &str) -> Result<(), StoreError> {
        self.connection
            .execute("UPDATE runs SET summary = ?2 WHERE seq = ?1", params![signed(seq), summary])
            .map(|_| ())
            .map_err(|source| self.about_run(seq, source))
    }

    /// Notes how the run's newest execution ended, whether something is left to do, and the final counts.
    pub fn finish_execution(
        &self,
        seq: u64,
        ending: &str,
        unfinished: bool,
        progress: &str,
        now: WallTime,
    ) -> Result<(), StoreError> {
        let write = || {
            let transaction =
                rusqlite::Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
            let number: u32 = transaction.query_row(
                "UPDATE runs SET ended = ?2, ending = ?3, unfinished = ?4 WHERE seq = ?1 RETURNING executions",
                params![signed(seq), now.0, ending, unfinished],
                |row| row.get(0),
            )?;
            transaction.execute(
                "UPDATE executions SET ended = ?3, ending = ?4 WHERE run = ?1 AND number = ?2",
                params![signed(seq), number, now.0, ending],
            )?;
            transaction.execute(
                "INSERT OR REPLACE INTO progress (run, json) VALUES (?1, ?2)",
                params![signed(seq), progress],
            )?;
            transaction.commit()
        };
        write().map_err(|source| self.about_run(seq, source))
    }

    fn run(&self, seq: i64) -> Result<RunRecord, StoreError> {
        self.one_run(&format!("{SELECT} WHERE seq = ?1"), [seq])?
            .ok_or_else(|| StoreError::UnknownRun { text: format!("number {seq}") })
    }

    fn one_run(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<RunRecord>, StoreError> {
        self.connection
            .query_row(sql, params, Raw::read)
            .optional()
            .map_err(|source| self.sqlite(source))?
            .map(|raw| raw.into_record(self))
            .transpose()
    }

    fn about_run(&self, seq: u64, source: rusqlite::Error) -> StoreError {
        match source {
            rusqlite::Error::QueryReturnedNoRows => StoreError::UnknownRun { text: format!("number {seq}") },
            other => self.sqlite(other),
        }
    }
}

/// A run as the columns have it, before its id and digests are read.
struct Raw {
    id: String,
    job: Vec<u8>,
    input_digest: Vec<u8>,
    rest: RunRecord,
}

impl Raw {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let nothing = Digest::of(b"");
        Ok(Self {
            id: row.get(1)?,
            job: row.get(2)?,
            input_digest: row.get(3)?,
            rest: RunRecord {
                seq: unsigned(row.get(0)?),
                id: RunId::new(WallTime(0)),
                job: nothing,
                input_digest: nothing,
                input: row.get(4)?,
                version: row.get(5)?,
                settings: row.get(6)?,
                started: WallTime(row.get(7)?),
                ended: row.get::<_, Option<i64>>(8)?.map(WallTime),
                ending: row.get(9)?,
                unfinished: row.get(10)?,
                executions: row.get(11)?,
                selected: unsigned(row.get(12)?),
                progress: row.get(13)?,
                summary: row.get(14)?,
            },
        })
    }

    fn into_record(self, store: &Store) -> Result<RunRecord, StoreError> {
        let Self { id, job, input_digest, rest } = self;
        let seq = rest.seq;
        let wrong = |what: &str| store.unreadable(format!("{what} of run number {seq}"));
        Ok(RunRecord {
            id: id.parse().map_err(|_| wrong("the id"))?,
            job: Digest::from_bytes(&job).ok_or_else(|| wrong("the job key"))?,
            input_digest: Digest::from_bytes(&input_digest).ok_or_else(|| wrong("the input digest"))?,
            ..rest
        })
    }
}

/// A count for a column; `SQLite` has signed integers only.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A count from a column.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::samples::{new_run, store};

    #[test]
    fn a_run_is_opened_executed_and_ended() {
        let (_dir, store) = store();
        let new = new_run(1, 1_000);
        let opened = store.create_run(&new).unwrap();
        assert_eq!(
            opened,
            RunRecord {
                seq: 1,
                id: new.id,
                job: new.job,
                input_digest: new.input_digest,
                input: new.input,
                version: new.version,
                settings: new.settings,
                started: new.started,
                ended: None,
                ending: None,
                unfinished: true,
                executions: 0,
                selected: new.selected,
                progress: None,
                summary: None,
            }
        );
        assert_eq!(store.execution_started(&opened).unwrap(), opened.started);
        assert_eq!(store.begin_execution(1, 4_242, WallTime(2_000)).unwrap(), 1);
        store.finish_execution(1, "finished", false, "{\"done\":3}", WallTime(3_000)).unwrap();
        let ended = store.find_run("last").unwrap();
        assert_eq!((ended.ended, ended.ending.as_deref()), (Some(WallTime(3_000)), Some("finished")));
        assert_eq!((ended.unfinished, ended.progress.as_deref()), (false, Some("{\"done\":3}")));

        assert_eq!(store.begin_execution(1, 4_243, WallTime(4_000)).unwrap(), 2);
        let again = store.find_run("last").unwrap();
        assert_eq!(store.execution_started(&again).unwrap(), WallTime(4_000));
        assert_eq!((again.ended, again.ending, again.unfinished, again.executions), (None, None, true, 2));
        assert!(matches!(store.begin_execution(9, 1, WallTime(0)), Err(StoreError::UnknownRun { .. })));
        assert!(store.finish_execution(9, "x", true, "{}", WallTime(0)).is_err());
    }

    #[test]
    fn runs_are_found_by_job_id_prefix_and_last() {
        let (_dir, store) = store();
        assert!(matches!(store.find_run("last"), Err(StoreError::NoRuns)));
        // Ids begin with the time: the first two are near each other, the third is years away.
        let far = 1_000_000_000_000;
        let runs: Vec<_> = [(1, 1_000), (1, 2_000), (2, far)]
            .map(|(job, at)| store.create_run(&new_run(job, at)).unwrap())
            .into_iter()
            .collect();
        assert_eq!(store.runs().unwrap().iter().map(|run| run.seq).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(store.newest_run(&runs[0].job).unwrap().as_ref(), Some(&runs[1]));
        assert_eq!(store.run_before(&runs[0].job, 2).unwrap().as_ref(), Some(&runs[0]));
        assert_eq!(store.run_before(&runs[0].job, 1).unwrap(), None);
        assert_eq!(store.newest_run(&Digest::of(b"other")).unwrap(), None);

        assert_eq!(store.find_run("last").unwrap(), runs[2]);
        for run in &runs {
            assert_eq!(&store.find_run(&run.id.to_string()).unwrap(), run);
            assert_eq!(&store.find_run(&run.id.to_string().to_uppercase()).unwrap(), run);
        }
        assert_eq!(store.find_run(&runs[2].id.to_string()[..4]).unwrap(), runs[2]);
        let error = store.find_run("0000").unwrap_err();
        assert!(
            matches!(&error, StoreError::AmbiguousRun { count: 2, newest, .. } if *newest == runs[1].id.to_string())
        );
        assert!(matches!(store.find_run("019"), Err(StoreError::ShortRun { .. })));
        assert!(matches!(store.find_run("ffff"), Err(StoreError::UnknownRun { .. })));
        assert!(matches!(store.find_run("____"), Err(StoreError::UnknownRun { .. })));
    }

    #[test]
    fn the_last_writer_of_a_file_is_found() {
        let (_dir, store) = store();
        let wrote = |job, ended, files: &str| {
            let run = store.create_run(&new_run(job, ended)).unwrap();
            store.begin_execution(run.seq, 1, WallTime(ended)).unwrap();
            store.finish_execution(run.seq, "finished", false, "{}", WallTime(ended)).unwrap();
            store.save_summary(run.seq, &format!("{{\"files\":{files}}}")).unwrap();
        };
        assert_eq!(store.last_writer("/a").unwrap(), None);
        wrote(1, 9_000, "[\"/b\",\"/a\"]");
        wrote(2, 5_000, "[\"/a\"]");
        wrote(3, 9_500, "[\"/a.partial\"]");
        wrote(4, 9_600, "[]");
        store.create_run(&new_run(5, 9_700)).unwrap();
        let seq = |file| store.last_writer(file).unwrap().map(|run| run.seq);
        assert_eq!((seq("/a"), seq("/b"), seq("/a.partial"), seq("a")), (Some(1), Some(1), Some(3), None));
    }

    #[test]
    fn a_number_is_never_given_twice() {
        let (_dir, store) = store();
        store.create_run(&new_run(1, 1_000)).unwrap();
        store.create_run(&new_run(1, 2_000)).unwrap();
        let (_, last) = AttemptKey::rows(2, 1, 1);
        store
            .connection
            .execute("INSERT INTO rows (id, kind, error) VALUES (?1, 2, 'left over')", [last.as_i64()])
            .unwrap();
        store.connection.execute("DELETE FROM runs WHERE seq = 2", []).unwrap();
        assert_eq!(store.create_run(&new_run(1, 3_000)).unwrap().seq, 3);

        let most = signed(AttemptKey::MAX_RUN);
        store.connection.execute("UPDATE runs SET seq = ?1 WHERE seq = 3", [most]).unwrap();
        assert!(matches!(store.create_run(&new_run(1, 4_000)), Err(StoreError::TooManyRuns { .. })));
    }
}
