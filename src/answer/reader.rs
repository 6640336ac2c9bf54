//! From a text to an answer and its vote.

use rust_decimal::Decimal;
use serde_json::Value;

use crate::answer::extract::{Thinking, Values, fenced, thinking};
use crate::answer::json::{Broken, Parsed, compact, member, read_prefix};
use crate::answer::schema::bounded;
use crate::answer::{AnswerError, Schema};
use crate::model::{Answer, AnswerSettings, Vote};

/// The most sentences about an invalid answer.
const MOST_ERRORS: usize = 5;

/// Reads texts as answers to one schema.
#[derive(Debug, Clone)]
pub struct Reader {
    schema: Schema,
    verdict: Option<String>,
    pass: Vec<Value>,
    confidence: Option<String>,
    agree_on: Vec<String>,
}

/// Why a text is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// There is no text, or none behind the think block.
    Empty,
    /// The text ends inside of a leading think block.
    Truncated,
    /// It is not the JSON that was asked for.
    Invalid {
        /// What is wrong: one to five sentences of at most 300 characters, with the place in the answer where there
        /// is one. For a model to read in a repair request.
        errors: Vec<String>,
    },
}

impl Unread {
    fn invalid(sentence: &str) -> Self {
        Self::Invalid { errors: vec![bounded(sentence)] }
    }
}

impl Reader {
    /// Binds the settings to a schema. `settings.schema` is not looked at.
    ///
    /// # Errors
    ///
    /// A verdict, confidence or `agree_on` that the schema lacks, and pass values none of which the verdict can have.
    pub fn new(schema: Schema, settings: &AnswerSettings) -> Result<Self, AnswerError> {
        if schema.is_free_text() {
            let named = [
                ("verdict", settings.verdict.is_some()),
                ("confidence", settings.confidence.is_some()),
                ("agree_on", settings.agree_on.as_ref().is_some_and(|names| !names.is_empty())),
            ];
            if let Some((setting, _)) = named.into_iter().find(|(_, named)| *named) {
                return Err(AnswerError::NeedsSchema { setting });
            }
        }
        let known = |setting: &'static str, name: &String| {
            if schema.properties().contains(name) {
                return Ok(());
            }
            Err(AnswerError::UnknownProperty {
                setting,
                name: name.clone(),
                hint: hint(name, schema.properties()),
            })
        };
        if let Some(verdict) = &settings.verdict {
            known("verdict", verdict)?;
            if !settings.pass.iter().any(|value| schema.can_be(verdict, value)) {
                let pass = Value::Array(settings.pass.clone()).to_string();
                return Err(AnswerError::ImpossiblePass { verdict: verdict.clone(), pass });
            }
        }
        if let Some(confidence) = &settings.confidence {
            known("confidence", confidence)?;
        }
        let agree_on = match (&settings.agree_on, &settings.verdict) {
            (Some(names), _) => names.clone(),
            (None, None) => schema.countable(),
            (None, Some(_)) => Vec::new(),
        };
        for name in &agree_on {
            known("agree_on", name)?;
        }
        let (verdict, confidence) = (settings.verdict.clone(), settings.confidence.clone());
        Ok(Self { schema, verdict, pass: settings.pass.clone(), confidence, agree_on })
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Reads a complete text.
    ///
    /// The whole text is read as JSON; if it is none, what follows a leading think block; then what one code fence
    /// encloses; then the only object that satisfies the schema among those that stand in the text. An answer is
    /// marked `extracted` in all but the first case. Free text is taken as it is, without outer blanks.
    ///
    /// # Errors
    ///
    /// An [`Unread`] that says why the text is no answer.
    pub fn read(&self, text: &str) -> Result<(Answer, Vote), Unread> {
        if text.trim().is_empty() {
            return Err(Unread::Empty);
        }
        if self.schema.is_free_text() {
            return free_text(text);
        }
        let broken = match read_whole(text) {
            Ok(parsed) => return self.accept(&parsed, text, false),
            Err(broken) => broken,
        };
        let rest = match thinking(text) {
            Thinking::Unclosed => return Err(Unread::Truncated),
            Thinking::None => text,
            Thinking::Opened(rest) => rest,
            Thinking::ClosedOnly(rest) => {
                // The tag may stand inside of the answer.
                if let Some(inside) = fenced(text)
                    && let Ok(parsed) = read_whole(inside)
                {
                    return self.accept(&parsed, inside, true);
                }
                rest
            }
        };
        if rest.trim().is_empty() {
            return Err(Unread::Empty);
        }
        for part in [Some(rest), fenced(rest)].into_iter().flatten() {
            if let Ok(parsed) = read_whole(part) {
                return self.accept(&parsed, part, true);
            }
        }
        self.search(rest, &broken, text)
    }

