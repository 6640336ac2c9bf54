//! The one thread that writes: what is pushed in a moment goes to disk in one commit.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::base::CrashPoint;
use crate::store::batch::{Batches, Sent};
use crate::store::carrier::Carrier;
use crate::store::disk::Disk;
use crate::store::{Entry, Store, StoreError};

/// How long pushes are gathered for a commit while there is traffic.
const PACE: Duration = Duration::from_millis(1);
/// How many commits go to the disk together while there is traffic.
const COMMITS_A_SYNC: u32 = 10;

/// How far pushes have come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// So many further attempts are in the file: others can read them, and the death of this process does not lose
    /// them. A power cut still may.
    Kept(u32),
    /// What these tokens were given for is on disk.
    Durable(Vec<u64>),
}

/// Is called on the writer's thread when pushes have come further, and once with the error after which nothing more
/// is written.
pub type OnCommit = Box<dyn Fn(Result<Written, Arc<StoreError>>) + Send>;

/// The handle of the thread `store`. A push costs a lock and wakes the thread only if it was idle: waking it for
/// every row was measured to cost more than all parsing of replies. A push is in the file after 1 ms, and on disk
/// after 10 ms and a sync.
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

#[derive(Debug, Default)]
struct State {
    buffer: Vec<Sent>,
    pushed: u64,
    written: u64,
    /// The thread sleeps until it is woken.
    idle: bool,
    wish: Wish,
    failed: Option<Arc<StoreError>>,
}

