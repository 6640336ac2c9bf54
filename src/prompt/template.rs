//! The two templates of a run.

use minijinja::ErrorKind;

use crate::model::{Header, InputRow, Prompt, RowContent};
use crate::prompt::analysis::{Analysis, Need, Segment, analyse, syntax_error};
use crate::prompt::engine::Engine;
use crate::prompt::record::Names;
use crate::prompt::{FieldPath, PromptError, RenderError, Step, json};

const SYSTEM: &str = "system";
const USER: &str = "user";

/// A compiled pair of templates: the system prompt, if there is one, and the user prompt.
#[derive(Debug)]
pub struct Template {
    engine: Engine,
    system: Option<Piece>,
    user: Piece,
    needs: Vec<Need>,
}

/// One template: rendered by the engine, or without it.
#[derive(Debug)]
struct Piece {
    name: &'static str,
    segments: Option<Vec<Segment>>,
}

impl Template {
    /// Compiles the templates.
    ///
    /// # Errors
    ///
    /// A syntax error with its line and a mark under its place; a filter, test or function that does not exist; a
    /// template that would read another one.
    pub fn compile(system: Option<&str>, user: &str) -> Result<Self, PromptError> {
        let mut engine = Engine::new();
        let mut needs: Vec<Need> = Vec::new();
        let mut piece = |name: &'static str, source: &str| {
            let Analysis { needs: found, source: edited, segments } = analyse(name, source, &mut engine)?;
            engine.add(name, edited).map_err(|error| syntax_error(name, source, &error))?;
            for need in found {
                match needs.iter_mut().find(|have| have.path == need.path) {
                    Some(have) => {
                        have.optional &= need.optional;
                        have.conditional &= need.conditional;
                        have.compared = have.compared.or(need.compared);
                    }
                    None => needs.push(need),
                }
            }
            Ok(Piece { name, segments })
        };
        let system = system.map(|source| piece(SYSTEM, source)).transpose()?;
        let user = piece(USER, user)?;
        Ok(Self { engine, system, user, needs })
    }

    /// The fields that the templates use, in the order of their first use, without those that are used only under
    /// `is defined` or `default`.
    pub fn required_fields(&self) -> Vec<FieldPath> {
        self.needs.iter().filter(|need| !need.optional).map(|need| need.path.clone()).collect()
    }

    pub(super) fn needs(&self) -> &[Need] {
        &self.needs
    }

    /// Renders a row. `header` names the columns of a CSV record; a JSON record has none.
    ///
    /// # Errors
    ///
    /// A [`RenderError`] that names the field or the reason; the row is `error`/`bad_input`.
    pub fn render(&self, row: &InputRow, header: Option<&Header>) -> Result<Prompt, RenderError> {
        if let RowContent::Bad { why, .. } = &row.content {
            return Err(RenderError::BadRecord { why: why.clone() });
        }
        // The engine's view of the row is built only for a template that needs it.
        let mut names = None;
        let mut render = |piece: &Piece| {
            if let Some(segments) = &piece.segments {
                return plain(segments, row, header);
            }
            let malformed = || RenderError::BadRecord { why: "the record is malformed".to_owned() };
            let names = match &names {
                Some(names) => names,
                None => names.insert(Names::of(row, header).ok_or_else(malformed)?),
            };
            self.engine.render(piece.name, names).map_err(|error| self.explain(&error, row, header))
        };
        let system = self.system.as_ref().map(&mut render).transpose()?;
        Ok(Prompt { system, user: render(&self.user)? })
    }

    fn explain(&self, error: &minijinja::Error, row: &InputRow, header: Option<&Header>) -> RenderError {
        match error.kind() {
            ErrorKind::OutOfFuel => return RenderError::TooMuchWork,
            ErrorKind::UndefinedError => {
                let needed = self.needs.iter().filter(|need| !need.optional);
                let missing = needed
                    .filter_map(|need| Some((need, missing_part(&need.path, row, header)?)))
                    // What stands outside of every branch was surely used.
                    .min_by_key(|(need, _)| need.conditional);
                if let Some((need, missing)) = missing {
                    return RenderError::MissingField { field: need.path.clone(), missing };
                }
            }
            _ => {}
        }
        let mut why = match (error.kind(), error.detail()) {
            (ErrorKind::UndefinedError, None) => "the template uses a value that is undefined".to_owned(),
            (_, Some(detail)) => detail.to_owned(),
            (kind, None) => kind.to_string(),
        };
        if why.contains("plain object") {
            why.push_str(" (a number of the row must pass through |int or |float first)");
        }
        let why: String = why.chars().filter(|letter| !letter.is_control()).take(200).collect();
        let line = error.line().map(|line| format!(", line {line}")).unwrap_or_default();
        RenderError::Unusable { why: format!("prompt.{}{line}: {why}", error.name().unwrap_or(USER)) }
    }
}

