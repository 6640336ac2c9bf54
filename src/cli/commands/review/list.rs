//! `verify review list`.

use std::fmt::Write as _;

use serde_json::value::RawValue;

use crate::cli::commands::review::desk::{Desk, waits};
use crate::cli::failure::Failure;
use crate::model::PersonDecision;
use crate::report::printable;
use crate::run::PastRow;

/// A row of the list.
#[derive(serde::Serialize)]
struct Listed {
    row: u64,
    id: Option<Box<RawValue>>,
    status: &'static str,
    reason: &'static str,
    agreement: Option<Box<RawValue>>,
    confidence: Option<Box<RawValue>>,
    answer: Option<Box<RawValue>>,
    decisions: Vec<Decided>,
}

#[derive(serde::Serialize)]
struct Decided {
    decision: &'static str,
    reviewer: String,
    note: String,
    run: String,
    decided: String,
}

impl From<PersonDecision> for Decided {
    fn from(decision: PersonDecision) -> Self {
        Self {
            decision: decision.word(),
            decided: decision.decided.to_rfc3339(),
            reviewer: decision.reviewer,
            note: decision.note,
            run: decision.run,
        }
    }
}

/// Prints the rows that wait, or those that are decided. Returns the exit code.
pub(super) fn run(desk: &Desk<'_>, decided: bool, json: bool) -> Result<u8, Failure> {
    let mut listed = Vec::new();
    desk.past.rows(desk.store, &mut |row| -> Result<(), Failure> {
        if if decided { row.person.is_some() } else { waits(&row) } {
            let history = match &row.content {
                Some(content) => desk.past.decisions().history(content)?,
                None => Vec::new(),
            };
            listed.push(entry(&row, history));
        }
        Ok(())
    })?;
    let text = if json {
        serde_json::to_string(&listed).map_err(|error| Failure::unable(error.to_string()))? + "\n"
    } else {
        listed.iter().map(line).collect()
    };
    let terminal = desk.context.terminal;
    if !terminal.data(&text) {
        return Ok(141);
    }
    if listed.is_empty() && !json {
        terminal.say(if decided { "no row was decided by a person" } else { "no row waits for a decision" });
    }
    Ok(0)
}

fn entry(row: &PastRow<'_>, history: Vec<PersonDecision>) -> Listed {
    let number = |value: rust_decimal::Decimal| {
        let places = rust_decimal::RoundingStrategy::MidpointAwayFromZero;
        raw(value.round_dp_with_strategy(4, places).normalize().to_string())
    };
    let result = &row.result;
    Listed {
        row: row.row.number,
        id: result.id.clone().and_then(raw),
        status: result.status.as_str(),
        reason: result.reason.as_str(),
        agreement: result.agreement.and_then(number),
        confidence: result.confidence.and_then(number),
        answer: result.answer.as_ref().and_then(|answer| raw(answer.text.clone())),
        decisions: history.into_iter().map(Decided::from).collect(),
    }
}

fn raw(text: String) -> Option<Box<RawValue>> {
    RawValue::from_string(text).ok()
}

/// A row for people: what is known of it, then each decision on a line of its own.
fn line(row: &Listed) -> String {
    let mut text = format!("row {}", row.row);
    if let Some(id) = &row.id {
        let _ = write!(text, " ({})", printable(id.get()));
    }
    let _ = write!(text, ": {}/{}", row.status, row.reason);
    for (name, value) in [("agreement", &row.agreement), ("confidence", &row.confidence)] {
        if let Some(value) = value {
            let _ = write!(text, ", {name} {value}");
        }
    }
    if let Some(answer) = &row.answer {
        let _ = write!(text, ", {}", shortened(&printable(answer.get())));
    }
    text.push('\n');
    for decision in &row.decisions {
        let by = if decision.reviewer.is_empty() { "" } else { " by " };
        let note = if decision.note.is_empty() { "" } else { ": " };
        let _ = writeln!(
            text,
            "  {} {}{by}{}{note}{}",
            decision.decided,
            decision.decision,
            printable(&decision.reviewer),
            shortened(&printable(&decision.note))
        );
    }
    text
}

/// At most 120 characters of a line.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}