    /// The only value among those that stand in a text that is valid.
    fn search(&self, text: &str, broken: &Broken, whole: &str) -> Result<(Answer, Vote), Unread> {
        let mut valid: Option<(Value, &str, Vote)> = None;
        let mut nearest: Option<(usize, Vec<String>)> = None;
        for (parsed, part) in Values::new(text) {
            match self.check(&parsed, part) {
                Ok(vote) => match &valid {
                    Some((first, ..)) if *first != parsed.value => {
                        return Err(Unread::invalid(
                            "the text holds two different objects that satisfy the schema; answer with exactly one",
                        ));
                    }
                    Some(_) => {}
                    None => valid = Some((parsed.value, part, vote)),
                },
                Err(errors) if nearest.as_ref().is_none_or(|(length, _)| *length < part.len()) => {
                    nearest = Some((part.len(), errors));
                }
                Err(_) => {}
            }
        }
        match (valid, nearest) {
            (Some((_, part, vote)), _) => Ok((Answer { text: compact(part), extracted: true }, vote)),
            (None, Some((_, errors))) => Err(Unread::Invalid { errors }),
            (None, None) => Err(Unread::invalid(&not_json(broken, whole))),
        }
    }

    fn accept(&self, parsed: &Parsed, text: &str, extracted: bool) -> Result<(Answer, Vote), Unread> {
        let vote = self.check(parsed, text).map_err(|errors| Unread::Invalid { errors })?;
        Ok((Answer { text: compact(text), extracted }, vote))
    }

    /// The vote of a valid value, or what is wrong with it.
    fn check(&self, parsed: &Parsed, text: &str) -> Result<Vote, Vec<String>> {
        if let Some(name) = &parsed.duplicate {
            return Err(vec![bounded(&format!("the member `{name}` stands twice in one object"))]);
        }
        if !self.schema.accepts(&parsed.value) {
            let errors = self.schema.complaints(&parsed.value, MOST_ERRORS);
            return Err(if errors.is_empty() {
                vec!["the value does not satisfy the schema".to_owned()]
            } else {
                errors
            });
        }
        let positive = self.verdict.as_ref().map(|name| {
            let value = parsed.value.get(name);
            value.is_some_and(|value| self.pass.iter().any(|pass| same(pass, value)))
        });
        let confidence = match &self.confidence {
            Some(name) if parsed.value.get(name).is_some() => {
                let line = compact(text);
                let number = member(&line, name).and_then(share);
                Some(number.ok_or_else(|| {
                    vec![bounded(&format!("at /{name}: the confidence must be a number from 0 to 1"))]
                })?)
            }
            _ => None,
        };
        let agree_on = (!self.agree_on.is_empty()).then(|| {
            let mut line = String::new();
            for name in &self.agree_on {
                line.push(if line.is_empty() { '[' } else { ',' });
                // An absent property differs from every value.
                if let Some(value) = parsed.value.get(name) {
                    canonical(value, &mut line);
                }
            }
            line.push(']');
            line
        });
        Ok(Vote { positive, confidence, agree_on })
    }
}

