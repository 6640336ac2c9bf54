//! The last stretch of an output: as it is, or compressed.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// How many bytes of a regular file may wait for the disk.
const UNSYNCED: usize = 4 << 20;

/// An open output. What is written to it is complete only after `finish`.
pub struct Sink(Form);

enum Form {
    Plain(Steady),
    Gzip(GzEncoder<Steady>),
    Zstd(zstd::Encoder<'static, Steady>),
}

/// A regular file goes to the disk as it grows, so that little of it is left to go there at the end.
struct Steady {
    file: File,
    /// Bytes that wait for the disk; `None` for what is no regular file.
    unsynced: Option<usize>,
}

impl Write for Steady {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        if let Some(unsynced) = &mut self.unsynced {
            *unsynced += count;
            if *unsynced >= UNSYNCED {
                self.file.sync_data()?;
                *unsynced = 0;
            }
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Sink {
    /// Into a file or a stream as the name says: compressed where it ends in `.gz` or `.zst`, else as it is.
    pub(super) fn new(name: &Path, file: File, is_regular: bool) -> io::Result<Self> {
        let file = Steady { file, unsynced: is_regular.then_some(0) };
        let extension = name.extension().and_then(|text| text.to_str()).map(str::to_ascii_lowercase);
        Ok(Self(match extension.as_deref() {
            Some("gz") => Form::Gzip(GzEncoder::new(file, Compression::default())),
            Some("zst") => {
                let mut encoder = zstd::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                Form::Zstd(encoder)
            }
            _ => Form::Plain(file),
        }))
    }

    /// Into a stream, as it is.
    pub(super) fn plain(file: File) -> Self {
        Self(Form::Plain(Steady { file, unsynced: None }))
    }

    /// Writes what ends a compressed file: its checksum and its length.
    pub(super) fn finish(self) -> io::Result<()> {
        match self.0 {
            Form::Plain(mut file) => file.flush(),
            Form::Gzip(encoder) => encoder.finish().map(drop),
            Form::Zstd(encoder) => encoder.finish().map(drop),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Plain(file) => file.write(bytes),
            Form::Gzip(encoder) => encoder.write(bytes),
            Form::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Form::Plain(file) => file.flush(),
            Form::Gzip(encoder) => encoder.flush(),
            Form::Zstd(encoder) => encoder.flush(),
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.0 {
            Form::Plain(_) => "plain",
            Form::Gzip(_) => "gzip",
            Form::Zstd(_) => "zstd",
        };
        f.debug_tuple("Sink").field(&form).finish()
    }
}
