//! A later pass over the selected rows.

use std::fmt;

use crate::dataset::records::Records;
use crate::dataset::select::Cursor;
use crate::dataset::{Checked, DatasetError, Source};
use crate::model::InputRow;

/// The selected rows of a checked file, in file order. Ends with the first error. That the file has changed is an
/// error, found when the pass ends: rows before it are those that were read.
pub struct Rows {
    source: Source,
    records: Records,
    cursor: Cursor,
    /// How many rows the file had when it was checked: one that grows yields no row that nobody has checked.
    last: u64,
    bytes: u64,
    modified: i64,
    has_ended: bool,
}

impl Rows {
    pub(super) fn new(source: Source, records: Records, checked: &Checked) -> Self {
        Self {
            source,
            records,
            cursor: checked.chosen.cursor(),
            last: checked.rows,
            bytes: checked.bytes,
            modified: checked.modified,
            has_ended: false,
        }
    }

    fn read_next(&mut self) -> Result<Option<InputRow>, DatasetError> {
        let is_done = |rows: &Self, at: u64| at >= rows.last || rows.cursor.is_done(at);
        while !is_done(self, self.records.row()) && self.records.advance()? {
            if self.cursor.takes(self.records.row()) {
                return Ok(Some(self.records.read().row));
            }
        }
        Ok(None)
    }
}

impl Iterator for Rows {
    type Item = Result<InputRow, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let outcome = self.read_next();
        if let Ok(Some(row)) = outcome {
            return Some(Ok(row));
        }
        self.has_ended = true;
        // Where the file has changed, that is the cause of whatever went wrong in it.
        match (self.source.compare(self.bytes, self.modified), outcome) {
            (Err(changed), _) | (Ok(()), Err(changed)) => Some(Err(changed)),
            (Ok(()), Ok(_)) => None,
        }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("source", &self.source)
            .field("row", &self.records.row())
            .finish_non_exhaustive()
    }
}
