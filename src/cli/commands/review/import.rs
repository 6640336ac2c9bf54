//! `verify review import`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::base::{Clock as _, Digest, SystemClock};
use crate::cli::commands::review::desk::Desk;
use crate::cli::failure::Failure;
use crate::dataset::{Checked, Source, format_of};
use crate::model::{
    BadRows, Encoding, Header, InputFormat, InputPath, InputRow, InputSettings, PersonDecision, Ragged,
    RowContent, Selection, Status,
};
use crate::report::printable;
use crate::run::{JobLock, PastRow};

/// The most problems that are listed.
const LISTED: usize = 20;

/// A decision as a line of the file has it.
#[derive(Debug)]
struct Line {
    line: u64,
    positive: bool,
    reviewer: String,
    note: String,
    content: Option<String>,
}

/// Problems by the line that has them.
#[derive(Debug, Default)]
struct Problems {
    found: Vec<(u64, String)>,
}

impl Problems {
    fn add(&mut self, line: u64, what: String) {
        self.found.push((line, what));
    }

    /// All problems as one failure, if there is any.
    fn check(mut self, file: &str) -> Result<(), Failure> {
        if self.found.is_empty() {
            return Ok(());
        }
        self.found.sort();
        let more = self.found.len().saturating_sub(LISTED);
        let mut messages: Vec<String> = self
            .found
            .iter()
            .take(LISTED)
            .map(|(line, what)| format!("{file}, line {line}: {what}"))
            .collect();
        if more > 0 {
            messages.push(format!("{more} more problems are not listed"));
        }
        messages.push("nothing was imported".to_owned());
        Err(Failure::problems(messages))
    }
}

/// Takes the decisions of a file: all of them or none. Returns the exit code.
pub(super) fn run(desk: &Desk<'_>, file: &Path) -> Result<u8, Failure> {
    let Desk { context, store, past, .. } = *desk;
    let run = past.run();
    let mut lock = JobLock::take(desk.state, run.job, std::process::id(), &context.environment.host())?;
    lock.tell_run(run.id);
    let shown = file.display().to_string();
    let mut problems = Problems::default();
    let lines = read(desk, file, &mut problems)?;
    let decisions = match_rows(desk, lines, &mut problems)?;
    problems.check(&shown)?;
    let passes = decisions.iter().filter(|(_, decision)| decision.positive).count();
    let kept = store.decide(&decisions)?;
    let (fails, known) = (decisions.len() - passes, decisions.len() as u64 - kept);
    let before = if known > 0 { format!(" ({known} of them as before)") } else { String::new() };
    let said = if decisions.is_empty() {
        "no decision in the file: nothing has changed".to_owned()
    } else {
        let command = printable(&desk.record.command);
        format!(
            "decided: {passes} pass, {fails} fail{before}; this writes the output with them:\n  {command}"
        )
    };
    context.terminal.say(&said);
    drop(lock);
    Ok(0)
}

/// The decisions of the file, by row.
fn read(desk: &Desk<'_>, file: &Path, problems: &mut Problems) -> Result<BTreeMap<u64, Line>, Failure> {
    let (source, checked) = open(desk, file)?;
    for problem in &checked.problems.first {
        problems.add(problem.line, problem.what.clone());
    }
    let header = checked.header.as_ref();
    if let Some(header) = header {
        let lacking: Vec<&str> =
            ["row", "decision"].into_iter().filter(|name| !header.iter().any(|have| have == name)).collect();
        if !lacking.is_empty() {
            let columns = lacking.join("` and `");
            return Err(Failure::usage(format!(
                "{} has no column `{columns}`: is it a file of `verify review export`?",
                source.shown_as()
            )));
        }
    }
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    if !checked.problems.first.is_empty() {
        return Ok(lines);
    }
    for row in source.rows(&checked)? {
        let row = row?;
        let at = row.line;
        match decision(&row, header) {
            Ok(Some((number, new))) => match lines.get(&number) {
                Some(old) if old.positive != new.positive => {
                    problems.add(at, format!("row {number} is decided otherwise on line {}", old.line));
                }
                _ => {
                    lines.insert(number, new);
                }
            },
            Ok(None) => {}
            Err(what) => problems.add(at, what),
        }
    }
    Ok(lines)
}

/// Opens the file. A spreadsheet may have written a CSV with another delimiter than it was given.
fn open(desk: &Desk<'_>, file: &Path) -> Result<(Source, Checked), Failure> {
    let format = format_of(file).unwrap_or_else(|| desk.record.input.format());
    let first = match format {
        InputFormat::Csv { delimiter } => delimiter,
        InputFormat::Jsonl => return check(file, format),
    };
    let opened = check(file, format);
    let fits = |opened: &Result<(Source, Checked), Failure>| {
        opened.as_ref().is_ok_and(|(_, checked)| {
            checked.header.as_ref().is_some_and(|header| header.iter().any(|name| name == "decision"))
        })
    };
    if fits(&opened) {
        return opened;
    }
    let others = [b',', b';', b'\t'].into_iter().filter(|other| *other != first);
    let other = others.map(|delimiter| check(file, InputFormat::Csv { delimiter })).find(fits);
    other.unwrap_or(opened)
}

