//! Syncs of the log beside the commits.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use crate::store::StoreError;

/// The thread `disk`: takes the log to the disk while commits go on. A disk that stalls for a tenth of a second holds
/// up rows that wait to be done, and no answer that is to be kept. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Disk {
    asked: SyncSender<Arc<File>>,
    told: Receiver<io::Result<()>>,
}

impl Disk {
    /// Starts the thread. Errors: [`StoreError::Thread`].
    pub(super) fn start() -> Result<Self, StoreError> {
        let (asked, asks) = sync_channel::<Arc<File>>(1);
        let (tells, told) = sync_channel(1);
        thread::Builder::new()
            .name("disk".to_owned())
            .spawn(move || {
                for log in asks {
                    if tells.send(log.sync_data()).is_err() {
                        break;
                    }
                }
            })
            .map_err(|source| StoreError::Thread { source })?;
        Ok(Self { asked, told })
    }

    /// Begins to take all that was written to the log so far to the disk. One at a time: the result of the one before has
    /// been taken.
    pub(super) fn begin(&self, log: Arc<File>) {
        // A thread that is gone is found by whoever asks for its result.
        let _ = self.asked.send(log);
    }

    /// The result, if it is there.
    pub(super) fn result(&self) -> Option<io::Result<()>> {
        match self.told.try_recv() {
            Ok(result) => Some(result),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(gone())),
        }
    }

    /// Waits for the result.
    pub(super) fn wait(&self) -> io::Result<()> {
        self.told.recv().unwrap_or_else(|_| Err(gone()))
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that syncs the log has ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_told_when_it_is_over() {
        let disk = Disk::start().unwrap();
        assert!(disk.result().is_none());
        for _ in 0..3 {
            disk.begin(Arc::new(tempfile::tempfile().unwrap()));
            disk.wait().unwrap();
        }
        assert!(disk.result().is_none());
    }
}
