//! An input file.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use crate::base::Digest;
use crate::dataset::ahead::Ahead;
use crate::dataset::encoding::text_of;
use crate::dataset::ids::{self, IdIndex};
use crate::dataset::records::{Parsed, Records, read_error, stops};
use crate::dataset::select::{Chosen, Pick};
use crate::dataset::unpack::unpacked;
use crate::dataset::{Checked, DatasetError, Problem, Problems, Rows};
use crate::model::{Header, InputFormat, InputRow, InputSettings, Selection};

/// From how many bytes on a file is read ahead.
const READ_AHEAD: u64 = 1 << 20;

/// An input file and how it is to be read. It holds no open file: each pass opens it anew.
#[derive(Debug, Clone)]
pub struct Source {
    file: PathBuf,
    shown_as: String,
    settings: InputSettings,
}

/// What tells that a file is still the same one: size in bytes and time of change in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: i64,
}

impl Source {
    /// The input that the settings name.
    pub fn new(settings: InputSettings) -> Self {
        let (file, shown_as) = (settings.path.file().to_owned(), settings.path.display());
        Self { file, shown_as, settings }
    }

    /// The file that is read: standard input's copy where the input is that.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The name for messages.
    pub fn shown_as(&self) -> &str {
        &self.shown_as
    }

    /// How it is read.
    pub fn settings(&self) -> &InputSettings {
        &self.settings
    }

    /// The check pass: reads to the last selected row, or the whole file where all rows are selected or rows are
    /// picked at random, and calls `visit` for each selected row that may take part, in file order, with the header of a CSV. A pick reads the
    /// file twice.
    ///
    /// Malformed rows are listed in the result and not visited; with `--bad-rows keep` they are visited as
    /// [`crate::model::RowContent::Bad`]. Rows that are not selected are not looked into.
    pub fn check(&self, visit: &mut dyn FnMut(&InputRow, Option<&Header>)) -> Result<Checked, DatasetError> {
        let stamp = self.stamp()?;
        let whole = Arc::new(Mutex::new(blake3::Hasher::new()));
        let (chosen, counted) = match &self.settings.selection {
            Selection::All => (Chosen::all(), None),
            Selection::First(count) => (Chosen::first(*count), None),
            Selection::Ranges(ranges) => (Chosen::ranges(ranges), None),
            Selection::Pick { count, seed } => {
                let (chosen, rows) = self.pick(*count, *seed, &whole)?;
                (chosen, Some(rows))
            }
        };
        let is_part = matches!(self.settings.selection, Selection::First(_) | Selection::Ranges(_));
        let tally = (!is_part && counted.is_none()).then(|| Arc::clone(&whole));
        let mut records = self.open(tally, is_part)?;
        let mut checked = Checked {
            header: records.header().cloned(),
            rows: 0,
            selected: 0,
            digest: Digest::of(b""),
            bytes: stamp.bytes,
            modified: stamp.modified,
            line_end: records.line_end(),
            padded: 0,
            bad: 0,
            repeated_keys: 0,
            problems: Problems::default(),
            warnings: Vec::new(),
            chosen,
        };
        let mut ids = self.id_index(records.header())?;
        let mut first_repeat = None;
        let mut cursor = checked.chosen.cursor();
        while !cursor.is_done(records.row()) && records.advance()? {
            if !cursor.takes(records.row()) {
                continue;
            }
            checked.selected += 1;
            let parsed = records.read();
            checked.padded += u64::from(parsed.padded);
            if parsed.repeats_key {
                checked.repeated_keys += 1;
                first_repeat.get_or_insert(parsed.row.line);
            }
            if self.may_take_part(&parsed, &mut checked) {
                if let Some(ids) = &mut ids {
                    self.index_id(ids, &parsed.row, records.header())?;
                }
                visit(&parsed.row, records.header());
            }
        }
        checked.rows = counted.unwrap_or(records.row());
        checked.line_end = records.line_end();
        let part = records.digest();
        checked.digest = part.or_else(|| finished(&whole)).unwrap_or(checked.digest);
        if self.stamp()? != stamp {
            return Err(self.changed());
        }
        self.judge(&checked)?;
        if let Some(ids) = &ids {
            self.judge_ids(ids, &checked)?;
        }
        if checked.padded > 0 {
            checked.warnings.push(padded_warning(&self.shown_as, checked.padded));
        }
        if let Some(line) = first_repeat {
            checked.warnings.push(repeat_warning(&self.shown_as, checked.repeated_keys, line));
        }
        Ok(checked)
    }

