//! JSONL: the input line with one member more.

use std::io::{self, BufWriter, Write};

use crate::model::{Header, InputRow, OutputSettings, RowContent, RowResult, RowUsage};
use crate::output::value::decimal;

const BUFFER: usize = 64 * 1024;

/// Writes one JSON object a line.
#[derive(Debug)]
pub struct JsonlWriter<W: Write> {
    writer: BufWriter<W>,
    line: Vec<u8>,
    /// `"verify":`, and the names of CSV columns, as JSON with their colons.
    field: Vec<u8>,
    columns: Vec<Vec<u8>>,
    has_usage: bool,
}

impl<W: Write> JsonlWriter<W> {
    /// A writer of lines. `header` names the values of rows from CSV.
    pub fn new(settings: &OutputSettings, header: Option<&Header>, writer: W) -> Self {
        let key = |name: &str| {
            let mut key = Vec::with_capacity(name.len() + 3);
            string(&mut key, name);
            key.push(b':');
            key
        };
        Self {
            writer: BufWriter::with_capacity(BUFFER, writer),
            line: Vec::with_capacity(1024),
            field: key(&settings.result_field),
            columns: header.map(|names| names.iter().map(|name| key(name)).collect()).unwrap_or_default(),
            has_usage: settings.accounting,
        }
    }

    /// Writes a row with its result.
    pub fn write(&mut self, row: &InputRow, result: &RowResult) -> io::Result<()> {
        self.line.clear();
        let is_empty = self.open_object(&row.content);
        if !is_empty {
            self.line.push(b',');
        }
        self.line.extend_from_slice(&self.field);
        result_object(&mut self.line, result, self.has_usage.then_some(&result.usage));
        self.line.extend_from_slice(b"}\n");
        self.writer.write_all(&self.line)
    }

    /// Puts out what is buffered, so that a reader of a stream sees it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    /// Puts out what is buffered, and gives the place back.
    pub fn into_inner(self) -> io::Result<W> {
        self.writer.into_inner().map_err(io::IntoInnerError::into_error)
    }

    /// The row's object without its last `}`; whether it has no members.
    fn open_object(&mut self, content: &RowContent) -> bool {
        match content {
            RowContent::Object(object) => {
                let open = object.trim_end().strip_suffix('}').unwrap_or(object);
                self.line.extend_from_slice(open.as_bytes());
                open.trim() == "{"
            }
            RowContent::Fields(values) => {
                self.line.push(b'{');
                for (at, (key, value)) in self.columns.iter().zip(values).enumerate() {
                    if at > 0 {
                        self.line.push(b',');
                    }
                    self.line.extend_from_slice(key);
                    string(&mut self.line, value);
                }
                self.columns.is_empty()
            }
            RowContent::Bad { raw, .. } => {
                self.line.extend_from_slice(b"{\"raw\":");
                string(&mut self.line, raw);
                false
            }
        }
    }
}

/// The object that says what became of a row, its members in their fixed order.
fn result_object(line: &mut Vec<u8>, result: &RowResult, usage: Option<&RowUsage>) {
    line.extend_from_slice(b"{\"row\":");
    put(line, result.row);
    line.extend_from_slice(b",\"id\":");
    raw_or_null(line, result.id.as_deref());
    line.extend_from_slice(b",\"status\":\"");
    line.extend_from_slice(result.status.as_str().as_bytes());
    line.extend_from_slice(b"\",\"reason\":\"");
    line.extend_from_slice(result.reason.as_str().as_bytes());
    line.extend_from_slice(b"\",\"answer\":");
    raw_or_null(line, result.answer.as_ref().map(|answer| answer.text.as_str()));
    line.extend_from_slice(b",\"confidence\":");
    raw_or_null(line, result.confidence.map(decimal).as_deref());
    line.extend_from_slice(b",\"agreement\":");
    raw_or_null(line, result.agreement.map(decimal).as_deref());
    let samples = result.samples;
    let extracted = result.answer.as_ref().is_some_and(|answer| answer.extracted);
    put(
        line,
        format_args!(
            ",\"samples\":{{\"planned\":{},\"made\":{},\"valid\":{}}},\"extracted\":{extracted},\"model\":",
            samples.planned, samples.made, samples.valid
        ),
    );
    string_or_null(line, result.model.as_deref());
    line.extend_from_slice(b",\"error\":");
    string_or_null(line, result.error.as_deref());
    if let Some(usage) = usage {
        put(
            line,
            format_args!(
                ",\"usage\":{{\"attempts\":{},\"cached\":{},\"input\":{},\"cached_input\":{},\"output\":{},\"cost_usd\":",
                usage.attempts, usage.cached, usage.input, usage.cached_input, usage.output
            ),
        );
        match usage.cost {
            Some(cost) => put(line, cost),
            None => line.extend_from_slice(b"null"),
        }
        put(line, format_args!(",\"estimated\":{}}}", usage.estimated));
    }
    line.push(b'}');
}

/// Writing into memory cannot fail.
fn put(line: &mut Vec<u8>, value: impl std::fmt::Display) {
    let _ = write!(line, "{value}");
}

fn string(line: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(line, text);
}

fn raw_or_null(line: &mut Vec<u8>, json: Option<&str>) {
    line.extend_from_slice(json.unwrap_or("null").as_bytes());
}

fn string_or_null(line: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => string(line, text),
        None => line.extend_from_slice(b"null"),
    }
}
