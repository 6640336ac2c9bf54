//! Equal failures, counted together.

use std::collections::HashMap;

use crate::model::Reason;

/// Rows that ended for the same reason with the same message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureGroup {
    /// Why they ended.
    pub reason: Reason,
    /// The message, as it came; empty where there is none, [`FailureGroups::OTHER`] for those past the bound.
    pub message: String,
    /// How many rows.
    pub count: u64,
    /// The lowest rows, at most three, ascending.
    pub first_rows: Vec<u64>,
}

/// Folds failed rows into groups, in bounded memory: at most 50 messages of 300 characters, and one further group
/// for each reason.
#[derive(Debug, Clone, Default)]
pub struct FailureGroups {
    groups: Vec<FailureGroup>,
    /// Where a message's group is.
    places: HashMap<(Reason, String), usize>,
    /// Where a reason's group of other messages is.
    others: HashMap<Reason, usize>,
}

impl FailureGroups {
    /// The most distinct messages that are kept.
    pub const MOST: usize = 50;
    /// The message of the groups that hold the rest.
    pub const OTHER: &'static str = "other";
    const MOST_CHARACTERS: usize = 300;
    const EXAMPLES: usize = 3;

    /// No groups.
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts a row. `message` may be empty.
    pub fn add(&mut self, row: u64, reason: Reason, message: &str) {
        let message: String = message.chars().take(Self::MOST_CHARACTERS).collect();
        let place = self.place_of(reason, message);
        if let Some(group) = self.groups.get_mut(place) {
            group.count += 1;
            if let Err(at) = group.first_rows.binary_search(&row) {
                group.first_rows.insert(at, row);
                group.first_rows.truncate(Self::EXAMPLES);
            }
        }
    }

    fn place_of(&mut self, reason: Reason, message: String) -> usize {
        let next = self.groups.len();
        let group = |message: String| FailureGroup { reason, message, count: 0, first_rows: Vec::new() };
        let key = (reason, message);
        if let Some(&place) = self.places.get(&key) {
            return place;
        }
        if self.places.len() < Self::MOST {
            self.groups.push(group(key.1.clone()));
            self.places.insert(key, next);
            return next;
        }
        *self.others.entry(reason).or_insert_with(|| {
            self.groups.push(group(Self::OTHER.to_owned()));
            next
        })
    }

    /// The groups: the largest first, those of equal size by reason and lowest row.
    pub fn into_groups(self) -> Vec<FailureGroup> {
        let mut groups = self.groups;
        groups.sort_by(|a, b| {
            b.count.cmp(&a.count).then(a.reason.cmp(&b.reason)).then_with(|| a.first_rows.cmp(&b.first_rows))
        });
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_failures_are_one_group_with_its_lowest_rows() {
        let mut groups = FailureGroups::new();
        for row in [9, 4, 30, 7, 2] {
            groups.add(row, Reason::InvalidAnswer, "n is missing");
        }
        groups.add(5, Reason::Timeout, "");
        groups.add(6, Reason::Rejected, "n is missing");
        let groups = groups.into_groups();
        let shape: Vec<_> =
            groups.iter().map(|g| (g.reason, g.count, g.first_rows.clone(), g.message.as_str())).collect();
        assert_eq!(
            shape,
            [
                (Reason::InvalidAnswer, 5, vec![2, 4, 7], "n is missing"),
                (Reason::Timeout, 1, vec![5], ""),
                (Reason::Rejected, 1, vec![6], "n is missing"),
            ]
        );
    }

    #[test]
    fn messages_past_the_bound_are_counted_together() {
        let mut groups = FailureGroups::new();
        for row in 1..=100_000 {
            groups.add(row, Reason::ServerError, &format!("{row} {}", "x".repeat(1_000)));
        }
        groups.add(7, Reason::Rejected, "too late to have a group of its own");
        assert!(groups.places.len() == 50 && groups.groups.len() == 52);
        let groups = groups.into_groups();
        assert_eq!(groups.iter().map(|group| group.count).sum::<u64>(), 100_001);
        assert_eq!((groups[0].message.as_str(), groups[0].count), ("other", 99_950));
        assert_eq!(groups[0].first_rows, [51, 52, 53]);
        assert!(groups.iter().all(|group| group.message.chars().count() <= 300));
    }
}