    /// A later pass over the selected rows, in file order. The file's size and time of change are compared with
    /// `checked` now and when the last row was read.
    pub fn rows(&self, checked: &Checked) -> Result<Rows, DatasetError> {
        self.compare(checked.bytes, checked.modified)?;
        let mut records = self.open(None, false)?;
        if checked.bad == 0 && checked.problems.count == 0 {
            records = records.known_to_be_good();
        }
        Ok(Rows::new(self.clone(), records, checked))
    }

    /// The value of the id column as JSON text: a JSON string for CSV, the member's text as it stands for JSONL (of
    /// repeated members the last). `None` without an id column, and where the row has no value.
    pub fn id_of(&self, row: &InputRow, header: Option<&Header>) -> Option<String> {
        ids::id_of(row, header, self.settings.id_column.as_deref()?)
    }

    /// [`DatasetError::Changed`] unless the file is still there with this size and time of change.
    pub(super) fn compare(&self, bytes: u64, modified: i64) -> Result<(), DatasetError> {
        let checked = Stamp { bytes, modified };
        if self.stamp().is_ok_and(|stamp| stamp == checked) { Ok(()) } else { Err(self.changed()) }
    }

    fn changed(&self) -> DatasetError {
        DatasetError::Changed { file: self.shown_as.clone() }
    }

    fn stamp(&self) -> Result<Stamp, DatasetError> {
        let unreadable = |error| read_error(&self.shown_as, error);
        let metadata = std::fs::metadata(&self.file).map_err(unreadable)?;
        if !metadata.is_file() {
            return Err(DatasetError::NotAFile { file: self.shown_as.clone() });
        }
        Ok(Stamp { bytes: metadata.len(), modified: modified(&metadata).map_err(unreadable)? })
    }

    /// Opens the file. `whole` gathers the digest of all its bytes; with `digested`, the records take the digest of
    /// their own.
    fn open(&self, whole: Option<Tally>, digested: bool) -> Result<Records, DatasetError> {
        let file = File::open(&self.file).map_err(|error| read_error(&self.shown_as, error))?;
        let raw: Box<dyn Read + Send> = match whole {
            Some(tally) => {
                let is_large = file.metadata().is_ok_and(|metadata| metadata.len() >= READ_AHEAD);
                let tallied = Tallied { inner: file, tally };
                if is_large { Box::new(self.ahead(tallied)?) } else { Box::new(tallied) }
            }
            None => Box::new(file),
        };
        let text = unpacked(&self.file, raw).and_then(|raw| text_of(raw, self.settings.encoding));
        let text = text.map_err(|error| read_error(&self.shown_as, error))?;
        Records::open(text, &self.settings, &self.shown_as, digested)
    }

    fn ahead(&self, tallied: Tallied) -> Result<Ahead, DatasetError> {
        Ahead::new(tallied).map_err(|error| read_error(&self.shown_as, error))
    }

    fn pick(&self, count: u64, seed: u64, whole: &Tally) -> Result<(Chosen, u64), DatasetError> {
        let mut records = self.open(Some(Arc::clone(whole)), false)?;
        let mut pick = Pick::new(count, seed);
        while records.advance()? {
            pick.offer(records.row());
        }
        Ok((pick.chosen(), records.row()))
    }

    /// Counts a bad row, and lists it if it must not be let through.
    fn may_take_part(&self, parsed: &Parsed, checked: &mut Checked) -> bool {
        let Some(fault) = &parsed.fault else { return true };
        if stops(fault, self.settings.bad_rows) {
            checked.problems.add(|| Problem {
                row: parsed.row.number,
                line: parsed.row.line,
                column: fault.column,
                what: fault.what.clone(),
            });
            return false;
        }
        checked.bad += 1;
        true
    }

