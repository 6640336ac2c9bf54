//! Whole files through [`Source`].

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::base::Digest;
use crate::model::{
    BadRows, Encoding, InputFormat, InputPath, InputRow, InputSettings, LineEnd, Ragged, RowContent,
    Selection,
};

struct Case {
    folder: tempfile::TempDir,
    settings: InputSettings,
}

impl Case {
    fn of(format: InputFormat, content: impl AsRef<[u8]>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = InputSettings {
            path: InputPath::File(folder.path().join("in")),
            format,
            encoding: Encoding::Unicode,
            bad_rows: BadRows::Stop,
            ragged: Ragged::Error,
            selection: Selection::All,
            id_column: None,
            max_record: 16 << 20,
            allow_empty: false,
        };
        let case = Self { folder, settings };
        case.write(content.as_ref());
        case
    }

    fn csv(content: impl AsRef<[u8]>) -> Self {
        Self::of(InputFormat::Csv { delimiter: b',' }, content)
    }

    fn jsonl(content: impl AsRef<[u8]>) -> Self {
        Self::of(InputFormat::Jsonl, content)
    }

    fn with(mut self, change: impl FnOnce(&mut InputSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("in")
    }

    fn write(&self, content: &[u8]) {
        File::create(self.path()).unwrap().write_all(content).unwrap();
    }

    fn source(&self) -> Source {
        Source::new(self.settings.clone())
    }

    /// The check pass, and the rows of it, which a later pass must repeat.
    fn read(&self) -> Result<(Checked, Vec<InputRow>), DatasetError> {
        let source = self.source();
        let mut visited = Vec::new();
        let checked = source.check(&mut |row, _| visited.push(row.clone()))?;
        if checked.problems.count == 0 {
            let again: Result<Vec<_>, _> = source.rows(&checked)?.collect();
            assert_eq!(again?, visited);
        }
        Ok((checked, visited))
    }

    fn rows(&self) -> Vec<InputRow> {
        self.read().unwrap().1
    }

    fn error(&self) -> String {
        self.read().unwrap_err().to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn problems(&self) -> Vec<String> {
        self.read().unwrap().0.problems.first.iter().map(ToString::to_string).collect()
    }
}

fn values(row: &InputRow) -> Vec<&str> {
    match &row.content {
        RowContent::Fields(values) => values.iter().map(AsRef::as_ref).collect(),
        RowContent::Object(line) => vec![line],
        RowContent::Bad { why, .. } => vec!["bad", why],
    }
}

fn numbers(rows: &[InputRow]) -> Vec<u64> {
    rows.iter().map(|row| row.number).collect()
}

#[test]
fn csv_of_mixed_line_ends_quotes_and_blanks() {
    let case = Case::csv(
        "\u{feff}input,id\r\n\r\n\"a\r\nb \"\"c\"\"\",1\n\nx\"y, z \r\n,\r\n\"quoted\"\r\n\"q\",\"r\"\r\n\n\r\nlast,\"\"",
    )
    .with(|settings| settings.ragged = Ragged::Pad);
    let (checked, rows) = case.read().unwrap();
    assert_eq!(checked.header.as_deref().unwrap(), ["input".to_owned(), "id".to_owned()]);
    assert_eq!(checked.line_end, LineEnd::CrLf);
    let all: Vec<_> = rows.iter().map(values).collect();
    let expected: [&[&str]; 6] =
        [&["a\r\nb \"c\"", "1"], &["x\"y", " z "], &["", ""], &["quoted", ""], &["q", "r"], &["last", ""]];
    assert_eq!(all, expected);
    assert_eq!(rows.iter().map(|row| row.line).collect::<Vec<_>>(), [3, 6, 7, 8, 9, 12]);
    assert_eq!((checked.rows, checked.selected, checked.padded), (6, 6, 1));
    assert_eq!(checked.digest, Digest::of(&std::fs::read(case.path()).unwrap()));
    assert_eq!(checked.bytes, std::fs::metadata(case.path()).unwrap().len());
}

#[test]
fn a_lone_cr_is_data_and_a_cut_crlf_at_the_end_is_none() {
    let rows = Case::csv("a,b\nx\ry,\"z\r\"\n1,2\r").rows();
    assert_eq!(rows.iter().map(values).collect::<Vec<_>>(), [["x\ry", "z\r"], ["1", "2"]]);
    assert!(Case::csv("a,b\r1,2\r").error().contains("lone carriage return"));
}

#[test]
fn csv_records_of_a_wrong_width() {
    let text = "a,b,c\n1,2\n\"x\ny\",2,3\n1,2,3,4\n1,2,3\n";
    let case = Case::csv(text);
    let problems = ["row 1, line 2: expected 3 fields, found 2", "row 3, line 5: expected 3 fields, found 4"];
    assert_eq!(case.problems(), problems);
    let case = case.with(|settings| settings.ragged = Ragged::Pad);
    assert_eq!(case.problems(), problems[1..]);
    let case = case.with(|settings| settings.bad_rows = BadRows::Keep);
    let (checked, rows) = case.read().unwrap();
    assert_eq!((checked.problems.count, checked.bad, checked.padded, rows.len()), (0, 1, 1, 4));
    assert_eq!(
        rows[2].content,
        RowContent::Bad { raw: "1,2,3,4".into(), why: "expected 3 fields, found 4".to_owned() }
    );
}

#[test]
fn the_first_twenty_problems_are_listed() {
    let checked = Case::csv(format!("a,b\n{}", "1\n".repeat(25))).read().unwrap().0;
    assert_eq!((checked.problems.first.len(), checked.problems.count, checked.selected), (20, 25, 25));
}

#[test]
fn duplicate_columns_are_named() {
    assert_eq!(
        Case::csv("name,age,name\n1,2,3\n").error(),
        "in: columns 1 and 3 are both named `name`; rename one"
    );
}

#[test]
fn an_open_quote_ends_at_the_longest_record_or_the_end() {
    let body = "1,2\n".repeat(1000);
    let case = Case::csv(format!("a,b\n1,2\n1,\"2\n{body}")).with(|settings| settings.max_record = 500);
    assert_eq!(
        case.error(),
        "in, row 2, which begins on line 3, is longer than 500 bytes; look for a quote that is not closed, or raise --max-record"
    );
    let case = case.with(|settings| settings.max_record = 1 << 20);
    assert_eq!(case.problems(), ["row 2, line 3: a quoted field is not closed before the end of the file"]);
    assert_eq!(Case::csv("a,\"b\n").error(), "in, line 1: the header has a quoted field that is not closed");
}

#[test]
fn a_record_may_be_as_long_as_allowed() {
    for end in ["", "\n", "\r\n"] {
        let case = Case::jsonl(format!("{{\"a\":1234}}{end}")).with(|settings| settings.max_record = 10);
        assert_eq!(case.rows().len(), 1);
        assert!(case.with(|settings| settings.max_record = 9).error().contains("longer than 9 bytes"));
        let case = Case::csv(format!("a\n1234567890{end}")).with(|settings| settings.max_record = 10);
        assert_eq!(case.rows().len(), 1);
        assert!(
            case.with(|settings| settings.max_record = 9).error().contains("row 1, which begins on line 2")
        );
    }
    let long = "x".repeat(5_000_000);
    let rows = Case::csv(format!("a,b\n1,\"{long}\"\n2,3\n")).rows();
    assert_eq!(values(&rows[0]), ["1", &long]);
    assert_eq!(values(&rows[1]), ["2", "3"]);
}

#[test]
fn jsonl_lines_are_kept_as_written() {
    let case = Case::jsonl(
        "\u{feff}{\"z\":1.10,\"a\":9007199254740993}\r\n\n \t\r\n  {\"x\":1e400,\"b\":\"\u{2028}\"} \r\n{}",
    );
    let (checked, rows) = case.read().unwrap();
    let all: Vec<_> = rows.iter().flat_map(values).collect();
    assert_eq!(all, ["{\"z\":1.10,\"a\":9007199254740993}", "{\"x\":1e400,\"b\":\"\u{2028}\"}", "{}"]);
    assert_eq!(rows.iter().map(|row| (row.number, row.line)).collect::<Vec<_>>(), [(1, 1), (2, 4), (3, 5)]);
    assert_eq!((checked.header, checked.warnings), (None, Vec::new()));
}

#[test]
fn malformed_lines_stop_or_are_kept() {
    let case = Case::jsonl("{\"a\":1}\n {\"a\":2},\n{\"a\":NaN}\n[]\n");
    let problems = [
        "row 2, line 2, column 9: not valid JSON: trailing characters",
        "row 3, line 3, column 6: NaN is no JSON value",
        "row 4, line 4, column 1: an array where an object belongs",
    ];
    assert_eq!(case.problems(), problems);
    let rows = case.with(|settings| settings.bad_rows = BadRows::Keep).rows();
    let why = "column 9: not valid JSON: trailing characters".to_owned();
    assert_eq!(rows[1].content, RowContent::Bad { raw: " {\"a\":2},".into(), why });
    assert_eq!(numbers(&rows), [1, 2, 3, 4]);
}

#[test]
fn half_a_character_makes_its_row_bad_and_stops_nothing() {
    let (checked, rows) = Case::jsonl("{\"a\":\"x\\ud83d\"}\n{\"a\":1}\n").read().unwrap();
    assert_eq!((checked.problems.count, checked.bad), (0, 1));
    assert_eq!(values(&rows[0]), ["bad", "column 8: the escape \\ud83d is half a character"]);
}

#[test]
fn repeated_keys_are_one_warning() {
    let checked = Case::jsonl("{\"a\":1}\n{\"a\":1,\"a\":2}\n{\"b\":1,\"b\":1}\n").read().unwrap().0;
    assert_eq!(checked.repeated_keys, 2);
    assert_eq!(checked.warnings.len(), 1);
    assert!(checked.warnings[0].contains("2 rows repeat a key, line 2 first"), "{:?}", checked.warnings);
}

#[test]
fn other_bytes_are_an_error_with_their_place_and_a_hint() {
    let case = Case::csv(b"a,b\n1,2\n\"x\n\xE9\",2\n");
    assert_eq!(
        case.error(),
        "in, line 4, byte offset 11: not valid UTF-8; if the file has another encoding, name it, as in --encoding windows-1252"
    );
    let rows = case.with(|settings| settings.encoding = Encoding::Named(encoding_rs::WINDOWS_1252)).rows();
    assert_eq!(values(&rows[1]), ["x\né", "2"]);
    assert!(Case::jsonl(b"\xEF\xBB\xBF{}\n{\"\xE9\":1}").error().contains("line 2, byte offset 8"));
    let part = Case::csv(b"a\n1\n\xE9\n").with(|settings| settings.selection = Selection::First(1));
    assert_eq!(part.rows().len(), 1);
}

#[test]
fn utf_16_is_decoded() {
    let text = "a,b\r\né,😀\r\n";
    let little: Vec<u8> =
        [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_be_bytes).collect();
    for bytes in [&little, &big] {
        let case = Case::csv(bytes);
        let (checked, rows) = case.read().unwrap();
        assert_eq!(values(&rows[0]), ["é", "😀"]);
        assert_eq!(checked.digest, Digest::of(bytes));
    }
    let mut odd = little.clone();
    odd.extend([0x00, 0xD8, 0x61, 0x00]);
    let case = Case::csv(&odd);
    assert_eq!(case.error(), format!("in, line 3, byte offset {}: not valid UTF-16LE", little.len()));
    assert_eq!(case.with(|settings| settings.selection = Selection::First(1)).rows().len(), 1);
}

#[test]
fn compressed_files_folders_and_missing_ones_are_named() {
    assert!(Case::jsonl(b"\x1F\x8B\x08\x00").error().contains("compressed (gzip)"));
    assert!(Case::jsonl(b"\x28\xB5\x2F\xFD").error().contains("compressed (zstd)"));
    let case = Case::jsonl("{}");
    std::fs::remove_file(case.path()).unwrap();
    assert_eq!(case.error(), "cannot read in");
    std::fs::create_dir(case.path()).unwrap();
    assert!(case.error().contains("no regular file"));
}

#[test]
fn no_rows_is_an_error_unless_allowed() {
    assert_eq!(Case::csv("").error(), "in has no rows, it is empty; --allow-empty makes that fine");
    assert_eq!(Case::csv("a,b\n\n").error(), "in has no rows, only a header; --allow-empty makes that fine");
    assert_eq!(Case::jsonl("\n  \n").error(), "in has no rows; --allow-empty makes that fine");
    for (text, header) in [("", None), ("a,b\n", Some(2))] {
        let (checked, rows) = Case::csv(text).with(|settings| settings.allow_empty = true).read().unwrap();
        assert_eq!((checked.header.map(|names| names.len()), rows.len()), (header, 0));
    }
}

fn ten_rows(selection: Selection) -> Case {
    let lines: Vec<_> = (1..=10).map(|row| format!("{{\"n\":{row}}}\n\n")).collect();
    Case::jsonl(lines.concat()).with(|settings| settings.selection = selection)
}

#[test]
fn selections_take_their_rows_and_digest_what_they_read() {
    let (checked, rows) = ten_rows(Selection::First(3)).read().unwrap();
    assert_eq!((numbers(&rows), checked.rows), (vec![1, 2, 3], 3));
    assert_eq!(checked.digest, Digest::of(b"{\"n\":1}\n\n{\"n\":2}\n\n{\"n\":3}\n"));
    let (checked, rows) = ten_rows(Selection::Ranges(vec![(2, 3), (10, 10)])).read().unwrap();
    assert_eq!((numbers(&rows), checked.rows, checked.selected), (vec![2, 3, 10], 10, 3));
    assert_eq!(rows[2].line, 19);
    let case = ten_rows(Selection::First(30));
    let (checked, rows) = case.read().unwrap();
    assert_eq!((rows.len(), checked.digest), (10, Digest::of(&std::fs::read(case.path()).unwrap())));
    let case = ten_rows(Selection::Ranges(vec![(9, 12)]));
    assert_eq!(case.error(), "in has 10 rows, and no row 12 for --rows or show");
}

#[test]
fn a_pick_is_of_its_size_in_file_order_and_the_same_again() {
    let case = ten_rows(Selection::Pick { count: 4, seed: 3 });
    let (checked, rows) = case.read().unwrap();
    assert!(numbers(&rows).is_sorted() && rows.len() == 4);
    assert_eq!((checked.rows, checked.selected), (10, 4));
    assert_eq!(checked.digest, Digest::of(&std::fs::read(case.path()).unwrap()));
    assert_eq!(numbers(&rows), numbers(&case.rows()));
    assert_eq!(ten_rows(Selection::Pick { count: 40, seed: 3 }).rows().len(), 10);
}

#[test]
fn rows_that_are_not_selected_are_not_looked_into() {
    let case = Case::jsonl("{\n{}\n[").with(|settings| settings.selection = Selection::Ranges(vec![(2, 2)]));
    assert_eq!(numbers(&case.rows()), [2]);
}

#[test]
fn a_changed_file_is_found_when_a_pass_begins_and_ends() {
    let case = Case::jsonl("{}\n{}\n");
    let source = case.source();
    let checked = source.check(&mut |_, _| {}).unwrap();
    let mut rows = source.rows(&checked).unwrap();
    assert!(rows.next().unwrap().is_ok());
    case.write(b"{}\n{}\n{}\n");
    assert!(rows.next().unwrap().is_ok());
    assert!(matches!(rows.next(), Some(Err(DatasetError::Changed { .. }))));
    assert!(rows.next().is_none());
    assert!(matches!(source.rows(&checked), Err(DatasetError::Changed { .. })));
}

#[test]
fn ids_must_be_there_and_unique() {
    let by_id = |case: Case| case.with(|settings| settings.id_column = Some("id".to_owned()));
    let case = by_id(Case::csv("id,x\na,1\nb,1\na,2\n"));
    assert_eq!(case.error(), "in: rows 1 and 3 have the same id \"a\"; an id column must be unique");
    assert!(by_id(Case::csv("a,b\n1,2\n")).error().contains("no column `id` to take ids from; it has a, b"));
    assert!(by_id(Case::jsonl("{\"a\":1}")).error().contains("no column `id`"));
    let case = by_id(Case::jsonl("{\"id\":1}\n{\"id\":1.0}\n{\"a\":1}\n{}\n"));
    let ids: Vec<_> = case.rows().iter().map(|row| case.source().id_of(row, None)).collect();
    assert_eq!(ids, [Some("1".to_owned()), Some("1.0".to_owned()), None, None]);
}

#[test]
fn rows_can_be_sent_to_a_thread() {
    fn is_send<T: Send>() {}
    is_send::<Rows>();
}

proptest! {
    /// What a CSV writer writes is read back, however the records lie in the buffer.
    #[test]
    fn csv_reads_what_csv_writes(
        records in prop::collection::vec(prop::collection::vec("[a\"\\r\\n,; é]{0,6}", 3), 1..20),
        is_crlf in any::<bool>(),
    ) {
        let end = if is_crlf { ::csv::Terminator::CRLF } else { ::csv::Terminator::Any(b'\n') };
        let mut writer = ::csv::WriterBuilder::new().terminator(end).from_writer(Vec::new());
        writer.write_record(["x", "y", "z"]).unwrap();
        for record in &records {
            writer.write_record(record).unwrap();
        }
        let rows = Case::csv(writer.into_inner().unwrap()).rows();
        prop_assert_eq!(rows.len(), records.len());
        for (row, record) in rows.iter().zip(&records) {
            prop_assert_eq!(&values(row), record);
        }
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), is_csv in any::<bool>()) {
        let case = if is_csv { Case::csv(&bytes) } else { Case::jsonl(&bytes) };
        let case = case.with(|settings| { settings.bad_rows = BadRows::Keep; settings.max_record = 50; });
        let _ = case.read();
    }
}
