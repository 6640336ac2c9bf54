//! Records of either format, one after the other.

use std::io;

use crate::base::Digest;
use crate::dataset::DatasetError;
use crate::dataset::csv::{CsvReader, without_line_end};
use crate::dataset::encoding::{Text, TextFault};
use crate::dataset::feed::{Feed, line_ends};
use crate::dataset::jsonl;
use crate::model::{BadRows, Header, InputFormat, InputRow, InputSettings, LineEnd, Ragged, RowContent};

/// Why no record could be cut out of a feed.
pub(super) enum Stopped {
    Read(io::Error),
    TooLong,
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// What is wrong with a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The character on the record's line, from 1.
    pub(super) column: Option<u64>,
    /// A fragment.
    pub(super) what: String,
    /// Whether the record is malformed, so that a run does not start on it unless told to.
    pub(super) stops: bool,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { column: None, what: what.into(), stops: true }
    }

    fn sentence(&self) -> String {
        match self.column {
            Some(column) => format!("column {column}: {}", self.what),
            None => self.what.clone(),
        }
    }
}

/// A record, read.
pub(super) struct Parsed {
    pub(super) row: InputRow,
    /// What makes its content [`RowContent::Bad`].
    pub(super) fault: Option<Fault>,
    /// Whether empty values were added.
    pub(super) padded: bool,
    /// Whether a key at the top level occurs twice.
    pub(super) repeats_key: bool,
}

enum Shape {
    Csv(Box<CsvReader>),
    Jsonl,
}

/// The records of a file in order. Reading is lazy: nothing is read beyond the record asked for but what shares its
/// buffer, and nothing beyond it is looked at.
pub(super) struct Records {
    feed: Feed,
    shape: Shape,
    file: String,
    most: usize,
    ragged: Ragged,
    header: Option<Header>,
    /// All records that are read are known to be good.
    are_good: bool,
    line_end: LineEnd,
    row: u64,
    line: u64,
    /// Length of the current record with its line end.
    length: usize,
}

impl Records {
    /// Begins to read; of a CSV file, the header is read.
    pub(super) fn open(
        text: Text,
        settings: &InputSettings,
        file: &str,
        digested: bool,
    ) -> Result<Self, DatasetError> {
        let shape = match settings.format {
            InputFormat::Csv { delimiter } => Shape::Csv(Box::new(CsvReader::new(delimiter))),
            InputFormat::Jsonl => Shape::Jsonl,
        };
        let mut records = Self {
            feed: Feed::new(text.bytes, text.before, digested),
            shape,
            file: file.to_owned(),
            most: settings.max_record,
            ragged: settings.ragged,
            header: None,
            are_good: false,
            line_end: LineEnd::Lf,
            row: 0,
            line: 0,
            length: 0,
        };
        if matches!(records.shape, Shape::Csv(_)) && records.find()? {
            records.header = Some(records.read_header()?);
        }
        Ok(records)
    }

    /// The same, where an earlier pass over the same bytes has found no fault in the records that are to be read: lines of
    /// JSONL are not looked into again.
    pub(super) fn known_to_be_good(self) -> Self {
        Self { are_good: true, ..self }
    }

    fn read_header(&self) -> Result<Header, DatasetError> {
        let names = match &self.shape {
            Shape::Csv(reader) => reader.values(None),
            Shape::Jsonl => Ok(Vec::new()),
        };
        let names = names
            .map_err(|_| DatasetError::OpenHeader { file: self.file.clone(), line: self.line })?
            .into_iter()
            .map(String::from)
            .collect::<Vec<_>>();
        let mut seen = std::collections::HashMap::new();
        for (at, name) in names.iter().enumerate() {
            if let Some(first) = seen.insert(name.as_str(), at) {
                return Err(DatasetError::DuplicateColumn {
                    file: self.file.clone(),
                    name: name.clone(),
                    first: first + 1,
                    second: at + 1,
                });
            }
        }
        Ok(names.into())
    }

    /// Moves to the next row; `false` at the end of the file.
    pub(super) fn advance(&mut self) -> Result<bool, DatasetError> {
        let found = self.find()?;
        self.row += u64::from(found);
        Ok(found)
    }

