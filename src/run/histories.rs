//! What the store holds of a run's rows, read in their order.

use std::collections::VecDeque;

use crate::store::{Reader, RowHistory, StoreError};

const PAGE: usize = 256;

/// The histories of a run, a page at a time. Rows are asked for in ascending order.
#[derive(Debug)]
pub(super) struct Histories {
    store: Reader,
    run: u64,
    page: VecDeque<RowHistory>,
    asked_after: u64,
    exhausted: bool,
}

impl Histories {
    pub(super) fn new(store: Reader, run: u64) -> Self {
        Self { store, run, page: VecDeque::new(), asked_after: 0, exhausted: false }
    }

    /// What is stored of a row; nothing but its number where nothing is.
    pub(super) fn of(&mut self, row: u64) -> Result<RowHistory, StoreError> {
        while self.page.front().is_none_or(|history| history.row < row) {
            self.page.pop_front();
            if self.page.is_empty() {
                if self.exhausted {
                    break;
                }
                // Rows before this one that have something stored are of no interest.
                self.asked_after = self.asked_after.max(row.saturating_sub(1));
                self.page = self.store.rows_after(self.run, self.asked_after, PAGE)?.into();
                self.exhausted = self.page.len() < PAGE;
                match self.page.back() {
                    Some(last) => self.asked_after = last.row,
                    None => break,
                }
            }
        }
        let found = self.page.front().is_some_and(|history| history.row == row);
        let history = if found { self.page.pop_front() } else { None };
        Ok(history.unwrap_or(RowHistory { row, ..RowHistory::default() }))
    }
}
