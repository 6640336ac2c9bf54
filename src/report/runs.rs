//! What `verify runs` lists.

use std::fmt::Write as _;

use serde::Serialize;

use crate::base::{RunId, WallTime};
use crate::model::StatusCounts;
use crate::report::json::{Statuses, line};
use crate::report::{RunState, printable};

/// A run in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    /// Its id.
    pub run: RunId,
    /// The path of the input, or `-`.
    pub input: String,
    /// Rows by status, as far as they have ended.
    pub status: StatusCounts,
    /// Rows selected.
    pub total: u64,
    /// When the run was opened.
    pub started: WallTime,
    /// What becomes of it.
    pub state: RunState,
    /// The free text that the configuration gives the prompt's version.
    pub version: String,
}

/// The object of a run, its members in their fixed order.
#[derive(Debug, Serialize)]
struct Object<'a> {
    run: String,
    input: &'a str,
    status: Statuses,
    started: String,
    ended: Option<String>,
    version: &'a str,
}

/// The list as a JSON array on one line, with a line end.
pub fn runs_json(runs: &[RunLine]) -> String {
    let objects: Vec<_> = runs
        .iter()
        .map(|run| Object {
            run: run.run.to_string(),
            input: &run.input,
            status: run.status.into(),
            started: run.started.to_rfc3339(),
            ended: match &run.state {
                RunState::Ended { at, .. } => Some(at.to_rfc3339()),
                RunState::Running | RunState::Killed => None,
            },
            version: &run.version,
        })
        .collect();
    format!("{}\n", line(&objects))
}

/// The list as a table for people, with a heading.
pub fn runs_text(runs: &[RunLine]) -> String {
    let mut table = vec![
        ["RUN", "STARTED", "STATE", "PASS", "FAIL", "REVIEW", "ERROR", "SKIPPED", "ROWS", "INPUT"]
            .map(str::to_owned),
    ];
    for run in runs {
        let counts = run.status;
        let version = if run.version.is_empty() { String::new() } else { format!("  ({})", run.version) };
        table.push([
            run.run.to_string(),
            seconds(run.started),
            state(&run.state),
            counts.pass.to_string(),
            counts.fail.to_string(),
            counts.review.to_string(),
            counts.error.to_string(),
            counts.skipped.to_string(),
            run.total.to_string(),
            printable(&format!("{}{version}", run.input)),
        ]);
    }
    let width = |column: usize| table.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: [usize; 10] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &table {
        let mut cells = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                // Counts stand under each other by their last digits.
                3..=8 => write!(cells, "{cell:>width$}  "),
                9 => write!(cells, "{cell}"),
                _ => write!(cells, "{cell:<width$}  "),
            };
        }
        text.push_str(cells.trim_end());
        text.push('\n');
    }
    text
}

/// A time without its fraction.
fn seconds(at: WallTime) -> String {
    let text = at.to_rfc3339();
    text.split_once('.').map_or(text.clone(), |(whole, _)| format!("{whole}Z"))
}

fn state(state: &RunState) -> String {
    match state {
        RunState::Running => "running".to_owned(),
        RunState::Ended { exit, .. } => format!("exit {}", exit.code),
        RunState::Killed => "killed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Exit;

    fn run(state: RunState) -> RunLine {
        RunLine {
            run: RunId::new(WallTime(1_000)),
            input: "in.csv".to_owned(),
            status: StatusCounts { pass: 12, error: 1, ..StatusCounts::default() },
            total: 13,
            started: WallTime(1_000),
            state,
            version: "v2".to_owned(),
        }
    }

    #[test]
    fn json_has_the_members_of_the_contract_in_order() {
        let exit = Exit { code: 4, why: String::new() };
        let ended = run(RunState::Ended { exit, at: WallTime(2_500) });
        let text = runs_json(&[ended.clone(), run(RunState::Running)]);
        let start = format!(
            "[{{\"run\":\"{}\",\"input\":\"in.csv\",\"status\":{{\"pass\":12,\"fail\":0,\"review\":0,\"error\":1,\
             \"skipped\":0}},\"started\":\"1970-01-01T00:00:01.000Z\",\"ended\":\"1970-01-01T00:00:02.500Z\",\
             \"version\":\"v2\"}},",
            ended.run
        );
        assert!(text.starts_with(&start) && text.contains("\"ended\":null"), "{text}");
        assert_eq!(runs_json(&[]), "[]\n");
    }

    #[test]
    fn the_table_lines_up() {
        let text = runs_text(&[run(RunState::Killed)]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0].find("INPUT"), lines[1].find("in.csv"));
        assert!(lines[1].contains("killed") && lines[1].ends_with("13  in.csv  (v2)"), "{text}");
    }
}
