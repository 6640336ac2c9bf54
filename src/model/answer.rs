//! A valid answer and what it says.

use rust_decimal::Decimal;

/// An answer that satisfies the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The JSON text on one line: no white space outside strings, key order and number texts as the model wrote
    /// them. For free text, the text as a JSON string.
    pub text: String,
    /// Whether it had to be cut out of a longer text.
    pub extracted: bool,
}

/// What an answer contributes to its row's decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// Whether the verdict property has a value that means pass; `None` without a verdict.
    pub positive: Option<bool>,
    /// The confidence as an exact decimal in 0..=1; `None` where there is none.
    pub confidence: Option<Decimal>,
    /// Canonical text of the values that must agree between samples; `None` where nothing is to agree on.
    pub agree_on: Option<String>,
}
