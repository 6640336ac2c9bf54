//! What the store holds of a run's rows, read in their order.

use std::collections::VecDeque;

use crate::store::{Reader, RowHistory, StoreError};

/// The most rows that are read at once.
pub(super) const PAGE: usize = 256;

/// The histories of a run, a page at a time. Rows are asked for in ascending order.
#[derive(Debug)]
pub(super) struct Histories {
    store: Reader,
    run: u64,
    page: VecDeque<RowHistory>,
    /// The last row of which the page holds what was stored, if anything was.
    read_to: u64,
}

impl Histories {
    pub(super) fn new(store: Reader, run: u64) -> Self {
        Self { store, run, page: VecDeque::new(), read_to: 0 }
    }

    /// What is stored of a row; nothing but its number where nothing is. Of it and of all rows behind it to
    /// `ended_to`, which is asked for where more must be read, nothing more will be stored, so that they may be read
    /// together.
    pub(super) fn of(&mut self, row: u64, ended_to: impl FnOnce() -> u64) -> Result<RowHistory, StoreError> {
        if row > self.read_to {
            let last = ended_to().max(row);
            self.page = self.store.rows_between(self.run, row, last, PAGE)?.into();
            let is_full = self.page.len() == PAGE;
            self.read_to = self.page.back().filter(|_| is_full).map_or(last, |history| history.row);
        }
        while self.page.front().is_some_and(|history| history.row < row) {
            self.page.pop_front();
        }
        let history = self.page.pop_front_if(|history| history.row == row);
        Ok(history.unwrap_or(RowHistory { row, ..RowHistory::default() }))
    }
}