/// The part of a path that a row lacks; `None` if the row has it all.
pub(super) fn missing_part(path: &FieldPath, row: &InputRow, header: Option<&Header>) -> Option<FieldPath> {
    let steps = path.steps();
    match &row.content {
        RowContent::Fields(_) => {
            let has = header.is_some_and(|header| header.iter().any(|name| name == path.name()));
            match steps.get(1) {
                _ if !has => Some(path.prefix(1)),
                Some(Step::Key(_)) => Some(path.prefix(2)),
                _ => None,
            }
        }
        RowContent::Object(text) => {
            let mut value = &**text;
            for (at, step) in steps.iter().enumerate() {
                // A letter of a text has a place too.
                if matches!(step, Step::Index(_)) && value.starts_with('"') {
                    return None;
                }
                match json::down(value, std::slice::from_ref(step)) {
                    Some(inner) => value = inner,
                    None => return Some(path.prefix(at + 1)),
                }
            }
            None
        }
        RowContent::Bad { .. } => None,
    }
}

/// Renders a template that is made of text and plain fields.
fn plain(segments: &[Segment], row: &InputRow, header: Option<&Header>) -> Result<String, RenderError> {
    let fields = || {
        segments.iter().filter_map(|segment| match segment {
            Segment::Field(path) => Some(path),
            Segment::Text(_) => None,
        })
    };
    let missing = |path: &FieldPath| RenderError::MissingField {
        field: path.clone(),
        missing: missing_part(path, row, header).unwrap_or_else(|| path.clone()),
    };
    // The values in the order of their fields, all found in one look at the record.
    let mut values: Vec<Option<&str>> = vec![None; fields().count()];
    match &row.content {
        RowContent::Fields(record) => {
            for (value, path) in values.iter_mut().zip(fields()) {
                let at = header.and_then(|header| header.iter().position(|name| name == path.name()));
                *value =
                    at.filter(|_| path.steps().len() == 1).and_then(|at| record.get(at)).map(|text| &**text);
            }
        }
        RowContent::Object(text) => {
            for (name, raw) in json::members(text) {
                for (value, path) in values.iter_mut().zip(fields()) {
                    if json::is_named(name, path.name()) {
                        *value = Some(raw);
                    }
                }
            }
            for (value, path) in values.iter_mut().zip(fields()) {
                *value = value.and_then(|top| json::down(top, path.steps().get(1..).unwrap_or_default()));
            }
        }
        RowContent::Bad { why, .. } => return Err(RenderError::BadRecord { why: why.clone() }),
    }
    let is_json = matches!(row.content, RowContent::Object(_));
    let length = |segment: &Segment| if let Segment::Text(text) = segment { text.len() } else { 0 };
    let values_length = values.iter().flatten().map(|value| value.len()).sum::<usize>();
    let mut out = String::with_capacity(segments.iter().map(length).sum::<usize>() + values_length);
    let mut values = values.into_iter();
    for segment in segments {
        match segment {
            Segment::Text(text) => out.push_str(text),
            Segment::Field(path) => {
                let value = values.next().flatten().ok_or_else(|| missing(path))?;
                if is_json && value.starts_with('"') {
                    let text =
                        json::text(value).ok_or_else(|| RenderError::BadText { field: path.clone() })?;
                    out.push_str(&text);
                } else {
                    out.push_str(value);
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
