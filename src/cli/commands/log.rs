//! `--log`: every event of a run as a line of JSON.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::base::{Clock as _, Moment, SystemClock, WallTime};
use crate::cli::failure::Failure;
use crate::cli::terminal::Watcher;
use crate::model::Event;
use crate::report::{Snapshot, Summary, event_json};
use crate::run::Observer;
use crate::store::RunRecord;

/// A log that is written to. Executions follow one another in it: nothing that is there is overwritten.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    writer: BufWriter<File>,
    /// The same moment on both clocks.
    origin: (Moment, WallTime),
    failed: Option<io::Error>,
}

impl Log {
    pub(super) fn open(path: &Path, clock: &SystemClock) -> Result<Self, Failure> {
        let file =
            OpenOptions::new().append(true).create(true).open(path).map_err(|error| {
                Failure::unable(format!("cannot write the log {}: {error}", path.display()))
            })?;
        let origin = (clock.now(), clock.wall());
        Ok(Self { path: path.to_owned(), writer: BufWriter::new(file), origin, failed: None })
    }

    fn line(&mut self, line: &str) {
        if self.failed.is_none() {
            self.failed = writeln!(self.writer, "{line}").err();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.writer.flush().err();
        }
    }

    fn wall(&self, at: Moment) -> WallTime {
        self.origin.1.after(at.since(self.origin.0))
    }

    /// The first line of an execution.
    pub(super) fn begin(&mut self, run: &RunRecord, continued: bool) {
        let object = json!({
            "at": self.origin.1.to_rfc3339(),
            "event": "started",
            "run": run.id.to_string(),
            "execution": run.executions + 1,
            "continued": continued,
            "input": run.input,
            "rows": run.selected,
            "program": env!("CARGO_PKG_VERSION"),
        });
        self.line(&object.to_string());
        self.flush();
    }

    /// The last line of an execution. Returns what kept lines from being written, if something did.
    pub(super) fn end(&mut self, summary: &Summary, at: WallTime) -> Option<String> {
        let summary = summary.to_json();
        let line = format!(
            "{{\"at\":\"{}\",\"event\":\"ended\",\"summary\":{}}}",
            at.to_rfc3339(),
            summary.trim_end()
        );
        self.line(&line);
        self.flush();
        let error = self.failed.take()?;
        Some(format!("the log {} is not complete: {error}", self.path.display()))
    }
}

/// A watcher with a log behind it.
#[derive(Debug)]
pub(super) struct Logged<'a> {
    pub(super) watcher: &'a mut Watcher,
    pub(super) log: Option<&'a RefCell<Log>>,
}

impl Observer for Logged<'_> {
    fn event(&mut self, event: &Event) {
        if let Some(log) = self.log {
            let mut log = log.borrow_mut();
            let at = log.wall(event.at);
            log.line(&event_json(event, at));
        }
        self.watcher.event(event);
    }

    fn tick(&mut self, now: Moment, snapshot: &Snapshot) {
        if let Some(log) = self.log {
            log.borrow_mut().flush();
        }
        self.watcher.tick(now, snapshot);
    }
}
