//! Rows for a person to decide: the input, what the samples said, and room for the decision.

use std::io::{self, BufWriter, Write};

use csv::{QuoteStyle, Terminator, WriterBuilder};
use serde_json::{Map, Value, value::RawValue};

use crate::model::{Header, InputRow, OutputFormat, RowContent, RowResult};
use crate::output::OutputError;
use crate::output::members::Names;
use crate::output::value::{cell, decimal, neutral};

/// A row to decide.
#[derive(Debug)]
pub struct ReviewRow<'a> {
    /// The record.
    pub row: &'a InputRow,
    /// What became of it.
    pub result: &'a RowResult,
    /// What its samples say, in order; those that were never made are left out.
    pub samples: Vec<ReviewSample<'a>>,
    /// What tells at the import that the decision is about the same content.
    pub content: String,
}

/// A sample of such a row.
#[derive(Debug, Clone, Copy)]
pub struct ReviewSample<'a> {
    /// Its number, from 1.
    pub n: usize,
    /// Its answer on one line.
    pub answer: Option<&'a str>,
    /// Why it has none.
    pub error: Option<&'a str>,
}

/// Columns behind those of the input.
const BEHIND: [&str; 8] =
    ["reason", "agreement", "confidence", "samples", "decision", "reviewer", "note", "content"];

/// Writes rows to decide. In a CSV no value is taken for a formula by a spreadsheet, where such files are opened.
#[expect(missing_debug_implementations, reason = "the writer beneath has nothing to show")]
pub struct ReviewWriter<W: Write> {
    name: String,
    form: Form<W>,
}

enum Form<W: Write> {
    Csv { writer: Box<csv::Writer<W>>, input: Names, width: usize },
    Jsonl { writer: BufWriter<W>, columns: Vec<String> },
}

impl<W: Write> ReviewWriter<W> {
    /// A writer that has written its header, if it has one. `header` are the columns of the input. An input column
    /// whose name is needed here gets `input_` before it. `name` is the output for messages.
    pub fn new(
        name: &str,
        format: OutputFormat,
        header: Option<&Header>,
        writer: W,
    ) -> Result<Self, OutputError> {
        let form = Form::begin(format, header, writer).map_err(|error| OutputError::writing(name, error))?;
        Ok(Self { name: name.to_owned(), form })
    }

    /// Writes a row.
    pub fn write(&mut self, review: &ReviewRow<'_>) -> Result<(), OutputError> {
        self.form.write(review).map_err(|error| OutputError::writing(&self.name, error))
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<(), OutputError> {
        self.form.flush().map_err(|error| OutputError::writing(&self.name, error))
    }
}

impl<W: Write> Form<W> {
    fn begin(format: OutputFormat, header: Option<&Header>, writer: W) -> io::Result<Self> {
        let columns = header.map_or(&[][..], |names| &names[..]);
        let OutputFormat::Csv { delimiter } = format else {
            return Ok(Self::Jsonl { writer: BufWriter::new(writer), columns: columns.to_vec() });
        };
        let mut writer = WriterBuilder::new()
            .delimiter(delimiter)
            .terminator(Terminator::Any(b'\n'))
            .quote_style(QuoteStyle::Necessary)
            .from_writer(writer);
        writer.write_field("row")?;
        for name in columns {
            let mut shown = name.clone();
            let is_ours = |name: &String| name == "row" || BEHIND.contains(&name.as_str());
            while is_ours(&shown) || (shown != *name && columns.contains(&shown)) {
                shown.insert_str(0, "input_");
            }
            writer.write_field(&*neutral(&shown))?;
        }
        writer.write_record(BEHIND)?;
        Ok(Self::Csv { writer: Box::new(writer), input: Names::new(columns), width: columns.len() })
    }

    fn write(&mut self, review: &ReviewRow<'_>) -> io::Result<()> {
        match self {
            Self::Csv { writer, input, width } => write_csv(writer, input, *width, review),
            Self::Jsonl { writer, columns } => {
                let line = serde_json::to_string(&object(columns, review))?;
                writeln!(writer, "{line}")
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Csv { writer, .. } => writer.flush(),
            Self::Jsonl { writer, .. } => writer.flush(),
        }
    }
}

fn write_csv<W: Write>(
    writer: &mut csv::Writer<W>,
    input: &Names,
    width: usize,
    review: &ReviewRow<'_>,
) -> io::Result<()> {
    writer.write_field(review.row.number.to_string())?;
    match &review.row.content {
        RowContent::Fields(values) => {
            for at in 0..width {
                writer.write_field(&*neutral(values.get(at).map_or("", AsRef::as_ref)))?;
            }
        }
        RowContent::Object(line) => {
            for value in input.values(line) {
                writer.write_field(&*neutral(&value.map(cell).unwrap_or_default()))?;
            }
        }
        RowContent::Bad { raw, .. } => {
            for at in 0..width {
                writer.write_field(if at == 0 { raw.as_ref() } else { "" })?;
            }
        }
    }
    let result = review.result;
    writer.write_field(result.reason.as_str())?;
    writer.write_field(result.agreement.map(decimal).unwrap_or_default())?;
    writer.write_field(result.confidence.map(decimal).unwrap_or_default())?;
    writer.write_field(serde_json::to_string(&samples(review))?)?;
    writer.write_record(["", "", "", review.content.as_str()])?;
    Ok(())
}

#[derive(serde::Serialize)]
struct Object<'a> {
    row: u64,
    id: Option<&'a RawValue>,
    reason: &'static str,
    agreement: Option<Box<RawValue>>,
    confidence: Option<Box<RawValue>>,
    input: Input<'a>,
    samples: Vec<SampleObject<'a>>,
    decision: &'static str,
    reviewer: &'static str,
    note: &'static str,
    content: &'a str,
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Written(&'a RawValue),
    Made(Map<String, Value>),
}

#[derive(serde::Serialize)]
struct SampleObject<'a> {
    n: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

/// A JSON text as it stands.
fn raw(text: &str) -> Option<&RawValue> {
    serde_json::from_str(text).ok()
}

fn samples<'a>(review: &ReviewRow<'a>) -> Vec<SampleObject<'a>> {
    let object = |sample: &ReviewSample<'a>| SampleObject {
        n: sample.n,
        answer: sample.answer.and_then(raw),
        error: sample.error,
    };
    review.samples.iter().map(object).collect()
}