    fn find(&mut self) -> Result<bool, DatasetError> {
        self.finish_record();
        let found = match &mut self.shape {
            Shape::Csv(reader) => reader.find(&mut self.feed, self.most),
            Shape::Jsonl => jsonl::find(&mut self.feed, self.most),
        };
        let first = self.line == 0;
        self.length = match found {
            Ok(Some(length)) => length,
            Ok(None) => return Ok(false),
            Err(Stopped::Read(error)) => return Err(read_error(&self.file, error)),
            Err(Stopped::TooLong) => {
                let is_header = matches!(self.shape, Shape::Csv(_)) && self.header.is_none();
                return Err(DatasetError::RecordTooLong {
                    file: self.file.clone(),
                    row: (!is_header).then_some(self.row + 1),
                    line: self.feed.line(),
                    limit: self.most,
                });
            }
        };
        self.line = self.feed.line();
        let record = &self.feed.unread()[..self.length];
        if first && record.ends_with(b"\r\n") {
            self.line_end = LineEnd::CrLf;
        }
        if let Err(error) = std::str::from_utf8(record) {
            let good = &record[..error.valid_up_to()];
            return Err(DatasetError::Undecodable {
                file: self.file.clone(),
                line: self.line + line_ends(good),
                offset: self.feed.offset() + good.len() as u64,
                encoding: "UTF-8",
            });
        }
        Ok(true)
    }

    fn finish_record(&mut self) {
        self.feed.consume(std::mem::take(&mut self.length));
    }

    /// The current row.
    pub(super) fn read(&self) -> Parsed {
        let record = &self.feed.unread()[..self.length];
        let raw = std::str::from_utf8(without_line_end(record)).unwrap_or_default();
        let (mut padded, mut repeats_key) = (false, false);
        let content = match &self.shape {
            Shape::Csv(reader) => {
                let width = self.header.as_ref().map_or(0, |header| header.len());
                let is_short = reader.count() < width && !reader.is_open();
                padded = is_short && self.ragged == Ragged::Pad;
                if is_short && !padded {
                    Err(reader.wrong_width(width))
                } else {
                    reader.values(Some(width)).map(RowContent::Fields)
                }
            }
            Shape::Jsonl => {
                let line = jsonl::trim(raw);
                let inspected = if self.are_good { Ok(false) } else { jsonl::inspect(line) };
                inspected.map_err(|fault| jsonl::place(fault, raw, line)).map(|repeats| {
                    repeats_key = repeats;
                    RowContent::Object(Box::from(line))
                })
            }
        };
        let (content, fault) = match content {
            Ok(content) => (content, None),
            Err(fault) => (RowContent::Bad { raw: Box::from(raw), why: fault.sentence() }, Some(fault)),
        };
        let row = InputRow { number: self.row, line: self.line, content };
        Parsed { row, fault, padded, repeats_key }
    }

    /// Number of the current row, 0 before the first.
    pub(super) fn row(&self) -> u64 {
        self.row
    }

    /// The column names of a CSV file.
    pub(super) fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// How the first record ends.
    pub(super) fn line_end(&self) -> LineEnd {
        self.line_end
    }

    /// Ends reading after the current record: the digest of all that was read to here, if it was to be taken.
    pub(super) fn digest(&mut self) -> Option<Digest> {
        self.finish_record();
        self.feed.digest()
    }
}

/// Whether this fault keeps a run from starting.
pub(super) fn stops(fault: &Fault, bad_rows: BadRows) -> bool {
    fault.stops && bad_rows == BadRows::Stop
}

/// What an error of the chain of readers means.
pub(super) fn read_error(file: &str, error: io::Error) -> DatasetError {
    let file = file.to_owned();
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TextFault>()) {
        Some(&TextFault::Undecodable { line, offset, encoding }) => {
            DatasetError::Undecodable { file, line, offset, encoding }
        }
        Some(&TextFault::Compressed(with)) => DatasetError::Compressed { file, with },
        Some(&TextFault::Damaged { with, what }) => DatasetError::Damaged { file, with, what },
        None => DatasetError::Unreadable { file, source: error },
    }
}
