//! The one thread that writes: what is pushed in a moment goes to disk in one commit.

use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::store::batch::{Batches, Sent};
use crate::store::{Entry, Store, StoreError};

/// How long pushes are gathered for a commit while there is traffic. Half of it was measured to cost a quarter more for
/// each row: a commit writes every page that it touches once.
const PACE: Duration = Duration::from_millis(20);

/// Is called on the writer's thread after every commit with the tokens that it has put on disk, and once with the
/// error after which nothing more is written.
pub type OnCommit = Box<dyn Fn(Result<Vec<u64>, Arc<StoreError>>) + Send>;

/// The handle of the thread `store`. A push costs a lock and wakes the thread only if it was idle: waking it for
/// every row was measured to cost more than all parsing of replies. A push is on disk after 20 ms and a commit, sooner where
/// [`Writer::gather_at_most`] was called.
///
/// Dropping it is closing it, without a word about errors.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), StoreError>>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the thread.
    work: Condvar,
    /// Wakes those who wait for the thread.
    done: Condvar,
}

#[derive(Debug)]
struct State {
    buffer: Vec<Sent>,
    /// So many pushes are not gathered any longer.
    most: usize,
    pushed: u64,
    written: u64,
    /// The thread sleeps until it is woken.
    idle: bool,
    /// Somebody waits: no gathering.
    urgent: bool,
    closing: bool,
    failed: Option<Arc<StoreError>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            most: usize::MAX,
            pushed: 0,
            written: 0,
            idle: false,
            urgent: false,
            closing: false,
            failed: None,
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole at every moment, so a panic of a holder has broken nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, error: &Arc<StoreError>) {
        self.lock().failed.get_or_insert_with(|| Arc::clone(error));
        self.done.notify_all();
    }
}

impl Writer {
    /// Starts the thread, with a connection of its own to the file of `store`.
    ///
    /// Errors: those of opening the file, and [`StoreError::Thread`].
    pub fn start(store: &Store, on_commit: OnCommit) -> Result<Self, StoreError> {
        Self::start_with(Batches::open(store.path())?, on_commit)
    }

    pub(super) fn start_with(batches: Batches, on_commit: OnCommit) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || write(&shared, batches, &on_commit)
            })
            .map_err(|source| StoreError::Thread { source })?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Commits as soon as so many pushes have been gathered. Who cannot push more before some are on disk does not
    /// wait in vain then.
    pub fn gather_at_most(&self, pushes: usize) {
        self.shared.lock().most = pushes.max(1);
        self.shared.work.notify_one();
    }

    /// Hands over an entry. `token` comes back when it is on disk. After a failure, of which `on_commit` has
    /// told, entries are dropped.
    pub fn push(&self, token: Option<u64>, entry: Entry) {
        let mut state = self.shared.lock();
        if state.failed.is_some() {
            return;
        }
        state.buffer.push((token, entry));
        state.pushed += 1;
        let is_full = state.buffer.len() == state.most;
        if mem::take(&mut state.idle) || is_full {
            drop(state);
            self.shared.work.notify_one();
        }
    }

    /// Waits until all that was pushed so far is on disk and `on_commit` has returned.
    pub fn flush(&self) -> Result<(), Arc<StoreError>> {
        let mut state = self.shared.lock();
        let target = state.pushed;
        loop {
            if let Some(error) = &state.failed {
                return Err(Arc::clone(error));
            }
            if state.written >= target {
                return Ok(());
            }
            state.urgent = true;
            state.idle = false;
            self.shared.work.notify_one();
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes all that was pushed, carries the log over into the file, and ends the thread. What a failed commit
    /// has left is tried once more, so that space freed meanwhile saves it; the failure is returned all the same.
    pub fn close(mut self) -> Result<(), Arc<StoreError>> {
        let ended = self.end();
        let failed = self.shared.lock().failed.take();
        match (failed, ended) {
            (Some(error), _) => Err(error),
            (None, result) => result.map_err(Arc::new),
        }
    }

    fn end(&mut self) -> Result<(), StoreError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        self.shared.lock().closing = true;
        self.shared.work.notify_one();
        thread.join().unwrap_or(Err(StoreError::WriterEnded))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `close`.
        let _ = self.end();
    }
}

/// Tells those who wait that the thread is gone, also if `on_commit` has panicked.
struct Ends<'a>(&'a Shared);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.fail(&Arc::new(StoreError::WriterEnded));
        }
    }
}

fn write(shared: &Shared, mut batches: Batches, on_commit: &OnCommit) -> Result<(), StoreError> {
    let _ends = Ends(shared);
    let mut batch = Vec::new();
    while take(shared, &mut batch) {
        match batches.write(&batch) {
            Ok(committed) => {
                let count = batch.len();
                batch.clear();
                on_commit(Ok(committed.tokens));
                if let Some(error) = committed.refused {
                    let error = Arc::new(error);
                    shared.fail(&error);
                    on_commit(Err(error));
                }
                let mut state = shared.lock();
                state.written += u64::try_from(count).unwrap_or(0);
                shared.done.notify_all();
                drop(state);
            }
            Err(error) => {
                let error = Arc::new(error);
                shared.fail(&error);
                on_commit(Err(error));
                wait_for_close(shared);
                batch.append(&mut shared.lock().buffer);
                batches.write(&batch)?;
                break;
            }
        }
    }
    batches.checkpoint()
}

/// Waits for the next batch; false when the writer is closed and nothing is left. Traffic is gathered for a while
/// after each commit; without any the thread sleeps until a push wakes it, and takes that push at once.
fn take(shared: &Shared, batch: &mut Vec<Sent>) -> bool {
    let mut state = shared.lock();
    let rests = |state: &mut State| !(state.urgent || state.closing || state.buffer.len() >= state.most);
    if state.pushed > 0 {
        let waited = shared.work.wait_timeout_while(state, PACE, rests);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    while state.buffer.is_empty() && !state.closing {
        state.urgent = false;
        state.idle = true;
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.idle = false;
    state.urgent = false;
    mem::swap(batch, &mut state.buffer);
    !batch.is_empty()
}

fn wait_for_close(shared: &Shared) {
    let mut state = shared.lock();
    while !state.closing {
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests;
