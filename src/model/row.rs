//! An input record.

use std::sync::Arc;

/// The column names of a CSV file, in order, as they stand in its first record.
pub type Header = Arc<[String]>;

/// How the records of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineEnd {
    /// A line feed.
    #[default]
    Lf,
    /// A carriage return and a line feed.
    CrLf,
}

/// One selected record of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRow {
    /// Number in the file's own numbering, from 1. Blank lines and the CSV header have none.
    pub number: u64,
    /// Line of the file on which the record begins, from 1.
    pub line: u64,
    /// The record itself.
    pub content: RowContent,
}

/// What a record holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowContent {
    /// The unquoted values of a CSV record, one for each column of the header.
    Fields(Vec<Box<str>>),
    /// A JSONL line as decoded, without BOM, terminator and outer blanks; known to be one JSON object.
    Object(Box<str>),
    /// A malformed record that `--bad-rows keep` lets through.
    Bad {
        /// The record as it stands, without its terminator.
        raw: Box<str>,
        /// What is wrong with it, as one sentence without row number.
        why: String,
    },
}
