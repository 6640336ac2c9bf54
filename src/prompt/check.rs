//! Whether the input has the fields that the templates need.

use std::fmt::Write;

use crate::model::{Header, InputRow, RowContent};
use crate::prompt::analysis::Need;
use crate::prompt::engine::{Looks, Use};
use crate::prompt::template::missing_part;
use crate::prompt::{FieldPath, PromptError, Template, json};

/// So many row numbers of a partly missing field are kept.
const MOST_ROWS: usize = 20;
/// So many names of the input are kept for suggestions.
const MOST_NAMES: usize = 200;

/// Looks at every selected row before anything is sent.
#[derive(Debug)]
pub struct FieldCheck {
    states: Vec<State>,
    rows: u64,
    names: Vec<String>,
    csv: Option<Header>,
}

#[derive(Debug)]
struct State {
    need: Need,
    /// Whether a row has it and can use it.
    found: bool,
    /// What it was where it could not be used.
    unfit: Option<(Use, Looks)>,
    missing: u64,
    first: Vec<u64>,
}

/// What the rows have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldReport {
    /// Rows that were looked at; malformed ones are not.
    pub rows: u64,
    /// Fields that some rows lack, or hold in a form that the template cannot use. Fields that are used only inside
    /// of branches and loops are left out: a row may do without them.
    pub partial: Vec<PartialField>,
}

/// A field that some rows lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialField {
    /// The field.
    pub field: FieldPath,
    /// How many rows lack it, at least 1.
    pub missing: u64,
    /// The first of them by number, at most 20.
    pub first_rows: Vec<u64>,
}

impl FieldCheck {
    /// A check of what these templates need.
    pub fn new(template: &Template) -> Self {
        let state = |need: &Need| State {
            need: need.clone(),
            found: false,
            unfit: None,
            missing: 0,
            first: Vec::new(),
        };
        let checked = |need: &&Need| !need.optional || need.compared.is_some();
        let states = template.needs().iter().filter(checked).map(state).collect();
        Self { states, rows: 0, names: Vec::new(), csv: None }
    }

    /// Looks at a selected row. For CSV everything but numbers is decided at the first one.
    pub fn see(&mut self, row: &InputRow, header: Option<&Header>) {
        match &row.content {
            RowContent::Bad { .. } => return,
            RowContent::Fields(fields) => self.see_record(row, fields, header),
            RowContent::Object(text) => self.see_object(row, text),
        }
        self.rows += 1;
    }

    fn see_record(&mut self, row: &InputRow, fields: &[Box<str>], header: Option<&Header>) {
        let first = self.csv.is_none();
        if let (true, Some(header)) = (first, header) {
            self.csv = Some(header.clone());
        }
        for state in &mut self.states {
            // A text always fits, unless it is compared with a number.
            if !first && state.need.compared.is_none() {
                continue;
            }
            let path = &state.need.path;
            let at = header.and_then(|header| header.iter().position(|name| name == path.name()));
            let has = missing_part(path, row, header).is_none();
            let value = at.filter(|_| has).and_then(|at| fields.get(at));
            state.note(row.number, value.map(|text| Looks::of_text(text)));
        }
    }

    fn see_object(&mut self, row: &InputRow, text: &str) {
        let wants_names = self.names.len() < MOST_NAMES && self.states.iter().any(|state| !state.found);
        let mut tops: Vec<Option<&str>> = vec![None; self.states.len()];
        for (raw, value) in json::members(text) {
            for (top, state) in tops.iter_mut().zip(&self.states) {
                if json::is_named(raw, state.need.path.name()) {
                    *top = Some(value);
                }
            }
            if wants_names
                && let Some(name) = json::text(raw)
                && !self.names.iter().any(|have| *have == name)
            {
                self.names.push(name.into_owned());
            }
        }
        for (state, top) in self.states.iter_mut().zip(tops) {
            let path = &state.need.path;
            let below = path.steps().get(1..).unwrap_or_default();
            let value = top.and_then(|top| json::down(top, below));
            // Places of letters in a text are rare; they are looked up the long way.
            let looks = match value {
                Some(value) => Some(Looks::of_json(value)),
                None if !below.is_empty() && missing_part(path, row, None).is_none() => Some(Looks::Text),
                None => None,
            };
            state.note(row.number, looks);
        }
    }

