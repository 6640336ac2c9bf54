//! Rows and results through [`OutputWriter`].

use std::io::{self, Write};

use proptest::prelude::*;

use super::*;
use crate::base::Money;
use crate::model::{
    Answer, Header, InputRow, LineEnd, OutputFormat, OutputOrder, OutputSettings, Reason, RowContent,
    RowResult, RowUsage, SampleCounts, Status,
};

fn settings(format: OutputFormat) -> OutputSettings {
    OutputSettings {
        path: None,
        format,
        prefix: String::new(),
        result_field: "verify".to_owned(),
        csv_safe: false,
        accounting: true,
        order: OutputOrder::Input,
    }
}

const CSV: OutputFormat = OutputFormat::Csv { delimiter: b',' };

fn header(names: &[&str]) -> Header {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn row(content: RowContent) -> InputRow {
    InputRow { number: 7, line: 9, content }
}

fn fields(values: &[&str]) -> InputRow {
    row(RowContent::Fields(values.iter().map(|&value| value.into()).collect()))
}

fn object(line: &str) -> InputRow {
    row(RowContent::Object(line.into()))
}

fn bad(raw: &str) -> InputRow {
    row(RowContent::Bad { raw: raw.into(), why: "no".to_owned() })
}

fn passed(answer: &str) -> RowResult {
    RowResult {
        row: 7,
        id: None,
        status: Status::Pass,
        reason: Reason::Agreed,
        answer: Some(Answer { text: answer.to_owned(), extracted: false }),
        confidence: Some("0.9300".parse().unwrap()),
        agreement: Some("1.0".parse().unwrap()),
        samples: SampleCounts { planned: 3, made: 3, valid: 3 },
        model: Some("m".to_owned()),
        error: None,
        usage: RowUsage {
            attempts: 3,
            cached: false,
            input: 900,
            cached_input: 0,
            output: 60,
            cost: Some(Money::from_pico(1_200_000_000)),
            estimated: false,
        },
    }
}

fn failed() -> RowResult {
    RowResult {
        id: Some("\"x\"".to_owned()),
        status: Status::Error,
        reason: Reason::BadInput,
        answer: None,
        confidence: None,
        agreement: None,
        samples: SampleCounts { planned: 1, made: 0, valid: 0 },
        model: None,
        error: Some("a \"b\"\n".to_owned()),
        usage: RowUsage { cost: None, ..RowUsage::default() },
        ..passed("")
    }
}

struct Job {
    settings: OutputSettings,
    header: Option<Header>,
    answer: Vec<String>,
    line_end: LineEnd,
}

impl Job {
    fn jsonl() -> Self {
        Self {
            settings: settings(OutputFormat::Jsonl),
            header: None,
            answer: Vec::new(),
            line_end: LineEnd::Lf,
        }
    }

    fn csv(names: &[&str], answer: &[&str]) -> Self {
        Self {
            settings: settings(CSV),
            header: Some(header(names)),
            answer: columns(answer),
            line_end: LineEnd::Lf,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn written(&self, rows: &[(InputRow, RowResult)]) -> String {
        let mut bytes = Vec::new();
        let mut writer =
            OutputWriter::new(&self.settings, self.header.as_ref(), &self.answer, self.line_end, &mut bytes);
        for (row, result) in rows {
            writer.write(row, result).unwrap();
        }
        writer.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

const VERIFY: &str = r#""verify":{"row":7,"id":null,"status":"pass","reason":"agreed","answer":{"b":1.10,"a":1e400},"confidence":0.93,"agreement":1,"samples":{"planned":3,"made":3,"valid":3},"extracted":false,"model":"m","error":null,"usage":{"attempts":3,"cached":false,"input":900,"cached_input":0,"output":60,"cost_usd":0.0012,"estimated":false}}"#;

#[test]
fn a_line_gets_one_member_more() {
    let answer = r#"{"b":1.10,"a":1e400}"#;
    for (line, start) in [
        (r#"{"z":1.10,"a":"}"}"#, r#"{"z":1.10,"a":"}","#),
        ("{}", "{"),
        ("{ }", "{ "),
        (r#"{"a":{} }"#, r#"{"a":{} ,"#),
    ] {
        let written = Job::jsonl().written(&[(object(line), passed(answer))]);
        assert_eq!(written, format!("{start}{VERIFY}}}\n"));
    }
}

#[test]
fn rows_without_an_answer_have_nulls() {
    let job = Job::jsonl().with(|job| {
        job.settings.accounting = false;
        job.settings.result_field = "v \"1\"".to_owned();
    });
    let result = r#""v \"1\"":{"row":7,"id":"x","status":"error","reason":"bad_input","answer":null,"confidence":null,"agreement":null,"samples":{"planned":1,"made":0,"valid":0},"extracted":false,"model":null,"error":"a \"b\"\n"}"#;
    assert_eq!(
        job.written(&[(bad("{\"a\":\t\u{2028}"), failed())]),
        format!("{{\"raw\":\"{{\\\"a\\\":\\t\u{2028}\",{result}}}\n")
    );
    let with_usage = Job::jsonl().written(&[(object("{}"), failed())]);
    assert!(with_usage.contains(r#""cost_usd":null,"estimated":false}}}"#), "{with_usage}");
}

#[test]
fn csv_becomes_strings_in_header_order() {
    let job = Job::jsonl().with(|job| job.header = Some(header(&["z", "a\"b"])));
    let written = job.written(&[(fields(&["1.0", "x\ny"]), passed(r#"{"b":1.10,"a":1e400}"#))]);
    assert_eq!(written, format!("{{\"z\":\"1.0\",\"a\\\"b\":\"x\\ny\",{VERIFY}}}\n"));
}

#[test]
fn a_csv_row_keeps_its_values_and_gets_the_answers() {
    let job = Job::csv(&["id", "te,xt"], &["n", "tags", "ok", "why", "gone"]).with(|job| {
        job.settings.prefix = "ai_".to_owned();
        job.line_end = LineEnd::CrLf;
    });
    let answer = r#"{"ok":true,"n":1.50,"why":"so \"it\" is","tags":["a","b"],"gone":null,"more":1}"#;
    assert_eq!(
        job.written(&[(fields(&["007", " a\n\"b\" "]), passed(answer)), (fields(&["=1", ""]), failed())]),
        "id,\"te,xt\",ai_n,ai_tags,ai_ok,ai_why,ai_gone,verify_status,verify_reason,verify_confidence,\
         verify_agreement,verify_error,verify_cost_usd\r\n\
         007,\" a\n\"\"b\"\" \",1.50,\"[\"\"a\"\",\"\"b\"\"]\",true,\"so \"\"it\"\" is\",,pass,agreed,0.93,1,,0.0012\r\n\
         =1,,,,,,,error,bad_input,,,\"a \"\"b\"\"\n\",\r\n"
    );
}

#[test]
fn an_answer_without_properties_is_one_column() {
    let job = Job::csv(&["a"], &[]).with(|job| {
        job.settings.accounting = false;
        job.settings.format = OutputFormat::Csv { delimiter: b';' };
        job.settings.result_field = "v".to_owned();
    });
    assert_eq!(
        job.written(&[(fields(&["x,y"]), passed("\"free; text\"")), (bad("1;2\"3"), passed("[1, 2]"))]),
        "a;answer;v_status;v_reason;v_confidence;v_agreement;v_error\n\
         x,y;\"free; text\";pass;agreed;0.93;1;\n\
         \"1;2\"\"3\";[1, 2];pass;agreed;0.93;1;\n"
    );
}

#[test]
fn an_output_without_rows_has_its_header_if_there_is_one() {
    let names =
        "verify_status,verify_reason,verify_confidence,verify_agreement,verify_error,verify_cost_usd\n";
    assert_eq!(Job::csv(&["a"], &["b"]).written(&[]), format!("a,b,{names}"));
    assert_eq!(Job::csv(&[], &[]).with(|job| job.header = None).written(&[]), "");
    assert_eq!(Job::jsonl().written(&[]), "");
}

#[test]
fn formulas_are_neutralised_on_request() {
    let job = Job::csv(&["=a", "b"], &["n", "t"]);
    let rows = [(fields(&["-5", "@x"]), passed(r#"{"n":-1.5,"t":"=HYPERLINK(1)"}"#))];
    assert!(job.written(&rows).contains("\n-5,@x,-1.5,=HYPERLINK(1),pass"));
    let safe = job.with(|job| job.settings.csv_safe = true).written(&rows);
    assert!(safe.starts_with("'=a,b,n,t,"), "{safe}");
    assert!(safe.contains("\n-5,'@x,-1.5,'=HYPERLINK(1),pass"), "{safe}");
}

#[test]
fn jsonl_becomes_columns_in_order_of_first_appearance() {
    let rows = [object(r#"{"b":"x","a":1.0,"b":"y"}"#), object(r#"{"a":null,"c":{"d":[1, 2]}}"#), bad("{,")];
    let mut collector = ColumnCollector::new();
    for row in &rows {
        collector.add(row);
    }
    let names = collector.finish().unwrap();
    assert_eq!(names, header(&["b", "a", "c"]));
    let job = Job::csv(&[], &["ok"]).with(|job| {
        job.header = Some(names);
        job.settings.accounting = false;
    });
    let rows = rows.map(|row| (row, passed("{\"ok\":false}")));
    assert_eq!(
        job.written(&rows),
        "b,a,c,ok,verify_status,verify_reason,verify_confidence,verify_agreement,verify_error\n\
         y,1.0,,false,pass,agreed,0.93,1,\n\
         ,,\"{\"\"d\"\":[1, 2]}\",false,pass,agreed,0.93,1,\n\
         \"{,\",,,false,pass,agreed,0.93,1,\n"
    );
}

#[test]
fn columns_are_bounded_and_a_bad_row_alone_has_one() {
    let mut collector = ColumnCollector::new();
    collector.add(&bad("x"));
    assert_eq!(collector.finish().unwrap(), header(&["raw"]));
    let with_keys = |count: usize| {
        let mut collector = ColumnCollector::new();
        (0..count).for_each(|at| collector.add(&object(&format!("{{\"k{at}\":1}}"))));
        collector.finish()
    };
    assert_eq!(with_keys(ColumnCollector::MOST).unwrap().len(), ColumnCollector::MOST);
    assert!(matches!(with_keys(ColumnCollector::MOST + 5), Err(OutputError::TooManyColumns { .. })));
}

#[test]
fn names_that_collide_are_refused() {
    let mut csv = settings(CSV);
    let input = header(&["ok", "verify_status"]);
    let refusal = |settings: &OutputSettings, answer: &[&str]| {
        check_names(settings, Some(&input), &columns(answer)).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&csv, &["ok"]),
        "an input column and an answer column would both be named `ok` in the output; choose other names with --prefix"
    );
    assert!(
        refusal(&csv, &["x"])
            .contains("`verify_status` in the output; choose other names with --result-field")
    );
    csv.result_field = "v".to_owned();
    assert!(refusal(&csv, &["v_error"]).contains("--prefix"));
    csv.prefix = "ai_".to_owned();
    assert!(check_names(&csv, Some(&input), &columns(&["ok", "v_error"])).is_ok());
    csv.accounting = false;
    csv.prefix.clear();
    assert!(check_names(&csv, Some(&input), &columns(&["v_cost_usd"])).is_ok());
    let named_answer = header(&["answer"]);
    assert!(check_names(&csv, Some(&named_answer), &[]).is_err());
    let mut jsonl = settings(OutputFormat::Jsonl);
    assert!(check_names(&jsonl, Some(&header(&["verify"])), &[]).is_err());
    jsonl.result_field = "v".to_owned();
    assert!(check_names(&jsonl, Some(&header(&["verify", "answer"])), &[]).is_ok());
}

#[derive(Debug)]
struct Broken(io::ErrorKind);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(self.0.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_and_a_full_disk_are_told_apart() {
    for format in [OutputFormat::Jsonl, CSV] {
        let outcome = |kind| {
            let mut writer =
                OutputWriter::new(&settings(format), Some(&header(&["a"])), &[], LineEnd::Lf, Broken(kind));
            writer.write(&fields(&["1"]), &passed("1")).unwrap();
            writer.finish().unwrap_err()
        };
        assert!(matches!(outcome(io::ErrorKind::BrokenPipe), OutputError::Closed { .. }));
        assert!(matches!(outcome(io::ErrorKind::StorageFull), OutputError::Full { .. }));
        assert!(matches!(outcome(io::ErrorKind::PermissionDenied), OutputError::Write { .. }));
    }
}

proptest! {
    /// Whatever the values are, a CSV reader reads them back.
    #[test]
    fn csv_values_are_read_back(values in prop::collection::vec("\\PC*|[\"\r\n,]*", 2), is_crlf in any::<bool>()) {
        let job = Job::csv(&["a", "b"], &["c"])
            .with(|job| job.line_end = if is_crlf { LineEnd::CrLf } else { LineEnd::Lf });
        let answer = serde_json::json!({ "c": values[0] }).to_string();
        let row = fields(&[&values[0], &values[1]]);
        let written = job.written(&[(row, passed(&answer))]);
        let mut reader = ::csv::Reader::from_reader(written.as_bytes());
        let record = reader.records().next().unwrap().unwrap();
        prop_assert_eq!([&record[0], &record[1], &record[2]], [&values[0], &values[1], &values[0]]);
    }

    /// Whatever the values are, a JSONL line is one line of JSON with the values as strings.
    #[test]
    fn jsonl_values_are_read_back(value in ".*") {
        let job = Job::jsonl().with(|job| job.header = Some(header(&["a"])));
        let written = job.written(&[(fields(&[&value]), passed("{}"))]);
        prop_assert_eq!(written.matches('\n').count(), 1);
        let line: serde_json::Value = serde_json::from_str(&written).unwrap();
        prop_assert_eq!(line["a"].as_str(), Some(value.as_str()));
    }
}
