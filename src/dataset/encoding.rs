//! From the bytes of a file to UTF-8.

use std::io::{self, Cursor, Read};

use encoding_rs::{Decoder, DecoderResult};

use crate::dataset::feed::line_ends;
use crate::model::Encoding;

/// Why the chain of readers gave up; travels inside an `io::Error`.
#[derive(Debug, thiserror::Error)]
pub(super) enum TextFault {
    #[error("bytes that are not {encoding}")]
    Undecodable { line: u64, offset: u64, encoding: &'static str },
    #[error("compressed with {0}")]
    Compressed(&'static str),
    #[error("the {with} archive {what}")]
    Damaged { with: &'static str, what: &'static str },
}

/// A file as text.
pub(super) struct Text {
    /// The text. It is known to be UTF-8 only if it went through a decoder: else it is the file's own bytes.
    pub(super) bytes: Box<dyn Read + Send>,
    /// Bytes of the file before the text: its UTF-8 BOM, or nothing.
    pub(super) before: &'static [u8],
}

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// Puts a decoder behind `raw` where one is needed. A BOM of UTF-8 is taken off.
pub(super) fn text_of(mut raw: Box<dyn Read + Send>, encoding: Encoding) -> io::Result<Text> {
    let mut head = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut head)?;
    let compressed = match head.as_slice() {
        [0x1F, 0x8B, ..] => Some("gzip"),
        [0x28, 0xB5, 0x2F, 0xFD] => Some("zstd"),
        _ => None,
    };
    if let Some(with) = compressed {
        return Err(fault(TextFault::Compressed(with)));
    }
    let is_utf8 = head.starts_with(UTF8_BOM);
    let decoder = match encoding {
        Encoding::Unicode if head.starts_with(b"\xFF\xFE") => Some(encoding_rs::UTF_16LE.new_decoder()),
        Encoding::Unicode if head.starts_with(b"\xFE\xFF") => Some(encoding_rs::UTF_16BE.new_decoder()),
        // A BOM outweighs the label, as in browsers: no other encoding begins a text with these bytes.
        Encoding::Named(named) if named != encoding_rs::UTF_8 && !is_utf8 => Some(named.new_decoder()),
        Encoding::Unicode | Encoding::Named(_) => None,
    };
    let skip = if is_utf8 { UTF8_BOM.len() } else { 0 };
    let mut start = Cursor::new(head);
    start.set_position(skip as u64);
    let whole = start.chain(raw);
    Ok(match decoder {
        Some(decoder) => Text { bytes: Box::new(Decoding::new(Box::new(whole), decoder)), before: b"" },
        None => Text { bytes: Box::new(whole), before: if is_utf8 { UTF8_BOM } else { b"" } },
    })
}

fn fault(fault: TextFault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, fault)
}

/// A reader that decodes. Malformed bytes are an error only after the text before them was read.
struct Decoding {
    raw: Box<dyn Read + Send>,
    decoder: Decoder,
    input: Vec<u8>,
    at: usize,
    filled: usize,
    /// Offset in the file of the first byte of `input`.
    base: u64,
    lines: u64,
    raw_ended: bool,
    finished: bool,
    malformed: Option<u64>,
}

impl Decoding {
    const INPUT: usize = 64 * 1024;
    /// A decoder needs room for one character at least; nobody reads with less than this.
    const LEAST_ROOM: usize = 32;

    fn new(raw: Box<dyn Read + Send>, decoder: Decoder) -> Self {
        Self {
            raw,
            decoder,
            input: vec![0; Self::INPUT],
            at: 0,
            filled: 0,
            base: 0,
            lines: 0,
            raw_ended: false,
            finished: false,
            malformed: None,
        }
    }
}

impl Read for Decoding {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.len() < Self::LEAST_ROOM {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "too little room to decode into"));
        }
        loop {
            if let Some(offset) = self.malformed {
                let encoding = self.decoder.encoding().name();
                return Err(fault(TextFault::Undecodable { line: self.lines + 1, offset, encoding }));
            }
            if self.finished {
                return Ok(0);
            }
            if self.at == self.filled && !self.raw_ended {
                self.base += self.filled as u64;
                self.at = 0;
                self.filled = 0;
                self.filled = self.raw.read(&mut self.input)?;
                self.raw_ended = self.filled == 0;
            }
            let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
                &self.input[self.at..self.filled],
                out,
                self.raw_ended,
            );
            self.at += read;
            self.lines += line_ends(&out[..written]);
            match result {
                DecoderResult::InputEmpty => self.finished = self.raw_ended,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(length, after) => {
                    let behind = u64::from(length) + u64::from(after);
                    self.malformed = Some((self.base + self.at as u64).saturating_sub(behind));
                }
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}
