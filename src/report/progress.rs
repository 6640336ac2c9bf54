//! A moment of a run, and the lines that tell of it.

mod stored;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::base::{Money, WallTime};
use crate::model::{ReasonCounts, Status, StatusCounts, Usage};
use crate::report::json::{Number, Statuses, line, millis};
use crate::report::measure::{eta_text, money_text, rate_text};
use crate::report::printable;

pub use stored::SnapshotError;

/// What is known of a run at one moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// When it was taken.
    #[serde(with = "stored::wall")]
    pub at: WallTime,
    /// Rows finished, by all executions.
    pub done: u64,
    /// Rows selected.
    pub total: u64,
    /// Finished rows by status.
    #[serde(with = "stored::Counts")]
    pub status: StatusCounts,
    /// Finished rows by reason.
    #[serde(with = "stored::reasons")]
    pub reason: ReasonCounts,
    /// Samples that took stored answers.
    pub replayed: u64,
    /// Tokens.
    pub tokens: Usage,
    /// Requests sent.
    pub attempts: u64,
    /// Requests that were neither first tries, nor throttled, nor repairs.
    pub retries: u64,
    /// Requests that asked again after an invalid answer.
    pub repairs: u64,
    /// Replies of status 429.
    pub throttled: u64,
    /// Requests under way.
    pub in_flight: u32,
    /// The most that may be under way now.
    pub limit: u32,
    /// What was spent; `None` where it is unknown.
    #[serde(with = "stored::money")]
    pub spent: Option<Money>,
    /// Under a ceiling: what requests without a complete reply may have cost besides, which counts against it.
    #[serde(with = "stored::money")]
    pub possible: Option<Money>,
    /// The ceiling, where one is set.
    #[serde(with = "stored::money")]
    pub ceiling: Option<Money>,
    /// Rows a minute over the last seconds; `None` where nothing is known yet.
    pub rows_per_minute: Option<f64>,
    /// The time that the rest takes at this rate.
    #[serde(with = "stored::time")]
    pub eta: Option<Duration>,
    /// Where nothing may be sent: the time until the next request may go.
    #[serde(with = "stored::time")]
    pub next_permit: Option<Duration>,
    /// Why the run pauses, in an outage; `None` while it does not.
    pub paused: Option<String>,
    /// The keys, in the order of the configuration.
    pub keys: Vec<KeyLine>,
    /// How long the oldest request has been under way.
    #[serde(with = "stored::time")]
    pub oldest_in_flight: Option<Duration>,
}

/// A key at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyLine {
    /// Its label.
    pub label: String,
    /// Requests under way with it.
    pub in_flight: u32,
    /// The most that may be; 0 for no limit of its own.
    pub limit: u32,
    /// Its state where it is not simply in use, as in `waits 12s` or `out: unauthorized`; empty otherwise.
    pub state: String,
}

impl Snapshot {
    /// The share of replies of status 429 among the requests sent, in per cent; `None` before the first request.
    pub fn throttled_share(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a share for people; counts are far below 2^53")]
        (self.attempts > 0).then(|| self.throttled as f64 * 100.0 / self.attempts as f64)
    }

    /// Finished rows by status, those that occur, as in `pass 90, fail 10`. `none` before the first row.
    pub(super) fn statuses_text(&self) -> String {
        let parts: Vec<String> = Status::ALL
            .iter()
            .filter(|status| self.status.get(**status) > 0)
            .map(|status| format!("{status} {}", self.status.get(*status)))
            .collect();
        parts.join(", ")
    }

