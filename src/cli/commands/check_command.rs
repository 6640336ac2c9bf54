//! `verify check`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::base::{Clock as _, SystemClock};
use crate::cli::args::CheckArgs;
use crate::cli::commands::Context;
use crate::cli::commands::check::{Good, check};
use crate::cli::commands::source::{invocation, layers, read_config};
use crate::cli::failure::Failure;
use crate::cli::settings::{ConfigFile, Effective, Resolved, effective, resolve};
use crate::model::{InputRow, KeySource, RowContent, Settings};
use crate::output::Target;
use crate::report::printable;
use crate::run::{RunError, chain};

/// The most rows that are listed.
const LISTED: usize = 20;

/// What the check has found.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<String>,
    warnings: Vec<String>,
    input: Value,
}

/// Checks everything that a run would, without a connection and without a state. Returns 0 or 2.
pub(super) fn run(args: &CheckArgs, context: &Context) -> Result<u8, Failure> {
    let terminal = context.terminal;
    let mut config = read_config(&args.job, context)?;
    if let Some(config) = &config {
        terminal.say(&format!("configuration: {}", printable(&config.path().display().to_string())));
    }
    let unknown = config.as_mut().map(ConfigFile::take_unknown).unwrap_or_default();
    let layers = layers(&args.job, context, config);
    // Standard input is read into a folder that goes with this command: a check leaves nothing behind.
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::unable(format!("cannot make a temporary folder: {error}")))?;
    let invocation = invocation(&args.job, folder.path(), SystemClock::new().wall())?;
    let is_set = |source: &KeySource| match source {
        KeySource::Variable(name) | KeySource::DefaultVariable(name) => {
            context.environment.variable(name).is_some()
        }
        KeySource::File(path) => std::fs::metadata(path).is_ok_and(|file| file.len() > 0),
        KeySource::Nothing => false,
    };
    let (findings, values) = match resolve(&layers, &invocation) {
        Ok(resolved) => {
            let values = effective(&layers, &invocation, Some(&resolved), &is_set);
            let mut findings = look(&resolved);
            findings.problems.splice(0..0, unknown.iter().map(|error| chain(error)));
            (findings, values)
        }
        Err(errors) => {
            let problems = unknown.iter().chain(&errors).map(|error| chain(error)).collect();
            let findings = Findings { problems, ..Findings::default() };
            (findings, effective(&layers, &invocation, None, &is_set))
        }
    };
    let code = if findings.problems.is_empty() { 0 } else { Failure::USAGE };
    let text = if args.json { json_text(&findings, &values) } else { values_text(&values) };
    let heard = terminal.data(&text);
    if !args.json {
        for warning in &findings.warnings {
            terminal.warn(warning);
        }
        terminal.error(&Failure::problems(findings.problems));
        if code == 0 {
            terminal.say(&printable(&format!("good: {}", rows_text(&findings.input))));
        }
    }
    Ok(if heard { code } else { 141 })
}

/// Reads every row and renders it.
fn look(resolved: &Resolved) -> Findings {
    let settings = &resolved.settings;
    let mut findings = Findings { warnings: resolved.warnings.clone(), ..Findings::default() };
    match check(settings) {
        Ok(good) => {
            findings.warnings.extend(good.warnings.iter().cloned());
            findings.input = json!({
                "path": settings.input.path.display(),
                "rows": good.checked.rows,
                "selected": good.checked.selected,
                "digest": good.checked.digest.to_hex(),
            });
            if let Err(error) = bad_rows(&good, &mut findings.warnings) {
                findings.problems.push(chain(&error));
            }
        }
        Err(failure) => findings.problems.extend(failure.messages().iter().cloned()),
    }
    if let Err(error) = place(settings) {
        findings.problems.push(chain(&error));
    }
    findings
}

/// Whether the output could be written.
fn place(settings: &Settings) -> Result<(), RunError> {
    Target::prepare(settings.output.path.as_deref(), settings.input.path.file())?.abandon();
    Ok(())
}

/// Lists the first rows that would become `error`/`bad_input`.
fn bad_rows(good: &Good, warnings: &mut Vec<String>) -> Result<(), RunError> {
    let header = good.checked.header.as_ref();
    let mut count = 0_usize;
    for row in good.source.rows(&good.checked)? {
        let row = row?;
        let Some(why) = fault(good, &row, header) else { continue };
        count += 1;
        if count <= LISTED {
            warnings.push(format!(
                "{}, row {}, line {}: it would become error/bad_input: {why}",
                good.source.shown_as(),
                row.number,
                row.line
            ));
        }
    }
    if count > LISTED {
        warnings.push(format!("{} more such rows are not listed", count - LISTED));
    }
    Ok(())
}

fn fault(good: &Good, row: &InputRow, header: Option<&crate::model::Header>) -> Option<String> {
    match &row.content {
        RowContent::Bad { why, .. } => Some(why.clone()),
        _ => good.template.render(row, header).err().map(|error| error.to_string()),
    }
}

fn rows_text(input: &Value) -> String {
    let word = |name: &str| input.get(name).map(ToString::to_string).unwrap_or_default();
    let path = input.get("path").and_then(Value::as_str).unwrap_or_default();
    let (rows, selected) = (word("rows"), word("selected"));
    if rows == selected {
        format!("{path}, {rows} rows")
    } else {
        format!("{path}, {selected} of {rows} rows")
    }
}

fn json_text(findings: &Findings, values: &[Effective]) -> String {
    let values: Vec<Value> = values
        .iter()
        .map(|entry| json!({ "key": entry.key, "value": entry.value, "origin": entry.origin }))
        .collect();
    let object = json!({
        "ok": findings.problems.is_empty(),
        "input": findings.input,
        "problems": findings.problems,
        "warnings": findings.warnings,
        "values": values,
    });
    format!("{object}\n")
}

/// The values in the form of a configuration file, each with its origin as a comment.
fn values_text(values: &[Effective]) -> String {
    const COMMENT_AT: usize = 48;
    let mut text = String::new();
    for Effective { key, value, origin } in values {
        let line = match value {
            Value::Null => format!("# {key} is not set"),
            value => format!("{key} = {}", toml(value)),
        };
        let line = printable(&line);
        let origin = printable(origin);
        if value.is_null() && origin == "default" {
            text.push_str(&line);
        } else {
            let _ = write!(text, "{line:<COMMENT_AT$}  # {origin}");
        }
        text.push('\n');
    }
    text
}

fn toml(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| format!("{} = {}", bare_or_quoted(name), toml(value)))
                .collect();
            format!("{{ {} }}", members.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        // A JSON string is a basic string of TOML.
        other => other.to_string(),
    }
}

fn bare_or_quoted(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if is_bare { name.to_owned() } else { Value::from(name).to_string() }
}
