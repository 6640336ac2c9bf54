//! Which columns an output has, and whether their names collide.

use std::collections::{HashMap, HashSet};

use crate::model::{Header, InputRow, OutputFormat, OutputSettings, RowContent};
use crate::output::OutputError;
use crate::output::members::for_each_key;

/// The answer's columns as they are named in a CSV.
pub(super) fn answer_names(settings: &OutputSettings, answer_columns: &[String]) -> Vec<String> {
    let whole = ["answer".to_owned()];
    let columns = if answer_columns.is_empty() { &whole } else { answer_columns };
    columns.iter().map(|name| format!("{}{name}", settings.prefix)).collect()
}

/// The result's columns as they are named in a CSV.
pub(super) fn result_names(settings: &OutputSettings) -> Vec<String> {
    let all = ["status", "reason", "confidence", "agreement", "error", "cost_usd"];
    let count = if settings.accounting { all.len() } else { all.len() - 1 };
    all[..count].iter().map(|name| format!("{}_{name}", settings.result_field)).collect()
}

/// Refuses an output in which two columns, or two members, would have one name. `header` are the input's columns:
/// those of a CSV file, or for CSV out of JSONL those that a [`ColumnCollector`] has gathered. A JSONL input that
/// becomes JSONL is judged row by row, with [`crate::output::has_member`].
pub fn check_names(
    settings: &OutputSettings,
    header: Option<&Header>,
    answer_columns: &[String],
) -> Result<(), OutputError> {
    const INPUT: &str = "an input column";
    const ANSWER: &str = "an answer column";
    const RESULT: &str = "a result column";
    let input = header.map_or(&[][..], |names| &names[..]);
    if settings.format == OutputFormat::Jsonl {
        return if input.contains(&settings.result_field) {
            Err(OutputError::Collision {
                column: settings.result_field.clone(),
                first: INPUT,
                second: "the result",
                flag: "--result-field",
            })
        } else {
            Ok(())
        };
    }
    let mut seen: HashMap<String, &'static str> = HashMap::new();
    let groups = [
        (INPUT, input.to_vec()),
        (ANSWER, answer_names(settings, answer_columns)),
        (RESULT, result_names(settings)),
    ];
    for (kind, names) in groups {
        for column in names {
            if let Some(first) = seen.insert(column.clone(), kind) {
                let flag = if (first, kind) == (INPUT, RESULT) { "--result-field" } else { "--prefix" };
                return Err(OutputError::Collision { column, first, second: kind, flag });
            }
        }
    }
    Ok(())
}

/// Gathers the columns of a CSV output from the rows of a JSONL input: every key of the top level, in order of first
/// appearance.
#[derive(Debug, Default)]
pub struct ColumnCollector {
    columns: Vec<String>,
    seen: HashSet<String>,
    has_bad_row: bool,
}

impl ColumnCollector {
    /// The most columns: what spreadsheets can hold.
    pub const MOST: usize = 16_384;

    /// A collector that has seen no row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the keys of a row.
    pub fn add(&mut self, row: &InputRow) {
        let line = match &row.content {
            RowContent::Object(line) => line,
            RowContent::Bad { .. } => {
                self.has_bad_row = true;
                return;
            }
            RowContent::Fields(_) => return,
        };
        let mut likely = 0;
        for_each_key(line, &mut |key| {
            // Most rows have the keys of the row before, in the same order.
            let is_known =
                self.columns.get(likely).is_some_and(|column| column == key) || self.seen.contains(key);
            likely += 1;
            // One more than allowed is kept, as the sign that there are too many.
            if !is_known && self.columns.len() <= Self::MOST {
                self.columns.push(key.to_owned());
                self.seen.insert(key.to_owned());
            }
        });
    }

    /// The columns. Where all rows are malformed there is one, `raw`, for their records.
    pub fn finish(mut self) -> Result<Header, OutputError> {
        if self.columns.len() > Self::MOST {
            return Err(OutputError::TooManyColumns { most: Self::MOST });
        }
        if self.columns.is_empty() && self.has_bad_row {
            self.columns.push("raw".to_owned());
        }
        Ok(self.columns.into())
    }
}
