//! `verify agreement`.

use serde_json::Value;

use crate::cli::args::AgreementArgs;
use crate::cli::commands::Context;
use crate::cli::commands::record::Record;
use crate::cli::failure::Failure;
use crate::model::{Header, InputRow, RowContent};
use crate::policy::{Agreement, SampleState};
use crate::report::AgreementView;
use crate::run::Past;
use crate::store::{RunRecord, Store};

/// Rows that are read at once.
const PAGE: usize = 256;

/// Prints what the samples of a run say of its thresholds. Returns the exit code.
pub(super) fn run(args: &AgreementArgs, context: &Context) -> Result<u8, Failure> {
    let state = context.state_to_read(args.read.state.as_deref());
    let store = Store::open_existing(&state)?;
    let run = store.find_run(&args.read.run)?;
    let unreadable = || Failure::unable(format!("the settings of run {} cannot be read", run.id));
    let record = Record::from_json(&run.settings).ok_or_else(unreadable)?;
    let rules = record.rules().ok_or_else(unreadable)?;
    let has_verdict = record.answer.verdict.is_some();
    let mut agreement = Agreement::new(&rules, has_verdict, record.answer.confidence.is_some());
    match &args.gold {
        None => count(&store, &run, &record, &mut agreement).ok_or_else(unreadable)??,
        Some(_) if !has_verdict => {
            return Err(Failure::usage(format!(
                "--gold needs a verdict to compare with, and run {} has none",
                run.id
            )));
        }
        Some(column) => {
            let plan = record.past().ok_or_else(unreadable)?;
            let past = Past::open(&store, run.clone(), plan)?;
            compare(&store, &past, &record.answer.pass, column, &mut agreement)?;
        }
    }
    let truths = &agreement.confusion;
    if let Some(column) = &args.gold
        && truths.rows() > 0
        && truths.rows() == truths.fails()
    {
        let passing = Value::Array(record.answer.pass.clone());
        context.terminal.warn(&format!(
            "no value of the column `{column}` means pass: those that do are {passing}; is it another column?"
        ));
    }
    let view =
        AgreementView { run: run.id, rules: &rules, agreement: &agreement, gold: args.gold.as_deref() };
    let text = if args.read.json { view.to_json() + "\n" } else { view.to_text() };
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

/// Counts the samples of the run as the store has them; the input is not needed. `None`: the run's settings cannot be
/// understood.
fn count(
    store: &Store,
    run: &RunRecord,
    record: &Record,
    agreement: &mut Agreement,
) -> Option<Result<(), Failure>> {
    let judge = record.judge()?;
    let mut read = || -> Result<(), Failure> {
        let mut reader = store.reader()?;
        let (mut after, mut rows) = (0, 0);
        loop {
            let page = reader.rows_after(run.seq, after, PAGE)?;
            let Some(last) = page.last() else { break };
            after = last.row;
            rows += page.len() as u64;
            for history in &page {
                agreement.add(&judge.states(run.seq, history), None);
            }
        }
        agreement.add_unfinished(run.selected.saturating_sub(rows));
        Ok(())
    };
    Some(read())
}

/// Counts the samples of the run beside the truth in a column of its input.
fn compare(
    store: &Store,
    past: &Past,
    passing: &[Value],
    column: &str,
    agreement: &mut Agreement,
) -> Result<(), Failure> {
    let mut found = false;
    let header = past.header();
    past.rows(store, &mut |row| -> Result<(), Failure> {
        let value = gold(row.row, header, column);
        found |= value.is_some();
        let truth = value.filter(|value| !is_blank(value)).map(|value| means_pass(&value, passing));
        let states: Vec<SampleState> = row.samples.into_iter().map(|sample| sample.state).collect();
        agreement.add(&states, truth);
        Ok(())
    })?;
    if found {
        return Ok(());
    }
    let known = header.map(|names| names.join("`, `"));
    let known = known.map_or(String::new(), |names| format!("; its columns are `{names}`"));
    Err(Failure::usage(format!("the input has no column `{column}` for --gold{known}")))
}

/// The truth of a row as it stands in its column; `None` where it has no such column.
fn gold(row: &InputRow, header: Option<&Header>, column: &str) -> Option<Value> {
    match &row.content {
        RowContent::Fields(values) => {
            let at = header?.iter().position(|name| name == column)?;
            values.get(at).map(|value| Value::String(value.trim().to_owned()))
        }
        RowContent::Object(line) => {
            let members: serde_json::Map<String, Value> = serde_json::from_str(line).ok()?;
            members.get(column).cloned()
        }
        RowContent::Bad { .. } => None,
    }
}

fn is_blank(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(|text| text.trim().is_empty())
}

/// Whether a truth means pass: it is one of the values that do so in an answer, or the text of one. Spreadsheets write
/// truth values in capitals.
fn means_pass(gold: &Value, pass: &[Value]) -> bool {
    pass.iter().any(|value| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let same_text = |gold: &str| gold == text || (value.is_boolean() && gold.eq_ignore_ascii_case(&text));
        gold == value || gold.as_str().is_some_and(same_text)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn truths_are_values_or_their_texts() {
        let pass = [json!(true), json!("pass"), json!(3)];
        for gold in [json!(true), json!("true"), json!("TRUE"), json!("pass"), json!(3), json!("3")] {
            assert!(means_pass(&gold, &pass), "{gold}");
        }
        for gold in [json!(false), json!("Pass"), json!("yes"), json!(1), json!("fail")] {
            assert!(!means_pass(&gold, &pass), "{gold}");
        }
        assert!(is_blank(&json!(" ")) && is_blank(&json!(null)) && !is_blank(&json!(0)));
    }
}