fn object<'a>(columns: &[String], review: &'a ReviewRow<'a>) -> Object<'a> {
    let made = |values: &[Box<str>]| {
        let text = |value: &str| Value::String(value.to_owned());
        columns.iter().zip(values).map(|(name, value)| (name.clone(), text(value))).collect()
    };
    let input = match &review.row.content {
        RowContent::Object(line) => raw(line).map_or_else(|| Input::Made(Map::new()), Input::Written),
        RowContent::Fields(values) => Input::Made(made(values)),
        RowContent::Bad { raw, .. } => {
            Input::Made(Map::from_iter([("raw".to_owned(), Value::String(raw.to_string()))]))
        }
    };
    let result = review.result;
    let number = |value| RawValue::from_string(decimal(value)).ok();
    Object {
        row: review.row.number,
        id: result.id.as_deref().and_then(raw),
        reason: result.reason.as_str(),
        agreement: result.agreement.and_then(number),
        confidence: result.confidence.and_then(number),
        input,
        samples: samples(review),
        decision: "",
        reviewer: "",
        note: "",
        content: &review.content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reason, RowUsage, SampleCounts, Status};

    fn result(id: Option<&str>) -> RowResult {
        RowResult {
            row: 7,
            id: id.map(str::to_owned),
            status: Status::Review,
            reason: Reason::Split,
            answer: None,
            confidence: Some("0.80".parse().unwrap()),
            agreement: Some("0.66666667".parse().unwrap()),
            samples: SampleCounts { planned: 3, made: 2, valid: 1 },
            model: None,
            error: None,
            usage: RowUsage::default(),
        }
    }

    fn written(
        format: OutputFormat,
        header: Option<&[&str]>,
        content: RowContent,
        id: Option<&str>,
    ) -> String {
        let header: Option<Header> = header.map(|names| names.iter().map(|&name| name.to_owned()).collect());
        let row = InputRow { number: 7, line: 9, content };
        let samples = vec![
            ReviewSample { n: 1, answer: Some(r#"{"b":1.10,"a":"x"}"#), error: None },
            ReviewSample { n: 2, answer: None, error: Some("refused") },
        ];
        let mut bytes = Vec::new();
        let mut writer = ReviewWriter::new("out", format, header.as_ref(), &mut bytes).unwrap();
        let result = result(id);
        writer.write(&ReviewRow { row: &row, result: &result, samples, content: "c0".to_owned() }).unwrap();
        writer.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_holds_the_input_as_written() {
        let content = RowContent::Object(r#"{"z":1.0, "decision":"x"}"#.into());
        assert_eq!(
            written(OutputFormat::Jsonl, None, content, Some("\"k\"")),
            concat!(
                r#"{"row":7,"id":"k","reason":"split","agreement":0.6667,"confidence":0.8,"#,
                r#""input":{"z":1.0, "decision":"x"},"samples":[{"n":1,"answer":{"b":1.10,"a":"x"}},"#,
                r#"{"n":2,"error":"refused"}],"decision":"","reviewer":"","note":"","content":"c0"}"#,
                "\n"
            )
        );
        let fields = RowContent::Fields(vec!["1".into(), "=2".into()]);
        let line = written(OutputFormat::Jsonl, Some(&["a", "b"]), fields, None);
        assert!(line.contains(r#""id":null"#) && line.contains(r#""input":{"a":"1","b":"=2"}"#), "{line}");
    }

    #[test]
    fn a_record_has_the_columns_of_the_input_by_their_names() {
        let csv = OutputFormat::Csv { delimiter: b',' };
        let fields = RowContent::Fields(vec!["x,y".into(), "=2+2".into(), "-3".into()]);
        let text = written(csv, Some(&["a", "note", "input_note"]), fields, None);
        let samples = r#""[{""n"":1,""answer"":{""b"":1.10,""a"":""x""}},{""n"":2,""error"":""refused""}]""#;
        assert_eq!(
            text,
            format!(
                "row,a,input_input_note,input_note,reason,agreement,confidence,samples,decision,reviewer,note,content\n\
                 7,\"x,y\",'=2+2,-3,split,0.6667,0.8,{samples},,,,c0\n"
            )
        );
        let object = RowContent::Object(r#"{"b":[1,2],"a":"t"}"#.into());
        let text = written(csv, Some(&["a", "b"]), object, None);
        assert!(text.contains("\n7,t,\"[1,2]\",split,"), "{text}");
    }
}