fn check(file: &Path, format: InputFormat) -> Result<(Source, Checked), Failure> {
    let source = Source::new(InputSettings {
        path: InputPath::File(file.to_owned()),
        format,
        encoding: Encoding::Unicode,
        bad_rows: BadRows::Stop,
        // Spreadsheets leave empty fields at the end of a record out.
        ragged: Ragged::Pad,
        selection: Selection::All,
        id_column: None,
        max_record: 1 << 24,
        allow_empty: true,
    });
    let checked = source.check(&mut |_, _| {})?;
    Ok((source, checked))
}

/// The row and the decision that a record holds; `None` for an empty decision.
fn decision(row: &InputRow, header: Option<&Header>) -> Result<Option<(u64, Line)>, String> {
    let members: Option<serde_json::Map<String, Value>> = match &row.content {
        RowContent::Object(line) => Some(serde_json::from_str(line).map_err(|error| error.to_string())?),
        RowContent::Fields(_) => None,
        RowContent::Bad { why, .. } => return Err(why.clone()),
    };
    let text = |name: &str| -> Result<String, String> {
        if let Some(members) = &members {
            return match members.get(name) {
                None | Some(Value::Null) => Ok(String::new()),
                Some(Value::String(text)) => Ok(text.trim().to_owned()),
                Some(Value::Number(number)) => Ok(number.to_string()),
                Some(other) => Err(format!("`{name}` is {other}, and must be a text")),
            };
        }
        let at = header.and_then(|header| header.iter().position(|have| have == name));
        let value = match (&row.content, at) {
            (RowContent::Fields(values), Some(at)) => values.get(at).map_or("", AsRef::as_ref),
            _ => "",
        };
        Ok(value.trim().to_owned())
    };
    let positive = match text("decision")?.as_str() {
        "" => return Ok(None),
        "pass" => true,
        "fail" => false,
        other => return Err(format!("the decision {other:?} is neither pass nor fail")),
    };
    let number = text("row")?;
    let number = number.parse().map_err(|_| format!("the row {number:?} is no row number"))?;
    let content = Some(text("content")?).filter(|content| !content.is_empty());
    let line = Line { line: row.line, positive, reviewer: text("reviewer")?, note: text("note")?, content };
    Ok(Some((number, line)))
}

/// Finds the row of each decision, and whether it can be decided.
fn match_rows(
    desk: &Desk<'_>,
    mut lines: BTreeMap<u64, Line>,
    problems: &mut Problems,
) -> Result<Vec<(Digest, PersonDecision)>, Failure> {
    let Desk { store, past, .. } = *desk;
    let now = SystemClock::new().wall();
    let mut decisions: Vec<(Digest, PersonDecision)> = Vec::new();
    let mut by_content: BTreeMap<Digest, (u64, bool)> = BTreeMap::new();
    past.rows(store, &mut |row| -> Result<(), Failure> {
        let number = row.row.number;
        let Some(line) = lines.remove(&number) else { return Ok(()) };
        let content = match decidable(&row, &line) {
            Ok(content) => content,
            Err(what) => {
                problems.add(line.line, what);
                return Ok(());
            }
        };
        match by_content.get(&content) {
            Some((other, positive)) if *positive != line.positive => {
                let what = format!("row {number} asks the same as row {other}, which is decided otherwise");
                problems.add(line.line, what);
                return Ok(());
            }
            _ => by_content.insert(content, (number, line.positive)),
        };
        let decision = PersonDecision {
            positive: line.positive,
            reviewer: line.reviewer,
            note: line.note,
            run: past.run().id.to_string(),
            row: number,
            decided: now,
        };
        decisions.push((content, decision));
        Ok(())
    })?;
    for (number, line) in lines {
        problems.add(line.line, format!("run {} has no row {number}", past.run().id));
    }
    Ok(decisions)
}

/// The content of a row that can be decided, or why it cannot.
fn decidable(row: &PastRow<'_>, line: &Line) -> Result<Digest, String> {
    let number = row.row.number;
    let (status, reason) = (row.result.status, row.result.reason);
    let cannot = || format!("row {number} is {status}/{reason} and cannot be decided");
    let content = row.content.ok_or_else(cannot)?;
    if matches!(status, Status::Error | Status::Skipped) {
        return Err(cannot());
    }
    if line.content.as_ref().is_some_and(|exported| *exported != content.to_hex()) {
        return Err(format!("row {number} is not what it was when the file was exported: export it again"));
    }
    Ok(content)
}
