//! The end of a run, as data and as the object `verify-summary/1`.

mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::base::{Money, RunId, WallTime};
use crate::model::{ReasonCounts, StatusCounts, Totals, Usage};
use crate::report::FailureGroup;
use crate::report::json::{Number, Statuses, Tokens, line, millis};

/// What a person and a pipeline read of a run. Counts and money are the run's, over all its executions; times, rates
/// and latencies are this execution's.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The run's id.
    pub run: RunId,
    /// Which execution of the run this is, from 1.
    pub execution: u64,
    /// The free text that the configuration gives the prompt's version; text only, not in the object.
    pub version: String,
    /// The input.
    pub input: Input,
    /// Rows by status. While the run goes on, rows that wait are in none.
    pub status: StatusCounts,
    /// Rows by reason.
    pub reason: ReasonCounts,
    /// How it ended; `None` while it goes on.
    pub exit: Option<Exit>,
    /// Requests sent.
    pub attempts: u64,
    /// Requests that were neither first tries, nor throttled, nor repairs.
    pub retries: u64,
    /// Requests that asked again after an invalid answer; text only, not in the object.
    pub repairs: u64,
    /// Replies of status 429.
    pub throttled: u64,
    /// Samples that were replayed from stored answers.
    pub replayed: u64,
    /// Tokens.
    pub tokens: Usage,
    /// Money.
    pub cost: Cost,
    /// How long this execution took so far.
    pub wall: Duration,
    /// Rows that this execution finished; text only, not in the object.
    pub finished_here: u64,
    /// Requests that this execution sent; text only, not in the object.
    pub sent_here: u64,
    /// Rows finished a minute; `None` where nothing is known.
    pub rows_per_minute: Option<f64>,
    /// Requests a minute; text only, not in the object.
    pub requests_per_minute: Option<f64>,
    /// How long replies took.
    pub latency: Latency,
    /// When this execution began.
    pub started: WallTime,
    /// When it ended; `None` while it goes on.
    pub ended: Option<WallTime>,
    /// The files written, as their paths.
    pub files: Vec<String>,
    /// The command that continues the run; `None` where nothing is left to do.
    pub resume: Option<String>,
    /// What a command that reads the run needs besides its name, as in ` --state DIR`; text only, not in the object.
    pub place: String,
    /// Equal failures, grouped; text only, not in the object.
    pub failures: Vec<FailureGroup>,
}

/// The input of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The path as given, or `-`.
    pub path: String,
    /// The digest of its bytes in hexadecimal.
    pub digest: String,
    /// The rows of the file; `None` where it was not read to its end.
    pub rows: Option<u64>,
    /// The rows selected.
    pub selected: u64,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: u8,
    /// Why, as one sentence.
    pub why: String,
}

/// What a run cost. `None` is unknown, which is never 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// All that was spent, estimates included.
    pub spent: Option<Money>,
    /// The part of `spent` that is our estimate.
    pub estimated: Option<Money>,
    /// The worst case of requests that were sent and brought no complete reply; not in `spent`.
    pub possible: Option<Money>,
    /// The ceiling, where one is set.
    pub ceiling: Option<Money>,
}

impl Cost {
    /// The exact part, the estimated part, and what is possible besides.
    pub(super) fn parts_text(&self) -> String {
        let Some(spent) = self.spent else { return "cost unknown".to_owned() };
        let estimated = self.estimated.unwrap_or_default();
        let exact = Money::from_pico(spent.pico().saturating_sub(estimated.pico()));
        let possible = self.possible.map_or_else(|| "an unknown sum".to_owned(), |sum| format!("${sum}"));
        format!("${exact} exact, ${estimated} estimated, {possible} possible")
    }

    /// The cost that `totals` tells of: unknown as soon as the cost of one attempt is.
    pub fn of(totals: &Totals, possible: Option<Money>, ceiling: Option<Money>) -> Self {
        let known = |amount| (!totals.unpriced).then_some(amount);
        Self {
            spent: known(totals.spent),
            estimated: known(totals.estimated),
            possible: if totals.unpriced { None } else { possible },
            ceiling,
        }
    }

