use std::fs;
use std::sync::mpsc::{Receiver, sync_channel};

use rusqlite::Connection;

use super::*;
use crate::base::{AttemptKey, AttemptKeyError, Ticket, WallTime};
use crate::model::{Ending, Learned, Reason};
use crate::store::samples::{ended, entry, hash, new_run, store, valid};

type Told = Receiver<Result<Vec<u64>, Arc<StoreError>>>;

fn telling() -> (OnCommit, Told) {
    let (tell, told) = sync_channel(64);
    let tell = move |result| match result {
        Ok(Written::Durable(tokens)) => tell.send(Ok(tokens)).unwrap(),
        Ok(Written::Kept(_)) => {}
        Err(error) => tell.send(Err(error)).unwrap(),
    };
    (Box::new(tell), told)
}

fn silent() -> OnCommit {
    Box::new(|_| ())
}

const _: () = {
    const fn can_be_shared<T: Send + Sync>() {}
    const fn can_be_sent<T: Send>() {}
    can_be_shared::<Writer>();
    can_be_sent::<Store>();
    can_be_sent::<crate::store::Reader>();
};

fn count(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM attempts", [], |row| row.get(0)).unwrap()
}

#[test]
fn tokens_come_back_when_others_can_see_the_rows() {
    let (_dir, store) = store();
    let (tell, told) = sync_channel(64);
    let path = store.path().to_owned();
    let on_commit = Box::new(move |result: Result<Written, Arc<StoreError>>| {
        let other = Connection::open(&path).unwrap();
        let Ok(Written::Durable(tokens)) = result else { return };
        let seen: Vec<_> = tokens
            .into_iter()
            .map(|token| {
                let key = AttemptKey::new(1, Ticket { row: token, sample: 1, attempt: 1 }).unwrap();
                other
                    .query_row("SELECT ending FROM attempts WHERE id = ?1", [key.as_i64()], |row| row.get(0))
                    .map(|ending: i64| (token, ending))
                    .unwrap()
            })
            .collect();
        tell.send(seen).unwrap();
    });
    let writer = Writer::start(&store, on_commit).unwrap();
    for row in 1..=100 {
        writer.push(Some(row), entry(1, valid(row, 1, 1)));
        if row % 30 == 0 {
            writer.push(None, entry(1, valid(row, 2, 1)));
        }
    }
    writer.flush().unwrap();
    let mut seen: Vec<_> = told.try_iter().flatten().collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..=100).map(|row| (row, 0)).collect::<Vec<_>>());
    writer.flush().unwrap();
    writer.close().unwrap();
    assert_eq!(count(&store.connection), 103);
}

#[test]
fn an_answer_that_was_bought_twice_is_kept_twice() {
    let (_dir, store) = store();
    let writers = [1, 2].map(|_| Writer::start(&store, silent()).unwrap());
    for (run, writer) in (1..).zip(&writers) {
        writer.push(None, entry(run, valid(7, 1, 1)));
        writer.flush().unwrap();
    }
    let mut reader = store.reader().unwrap();
    let found = reader.lookup(&hash("7 1")).unwrap().unwrap();
    assert_eq!(found.key.run(), 1);
    for run in [1, 2] {
        assert_eq!(reader.row(run, 7).unwrap().attempts[0].answer, valid(7, 1, 1).answer);
    }
}

#[test]
fn what_has_no_place_is_refused_and_the_rest_is_kept() {
    let (_dir, store) = store();
    let (on_commit, told) = telling();
    let writer = Writer::start(&store, on_commit).unwrap();
    writer.push(Some(1), entry(1, valid(1, 1, 1)));
    writer.flush().unwrap();
    told.recv().unwrap().unwrap();

    let mut batches = Batches::open(store.path()).unwrap();
    let far = valid(AttemptKey::MAX_ROW + 1, 1, 1);
    let batch = [
        (Some(1), entry(1, valid(1, 1, 1))),
        (Some(2), entry(1, far)),
        (Some(3), Entry::BadInput { run: 1, row: u64::MAX, error: String::new() }),
        (Some(4), entry(1, valid(2, 1, 1))),
    ];
    let committed = batches.write(&batch).unwrap();
    assert_eq!(committed.tokens, [4]);
    assert!(matches!(committed.refused, Some(StoreError::Taken { .. })));
    assert_eq!(count(&store.connection), 2);

    writer.push(Some(5), entry(AttemptKey::MAX_RUN + 1, valid(3, 1, 1)));
    assert!(writer.flush().is_err());
    assert_eq!(told.recv().unwrap().unwrap(), [0; 0]);
    let error = told.recv().unwrap().unwrap_err();
    assert!(matches!(&*error, StoreError::Number { source: AttemptKeyError { .. }, .. }), "{error:?}");
    assert!(writer.close().is_err());
}

