//! What a run will take, before it runs.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use crate::base::Money;
use crate::model::Totals;
use crate::report::json::{self, Number};
use crate::report::measure::{counted, eta_text, grouped, money_text};

/// An estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Selected rows.
    pub rows: u64,
    /// Rows that cannot be asked about.
    pub bad: u64,
    /// Samples that the run has finished in earlier executions.
    pub finished: u64,
    /// Samples that take a stored answer, or that of an equal row.
    pub replayed: u64,
    /// Requests to be made, without retries and repairs.
    pub calls: u64,
    /// Their input tokens.
    pub input: u64,
    /// The tokens that they will probably bring.
    pub output: u64,
    /// Their cost; `None` without a known price.
    pub cost: Option<CostRange>,
    /// How long they will take.
    pub wall: Duration,
    /// How the numbers were found, one sentence each.
    pub notes: Vec<String>,
}

/// A cost and its bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CostRange {
    /// With the shortest answers.
    pub low: Money,
    /// With usual ones.
    pub likely: Money,
    /// The most that one try of each can cost.
    pub high: Money,
}

impl Estimate {
    /// The object that pipelines read.
    pub fn to_json(&self) -> String {
        let money = |of: fn(&CostRange) -> Money| Number::money(self.cost.as_ref().map(of));
        json::line(&Object {
            rows: self.rows,
            replayed: self.finished.saturating_add(self.replayed),
            calls: self.calls,
            tokens: Tokens { input: self.input, output: self.output },
            cost_usd: Costs {
                low: money(|cost| cost.low),
                likely: money(|cost| cost.likely),
                high: money(|cost| cost.high),
            },
            wall_s: Number::seconds(Some(self.wall)),
        })
    }

    /// Lines for people.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<10}{value}");
        };
        let mut rows = grouped(self.rows);
        if self.bad > 0 {
            let _ = write!(rows, ", {} of them error/bad_input", grouped(self.bad));
        }
        line("rows", rows);
        line("calls", grouped(self.calls));
        if let Some(spared) = self.spared_text() {
            line("no call", spared);
        }
        line("tokens", format!("{} in, about {} out", grouped(self.input), grouped(self.output)));
        line(
            "cost",
            match &self.cost {
                Some(cost) if cost.high == Money::ZERO => "$0".to_owned(),
                Some(cost) => format!(
                    "about {}, at least {}, at most {} with one try each",
                    money_text(Some(cost.likely)),
                    money_text(Some(cost.low)),
                    money_text(Some(cost.high))
                ),
                None => "unknown: no price is known; give one with --price 'input=1,output=4'".to_owned(),
            },
        );
        line("time", eta_text(self.wall));
        for note in &self.notes {
            text.push_str("  ");
            text.push_str(note);
            text.push('\n');
        }
        text
    }

    /// The samples that need no call, and why; `None` where there are none.
    fn spared_text(&self) -> Option<String> {
        let kinds =
            [(self.finished, "finished in this run"), (self.replayed, "stored or asked by an equal row")];
        let kinds: Vec<_> = kinds.into_iter().filter(|(count, _)| *count > 0).collect();
        match kinds.as_slice() {
            [] => None,
            [(count, why)] => Some(format!("{} {why}", counted(*count, "sample"))),
            _ => {
                let all = counted(self.finished.saturating_add(self.replayed), "sample");
                let parts: Vec<String> =
                    kinds.iter().map(|(count, why)| format!("{} {why}", grouped(*count))).collect();
                Some(format!("{all}: {}", parts.join(", ")))
            }
        }
    }

    /// The estimate of a run as a whole: what is left, as estimated here, and what `done` says of the run so far, which
    /// took `took`.
    #[must_use]
    pub fn with_spent(self, done: &Totals, took: Duration) -> Self {
        let replayed = self.finished.min(done.replayed);
        let spent = |part: Money| part + done.spent;
        let cost = self.cost.filter(|_| !done.unpriced).map(|cost| CostRange {
            low: spent(cost.low),
            likely: spent(cost.likely),
            high: spent(cost.high),
        });
        Self {
            finished: 0,
            replayed: self.replayed.saturating_add(replayed),
            calls: self.calls.saturating_add(self.finished - replayed),
            input: self.input.saturating_add(done.tokens.input),
            output: self.output.saturating_add(done.tokens.output),
            cost,
            wall: self.wall.saturating_add(took),
            ..self
        }
    }

    /// One line for people who start the run anyway.
    pub fn to_line(&self) -> String {
        let calls = counted(self.calls, "call");
        match &self.cost {
            Some(cost) => format!(
                "{calls}, about {}, at most {} with one try each",
                money_text(Some(cost.likely)),
                money_text(Some(cost.high))
            ),
            None => format!("{calls}, cost unknown"),
        }
    }
}

#[derive(Debug, Serialize)]
struct Object {
    rows: u64,
    replayed: u64,
    calls: u64,
    tokens: Tokens,
    cost_usd: Costs,
    wall_s: Number,
}

#[derive(Debug, Serialize)]
struct Tokens {
    input: u64,
    output: u64,
}

#[derive(Debug, Serialize)]
struct Costs {
    low: Number,
    likely: Number,
    high: Number,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(cost: Option<CostRange>) -> Estimate {
        Estimate {
            rows: 1_000,
            bad: 1,
            finished: 200,
            replayed: 50,
            calls: 749,
            input: 40_000,
            output: 9_000,
            cost,
            wall: Duration::from_millis(61_500),
            notes: vec!["tokens: counted".to_owned()],
        }
    }

    #[test]
    fn the_object_has_just_these_members() {
        let money = |units| Money::from_pico(units);
        let cost =
            CostRange { low: money(1_000_000), likely: money(2_500_000_000), high: money(3_000_000_000_000) };
        assert_eq!(
            estimate(Some(cost)).to_json(),
            r#"{"rows":1000,"replayed":250,"calls":749,"tokens":{"input":40000,"output":9000},"cost_usd":{"low":0.000001,"likely":0.0025,"high":3},"wall_s":61.5}"#
        );
        let unknown = estimate(None).to_json();
        assert!(unknown.contains(r#""cost_usd":{"low":null,"likely":null,"high":null}"#), "{unknown}");
    }

    #[test]
    fn the_whole_is_what_is_left_and_what_is_done() {
        let done = Totals { replayed: 20, spent: Money::from_pico(5), ..Totals::default() };
        let whole = estimate(Some(CostRange::default())).with_spent(&done, Duration::from_secs(1));
        assert_eq!((whole.replayed, whole.calls, whole.finished), (70, 929, 0));
        assert_eq!(whole.rows, whole.replayed + whole.calls + whole.bad);
        assert_eq!(whole.cost.map(|cost| cost.low), Some(Money::from_pico(5)));
        let unpriced = Totals { unpriced: true, ..Totals::default() };
        assert_eq!(estimate(Some(CostRange::default())).with_spent(&unpriced, Duration::ZERO).cost, None);
    }

    #[test]
    fn people_read_what_is_known_and_how() {
        let text = estimate(None).to_text();
        for part in [
            "1,000, 1 of them error/bad_input",
            "no call   250 samples: 200 finished in this run, 50 stored or asked by an equal row",
            "749",
            "unknown: no price",
            "1m 2s",
            "tokens: counted",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(estimate(Some(CostRange::default())).to_line().starts_with("749 calls, about $0"));
    }
}
