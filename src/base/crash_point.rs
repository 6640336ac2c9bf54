//! The moments at which a test lets the process die.
//!
//! They lie on the arrows of the order of durability (`docs/guarantees.md`). Only a build with the feature
//! `crash-points` can die at them: in every other one, passing a point is nothing at all.

/// A moment between two steps that a crash must not part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The job's lock is held, and the store is not open yet.
    LockTaken,
    /// The tables of a new or older store are written, and not committed.
    StoreMigrating,
    /// The store has its format.
    StoreMigrated,
    /// The run is found or made, and its execution is noted.
    RunOpened,
    /// What a dead execution may have spent is in the book, and its notes are still there.
    DeadCarried,
    /// The lease of this execution is on disk and allows nothing yet.
    LeaseBegun,
    /// A lease that allows more is on disk.
    LeaseTaken,
    /// A draw on the lease is noted, and its request has not gone.
    DrawNoted,
    /// A request is about to go.
    CallSending,
    /// A reply is read, and nothing of it is stored.
    CallAnswered,
    /// Attempts are written, and not committed.
    AttemptsWriting,
    /// Attempts are committed, and the disk need not have them.
    AttemptsKept,
    /// The disk has the attempts of all commits so far.
    AttemptsDurable,
    /// A row is done.
    RowDone,
    /// The temporary file of the output is there and empty.
    OutputBegun,
    /// A line of the output is written.
    OutputLine,
    /// The temporary file is complete, and the disk need not have it.
    OutputWritten,
    /// The output is on disk under its temporary name.
    OutputSynced,
    /// The output has its name.
    OutputRenamed,
    /// The thread that writes has ended, and the lease is still there.
    WriterClosed,
    /// The lease is gone, and its notes are still there.
    LeaseEnded,
    /// The run is closed, and its summary is not stored.
    RunClosed,
    /// The summary is stored, and the log is not carried over.
    SummaryStored,
    /// The log is carried over into the one file, and the lock is still held.
    StoreCheckpointed,
}

impl CrashPoint {
    /// All of them, in the order in which a run passes them.
    pub const ALL: [Self; 24] = [
        Self::LockTaken,
        Self::StoreMigrating,
        Self::StoreMigrated,
        Self::RunOpened,
        Self::DeadCarried,
        Self::LeaseBegun,
        Self::LeaseTaken,
        Self::DrawNoted,
        Self::CallSending,
        Self::CallAnswered,
        Self::AttemptsWriting,
        Self::AttemptsKept,
        Self::AttemptsDurable,
        Self::RowDone,
        Self::OutputBegun,
        Self::OutputLine,
        Self::OutputWritten,
        Self::OutputSynced,
        Self::OutputRenamed,
        Self::WriterClosed,
        Self::LeaseEnded,
        Self::RunClosed,
        Self::SummaryStored,
        Self::StoreCheckpointed,
    ];

    /// Dies here, if this is the passing that a test has asked for.
    #[cfg(feature = "crash-points")]
    pub fn pass(self) {
        armed::pass(self);
    }

    /// Nothing: this build has no crash points.
    #[cfg(not(feature = "crash-points"))]
    #[inline]
    pub const fn pass(self) {
        let _ = self;
    }

    /// Asks for a death at a point, as in `AttemptsKept:3` for the third time that it is passed. Whether the text names
    /// one; only the first call counts.
    #[cfg(feature = "crash-points")]
    pub fn arm(text: &str) -> bool {
        armed::arm(text)
    }
}

#[cfg(feature = "crash-points")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::CrashPoint;

    static ARMED: OnceLock<(CrashPoint, AtomicU64)> = OnceLock::new();

    pub(super) fn arm(text: &str) -> bool {
        let (name, passing) = text.split_once(':').unwrap_or((text, "1"));
        let point = CrashPoint::ALL.into_iter().find(|point| format!("{point:?}") == name);
        let (Some(point), Ok(passing)) = (point, passing.parse()) else { return false };
        ARMED.set((point, AtomicU64::new(passing))).is_ok()
    }

    pub(super) fn pass(point: CrashPoint) {
        if let Some((armed, left)) = ARMED.get()
            && *armed == point
            && left.fetch_sub(1, Ordering::SeqCst) == 1
        {
            // No destructor runs and no buffer is written, in this thread or another: as with SIGKILL.
            std::process::abort();
        }
    }
}