    /// The cost of each of `passes` rows, to 10^-9 USD, half up; `None` without passes or where the cost is unknown.
    pub fn per_pass(&self, passes: u64) -> Option<Money> {
        const NANO: i128 = 1_000;
        let spent = i128::from(self.spent?.pico());
        let passes = i128::from(passes);
        if passes == 0 {
            return None;
        }
        let nanos = (2 * spent + NANO * passes).div_euclid(2 * NANO * passes);
        Some(Money::from_pico(i64::try_from(nanos * NANO).unwrap_or(i64::MAX)))
    }
}

/// How long the replies of an execution took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Latency {
    /// The median.
    pub p50: Option<Duration>,
    /// What 95 % do not exceed.
    pub p95: Option<Duration>,
}

/// The members in the order of the object.
#[derive(Serialize)]
struct Object<'a> {
    schema: &'static str,
    run: String,
    execution: u64,
    input: InputObject<'a>,
    status: Statuses,
    #[serde(serialize_with = "by_word")]
    reason: &'a ReasonCounts,
    exit: ExitObject<'a>,
    attempts: u64,
    retries: u64,
    throttled: u64,
    replayed: u64,
    tokens: Tokens,
    cost: CostObject,
    wall_s: Number,
    rows_per_minute: Number,
    latency_ms: LatencyObject,
    started: String,
    ended: Option<String>,
    files: &'a [String],
    #[serde(rename = "continue")]
    resume: Option<&'a str>,
}

#[derive(Serialize)]
struct InputObject<'a> {
    path: &'a str,
    digest: &'a str,
    rows: Option<u64>,
    selected: u64,
}

#[derive(Serialize)]
struct ExitObject<'a> {
    code: Option<u8>,
    why: Option<&'a str>,
}

#[derive(Serialize)]
struct CostObject {
    spent_usd: Number,
    estimated_usd: Number,
    possible_usd: Number,
    ceiling_usd: Number,
    per_pass_usd: Number,
}

#[derive(Serialize)]
struct LatencyObject {
    p50: Option<u64>,
    p95: Option<u64>,
}

fn by_word<S: Serializer>(reasons: &ReasonCounts, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(reasons.iter().map(|(reason, count)| (reason.as_str(), count)))
}

impl Summary {
    /// The object `verify-summary/1` on one line, without a line end. `docs/summary.schema.json` describes it.
    pub fn to_json(&self) -> String {
        line(&Object {
            schema: "verify-summary/1",
            run: self.run.to_string(),
            execution: self.execution,
            input: InputObject {
                path: &self.input.path,
                digest: &self.input.digest,
                rows: self.input.rows,
                selected: self.input.selected,
            },
            status: self.status.into(),
            reason: &self.reason,
            exit: ExitObject {
                code: self.exit.as_ref().map(|exit| exit.code),
                why: self.exit.as_ref().map(|exit| exit.why.as_str()),
            },
            attempts: self.attempts,
            retries: self.retries,
            throttled: self.throttled,
            replayed: self.replayed,
            tokens: self.tokens.into(),
            cost: CostObject {
                spent_usd: Number::money(self.cost.spent),
                estimated_usd: Number::money(self.cost.estimated),
                possible_usd: Number::money(self.cost.possible),
                ceiling_usd: Number::money(self.cost.ceiling),
                per_pass_usd: Number::money(self.cost.per_pass(self.status.pass)),
            },
            wall_s: Number::seconds(Some(self.wall)),
            rows_per_minute: Number::decimal(self.rows_per_minute, 2),
            latency_ms: LatencyObject {
                p50: self.latency.p50.map(millis),
                p95: self.latency.p95.map(millis),
            },
            started: self.started.to_rfc3339(),
            ended: self.ended.map(WallTime::to_rfc3339),
            files: &self.files,
            resume: self.resume.as_deref(),
        })
    }

    /// The final table for people, `width` columns wide as far as its words allow, with a line end.
    pub fn to_text(&self, width: usize, color: bool) -> String {
        table::text(self, width, color)
    }
}
