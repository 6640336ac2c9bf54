//! What the check pass has found.

use std::fmt;

use crate::base::Digest;
use crate::dataset::select::Chosen;
use crate::model::{Header, LineEnd};

/// What the check pass has found: the proof that [`crate::dataset::Source::rows`] asks for.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The column names of a CSV file; `None` for JSONL and for an empty file.
    pub header: Option<Header>,
    /// Rows read: all of the file's rows, or those up to the last selected one.
    pub rows: u64,
    /// Rows selected, malformed ones among them.
    pub selected: u64,
    /// BLAKE3 of the file's bytes when the selection needs the whole file (all rows, or a random pick); else of those
    /// up to the end of the last selected record, so that rows appended later do not matter. In an encoding other
    /// than UTF-8, and of a compressed file, a part is digested as the text that it decodes to.
    pub digest: Digest,
    /// The file's size in bytes.
    pub bytes: u64,
    /// When the file was last changed, in nanoseconds since the Unix epoch.
    pub modified: i64,
    /// How the first record ends.
    pub line_end: LineEnd,
    /// Short CSV records that were filled.
    pub padded: u64,
    /// Selected rows that cannot be used and let the run start: kept malformed ones and those with a lone surrogate.
    pub bad: u64,
    /// Selected JSONL rows that repeat a key at the top level.
    pub repeated_keys: u64,
    /// Malformed selected rows that must not be let through; empty with `--bad-rows keep`.
    pub problems: Problems,
    /// Other things that a person should know, one sentence each.
    pub warnings: Vec<String>,
    pub(in crate::dataset) chosen: Chosen,
}

/// Malformed rows: how many, and the first of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first of them, at most [`Problems::LISTED`].
    pub first: Vec<Problem>,
    /// All of them.
    pub count: u64,
}

impl Problems {
    /// The most that are listed.
    pub const LISTED: usize = 20;

    pub(in crate::dataset) fn add(&mut self, problem: impl FnOnce() -> Problem) {
        self.count += 1;
        if self.first.len() < Self::LISTED {
            self.first.push(problem());
        }
    }
}

/// A malformed row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Row number, from 1.
    pub row: u64,
    /// Line on which the record begins, from 1.
    pub line: u64,
    /// The character on that line, from 1, where it is known.
    pub column: Option<u64>,
    /// What is wrong, as a fragment.
    pub what: String,
}

impl fmt::Display for Problem {
    /// `row 2, line 3, column 9: trailing characters`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {}, line {}", self.row, self.line)?;
        if let Some(column) = self.column {
            write!(f, ", column {column}")?;
        }
        write!(f, ": {}", self.what)
    }
}
