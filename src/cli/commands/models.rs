//! `verify models`: the price table.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::cli::args::ModelsArgs;
use crate::cli::commands::Context;
use crate::cli::failure::Failure;
use crate::cli::settings::closest;
use crate::provider::{ModelFacts, TableSource, model_facts};

/// Runs the command.
pub(super) fn run(args: &ModelsArgs, context: &Context) -> Result<u8, Failure> {
    let (source, models) = model_facts();
    let text = match &args.name {
        None if args.json => {
            let rows: Vec<Value> = models.iter().map(|model| brief(model, &source)).collect();
            format!("{}\n", Value::Array(rows))
        }
        None => table(&models, &source),
        Some(name) => {
            let Some(model) = ModelFacts::find(&models, name) else {
                let hint = closest(name, models.iter().map(|model| model.id.as_str()));
                return Err(Failure::usage(format!(
                    "no price is known for the model `{name}`{hint}; give one with --price 'input=1,output=4'"
                )));
            };
            if args.json { format!("{}\n", whole(model, &source)) } else { page(model, &source) }
        }
    };
    Ok(if context.terminal.data(&text) { 0 } else { 141 })
}

/// Where the table comes from, in a few words.
fn origin(source: &TableSource) -> String {
    format!("{} {}", source.package, source.version)
}

/// One line of the list as JSON.
fn brief(model: &ModelFacts, source: &TableSource) -> Value {
    let member = |name: &str| model.get(name).map_or(Value::Null, plain);
    json!({
        "id": model.id,
        "provider": member("provider"),
        "input": member("input"),
        "cached_input": member("cached_input"),
        "cache_write": member("cache_write"),
        "output": member("output"),
        "context_window": member("context_window"),
        "max_output_tokens": member("max_output_tokens"),
        "source": origin(source),
        "date": source.published,
    })
}

/// All of one model as JSON.
fn whole(model: &ModelFacts, source: &TableSource) -> Value {
    let mut members: Map<String, Value> = Map::new();
    for (name, value) in &model.members {
        // The table's page of a vendor is its own word beside the table's source.
        let name = if name == "source" { "page" } else { name };
        members.insert(name.to_owned(), plain(value));
    }
    members.insert("source".to_owned(), origin(source).into());
    members.insert("date".to_owned(), source.published.as_str().into());
    Value::Object(members)
}

/// A value whose whole numbers have no decimals.
fn plain(value: &Value) -> Value {
    match value {
        Value::Number(number) => number
            .to_string()
            .strip_suffix(".0")
            .and_then(|text| text.parse::<u64>().ok())
            .map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        }
        other => other.clone(),
    }
}

/// A value for people.
fn shown(value: Option<&Value>) -> String {
    match value.map(plain) {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text,
        Some(Value::Array(items)) => {
            items.iter().map(|item| shown(Some(item))).collect::<Vec<_>>().join(", ")
        }
        Some(Value::Object(members)) => {
            let member = |(name, value): (&String, &Value)| format!("{name} {}", shown(Some(value)));
            members.iter().map(member).collect::<Vec<_>>().join(", ")
        }
        Some(other) => other.to_string(),
    }
}

const COLUMNS: [(&str, &str); 6] = [
    ("model", "id"),
    ("provider", "provider"),
    ("input", "input"),
    ("cached", "cached_input"),
    ("output", "output"),
    ("context", "context_window"),
];

fn table(models: &[ModelFacts], source: &TableSource) -> String {
    let head: Vec<String> = COLUMNS.iter().map(|(title, _)| (*title).to_owned()).collect();
    let rows = models.iter().map(|model| COLUMNS.iter().map(|(_, name)| shown(model.get(name))).collect());
    let lines: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |at: usize| lines.iter().map(|line| line[at].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
            // Names to the left, numbers to the right.
            let _ = if at < 2 { write!(text, "{cell:<width$}  ") } else { write!(text, "{cell:>width$}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "\nUSD per million tokens, from {} of {}. `verify models NAME` shows all of one model.",
        origin(source),
        source.published
    );
    text
}

/// The members that have a line of their own in the table of rates.
const RATES: [&str; 4] = ["input", "cached_input", "cache_write", "output"];
const TIERS: [&str; 3] = ["batch", "flex", "priority"];

fn page(model: &ModelFacts, source: &TableSource) -> String {
    let mut text = format!("{} ({})\n\n", model.id, shown(model.get("provider")));
    let _ = writeln!(
        text,
        "{:<22}{:>10}{:>10}{:>13}{:>10}",
        "USD per million tokens", "input", "cached", "cache write", "output"
    );
    let mut rates = |name: &str, of: &dyn Fn(&str) -> Option<Value>| {
        let [input, cached, write, output] = RATES.map(|rate| shown(of(rate).as_ref()));
        let _ = writeln!(text, "{name:<22}{input:>10}{cached:>10}{write:>13}{output:>10}");
    };
    rates("standard", &|rate| model.get(rate).cloned());
    for tier in TIERS {
        if let Some(Value::Object(members)) = model.get(tier) {
            rates(tier, &|rate| members.get(rate).cloned());
        }
    }
    if let Some(Value::Object(long)) = model.get("long_context") {
        let above = shown(long.get("above_input_tokens"));
        rates(&format!("above {above} in"), &|rate| long.get(rate).cloned());
        if let Some(Value::Object(batch)) = long.get("batch") {
            rates("  batch", &|rate| batch.get(rate).cloned());
        }
    }
    text.push('\n');
    let own = |name: &str| RATES.contains(&name) || TIERS.contains(&name);
    let skipped = ["id", "provider", "long_context", "litellm_key", "source"];
    for (name, value) in &model.members {
        if !own(name) && !skipped.contains(&name.as_str()) {
            let _ = writeln!(text, "{:<34}{}", name.replace('_', " "), shown(Some(value)));
        }
    }
    if let Some(page) = model.get("source") {
        let _ = writeln!(text, "{:<34}{}", "vendor's page", shown(Some(page)));
    }
    let _ = writeln!(text, "{:<34}{} of {}", "source of the prices", origin(source), source.published);
    text
}
