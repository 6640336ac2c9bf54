//! Reading ahead: a large file's bytes are fetched and digested on a thread of their own while its rows are looked into.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Bytes of a block.
const BLOCK: usize = 256 * 1024;
/// Blocks that are read and not yet asked for, at most.
const BLOCKS: usize = 4;

/// What the thread `ahead` reads. It ends when this is dropped.
pub(super) struct Ahead {
    /// Absent only while this is dropped.
    blocks: Option<Receiver<io::Result<Vec<u8>>>>,
    /// Blocks that may be filled again.
    used: SyncSender<Vec<u8>>,
    block: Vec<u8>,
    start: usize,
    /// The last block has come, or an error.
    is_over: bool,
    thread: Option<JoinHandle<()>>,
}

impl Ahead {
    /// Begins to read.
    pub(super) fn new(source: impl Read + Send + 'static) -> io::Result<Self> {
        let (sender, blocks) = sync_channel(BLOCKS);
        let (used, free) = sync_channel(BLOCKS + 2);
        let reading = thread::Builder::new().name("ahead".to_owned());
        let thread = reading.spawn(move || read(source, &sender, &free))?;
        Ok(Self {
            blocks: Some(blocks),
            used,
            block: Vec::new(),
            start: 0,
            is_over: false,
            thread: Some(thread),
        })
    }
}

/// Sends block after block, the last one empty, or what keeps it from that.
fn read(mut source: impl Read, blocks: &SyncSender<io::Result<Vec<u8>>>, free: &Receiver<Vec<u8>>) {
    loop {
        let mut block = free.try_recv().unwrap_or_default();
        block.clear();
        let read = source.by_ref().take(BLOCK as u64).read_to_end(&mut block);
        let is_last = !matches!(read, Ok(count) if count > 0);
        // Whoever asked has gone if it cannot be sent.
        if blocks.send(read.map(|_| block)).is_err() || is_last {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.start == self.block.len() {
            if self.is_over {
                return Ok(0);
            }
            let next = self.blocks.as_ref().and_then(|blocks| blocks.recv().ok());
            // A thread that ends without a last block has panicked.
            let next = next.unwrap_or_else(|| Err(io::Error::other("the thread that reads ahead has ended")));
            self.is_over = next.as_ref().map_or(true, Vec::is_empty);
            let used = std::mem::replace(&mut self.block, next?);
            self.start = 0;
            // A thread that is through needs no blocks.
            let _ = self.used.try_send(used);
        }
        let rest = &self.block[self.start..];
        let count = rest.len().min(out.len());
        out[..count].copy_from_slice(&rest[..count]);
        self.start += count;
        Ok(count)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.blocks = None;
        if let Some(thread) = self.thread.take() {
            // A panic of it has been told as an error.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_ahead_is_what_is_there() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 17).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut read = Vec::new();
        Ahead::new(io::Cursor::new(bytes.clone())).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        let mut part = [0; 10];
        Ahead::new(io::Cursor::new(bytes.clone())).unwrap().read_exact(&mut part).unwrap();
        assert_eq!(part, bytes[..10]);
    }

    #[test]
    fn a_reader_that_panics_is_no_end_of_the_file() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("as it should")
            }
        }
        assert!(Ahead::new(Panics).unwrap().read_to_end(&mut Vec::new()).is_err());
    }

    #[test]
    fn an_error_comes_after_what_was_read_before_it() {
        struct Broken(usize);
        impl Read for Broken {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(1).ok_or(io::Error::other("gone"))?;
                out[0] = b'x';
                Ok(1)
            }
        }
        let mut ahead = Ahead::new(Broken(BLOCK + 1)).unwrap();
        let mut first = vec![0; BLOCK];
        ahead.read_exact(&mut first).unwrap();
        let error = ahead.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), "gone");
        assert_eq!(ahead.read(&mut first).unwrap(), 0);
    }
}