    /// Rows a minute and the time left, as far as they are known.
    pub(super) fn pace_parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(rate) = self.rows_per_minute {
            parts.push(format!("{} rows/min", rate_text(rate)));
        }
        if let Some(eta) = self.eta.filter(|_| self.done < self.total) {
            parts.push(format!("eta {}", eta_text(eta)));
        }
        parts
    }

    /// What was spent, and of what.
    pub(super) fn money_text(&self) -> String {
        let spent = match self.spent {
            Some(_) => money_text(self.spent),
            None => "cost unknown".to_owned(),
        };
        let possible = self.possible.filter(|possible| *possible > Money::ZERO);
        match (possible, self.ceiling) {
            (Some(possible), Some(ceiling)) => format!("{spent} (${possible} possible) of ${ceiling}"),
            (None, Some(ceiling)) => format!("{spent} of ${ceiling}"),
            (_, None) => spent,
        }
    }

    /// What presses on the run: the next permit, throttling, a pause. Empty where nothing does.
    pub(super) fn pressure_parts(&self) -> Vec<String> {
        let mut parts = Vec::new();
        if let Some(wait) = self.next_permit {
            parts.push(format!("next permit in {}", eta_text(wait)));
        }
        if let Some(share) = self.throttled_share().filter(|_| self.throttled > 0) {
            parts.push(format!("throttled {} ({share:.1}%)", self.throttled));
        }
        // The last one, since its words may be many.
        if let Some(why) = &self.paused {
            parts.push(format!("PAUSED: {}", printable(why)));
        }
        parts
    }

    /// Each key with what is under way and its state; empty for a single key that is simply in use.
    pub(super) fn key_parts(&self) -> Vec<String> {
        if let [only] = self.keys.as_slice()
            && only.state.is_empty()
        {
            return Vec::new();
        }
        self.keys.iter().map(KeyLine::text).collect()
    }

    /// Finished rows in whole per cent, rounded down, so that 100 means all.
    pub(super) fn percent(&self) -> u64 {
        let percent = u128::from(self.done.min(self.total)) * 100;
        percent.checked_div(u128::from(self.total)).and_then(|p| u64::try_from(p).ok()).unwrap_or(100)
    }
}

impl KeyLine {
    /// The key on a few words: `org-a 3/100`, `org-b 0 (waits 12s)`.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{} {}", printable(&self.label), self.in_flight);
        if self.limit > 0 {
            let _ = write!(text, "/{}", self.limit);
        }
        if !self.state.is_empty() {
            let _ = write!(text, " ({})", printable(&self.state));
        }
        text
    }
}

/// One line for a log that people read, without a line end.
pub fn plain_line(snapshot: &Snapshot) -> String {
    let mut groups = vec![format!("{}/{} rows ({}%)", snapshot.done, snapshot.total, snapshot.percent())];
    let mut add = |parts: Vec<String>| {
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        if !text.is_empty() {
            groups.push(text);
        }
    };
    add(vec![snapshot.statuses_text()]);
    add(snapshot.pace_parts());
    let mut requests = vec![format!("{} sent", snapshot.attempts)];
    if snapshot.retries > 0 {
        requests.push(format!("{} retried", snapshot.retries));
    }
    if snapshot.repairs > 0 {
        requests.push(format!("{} repaired", snapshot.repairs));
    }
    requests.push(format!("{}/{} in flight", snapshot.in_flight, snapshot.limit));
    add(requests);
    add(snapshot.pressure_parts());
    add(snapshot.key_parts());
    add(vec![snapshot.money_text()]);
    groups.join("; ")
}

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    done: u64,
    total: u64,
    status: Statuses,
    attempts: u64,
    retries: u64,
    repairs: u64,
    throttled: u64,
    in_flight: u32,
    limit: u32,
    spent_usd: Number,
    ceiling_usd: Number,
    rows_per_minute: Number,
    eta_s: Number,
    next_permit_s: Number,
    paused: Option<&'a str>,
    oldest_in_flight_ms: Option<u64>,
    keys: &'a [KeyLine],
}

/// One line of JSON for a program that follows the run, without a line end.
pub fn json_line(snapshot: &Snapshot) -> String {
    line(&Line {
        at: snapshot.at.to_rfc3339(),
        done: snapshot.done,
        total: snapshot.total,
        status: snapshot.status.into(),
        attempts: snapshot.attempts,
        retries: snapshot.retries,
        repairs: snapshot.repairs,
        throttled: snapshot.throttled,
        in_flight: snapshot.in_flight,
        limit: snapshot.limit,
        spent_usd: Number::money(snapshot.spent),
        ceiling_usd: Number::money(snapshot.ceiling),
        rows_per_minute: Number::decimal(snapshot.rows_per_minute, 2),
        eta_s: Number::seconds(snapshot.eta),
        next_permit_s: Number::seconds(snapshot.next_permit),
        paused: snapshot.paused.as_deref(),
        oldest_in_flight_ms: snapshot.oldest_in_flight.map(millis),
        keys: &snapshot.keys,
    })
}
