//! CSV: the input's columns, then the answer's, then the result's.

use std::fmt;
use std::io::{self, Write};

use csv::{QuoteStyle, Terminator, WriterBuilder};

use crate::model::{Header, InputRow, LineEnd, OutputSettings, RowContent, RowResult};
use crate::output::columns::{answer_names, result_names};
use crate::output::members::Names;
use crate::output::value::{cell, decimal, neutral};

const BUFFER: usize = 64 * 1024;

/// Writes one record a row. The header is written before the first row, and at the end if there is none.
pub struct CsvWriter<W: Write> {
    writer: csv::Writer<W>,
    /// The header until it is written.
    header: Option<Vec<String>>,
    /// Whether the input has columns at all: an empty CSV file has not even a header.
    has_columns: bool,
    input: Names,
    width: usize,
    answer: Option<Names>,
    is_safe: bool,
    has_cost: bool,
}

impl<W: Write> CsvWriter<W> {
    /// A writer of records that end as `line_end` says. `header` are the columns of the input, `answer_columns` the
    /// properties of the answer; none of them: one column `answer` holds all of it.
    pub fn new(
        settings: &OutputSettings,
        delimiter: u8,
        header: Option<&Header>,
        answer_columns: &[String],
        line_end: LineEnd,
        writer: W,
    ) -> Self {
        let columns = header.map_or(&[][..], |names| &names[..]);
        let names = columns
            .iter()
            .cloned()
            .chain(answer_names(settings, answer_columns))
            .chain(result_names(settings))
            .collect();
        let terminator = match line_end {
            LineEnd::Lf => Terminator::Any(b'\n'),
            LineEnd::CrLf => Terminator::CRLF,
        };
        let writer = WriterBuilder::new()
            .delimiter(delimiter)
            .terminator(terminator)
            .quote_style(QuoteStyle::Necessary)
            .buffer_capacity(BUFFER)
            .from_writer(writer);
        Self {
            writer,
            header: Some(names),
            has_columns: header.is_some(),
            input: Names::new(columns),
            width: columns.len(),
            answer: (!answer_columns.is_empty()).then(|| Names::new(answer_columns)),
            is_safe: settings.csv_safe,
            has_cost: settings.accounting,
        }
    }

    /// Writes a row with its result.
    pub fn write(&mut self, row: &InputRow, result: &RowResult) -> io::Result<()> {
        self.write_header()?;
        match &row.content {
            RowContent::Fields(values) => {
                for at in 0..self.width {
                    self.put(values.get(at).map_or("", AsRef::as_ref))?;
                }
            }
            RowContent::Object(line) => {
                for value in self.input.values(line) {
                    self.put(&value.map(cell).unwrap_or_default())?;
                }
            }
            RowContent::Bad { raw, .. } => {
                for at in 0..self.width {
                    self.put(if at == 0 { raw } else { "" })?;
                }
            }
        }
        self.write_answer(result.answer.as_ref().map(|answer| answer.text.as_str()))?;
        self.put(result.status.as_str())?;
        self.put(result.reason.as_str())?;
        self.put(&result.confidence.map(decimal).unwrap_or_default())?;
        self.put(&result.agreement.map(decimal).unwrap_or_default())?;
        self.put(result.error.as_deref().unwrap_or_default())?;
        if self.has_cost {
            self.put(&result.usage.cost.map(|cost| cost.to_string()).unwrap_or_default())?;
        }
        self.end_record()
    }

    fn write_answer(&mut self, answer: Option<&str>) -> io::Result<()> {
        let values = match (&self.answer, answer) {
            (Some(names), Some(text)) => names.values(text),
            (Some(names), None) => vec![None; names.len()],
            (None, text) => vec![text],
        };
        values.into_iter().try_for_each(|value| self.put(&value.map(cell).unwrap_or_default()))
    }

    /// Puts out what is buffered, so that a reader of a stream sees it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Writes the header if no row has, puts out what is buffered, and gives the place back.
    pub fn into_inner(mut self) -> io::Result<W> {
        if self.has_columns {
            self.write_header()?;
        }
        self.flush()?;
        self.writer.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn write_header(&mut self) -> io::Result<()> {
        let Some(names) = self.header.take() else { return Ok(()) };
        for name in names {
            self.put(&name)?;
        }
        self.end_record()
    }

    fn put(&mut self, value: &str) -> io::Result<()> {
        let written = if self.is_safe {
            self.writer.write_field(neutral(value).as_bytes())
        } else {
            self.writer.write_field(value)
        };
        written.map_err(io_error)
    }

    fn end_record(&mut self) -> io::Result<()> {
        self.writer.write_record(None::<&[u8]>).map_err(io_error)
    }
}

fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

impl<W: Write> fmt::Debug for CsvWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvWriter")
            .field("input", &self.input)
            .field("answer", &self.answer)
            .finish_non_exhaustive()
    }
}
