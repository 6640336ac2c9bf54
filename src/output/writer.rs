//! A writer of either format.

use std::io::Write;

use crate::base::CrashPoint;
use crate::model::{Header, InputRow, LineEnd, OutputFormat, OutputSettings, RowResult};
use crate::output::{CsvWriter, JsonlWriter, OutputError, Sink};

/// Joins input rows with their results and writes them, in the order in which they are given. Buffered: call
/// [`OutputWriter::close`] at the end.
#[derive(Debug)]
pub struct OutputWriter<W: Write> {
    name: String,
    format: Format<W>,
}

#[derive(Debug)]
enum Format<W: Write> {
    Csv(Box<CsvWriter<W>>),
    Jsonl(Box<JsonlWriter<W>>),
}

impl<W: Write> OutputWriter<W> {
    /// A writer to `writer` in the format of the settings.
    ///
    /// - `header`: the columns of a CSV input; for CSV out of JSONL those that a
    ///   [`crate::output::ColumnCollector`] has gathered. `None` where the input has none.
    /// - `answer_columns`: the top-level properties of the schema; none of them: one column `answer`.
    /// - `line_end`: how CSV records end. JSONL always ends lines with LF.
    pub fn new(
        settings: &OutputSettings,
        header: Option<&Header>,
        answer_columns: &[String],
        line_end: LineEnd,
        writer: W,
    ) -> Self {
        let format = match settings.format {
            OutputFormat::Csv { delimiter } => {
                let writer = CsvWriter::new(settings, delimiter, header, answer_columns, line_end, writer);
                Format::Csv(Box::new(writer))
            }
            OutputFormat::Jsonl => Format::Jsonl(Box::new(JsonlWriter::new(settings, header, writer))),
        };
        let name =
            settings.path.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string());
        Self { name, format }
    }

    /// Writes a row with its result.
    pub fn write(&mut self, row: &InputRow, result: &RowResult) -> Result<(), OutputError> {
        match &mut self.format {
            Format::Csv(writer) => writer.write(row, result),
            Format::Jsonl(writer) => writer.write(row, result),
        }
        .map_err(|error| OutputError::writing(&self.name, error))?;
        CrashPoint::OutputLine.pass();
        Ok(())
    }

    /// Puts out what is buffered, so that the reader of a stream sees the rows so far.
    pub fn flush(&mut self) -> Result<(), OutputError> {
        match &mut self.format {
            Format::Csv(writer) => writer.flush(),
            Format::Jsonl(writer) => writer.flush(),
        }
        .map_err(|error| OutputError::writing(&self.name, error))
    }

    /// Ends the rows: a CSV without any gets its header, and everything buffered is put out.
    pub fn finish(self) -> Result<W, OutputError> {
        match self.format {
            Format::Csv(writer) => writer.into_inner(),
            Format::Jsonl(writer) => writer.into_inner(),
        }
        .map_err(|error| OutputError::writing(&self.name, error))
    }
}

impl OutputWriter<Sink> {
    /// Ends the output as a whole: the rows, and what ends a compressed file.
    pub fn close(self) -> Result<(), OutputError> {
        let name = self.name.clone();
        self.finish()?.finish().map_err(|error| OutputError::writing(&name, error))
    }
}
