use proptest::prelude::*;
use rusqlite::StatementStatus;

use super::*;
use crate::base::WallTime;
use crate::model::Reason;
use crate::store::samples::{ended, entry, hash, store, valid};
use crate::store::{Entry, Store, Writer};

fn write(store: &Store, entries: impl IntoIterator<Item = Entry>) {
    let writer = Writer::start(store, Box::new(|_| ())).unwrap();
    for entry in entries {
        writer.push(None, entry);
    }
    writer.close().unwrap();
}

fn key(run: u64, row: u64, sample: u16, attempt: u32) -> AttemptKey {
    AttemptKey::new(run, Ticket { row, sample, attempt }).unwrap()
}

fn replay(run: u64, row: u64, sample: u16, from: AttemptKey) -> Entry {
    Entry::Replay { run, row, sample, from }
}

#[test]
fn every_field_comes_back() {
    let (_dir, store) = store();
    let full = AttemptRecord {
        repair: true,
        extracted: true,
        estimated: true,
        error: Some("it had to be asked again".to_owned()),
        ..valid(1, 2, 3)
    };
    let bare = AttemptRecord {
        key_label: "org-b".to_owned(),
        http_status: None,
        usage: None,
        cost: None,
        request_id: None,
        answer: None,
        started: WallTime(-5),
        raw: bytes::Bytes::new(),
        ..ended(1, 3, 1, Ending::Abandoned)
    };
    let at = |attempt, length: usize| AttemptRecord {
        raw: vec![0xFF; length].into(),
        hash: hash(&length.to_string()),
        ..valid(1, 4, attempt)
    };
    let records = [full, bare, at(1, 4_096), at(2, 4_097), at(3, 100_000)];
    write(&store, records.iter().cloned().map(|record| entry(1, record)));

    let mut reader = store.reader().unwrap();
    assert_eq!(reader.with_raw(1, 1).unwrap().attempts, records);
    let without: Vec<_> =
        records.iter().cloned().map(|record| AttemptRecord { raw: bytes::Bytes::new(), ..record }).collect();
    assert_eq!(reader.row(1, 1).unwrap().attempts, without);
    let bodies = |sql: &str| -> i64 { store.connection.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(bodies("SELECT count(*) FROM bodies"), 2);
    assert_eq!(bodies("SELECT count(*) FROM attempts WHERE raw IS NULL"), 3);
}

#[test]
fn every_ending_comes_back() {
    let (_dir, store) = store();
    let mut endings = vec![Ending::Valid, Ending::Throttled, Ending::Abandoned];
    for reason in Ending::REASONS {
        endings.extend([Ending::Failed(reason), Ending::Retried(reason), Ending::Deferred(reason)]);
    }
    write(&store, (1..).zip(&endings).map(|(attempt, &ending)| entry(1, ended(1, 1, attempt, ending))));
    let found = store.reader().unwrap().row(1, 1).unwrap().attempts;
    assert_eq!(found.iter().map(|attempt| attempt.ending).collect::<Vec<_>>(), endings);

    store.connection.execute("UPDATE attempts SET ending = 99 WHERE ending = 0", []).unwrap();
    let error = store.reader().unwrap().row(1, 1).unwrap_err();
    assert!(matches!(error, StoreError::Unreadable { .. }), "{error:?}");
}

#[test]
fn attempts_of_other_runs_are_told_from_own_ones() {
    let (_dir, store) = store();
    let mut reader = store.reader().unwrap();
    assert!(!reader.has_other_attempts(2).unwrap());
    write(&store, [entry(2, valid(1, 1, 1)), entry(2, valid(AttemptKey::MAX_ROW, 1, 1))]);
    assert!(!reader.has_other_attempts(2).unwrap());
    assert!(reader.has_other_attempts(1).unwrap() && reader.has_other_attempts(3).unwrap());
    assert!(reader.has_other_attempts(u64::MAX).unwrap());
}

#[test]
fn statements_are_compiled_once() {
    let (_dir, store) = store();
    let mut reader = store.reader().unwrap();
    for row in 0..5 {
        reader.lookup(&hash(&row.to_string())).unwrap();
        reader.lookup_failure(row, &hash(&row.to_string())).unwrap();
        reader.rows_after(row, row, 2).unwrap();
        reader.finished(row, &mut |_, _, _| ()).unwrap();
    }
    for sql in [VALID, FAILED, ATTEMPTS, EXCEPTIONS, CLOSED, REPLAYED] {
        let statement = reader.connection.prepare_cached(sql).unwrap();
        assert!(statement.get_status(StatementStatus::Run) >= 5, "{sql}");
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
    }
}

#[test]
fn lookups_find_answers_of_any_run_and_final_failures_of_one() {
    let (_dir, store) = store();
    let failed = |row, attempt, reason| AttemptRecord {
        hash: hash("bad"),
        ..ended(row, 1, attempt, Ending::Failed(reason))
    };
    write(
        &store,
        [
            entry(1, valid(1, 1, 1)),
            entry(1, ended(2, 1, 1, Ending::Retried(Reason::Empty))),
            entry(1, failed(3, 1, Reason::Timeout)),
            entry(1, failed(4, 1, Reason::Truncated)),
            entry(1, failed(4, 2, Reason::InvalidAnswer)),
            entry(1, failed(5, 1, Reason::Refused)),
            entry(2, failed(1, 1, Reason::ServerError)),
        ],
    );
    let mut reader = store.reader().unwrap();
    let answer = StoredAnswer {
        key: key(1, 1, 1, 1),
        ending: Ending::Valid,
        answer: "{\"ok\":true,\"row\":1}".to_owned(),
    };
    assert_eq!(reader.lookup(&hash("1 1")).unwrap(), Some(answer));
    assert_eq!(reader.lookup(&hash("2 1")).unwrap(), None);
    assert_eq!(reader.lookup(&hash("bad")).unwrap(), None);

    let failure = StoredAnswer {
        key: key(1, 4, 1, 2),
        ending: Ending::Failed(Reason::InvalidAnswer),
        answer: String::new(),
    };
    assert_eq!(reader.lookup_failure(1, &hash("bad")).unwrap(), Some(failure));
    assert_eq!(reader.lookup_failure(2, &hash("bad")).unwrap(), None);
    assert_eq!(reader.lookup_failure(u64::MAX, &hash("bad")).unwrap(), None);
}

#[test]
fn a_replay_brings_its_source_as_long_as_that_is_there() {
    let (_dir, store) = store();
    let long = AttemptRecord { raw: vec![b'x'; 5_000].into(), ..valid(9, 1, 1) };
    write(
        &store,
        [
            entry(1, long.clone()),
            replay(2, 3, 1, key(1, 8, 1, 1)),
            replay(2, 3, 1, key(1, 9, 1, 1)),
            replay(2, 3, 2, key(1, 9, 2, 1)),
            Entry::BadInput { run: 2, row: 4, error: "old".to_owned() },
            Entry::BadInput { run: 2, row: 4, error: "no member x".to_owned() },
        ],
    );
    let mut reader = store.reader().unwrap();
    let replays = |source| {
        vec![
            Replayed { sample: 1, from: key(1, 9, 1, 1), source },
            Replayed { sample: 2, from: key(1, 9, 2, 1), source: None },
        ]
    };
    assert_eq!(reader.with_raw(2, 3).unwrap().replays, replays(Some(long.clone())));
    let bare = AttemptRecord { raw: bytes::Bytes::new(), ..long };
    assert_eq!(reader.row(2, 3).unwrap().replays, replays(Some(bare)));
    assert_eq!(reader.row(2, 4).unwrap().bad_input.as_deref(), Some("no member x"));
    assert_eq!(reader.row(2, 5).unwrap(), RowHistory { row: 5, ..RowHistory::default() });

    // A kind of a later version says nothing to this one, and is no error.
    store.connection.execute("UPDATE rows SET kind = 77 WHERE kind = 2", []).unwrap();
    assert_eq!(reader.row(2, 4).unwrap().bad_input, None);
}

#[test]
fn finished_visits_each_ended_sample_once_with_what_counts() {
    let (_dir, store) = store();
    write(
        &store,
        [
            entry(1, valid(1, 1, 1)),
            entry(1, ended(2, 1, 1, Ending::Failed(Reason::Truncated))),
            entry(1, ended(2, 1, 2, Ending::Failed(Reason::Empty))),
            entry(2, ended(1, 1, 1, Ending::Retried(Reason::Timeout))),
            entry(2, ended(1, 1, 2, Ending::Failed(Reason::Timeout))),
            entry(2, valid(1, 2, 1)),
            entry(2, ended(1, 2, 2, Ending::Failed(Reason::Rejected))),
            replay(2, 2, 1, key(1, 1, 1, 1)),
            entry(2, ended(2, 1, 1, Ending::Failed(Reason::Empty))),
            replay(2, 3, 1, key(1, 2, 1, 2)),
            replay(2, 4, 1, key(1, 7, 1, 1)),
            entry(2, ended(5, 1, 1, Ending::Throttled)),
            Entry::BadInput { run: 2, row: 6, error: String::new() },
            entry(3, valid(1, 3, 1)),
        ],
    );
    let mut seen = Vec::new();
    store.reader().unwrap().finished(2, &mut |row, sample, ending| seen.push((row, sample, ending))).unwrap();
    assert_eq!(
        seen,
        [
            (1, 1, Ending::Failed(Reason::Timeout)),
            (1, 2, Ending::Valid),
            (2, 1, Ending::Valid),
            (3, 1, Ending::Failed(Reason::Empty)),
        ]
    );
    store.reader().unwrap().finished(9, &mut |_, _, _| panic!("no such run")).unwrap();
}

#[test]
fn every_query_goes_by_its_index() {
    let (_dir, store) = store();
    let plan = |sql: &str| -> String {
        let mut statement = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let lines = statement.raw_query().mapped(|row| row.get::<_, String>(3));
        lines.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    for (sql, index) in [
        (VALID, "attempts_valid (hash=?)"),
        (FAILED, "attempts_failed (hash=? AND rowid>? AND rowid<?)"),
        (ATTEMPTS, "a USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (ATTEMPTS_RAW, "b USING INTEGER PRIMARY KEY (rowid=?)"),
        (EXCEPTIONS, "r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
        (EXCEPTIONS_RAW, "b USING INTEGER PRIMARY KEY (rowid=?)"),
        (CLOSED, "COVERING INDEX attempts_closed (id>? AND id<?)"),
        (REPLAYED, "COVERING INDEX attempts_closed (id=? AND ending<?)"),
    ] {
        let plan = plan(sql);
        assert!(plan.contains(index), "{sql}: {plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{sql}: {plan}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn paging_equals_reading_row_by_row(
        places in prop::collection::btree_set((1_u64..40, 1_u16..4, 0_u32..4), 0..60),
        page in 1_usize..9,
    ) {
        let (_dir, store) = store();
        write(&store, places.iter().map(|&(row, sample, attempt)| match attempt {
            0 if sample == 3 => Entry::BadInput { run: 5, row, error: "bad".to_owned() },
            0 => replay(5, row, sample, key(4, row, sample, 1)),
            _ => entry(5, ended(row, sample, attempt, Ending::Retried(Reason::Timeout))),
        }));
        write(&store, [entry(4, valid(1, 1, 1)), entry(6, valid(1, 2, 1))]);
        let mut reader = store.reader().unwrap();
        let mut paged = Vec::new();
        let mut after = 0;
        loop {
            let rows = reader.rows_after(5, after, page).unwrap();
            prop_assert!(rows.len() <= page);
            let Some(last) = rows.last() else { break };
            after = last.row;
            paged.extend(rows);
        }
        let mut one_by_one = Vec::new();
        for row in 0..45 {
            let history = reader.row(5, row).unwrap();
            if history != (RowHistory { row, ..RowHistory::default() }) {
                one_by_one.push(history);
            }
        }
        let rows: std::collections::BTreeSet<_> = places.iter().map(|place| place.0).collect();
        prop_assert_eq!(rows.into_iter().collect::<Vec<_>>(), paged.iter().map(|row| row.row).collect::<Vec<_>>());
        prop_assert_eq!(paged, one_by_one);
        prop_assert!(reader.rows_after(5, AttemptKey::MAX_ROW, 9).unwrap().is_empty());
        prop_assert!(reader.rows_after(5, u64::MAX, 9).unwrap().is_empty());
        prop_assert!(reader.rows_after(5, 0, 0).unwrap().is_empty());
    }
}
