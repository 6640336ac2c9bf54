//! The path of a field in a record.

use std::fmt;

/// Where a field is, from the record down: `user.address.street`, `row["odd name"]`, `tags[0]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldPath(Vec<Step>);

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A column, or a member of an object.
    Key(String),
    /// An element of an array, from 0; from the end if negative.
    Index(i64),
}

impl FieldPath {
    /// A column, or a top-level member.
    pub fn top(name: impl Into<String>) -> Self {
        Self(vec![Step::Key(name.into())])
    }

    /// A path of these steps; at least one, the first of which is a key.
    pub(super) fn of(steps: Vec<Step>) -> Option<Self> {
        matches!(steps.first(), Some(Step::Key(_))).then_some(Self(steps))
    }

    /// The column, or the top-level member.
    pub fn name(&self) -> &str {
        match self.0.first() {
            Some(Step::Key(name)) => name,
            _ => "",
        }
    }

    /// The steps, from the record down.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The path of the first `length` steps, at least one.
    pub(super) fn prefix(&self, length: usize) -> Self {
        Self(self.0.iter().take(length.max(1)).cloned().collect())
    }

    /// Whether `self` is `other` or leads to it.
    pub(super) fn leads_to(&self, other: &Self) -> bool {
        other.0.starts_with(&self.0)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(name) if is_name(name) => write!(f, "{}{name}", if at == 0 { "" } else { "." })?,
                Step::Key(name) => {
                    let quoted = serde_json::Value::from(name.as_str());
                    write!(f, "{}[{quoted}]", if at == 0 { "row" } else { "" })?;
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Whether a template can write it without quotes.
fn is_name(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && name != "row"
}
