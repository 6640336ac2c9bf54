//! Which rows take part.

use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::base::Dice;

/// Why a list of row ranges cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RangesError {
    /// A part is no number and no range.
    #[error("`{0}` is no row and no range of rows; write --rows 5-20,31")]
    Malformed(String),
    /// Row 0.
    #[error("`{0}` names row 0; rows count from 1")]
    Zero(String),
    /// The end is before the start.
    #[error("`{0}` ends before it begins; write the smaller row first")]
    Backwards(String),
}

/// Reads `5-20,31`: inclusive ranges of row numbers from 1. The result is sorted, and ranges that touch are one.
pub fn parse_ranges(text: &str) -> Result<Vec<(u64, u64)>, RangesError> {
    let mut ranges = Vec::new();
    for part in text.split(',').map(str::trim) {
        let number = |text: &str| {
            let text = text.trim();
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>()
                .ok()
                .filter(|_| is_plain)
                .ok_or_else(|| RangesError::Malformed(part.to_owned()))
        };
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first == 0 || last == 0 {
            return Err(RangesError::Zero(part.to_owned()));
        }
        if last < first {
            return Err(RangesError::Backwards(part.to_owned()));
        }
        ranges.push((first, last));
    }
    Ok(merge(ranges))
}

fn merge(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The selected rows, once they are known: all, or those of sorted, disjoint, inclusive ranges.
#[derive(Debug, Clone)]
pub(super) struct Chosen(Option<Arc<[(u64, u64)]>>);

impl Chosen {
    pub(super) fn all() -> Self {
        Self(None)
    }

    pub(super) fn ranges(ranges: &[(u64, u64)]) -> Self {
        Self(Some(merge(ranges.to_vec()).into()))
    }

    pub(super) fn first(count: u64) -> Self {
        Self(Some(if count == 0 { [].into() } else { [(1, count)].into() }))
    }

    /// The last row, if it is known and there is any.
    pub(super) fn last(&self) -> Option<u64> {
        self.0.as_ref().and_then(|ranges| ranges.last()).map(|range| range.1)
    }

    /// A cursor for a pass over the rows in order.
    pub(super) fn cursor(&self) -> Cursor {
        Cursor { chosen: self.clone(), at: 0 }
    }
}

/// Tells the selected rows of a pass.
pub(super) struct Cursor {
    chosen: Chosen,
    at: usize,
}

impl Cursor {
    /// Whether `row` is selected. Rows must come in ascending order.
    pub(super) fn takes(&mut self, row: u64) -> bool {
        let Some(ranges) = &self.chosen.0 else { return true };
        while ranges.get(self.at).is_some_and(|range| range.1 < row) {
            self.at += 1;
        }
        ranges.get(self.at).is_some_and(|range| range.0 <= row)
    }

    /// Whether nothing is selected after `row`.
    pub(super) fn is_done(&self, row: u64) -> bool {
        self.chosen.0.is_some() && self.chosen.last().is_none_or(|last| last <= row)
    }
}

/// A uniform pick without replacement from rows whose number is not known beforehand: each row draws a ticket from
/// (seed, row), the lowest tickets win. So a larger pick holds every smaller one of the same seed.
pub(super) struct Pick {
    count: usize,
    seed: u64,
    lowest: BinaryHeap<(u64, u64)>,
}

impl Pick {
    pub(super) fn new(count: u64, seed: u64) -> Self {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Self { count, seed, lowest: BinaryHeap::new() }
    }

    pub(super) fn offer(&mut self, row: u64) {
        let ticket = (Dice::new(self.seed, &[row]).next_u64(), row);
        if self.lowest.len() < self.count {
            self.lowest.push(ticket);
        } else if self.lowest.peek().is_some_and(|worst| ticket < *worst) {
            self.lowest.pop();
            self.lowest.push(ticket);
        }
    }

    pub(super) fn chosen(self) -> Chosen {
        let rows: Vec<_> = self.lowest.into_iter().map(|(_, row)| (row, row)).collect();
        Chosen::ranges(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picked(rows: u64, count: u64, seed: u64) -> Vec<u64> {
        let mut pick = Pick::new(count, seed);
        (1..=rows).for_each(|row| pick.offer(row));
        let mut cursor = pick.chosen().cursor();
        (1..=rows).filter(|&row| cursor.takes(row)).collect()
    }

    #[test]
    fn reads_ranges() {
        assert_eq!(parse_ranges("5-20,31"), Ok(vec![(5, 20), (31, 31)]));
        assert_eq!(parse_ranges("31, 5-20 ,6-8,21"), Ok(vec![(5, 21), (31, 31)]));
        assert_eq!(parse_ranges("1-18446744073709551615,7"), Ok(vec![(1, u64::MAX)]));
        assert_eq!(parse_ranges("0"), Err(RangesError::Zero("0".to_owned())));
        assert_eq!(parse_ranges("9-3"), Err(RangesError::Backwards("9-3".to_owned())));
        for text in ["", "5-", "-5", "a", "5,,6", "1-2-3", "+5", "99999999999999999999"] {
            assert!(matches!(parse_ranges(text), Err(RangesError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn a_cursor_follows_the_ranges() {
        let mut cursor = Chosen::ranges(&[(2, 3), (6, 6)]).cursor();
        let taken: Vec<_> = (1..=8).filter(|&row| cursor.takes(row)).collect();
        assert_eq!(taken, [2, 3, 6]);
        assert!(!cursor.is_done(5) && cursor.is_done(6));
        assert!(Chosen::first(0).cursor().is_done(0));
        assert!(!Chosen::all().cursor().is_done(u64::MAX));
    }

    #[test]
    fn a_pick_has_its_size_and_grows_with_it() {
        let (small, large) = (picked(1_000, 10, 7), picked(1_000, 50, 7));
        assert_eq!((small.len(), large.len()), (10, 50));
        assert!(small.iter().all(|row| large.contains(row)));
        assert_eq!(small, picked(1_000, 10, 7));
        assert_ne!(small, picked(1_000, 10, 8));
        assert_eq!(picked(3, 10, 0), [1, 2, 3]);
        assert!(picked(3, 0, 0).is_empty());
    }

    #[test]
    fn every_row_is_picked_about_as_often() {
        let mut times = [0_u32; 20];
        for seed in 0..2_000 {
            for row in picked(20, 5, seed) {
                times[usize::try_from(row).unwrap() - 1] += 1;
            }
        }
        assert!(times.iter().all(|&count| (400..=600).contains(&count)), "{times:?}");
    }
}
