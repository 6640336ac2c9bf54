//! What can be wrong with a template, and with a row for it.

use thiserror::Error;

use crate::prompt::FieldPath;

/// A template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PromptError {
    /// The template is no template.
    #[error("prompt.{which}, line {line}: {why}\n  {text}\n  {caret}")]
    Syntax {
        /// `system` or `user`.
        which: &'static str,
        /// The line, from 1.
        line: usize,
        /// What is wrong, as a fragment.
        why: String,
        /// The line itself.
        text: String,
        /// A `^` under the place.
        caret: String,
    },
    /// The template uses what templates here cannot do.
    #[error("prompt.{which}, line {line}: {why}")]
    Refused {
        /// `system` or `user`.
        which: &'static str,
        /// The line, from 1.
        line: usize,
        /// What it uses.
        why: String,
    },
    /// Fields that no selected row has.
    #[error("{message}")]
    UnknownFields {
        /// The fields.
        fields: Vec<FieldPath>,
        /// A sentence that names them, with suggestions and the fields there are.
        message: String,
    },
}

/// A row cannot be rendered: it is `error`/`bad_input`. Names fields, never values of other fields or counts.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RenderError {
    /// The row lacks a field.
    #[error("the template needs the field `{field}`, which this row lacks{}", within(.field, .missing))]
    MissingField {
        /// The field that the template uses.
        field: FieldPath,
        /// The part of its path that the row lacks.
        missing: FieldPath,
    },
    /// A value cannot be used as the template uses it.
    #[error("{why}")]
    Unusable {
        /// Why, as a fragment that names the field or the expression.
        why: String,
    },
    /// The text of a field is no text.
    #[error("the field `{field}` holds a lone surrogate escape, which is no text")]
    BadText {
        /// The field.
        field: FieldPath,
    },
    /// The record is malformed.
    #[error("{why}")]
    BadRecord {
        /// What is wrong with it.
        why: String,
    },
    /// The template does too much work, or writes too much.
    #[error("the template does more work for this row than is allowed")]
    TooMuchWork,
}

fn within(field: &FieldPath, missing: &FieldPath) -> String {
    if field == missing { String::new() } else { format!(": it has no `{missing}`") }
}
