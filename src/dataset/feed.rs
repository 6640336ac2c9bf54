//! The text of a file as one moving window.

use std::io::{self, Read};

use crate::base::Digest;

/// Bytes that are asked for at once; the window is never smaller.
const STEP: usize = 256 * 1024;

/// The decoded bytes of a file, read ahead into one buffer out of which records are cut. The buffer grows only as
/// far as the longest record asks for.
pub(super) struct Feed {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
    lines: u64,
    hasher: Option<Box<blake3::Hasher>>,
}

impl Feed {
    /// A feed of `source`. `before` are bytes of the file that precede its text (a BOM). With `digested`, the bytes
    /// that are consumed are digested, those of `before` first.
    pub(super) fn new(source: Box<dyn Read + Send>, before: &[u8], digested: bool) -> Self {
        let hasher = digested.then(|| {
            let mut hasher = Box::new(blake3::Hasher::new());
            hasher.update(before);
            hasher
        });
        Self {
            source,
            buffer: vec![0; STEP],
            start: 0,
            end: 0,
            offset: before.len() as u64,
            lines: 0,
            hasher,
        }
    }

    /// What is read and not consumed.
    pub(super) fn unread(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads more; `false` at the end of the file.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.buffer.len() - self.end < STEP / 4 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            if self.buffer.len() - self.end < STEP / 4 {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves past the first `count` unread bytes.
    pub(super) fn consume(&mut self, count: usize) {
        let upto = self.end.min(self.start + count);
        let gone = &self.buffer[self.start..upto];
        self.lines += line_ends(gone);
        self.offset += gone.len() as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(gone);
        }
        self.start = upto;
    }

    /// The line at which the unread bytes begin, from 1.
    pub(super) fn line(&self) -> u64 {
        self.lines + 1
    }

    /// Offset of the first unread byte, from 0; in the file where the text is UTF-8, else in the text.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The digest of what was consumed, if it was to be taken.
    pub(super) fn digest(&self) -> Option<Digest> {
        self.hasher.as_ref().and_then(|hasher| Digest::from_bytes(hasher.finalize().as_bytes()))
    }
}

/// Line feeds in `bytes`.
pub(super) fn line_ends(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
