//! Rows that ask the same share one answer.

use std::collections::{HashMap, VecDeque};

use crate::base::AttemptKey;
use crate::policy::consensus::SampleState;

/// What a finished row hands to the rows that ask the same.
pub(super) type Shared = Vec<(SampleState, Option<AttemptKey>)>;

/// Which loaded row asks for which group, and who waits for it.
///
/// The feed looks stored answers up when it loads a batch. A row that finishes after that lookup, and before the
/// batch arrives, would be missed by both; so a finished group is remembered until every batch that was asked for
/// before its row was on disk has come.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: HashMap<[u8; 16], Group>,
    /// Finished groups, with the number of the load after which each may be forgotten.
    expiring: VecDeque<(u64, [u8; 16], u64)>,
}

#[derive(Debug)]
struct Group {
    leader: u64,
    followers: Vec<u64>,
    done: Option<Shared>,
}

/// What a new row finds.
#[derive(Debug)]
pub(super) enum Found {
    /// Nobody asks this: the row leads.
    Leads,
    /// A loaded row asks it: the row follows.
    Follows,
    /// A row has just finished with this.
    Done(Shared),
}

impl Groups {
    pub(super) fn join(&mut self, group: [u8; 16], row: u64) -> Found {
        match self.groups.get_mut(&group) {
            None => {
                self.groups.insert(group, Group { leader: row, followers: Vec::new(), done: None });
                Found::Leads
            }
            Some(known) => {
                if let Some(done) = &known.done {
                    Found::Done(done.clone())
                } else {
                    known.followers.push(row);
                    Found::Follows
                }
            }
        }
    }

    /// The leader has its outcome: returns the rows that waited for it, in order of arrival.
    pub(super) fn finish(&mut self, group: [u8; 16], row: u64, shared: Shared) -> Vec<u64> {
        match self.groups.get_mut(&group) {
            Some(known) if known.leader == row => {
                known.done = Some(shared);
                std::mem::take(&mut known.followers)
            }
            _ => Vec::new(),
        }
    }

    /// The leader is gone without an outcome: returns the rows that waited for it.
    pub(super) fn abandon(&mut self, group: [u8; 16], row: u64) -> Vec<u64> {
        if self.groups.get(&group).is_none_or(|known| known.leader != row) {
            return Vec::new();
        }
        self.groups.remove(&group).map(|known| known.followers).unwrap_or_default()
    }

    /// A row takes over a group whose leader's outcome leaves something open. The rows named follow it.
    pub(super) fn lead(&mut self, group: [u8; 16], row: u64) {
        let entry =
            self.groups.entry(group).or_insert(Group { leader: row, followers: Vec::new(), done: None });
        entry.leader = row;
        entry.done = None;
    }

    /// The row is on disk: a batch that is asked for from now on finds its answer in the store. `last_load` is
    /// the number of the newest load, `outstanding` whether it has not come yet.
    pub(super) fn durable(&mut self, group: [u8; 16], row: u64, last_load: u64, outstanding: bool) {
        if self.groups.get(&group).is_none_or(|known| known.leader != row) {
            return;
        }
        if outstanding {
            self.expiring.push_back((last_load, group, row));
        } else {
            self.groups.remove(&group);
        }
    }

    /// Load number `load` has come and its rows have joined.
    pub(super) fn loaded(&mut self, load: u64) {
        while let Some(&(expires, group, row)) = self.expiring.front() {
            if expires > load {
                break;
            }
            self.expiring.pop_front();
            if self.groups.get(&group).is_some_and(|known| known.leader == row && known.done.is_some()) {
                self.groups.remove(&group);
            }
        }
    }
}