fn free_text(text: &str) -> Result<(Answer, Vote), Unread> {
    if thinking(text) == Thinking::Unclosed {
        return Err(Unread::Truncated);
    }
    let text = Value::from(text.trim()).to_string();
    let vote = Vote { positive: None, confidence: None, agree_on: None };
    Ok((Answer { text, extracted: false }, vote))
}

/// Reads a text that is one JSON value and nothing else.
fn read_whole(text: &str) -> Result<Parsed, Broken> {
    let parsed = read_prefix(text)?;
    let rest = text.get(parsed.end..).unwrap_or_default();
    match rest.bytes().position(|byte| !b" \t\r\n".contains(&byte)) {
        None => Ok(parsed),
        Some(at) => {
            let before = text.get(..parsed.end + at).unwrap_or_default();
            let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
            let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
            let why = "there is more text behind the value".to_owned();
            Err(Broken { why, line, column, cut: false, deep: false })
        }
    }
}

fn not_json(broken: &Broken, text: &str) -> String {
    if broken.deep {
        return "the JSON value is nested too deeply".to_owned();
    }
    let line = text.split('\n').nth(broken.line.saturating_sub(1)).unwrap_or_default();
    // The parser stops at the first letter, or behind the sign.
    let stands = |name: &str| {
        let places = [broken.column.saturating_sub(2), broken.column.saturating_sub(1)];
        places.into_iter().any(|at| line.get(at..).is_some_and(|rest| rest.starts_with(name)))
    };
    let named = ["NaN", "-Infinity", "Infinity"].into_iter().find(|name| stands(name));
    let why = named.map_or_else(|| broken.why.clone(), |name| format!("{name} is no JSON number"));
    format!("the answer is not strict JSON: {why} (line {}, column {})", broken.line, broken.column)
}

/// Whether two values are the same to JSON Schema: numbers by value.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one_number), Value::Number(other_number)) => {
            one == other
                || (one_number.is_f64() || other_number.is_f64())
                    && one_number.as_f64() == other_number.as_f64()
        }
        _ => one == other,
    }
}

/// A number text as an exact decimal in 0..=1. Digits beyond the 28th are rounded.
fn share(text: &str) -> Option<Decimal> {
    let near: f64 = text
        .parse()
        .ok()
        .filter(|_| text.starts_with(|first: char| first == '-' || first.is_ascii_digit()))?;
    if !(0.0..=1.0).contains(&near) {
        return None;
    }
    let exact = if text.contains(['e', 'E']) {
        // What is too small for a decimal is zero.
        Decimal::from_scientific_lossy(text).unwrap_or(Decimal::ZERO)
    } else {
        text.parse().ok()?
    };
    let exact = if exact.is_zero() { Decimal::ZERO } else { exact.normalize() };
    (Decimal::ZERO..=Decimal::ONE).contains(&exact).then_some(exact)
}

/// A text that is equal for equal values: sorted members, whole numbers without fraction.
fn canonical(value: &Value, line: &mut String) {
    match value {
        Value::Array(items) => {
            line.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    line.push(',');
                }
                canonical(item, line);
            }
            line.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            line.push('{');
            for (at, (name, item)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    line.push(',');
                }
                line.push_str(&Value::from(name.as_str()).to_string());
                line.push(':');
                canonical(item, line);
            }
            line.push('}');
        }
        Value::Number(number) if number.is_f64() => {
            let text = number.to_string();
            let text = text.strip_suffix(".0").unwrap_or(&text);
            line.push_str(if text == "-0" { "0" } else { text });
        }
        other => line.push_str(&other.to_string()),
    }
}

fn hint(name: &str, have: &[String]) -> String {
    let near = have
        .iter()
        .map(|have| (strsim::jaro_winkler(name, have), have))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match near {
        Some((_, near)) => format!("; did you mean `{near}`?"),
        None if have.is_empty() => "; it has none".to_owned(),
        None => {
            format!("; it has {}", have.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
