//! Examples that the tests of this room share.

use tempfile::TempDir;

use crate::base::{Digest, Money, RunId, Ticket, WallTime};
use crate::model::{AttemptRecord, Ending, Usage};
use crate::store::{Entry, NewRun, Store};

pub(super) fn store() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join(".verify")).unwrap();
    (dir, store)
}

pub(super) fn new_run(job: u8, at: i64) -> NewRun {
    NewRun {
        id: RunId::new(WallTime(at)),
        job: Digest::of(&[job]),
        input_digest: Digest::of(b"input"),
        input: "data/in.csv".to_owned(),
        version: "v2".to_owned(),
        settings: "{\"model\":\"m\"}".to_owned(),
        selected: 3,
        started: WallTime(at),
    }
}

pub(super) fn hash(text: &str) -> [u8; 16] {
    Digest::of(text.as_bytes()).short()
}

/// A valid answer whose hash is its own.
pub(super) fn valid(row: u64, sample: u16, attempt: u32) -> AttemptRecord {
    AttemptRecord {
        ticket: Ticket { row, sample, attempt },
        ending: Ending::Valid,
        hash: hash(&format!("{row} {sample}")),
        key_label: "default".to_owned(),
        http_status: Some(200),
        started: WallTime(1_790_000_000_250),
        millis: 812,
        usage: Some(Usage {
            input: 900,
            cached_input: 100,
            cache_write: 50,
            output: 60,
            reasoning: 20,
            ..Usage::default()
        }),
        estimated: false,
        cost: Some(Money::from_pico(1_200_000_000)),
        possible: Some(Money::from_pico(7)),
        repair: false,
        request_id: Some("req-1".to_owned()),
        answer: Some(format!("{{\"ok\":true,\"row\":{row}}}")),
        extracted: false,
        error: None,
        raw: bytes::Bytes::from_static(b"{\"choices\":[]}"),
    }
}

pub(super) fn ended(row: u64, sample: u16, attempt: u32, ending: Ending) -> AttemptRecord {
    AttemptRecord { ending, answer: None, error: Some("no".to_owned()), ..valid(row, sample, attempt) }
}

pub(super) fn entry(run: u64, record: AttemptRecord) -> Entry {
    Entry::Attempt { run, record }
}