    /// What the rows have.
    ///
    /// # Errors
    ///
    /// Fields that no row has, or that no row holds in a form that the template can use.
    pub fn verdict(self) -> Result<FieldReport, PromptError> {
        if self.rows == 0 {
            return Ok(FieldReport::default());
        }
        let lost = |state: &&State| !state.found && (!state.need.optional || state.unfit.is_some());
        let lost: Vec<&State> = self.states.iter().filter(lost).collect();
        if !lost.is_empty() {
            let fields = lost.iter().map(|state| state.need.path.clone()).collect();
            return Err(PromptError::UnknownFields { fields, message: self.message(&lost) });
        }
        let counts = |state: &State| state.missing > 0 && !state.need.optional && !state.need.conditional;
        // The rows of a column that all lack it would be in `lost`; a text that cannot be compared is counted by row.
        let partial = self.states.into_iter().filter(counts).map(|state| PartialField {
            field: state.need.path,
            missing: state.missing,
            first_rows: state.first,
        });
        Ok(FieldReport { rows: self.rows, partial: partial.collect() })
    }

    fn message(&self, lost: &[&State]) -> String {
        let have: Vec<&str> = match &self.csv {
            Some(header) => header.iter().map(String::as_str).collect(),
            None => self.names.iter().map(String::as_str).collect(),
        };
        let mut text = String::new();
        for state in lost {
            if !text.is_empty() {
                text.push_str("; ");
            }
            let path = &state.need.path;
            let label = path.to_string();
            if let Some((used, looks)) = state.unfit {
                text.push_str(&used.complaint(&label, looks));
                continue;
            }
            let _ = write!(text, "the template needs the field `{label}`, which no selected row has");
            if have.contains(&path.name()) {
                if self.csv.is_some() && path.steps().len() > 1 {
                    let _ =
                        write!(text, " (the column `{}` holds texts, which have no members)", path.name());
                }
            } else if let Some(near) = nearest(path.name(), &have) {
                let _ = write!(text, "; did you mean `{}`?", FieldPath::top(near));
            }
        }
        if lost.iter().all(|state| state.unfit.is_some()) {
            return text;
        }
        let kind = if self.csv.is_some() { "columns" } else { "fields" };
        match have.as_slice() {
            [only] if self.csv.is_some() => {
                let _ = write!(
                    text,
                    " (the input has one column, `{only}`: is it separated by something else? See --delimiter)"
                );
            }
            [] => text.push_str(" (the input has none at all)"),
            _ => {
                let listed: Vec<String> = have.iter().take(20).map(|name| format!("`{name}`")).collect();
                let more = if have.len() > 20 { ", …" } else { "" };
                let _ = write!(text, " (the input has the {kind} {}{more})", listed.join(", "));
            }
        }
        text
    }
}

impl State {
    /// Notes what a row holds; `None` if it lacks the field.
    fn note(&mut self, row: u64, looks: Option<Looks>) {
        let fits = match (looks, self.need.compared) {
            (Some(looks), Some(used)) if !used.allows(looks) => {
                self.unfit.get_or_insert((used, looks));
                false
            }
            (looks, _) => looks.is_some(),
        };
        if fits {
            self.found = true;
        } else {
            self.missing += 1;
            if self.first.len() < MOST_ROWS {
                self.first.push(row);
            }
        }
    }
}

fn nearest<'a>(name: &str, have: &[&'a str]) -> Option<&'a str> {
    let folded = name.to_lowercase();
    have.iter()
        .map(|have| (strsim::jaro_winkler(&folded, &have.to_lowercase()), *have))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, near)| near)
}

#[cfg(test)]
mod tests;