#[test]
fn a_full_disk_is_told_once_and_stops_the_writing() {
    let (_dir, store) = store();
    let batches = Batches::open(store.path()).unwrap();
    batches.connection().query_row("PRAGMA max_page_count = 1", [], |_| Ok(())).unwrap();
    let (on_commit, told) = telling();
    let writer = Writer::start_with(batches, Carrier::default(), on_commit).unwrap();
    let mut large = valid(1, 1, 1);
    large.raw = vec![b'x'; 200_000].into();
    writer.push(Some(1), entry(1, large));
    let error = told.recv().unwrap().unwrap_err();
    assert!(matches!(*error, StoreError::Full { .. }), "{error:?}");
    assert!(error.to_string().contains("is kept"), "{error}");
    writer.push(Some(2), entry(1, valid(2, 1, 1)));
    assert!(matches!(*writer.flush().unwrap_err(), StoreError::Full { .. }));
    assert!(matches!(*writer.close().unwrap_err(), StoreError::Full { .. }));
    assert!(told.recv().is_err(), "nothing is told after the failure");
    assert_eq!(count(&store.connection), 0);
}

#[test]
fn closing_saves_what_a_failed_commit_has_left() {
    let (_dir, store) = store();
    let batches = Batches::open(store.path()).unwrap();
    batches.connection().busy_timeout(Duration::ZERO).unwrap();
    let (on_commit, told) = telling();
    let writer = Writer::start_with(batches, Carrier::default(), on_commit).unwrap();
    store.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    writer.push(Some(1), entry(1, valid(1, 1, 1)));
    assert!(matches!(*told.recv().unwrap().unwrap_err(), StoreError::Busy { .. }));
    store.connection.execute_batch("COMMIT").unwrap();
    assert!(writer.close().is_err());
    assert_eq!(count(&store.connection), 1);
}

#[test]
fn a_callback_that_panics_ends_the_writing_and_nothing_hangs() {
    let (_dir, store) = store();
    let writer = Writer::start(&store, Box::new(|_| std::panic::resume_unwind(Box::new(())))).unwrap();
    writer.push(Some(1), entry(1, valid(1, 1, 1)));
    assert!(matches!(*writer.flush().unwrap_err(), StoreError::WriterEnded));
    assert!(matches!(*writer.close().unwrap_err(), StoreError::WriterEnded));
    assert_eq!(count(&store.connection), 1);
}

#[test]
fn a_crash_loses_nothing_that_was_committed() {
    let (dir, store) = store();
    let run = store.create_run(&new_run(1, 1_000)).unwrap();
    let writer = Writer::start(&store, silent()).unwrap();
    for row in 1..=500 {
        writer.push(Some(row), entry(run.seq, valid(row, 1, 1)));
    }
    writer.flush().unwrap();
    // What a killed process leaves: the file and its log, no checkpoint.
    let left = dir.path().join("left");
    fs::create_dir(&left).unwrap();
    for name in ["store.db", "store.db-wal"] {
        fs::copy(store.path().with_file_name(name), left.join(name)).unwrap();
    }
    writer.push(Some(501), entry(run.seq, valid(501, 1, 1)));
    writer.close().unwrap();
    let after = Store::open(&left).unwrap();
    assert_eq!(after.find_run("last").unwrap(), run);
    assert_eq!(after.reader().unwrap().rows_after(run.seq, 0, 1_000).unwrap().len(), 500);
}