    fn judge(&self, checked: &Checked) -> Result<(), DatasetError> {
        let file = self.shown_as.clone();
        if let (Selection::Ranges(_), Some(asked)) = (&self.settings.selection, checked.chosen.last())
            && checked.rows < asked
            && (checked.rows > 0 || !self.settings.allow_empty)
        {
            return Err(DatasetError::RowsBeyondEnd { file, asked, rows: checked.rows });
        }
        if checked.selected > 0 || self.settings.allow_empty {
            return Ok(());
        }
        let has_lone_cr = |header: &Header| header.iter().any(|name| name.contains('\r'));
        let why = match &checked.header {
            Some(header) if has_lone_cr(header) => {
                ": its lines end with a lone carriage return, which ends no record"
            }
            Some(_) if checked.rows == 0 => ", only a header",
            _ if checked.bytes == 0 => ", it is empty",
            _ if checked.rows > 0 => " that are selected",
            _ => "",
        };
        Err(DatasetError::NoRows { file, why })
    }

    fn id_index(&self, header: Option<&Header>) -> Result<Option<Ids>, DatasetError> {
        let Some(column) = &self.settings.id_column else { return Ok(None) };
        if let Some(header) = header
            && !header.contains(column)
        {
            return Err(self.no_id_column(column, header.join(", ")));
        }
        let index = IdIndex::new().map_err(|source| self.index_error(source))?;
        Ok(Some(Ids { index, column: column.clone(), found: 0 }))
    }

    fn index_id(&self, ids: &mut Ids, row: &InputRow, header: Option<&Header>) -> Result<(), DatasetError> {
        let Some(id) = ids::id_of(row, header, &ids.column) else { return Ok(()) };
        ids.found += 1;
        match ids.index.add(&id, row.number).map_err(|source| self.index_error(source))? {
            None => Ok(()),
            Some(first) => Err(DatasetError::DuplicateId {
                file: self.shown_as.clone(),
                column: ids.column.clone(),
                id,
                first,
                second: row.number,
            }),
        }
    }

    fn judge_ids(&self, ids: &Ids, checked: &Checked) -> Result<(), DatasetError> {
        let usable = checked.selected - checked.bad - checked.problems.count;
        if self.settings.format == InputFormat::Jsonl && ids.found == 0 && usable > 0 {
            return Err(self.no_id_column(&ids.column, "no row with it".to_owned()));
        }
        Ok(())
    }

    fn no_id_column(&self, column: &str, columns: String) -> DatasetError {
        DatasetError::NoIdColumn { file: self.shown_as.clone(), column: column.to_owned(), columns }
    }

    fn index_error(&self, source: rusqlite::Error) -> DatasetError {
        DatasetError::Index { file: self.shown_as.clone(), source }
    }
}

struct Ids {
    index: IdIndex,
    column: String,
    found: u64,
}

type Tally = Arc<Mutex<blake3::Hasher>>;

/// A reader that digests what passes.
struct Tallied {
    inner: File,
    tally: Tally,
}

impl Read for Tallied {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(out)?;
        if let Ok(mut hasher) = self.tally.lock() {
            hasher.update(&out[..count]);
        }
        Ok(count)
    }
}

fn finished(tally: &Tally) -> Option<Digest> {
    let hasher = tally.lock().ok()?;
    Digest::from_bytes(hasher.finalize().as_bytes())
}

fn modified(metadata: &Metadata) -> io::Result<i64> {
    let nanos = |duration: std::time::Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    Ok(match metadata.modified()?.duration_since(UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    })
}

fn padded_warning(file: &str, count: u64) -> String {
    let rows = if count == 1 { "row has" } else { "rows have" };
    format!("{file}: {count} {rows} too few fields, which were filled with empty ones")
}

fn repeat_warning(file: &str, count: u64, line: u64) -> String {
    if count == 1 {
        format!("{file}: line {line} repeats a key; a template sees the last value")
    } else {
        format!("{file}: {count} rows repeat a key, line {line} first; a template sees the last value")
    }
}
