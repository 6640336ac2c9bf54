//! Carries the log over into the file beside the commits.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use crate::store::StoreError;
use crate::store::connection::{Purpose, carry_over, connect, cut};

/// How many pages the log may grow by before they are carried over: 16 MB if an attempt adds one. It was measured to add
/// 0.9 with 2,000 in flight, and 2.6 with 16, whose commits share fewer pages.
const PAGES: u64 = 4_000;
/// From how many pages on the log is to begin anew: 32 MB. It does once all of it was carried over, which only a
/// moment without commits can bring.
const LONGEST: u64 = 8_000;
/// Bytes of a page.
const PAGE: usize = 4_096;

/// The thread `carry`, with a connection of its own. To carry over is to read the log, to write the file and to sync
/// both, which takes tens of milliseconds: on the writer's thread it would hold up every answer that is to be kept.
#[derive(Debug)]
pub(super) struct Carrier {
    /// By how many pages the log may grow before it is carried over, and from how many on it is to begin anew.
    due: u64,
    longest: u64,
    /// Started when it is first needed.
    line: Option<Line>,
    /// Pages that were added to the log since it was last asked for, as an estimate.
    added: u64,
    /// What was asked for and has not told yet what came of it.
    awaited: u32,
}

impl Default for Carrier {
    fn default() -> Self {
        Self::with(PAGES, LONGEST)
    }
}

/// What the thread is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// To carry over what it can.
    Part,
    /// To carry over all and to cut the log.
    All,
}

#[derive(Debug)]
struct Line {
    asked: SyncSender<Asked>,
    told: Receiver<Result<u64, StoreError>>,
    thread: Option<JoinHandle<()>>,
}

impl Carrier {
    /// One that carries over every `due` pages a log of at most some `longest` pages.
    pub(super) fn with(due: u64, longest: u64) -> Self {
        Self { due, longest, line: None, added: 0, awaited: 0 }
    }

    /// So many attempts were committed, with so many bytes of long bodies.
    pub(super) fn add(&mut self, attempts: usize, bytes: usize) {
        let pages = u64::try_from(attempts + bytes.div_ceil(PAGE)).unwrap_or(u64::MAX);
        self.added = self.added.saturating_add(pages);
    }

    /// Carries over what is due. Where more is due already and there is time (`has_time`), it waits. Returns whether
    /// the log is so long that it should begin anew: then nobody is at it, and what is left to carry over is little.
    /// What cannot be carried over stays in the log, where it is as safe, and is tried again; if that lasts, whoever
    /// closes the store is told.
    ///
    /// Errors: [`StoreError::Thread`], and a thread that has panicked.
    pub(super) fn step(&mut self, path: &Path, has_time: bool) -> Result<bool, StoreError> {
        let waits = has_time && self.added >= self.due;
        let mut is_long = false;
        while self.awaited > 0 {
            let Some(line) = &self.line else { break };
            let pages = match line.told.try_recv() {
                Err(TryRecvError::Empty) if !waits => return Ok(is_long),
                Err(TryRecvError::Empty) => line.told.recv().map_err(|_| StoreError::WriterEnded)?,
                Err(TryRecvError::Disconnected) => return Err(StoreError::WriterEnded),
                Ok(result) => result,
            };
            self.awaited -= 1;
            is_long = pages.is_ok_and(|pages| pages >= self.longest);
        }
        if !is_long && self.added >= self.due {
            self.ask(path, Asked::Part)?;
        }
        Ok(is_long)
    }

    /// Nothing is committed for a while: what is in the log is carried over, and the log is cut. A short log is left to
    /// whoever closes the store.
    ///
    /// Errors: [`StoreError::Thread`].
    pub(super) fn use_quiet(&mut self, path: &Path) -> Result<(), StoreError> {
        let is_short = self.line.is_none() && self.added < self.due / 4;
        if is_short { Ok(()) } else { self.ask(path, Asked::All) }
    }

    fn ask(&mut self, path: &Path, what: Asked) -> Result<(), StoreError> {
        let line = match self.line.take() {
            Some(line) => line,
            None => Line::start(path.to_owned(), self.longest)?,
        };
        self.added = 0;
        self.awaited += 1;
        // A thread that is gone is found by whoever asks for its result.
        let _ = line.asked.send(what);
        self.line = Some(line);
        Ok(())
    }
}

impl Line {
    fn start(path: PathBuf, longest: u64) -> Result<Self, StoreError> {
        let (asked, asks) = sync_channel::<Asked>(2);
        let (tells, told) = sync_channel(2);
        let thread = thread::Builder::new()
            .name("carry".to_owned())
            .spawn(move || {
                let mut connection: Option<Connection> = None;
                for what in asks {
                    let open = match connection.take() {
                        Some(open) => Ok(open),
                        None => connect(&path, Purpose::Write),
                    };
                    let result = open.and_then(|open| {
                        let open = connection.insert(open);
                        let pages = carry_over(open, &path)?;
                        match what {
                            // What came meanwhile is carried over too, so that next to nothing is left for the writer.
                            Asked::Part if pages >= longest => carry_over(open, &path),
                            Asked::Part => Ok(pages),
                            Asked::All => cut(open, &path).map(|()| 0),
                        }
                    });
                    if tells.send(result).is_err() {
                        break;
                    }
                }
            })
            .map_err(|source| StoreError::Thread { source })?;
        Ok(Self { asked, told, thread: Some(thread) })
    }
}

impl Drop for Carrier {
    /// Waits for what is under way: whoever carries over next finds nobody at it.
    fn drop(&mut self) {
        if let Some(Line { asked, told, thread }) = self.line.take() {
            drop((asked, told));
            if let Some(thread) = thread {
                // A panic of it has been told as an error.
                let _ = thread.join();
            }
        }
    }
}