#[test]
fn the_log_stays_bounded_beside_a_reader() {
    let (_dir, store) = store();
    let mut reader = store.reader().unwrap();
    // A quarter of the usual size, and half of that since each attempt here adds more than a page.
    let (batches, carrier) = (Batches::open(store.path()).unwrap(), Carrier::with(500, 2_000));
    let writer = Writer::start_with(batches, carrier, silent()).unwrap();
    let log = store.path().with_file_name("store.db-wal");
    let mut largest = 0;
    for batch in 0..40 {
        for row in 1..=300 {
            let mut record = valid(batch * 300 + row, 1, 1);
            record.raw = vec![b'x'; 4_000].into();
            writer.push(None, entry(1, record));
        }
        writer.flush().unwrap();
        assert!(reader.lookup(&hash(&format!("{} 1", batch * 300 + 1))).unwrap().is_some());
        largest = fs::metadata(&log).unwrap().len().max(largest);
    }
    writer.close().unwrap();
    let whole = fs::metadata(store.path()).unwrap().len();
    assert!(whole > 48_000_000 && largest < 28_000_000, "{largest} of {whole}");
    assert_eq!(fs::metadata(&log).unwrap().len(), 0);
}

#[test]
fn a_quiet_moment_cuts_the_log() {
    let (_dir, store) = store();
    let writer = Writer::start(&store, silent()).unwrap();
    let log = store.path().with_file_name("store.db-wal");
    let fill = |rows: std::ops::Range<u64>| {
        rows.for_each(|row| writer.push(None, entry(1, valid(row, 1, 1))));
        writer.flush().unwrap();
    };
    fill(1..3_000);
    assert!(fs::metadata(&log).unwrap().len() > 0);
    writer.expect_quiet();
    // Whatever it is that takes long, the test does not end before it.
    while fs::metadata(&log).unwrap().len() > 0 {
        std::thread::yield_now();
    }
    fill(3_000..3_011);
    assert_eq!(count(&store.connection), 3_010);
    writer.close().unwrap();
}

#[test]
fn facts_are_kept_and_replaced() {
    let (_dir, store) = store();
    assert_eq!(store.learned("e", "m").unwrap(), Learned::default());
    assert!(!store.answered("e", "m", "a").unwrap());
    assert_eq!(store.key_wait("e", "a", WallTime(9)).unwrap(), None);
    let writer = Writer::start(&store, silent()).unwrap();
    let learned =
        Learned { structured_steps: 1, swap_length_parameter: true, dropped: vec!["seed".to_owned()] };
    let text = str::to_owned;
    for learned in [Learned::default(), learned.clone()] {
        writer.push(None, Entry::Learned { endpoint: text("e"), model: text("m"), learned });
    }
    for _ in 0..2 {
        let answered = Entry::Answered { endpoint: text("e"), model: text("m"), key_label: text("a") };
        writer.push(None, answered);
    }
    let noted = WallTime(3);
    let wait = |label, until| Entry::KeyWait { endpoint: text("e"), key_label: text(label), noted, until };
    for (label, until) in [("a", Some(5)), ("a", Some(9)), ("b", Some(5)), ("b", None)] {
        writer.push(None, wait(label, until.map(WallTime)));
    }
    let run = store.create_run(&new_run(1, 1_000)).unwrap();
    for done in 1..=3 {
        writer.push(Some(done), Entry::Progress { run: run.seq, json: format!("{{\"done\":{done}}}") });
    }
    writer.flush().unwrap();
    assert_eq!(store.learned("e", "m").unwrap(), learned);
    assert_eq!(store.learned("e", "other").unwrap(), Learned::default());
    assert!(store.answered("e", "m", "a").unwrap() && !store.answered("e", "m", "b").unwrap());
    assert_eq!(store.key_wait("e", "a", noted).unwrap(), Some(WallTime(9)));
    assert_eq!(store.key_wait("e", "a", WallTime(2)).unwrap(), None, "the clock was set back");
    assert_eq!(store.key_wait("e", "b", noted).unwrap(), None);
    assert_eq!(store.find_run("last").unwrap().progress.as_deref(), Some("{\"done\":3}"));
}

#[test]
fn dropping_a_writer_writes_what_was_pushed() {
    let (_dir, store) = store();
    let writer = Writer::start(&store, silent()).unwrap();
    writer.push(None, entry(1, ended(1, 1, 1, Ending::Failed(Reason::Empty))));
    drop(writer);
    assert_eq!(count(&store.connection), 1);
}