/// What is wished of the thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    /// To gather what comes, and to write it.
    #[default]
    Usual,
    /// To use that nothing will come for a while.
    Quiet,
    /// To gather nothing: somebody waits.
    Speed,
    /// To write what is there, and to end.
    End,
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
        Self::start_with(Batches::open(store.path())?, Carrier::default(), on_commit)
    }

    pub(super) fn start_with(
        batches: Batches,
        carrier: Carrier,
        on_commit: OnCommit,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::default());
        let thread = thread::Builder::new()
            .name("store".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || write(&shared, batches, carrier, &on_commit)
            })
            .map_err(|source| StoreError::Thread { source })?;
        Ok(Self { shared, thread: Some(thread) })
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
        if mem::take(&mut state.idle) {
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
            state.wish = state.wish.max(Wish::Speed);
            state.idle = false;
            self.shared.work.notify_one();
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Says that nothing is likely to come for a while. What the end would have to do to the log is done meanwhile.
    pub fn expect_quiet(&self) {
        let mut state = self.shared.lock();
        state.wish = state.wish.max(Wish::Quiet);
        state.idle = false;
        drop(state);
        self.shared.work.notify_one();
    }

    /// Has the thread write all that was pushed, carry the log over into the file, and end. [`Writer::close`] waits for
    /// it; until then nothing is pushed any more.
    pub fn begin_to_close(&self) {
        self.shared.lock().wish = Wish::End;
        self.shared.work.notify_one();
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
        self.begin_to_close();
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

fn write(
    shared: &Shared,
    batches: Batches,
    carrier: Carrier,
    on_commit: &OnCommit,
) -> Result<(), StoreError> {
    let _ends = Ends(shared);
    let mut batch = Vec::new();
    let waiting = Waiting::default();
    let mut work = Work { shared, on_commit, batches, disk: None, carrier, waiting, syncing: None };
    while let Some(wish) = take(shared, &mut batch, work.is_waiting()) {
        if let Err(error) = work.step(&mut batch, wish) {
            let error = Arc::new(error);
            shared.fail(&error);
            on_commit(Err(error));
            wait_for_close(shared);
            batch.append(&mut shared.lock().buffer);
            work.batches.write(&batch)?;
            break;
        }
    }
    drop(work.carrier);
    work.batches.checkpoint()
}

/// What is committed and waits for the disk.
#[derive(Debug, Default)]
struct Waiting {
    tokens: Vec<u64>,
    entries: u64,
    attempts: usize,
    commits: u32,
}

/// What the thread works with.
struct Work<'a> {
    shared: &'a Shared,
    on_commit: &'a OnCommit,
    batches: Batches,
    /// Started when it is first needed.
    disk: Option<Disk>,
    carrier: Carrier,
    waiting: Waiting,
    /// What is on its way to the disk.
    syncing: Option<Waiting>,
}

impl Work<'_> {
    fn is_waiting(&self) -> bool {
        self.waiting.commits > 0 || self.syncing.is_some()
    }

    /// Commits a batch, which may be empty, and takes what is committed to the disk when it is time: beside the next
    /// commits, or at once where somebody waits for it.
    fn step(&mut self, batch: &mut Vec<Sent>, wish: Wish) -> Result<(), StoreError> {
        let urgent = wish >= Wish::Speed;
        if self.syncing.is_some()
            && let Some(result) = self.disk.as_ref().and_then(Disk::result)
        {
            self.synced(result)?;
        }
        let had_traffic = !batch.is_empty();
        let refused = if had_traffic { self.commit(batch)? } else { None };
        if urgent || refused.is_some() {
            if self.syncing.is_some()
                && let Some(result) = self.disk.as_ref().map(Disk::wait)
            {
                self.synced(result)?;
            }
            self.batches.sync()?;
            let waiting = mem::take(&mut self.waiting);
            self.durable(waiting, refused);
        } else if self.syncing.is_none()
            && self.waiting.commits > 0
            && (!had_traffic || self.waiting.commits >= COMMITS_A_SYNC)
        {
            let disk = match self.disk.take() {
                Some(disk) => disk,
                None => Disk::start()?,
            };
            disk.begin(self.batches.log()?);
            self.disk = Some(disk);
            self.syncing = Some(mem::take(&mut self.waiting));
        }
        if self.carrier.step(self.batches.path(), urgent)? {
            self.batches.carry_over();
        }
        if wish == Wish::Quiet {
            self.carrier.use_quiet(self.batches.path())?;
        }
        Ok(())
    }

    /// Commits a batch. Returns why an entry was left out, if one was.
    fn commit(&mut self, batch: &mut Vec<Sent>) -> Result<Option<StoreError>, StoreError> {
        let committed = self.batches.write(batch)?;
        self.waiting.tokens.extend(committed.tokens);
        self.waiting.entries += u64::try_from(batch.len()).unwrap_or(0);
        self.waiting.commits += 1;
        let attempts = batch.iter().filter(|(_, entry)| entry.is_attempt()).count();
        self.carrier.add(attempts, batch.iter().map(|(_, entry)| entry.long_bytes()).sum());
        batch.clear();
        if attempts > 0 {
            CrashPoint::AttemptsKept.pass();
        }
        self.waiting.attempts += attempts;
        (self.on_commit)(Ok(Written::Kept(u32::try_from(attempts).unwrap_or(u32::MAX))));
        Ok(committed.refused)
    }

    /// A sync that was begun is over.
    fn synced(&mut self, result: io::Result<()>) -> Result<(), StoreError> {
        self.batches.synced(result)?;
        if let Some(synced) = self.syncing.take() {
            self.durable(synced, None);
        }
        Ok(())
    }

    /// These are on disk; an entry that was left out of them ends the writing.
    fn durable(&self, waiting: Waiting, refused: Option<StoreError>) {
        let Waiting { tokens, entries, attempts, .. } = waiting;
        if attempts > 0 {
            CrashPoint::AttemptsDurable.pass();
        }
        (self.on_commit)(Ok(Written::Durable(tokens)));
        if let Some(error) = refused {
            let error = Arc::new(error);
            self.shared.fail(&error);
            (self.on_commit)(Err(error));
        }
        self.shared.lock().written += entries;
        self.shared.done.notify_all();
    }
}

/// Waits for the next batch, and says what is wished; `None` when the writer is closed and nothing is left. Traffic is
/// gathered for a while after each commit. Without any, the batch is empty while something waits for the disk, and where
/// quiet begins; else the thread sleeps until a push wakes it, and takes that push at once.
fn take(shared: &Shared, batch: &mut Vec<Sent>, is_waiting: bool) -> Option<Wish> {
    let mut state = shared.lock();
    if state.pushed > 0 {
        let waited = shared.work.wait_timeout_while(state, PACE, |state| state.wish < Wish::Speed);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    while state.buffer.is_empty() && !is_waiting && !matches!(state.wish, Wish::Quiet | Wish::End) {
        state.wish = Wish::Usual;
        state.idle = true;
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
    state.idle = false;
    let wish = state.wish;
    if wish < Wish::End {
        state.wish = Wish::Usual;
    }
    mem::swap(batch, &mut state.buffer);
    (!batch.is_empty() || is_waiting || wish == Wish::Quiet).then_some(wish)
}

fn wait_for_close(shared: &Shared) {
    let mut state = shared.lock();
    while state.wish < Wish::End {
        state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests;
