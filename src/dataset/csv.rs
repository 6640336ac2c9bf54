//! Records of CSV: RFC 4180, with line ends of either kind.

use csv_core::{ReadRecordResult, ReaderBuilder, Terminator};

use crate::dataset::feed::Feed;
use crate::dataset::records::{Fault, Stopped};

/// Cuts CSV records out of a feed. Boundaries and unquoting are `csv-core`'s; this file keeps the count of bytes,
/// so that a record is bounded and its raw text is at hand.
pub(super) struct CsvReader {
    core: csv_core::Reader,
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// Fields of the current record.
    count: usize,
    /// Whether the current record ends within quotes.
    open: bool,
}

impl CsvReader {
    pub(super) fn new(delimiter: u8) -> Self {
        // Only LF ends a record for `csv-core`; the CR before it is cut off below. Its own CRLF mode would take a
        // lone CR for a line end, which RFC 4180 does not know.
        let core = ReaderBuilder::new().delimiter(delimiter).terminator(Terminator::Any(b'\n')).build();
        Self { core, fields: vec![0; 4096], ends: vec![0; 64], count: 0, open: false }
    }

    /// Finds the next record, which then begins at the feed's first unread byte. Its length with its line end;
    /// `None` at the end of the file.
    pub(super) fn find(&mut self, feed: &mut Feed, most: usize) -> Result<Option<usize>, Stopped> {
        if !skip_blank_lines(feed)? {
            return Ok(None);
        }
        (self.count, self.open) = (0, false);
        let (mut scanned, mut written, mut ended) = (0, 0, false);
        loop {
            let unread = if ended { b"\n".as_slice() } else { &feed.unread()[scanned..] };
            let (result, taken, bytes, fields) =
                self.core.read_record(unread, &mut self.fields[written..], &mut self.ends[self.count..]);
            written += bytes;
            self.count += fields;
            if !ended {
                scanned += taken;
            }
            if scanned > most.saturating_add(2) {
                return Err(Stopped::TooLong);
            }
            match result {
                ReadRecordResult::Record => break,
                ReadRecordResult::OutputFull => self.fields.resize(self.fields.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                // The line end that stands in for a missing last one went into a field: its quotes are open.
                ReadRecordResult::InputEmpty if ended => {
                    self.open = true;
                    self.core.reset();
                    break;
                }
                ReadRecordResult::InputEmpty => ended = !feed.fill()?,
                ReadRecordResult::End => return Ok(None),
            }
        }
        let raw = feed.unread().get(..scanned).unwrap_or_default();
        if without_line_end(raw).len() > most {
            return Err(Stopped::TooLong);
        }
        // An unquoted CR before the line end was taken into the last field.
        let has_cr = raw.strip_suffix(b"\n").unwrap_or(raw).ends_with(b"\r");
        if has_cr
            && !self.open
            && let Some(last) = self.ends.get_mut(self.count.saturating_sub(1))
        {
            *last = last.saturating_sub(1);
        }
        Ok(Some(scanned))
    }

    /// The unquoted values of the record that was found last, with empty ones up to `width`.
    pub(super) fn values(&self, width: Option<usize>) -> Result<Vec<Box<str>>, Fault> {
        if self.open {
            return Err(Fault::new("a quoted field is not closed before the end of the file"));
        }
        let width = width.unwrap_or(self.count);
        if self.count > width {
            return Err(self.wrong_width(width));
        }
        let mut values = Vec::with_capacity(width);
        let mut start = 0;
        for &end in &self.ends[..self.count] {
            let bytes = self.fields.get(start..end).unwrap_or_default();
            // The raw record is known to be UTF-8, and cutting ASCII bytes out of it leaves it so.
            values.push(Box::from(String::from_utf8_lossy(bytes)));
            start = end;
        }
        values.resize(width, Box::from(""));
        Ok(values)
    }

    /// How many values the record has.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// What is wrong with a record of another width.
    pub(super) fn wrong_width(&self, expected: usize) -> Fault {
        Fault::new(format!("expected {expected} fields, found {}", self.count))
    }

    /// Whether the record ends within quotes.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

/// A record without its LF or CRLF.
pub(super) fn without_line_end(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

/// Moves to the next line that is not empty; `false` at the end of the file.
fn skip_blank_lines(feed: &mut Feed) -> Result<bool, Stopped> {
    loop {
        match feed.unread() {
            [b'\n', ..] => feed.consume(1),
            [b'\r', b'\n', ..] => feed.consume(2),
            [] => {
                if !feed.fill()? {
                    return Ok(false);
                }
            }
            [b'\r'] => {
                if !feed.fill()? {
                    feed.consume(1);
                    return Ok(false);
                }
            }
            _ => return Ok(true),
        }
    }
}
