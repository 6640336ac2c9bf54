//! What can be wrong with the configuration of answers.

use thiserror::Error;

/// A schema, or a name that is bound to it, cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AnswerError {
    /// The schema breaks the rules of its draft.
    #[error("the answer schema is not valid at `{path}`: {why}")]
    InvalidSchema {
        /// JSON pointer into the schema; `/` for its root.
        path: String,
        /// What is wrong, as one sentence.
        why: String,
    },
    /// The schema refers to something outside of itself.
    #[error(
        "the answer schema refers to `{reference}` at `{path}`, which is not in it: nothing is fetched, so copy the \
         definition under `$defs` and refer to it as `#/$defs/NAME`"
    )]
    OutsideReference {
        /// The reference as it stands.
        reference: String,
        /// JSON pointer to it.
        path: String,
    },
    /// A setting names a property that the schema lacks.
    #[error("answer.{setting} names `{name}`, which is no top-level property of the schema{hint}")]
    UnknownProperty {
        /// The setting: verdict, confidence, `agree_on`.
        setting: &'static str,
        /// The name.
        name: String,
        /// The properties there are, with a suggestion, as a continuation of the sentence.
        hint: String,
    },
    /// No value that means pass can be the verdict.
    #[error(
        "answer.pass = {pass} can never be reached: the schema allows none of these values for the verdict `{verdict}`"
    )]
    ImpossiblePass {
        /// The verdict property.
        verdict: String,
        /// The pass values as JSON.
        pass: String,
    },
    /// A setting needs a schema, and answers are free text.
    #[error("answer.{setting} needs a schema: give answer.schema, answer.columns or answer.preset")]
    NeedsSchema {
        /// The setting.
        setting: &'static str,
    },
}

/// A column type cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnError {
    /// There is no `=`, or nothing before it.
    #[error("`{text}` is no column: write NAME=TYPE, such as ok=boolean or grade=a|b")]
    NoName {
        /// What was given.
        text: String,
    },
    /// The type is not known.
    #[error(
        "column `{column}` has the unknown type `{text}`{hint}; a type is boolean, string, number, integer, \
             `number 0..1`, `integer 1..5`, string[], a|b or a JSON list of values, with ? at the end if null is fine"
    )]
    UnknownType {
        /// The column.
        column: String,
        /// The type as given.
        text: String,
        /// A suggestion, as a continuation of the sentence.
        hint: String,
    },
    /// The range makes no sense.
    #[error("column `{column}` has the range `{text}`: write two numbers, the lesser first, such as 0..1")]
    BadRange {
        /// The column.
        column: String,
        /// The range as given.
        text: String,
    },
    /// The list of values makes no sense.
    #[error("column `{column}` has the values `{text}`: give at least one, each once and none empty")]
    BadValues {
        /// The column.
        column: String,
        /// The values as given.
        text: String,
    },
}
