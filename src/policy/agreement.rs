//! What the samples of a run say of its thresholds, and of the truth where it is known.
//!
//! All of it is arithmetic on samples that are there: counts, and quotients of counts and of exact decimals.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use crate::model::{Ensemble, Status};
use crate::policy::consensus::{Decision, SampleState, decide};

/// Bins of a confidence: 0 to below 0.1, and so on; the last one takes 1 in.
pub const BINS: usize = 10;

/// Rows by what a pair of thresholds makes of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Rows that pass automatically.
    pub pass: u64,
    /// Rows that fail automatically.
    pub fail: u64,
    /// Rows for a person.
    pub review: u64,
    /// Rows without an answer.
    pub error: u64,
    /// Rows of which too few samples were made to say.
    pub unknown: u64,
    /// Of `pass`, those that should not.
    pub false_pass: u64,
    /// Of `fail`, those that should pass.
    pub false_fail: u64,
}

impl Outcomes {
    fn add(&mut self, decision: Option<&Decision>, gold: Option<bool>) {
        let slot = match decision.map(|decision| decision.status) {
            Some(Status::Pass) => &mut self.pass,
            Some(Status::Fail) => &mut self.fail,
            Some(Status::Review) => &mut self.review,
            Some(Status::Error) => &mut self.error,
            Some(Status::Skipped) | None => &mut self.unknown,
        };
        *slot += 1;
        match (decision.map(|decision| decision.status), gold) {
            (Some(Status::Pass), Some(false)) => self.false_pass += 1,
            (Some(Status::Fail), Some(true)) => self.false_fail += 1,
            _ => {}
        }
    }

    /// Share of the rows with an answer that need no person; `None` if there are none.
    pub fn automatic(&self) -> Option<Decimal> {
        let decided = self.pass + self.fail;
        quotient(decided, decided + self.review)
    }
}

/// A cell for each verdict beside each truth: the first word is the truth, the second the verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Confusion {
    /// Passes that should.
    pub pass_pass: u64,
    /// Rows that should pass and do not.
    pub pass_fail: u64,
    /// Rows that should not pass and do.
    pub fail_pass: u64,
    /// Rows that should not pass and do not.
    pub fail_fail: u64,
}

impl Confusion {
    /// Rows that should not pass.
    pub fn fails(&self) -> u64 {
        self.fail_pass + self.fail_fail
    }

    /// All rows.
    pub fn rows(&self) -> u64 {
        self.pass_pass + self.pass_fail + self.fails()
    }

    /// Share of the rows whose verdict is the truth.
    pub fn accuracy(&self) -> Option<Decimal> {
        quotient(self.pass_pass + self.fail_fail, self.rows())
    }

    /// Share of the rows that should not pass whose verdict is a pass.
    pub fn false_pass_rate(&self) -> Option<Decimal> {
        quotient(self.fail_pass, self.fails())
    }
}

/// Rows with a mean confidence in one of the [`BINS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bin {
    /// How many.
    pub rows: u64,
    /// How many of them have a known truth.
    pub known: u64,
    /// How many of those have the right verdict.
    pub right: u64,
    /// The sum of the confidences of those whose truth is known.
    pub sum: Decimal,
}

impl Bin {
    /// Share of the rows with a known truth whose verdict is right.
    pub fn accuracy(&self) -> Option<Decimal> {
        quotient(self.right, self.known)
    }

    /// Mean confidence of the rows with a known truth.
    pub fn confidence(&self) -> Option<Decimal> {
        (self.known > 0).then(|| self.sum.checked_div(Decimal::from(self.known)))?
    }
}

/// What a run's samples say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agreement {
    rules: Ensemble,
    has_verdict: bool,
    has_confidence: bool,
    /// Rows by what the configured thresholds make of their samples.
    pub configured: Outcomes,
    /// Rows by the share of their samples that agree.
    pub shares: BTreeMap<Decimal, u64>,
    /// Rows by mean confidence.
    pub bins: [Bin; BINS],
    /// Rows by what other thresholds would make of their samples, the lowest first; empty without a confidence.
    pub thresholds: Vec<(Decimal, Outcomes)>,
    /// Verdicts beside the truth.
    pub confusion: Confusion,
    /// Rows with an answer whose truth is not known.
    pub without_gold: u64,
}

impl Agreement {
    /// Nothing yet. Other thresholds are those from 0 to 1 in steps of 0.05, each for passes and fails alike.
    pub fn new(rules: &Ensemble, has_verdict: bool, has_confidence: bool) -> Self {
        let steps = if has_confidence { 21 } else { 0 };
        Self {
            rules: rules.clone(),
            has_verdict,
            has_confidence,
            configured: Outcomes::default(),
            shares: BTreeMap::new(),
            bins: [Bin::default(); BINS],
            thresholds: (0..steps).map(|step| (Decimal::new(step * 5, 2), Outcomes::default())).collect(),
            confusion: Confusion::default(),
            without_gold: 0,
        }
    }

    /// Counts a row. `gold` is the truth: whether it should pass, if that is known.
    ///
    /// The verdict of a row is what more of its samples say, and no pass if as many say the one as the other,
    /// whether or not it is automatic.
    pub fn add(&mut self, samples: &[SampleState], gold: Option<bool>) {
        let decision = self.decide(samples, &self.rules);
        self.configured.add(decision.as_ref(), gold);
        for at in 0..self.thresholds.len() {
            let threshold = self.thresholds[at].0;
            // What early stop has left out must be left out here as well, where it decides nothing.
            let rules = Ensemble {
                auto_pass: threshold,
                auto_fail: threshold,
                early_stop: true,
                ..self.rules.clone()
            };
            let decision = self.decide(samples, &rules);
            self.thresholds[at].1.add(decision.as_ref(), gold);
        }
        let Some(decision) = decision else { return };
        let Some(speaker) = decision.answer_sample else { return };
        if let Some(share) = decision.agreement {
            *self.shares.entry(share.round_dp(12).normalize()).or_default() += 1;
        }
        let vote = samples.get(usize::from(speaker) - 1);
        let verdict = matches!(vote, Some(SampleState::Valid(vote)) if vote.positive == Some(true));
        match gold {
            Some(true) if verdict => self.confusion.pass_pass += 1,
            Some(true) => self.confusion.pass_fail += 1,
            Some(false) if verdict => self.confusion.fail_pass += 1,
            Some(false) => self.confusion.fail_fail += 1,
            None => self.without_gold += 1,
        }
        if let Some(confidence) = decision.confidence {
            let bin = &mut self.bins[place(confidence)];
            bin.rows += 1;
            if let Some(gold) = gold {
                bin.known += 1;
                bin.right += u64::from(gold == verdict);
                bin.sum = bin.sum.saturating_add(confidence);
            }
        }
    }

    /// Counts rows of which nothing is stored.
    pub fn add_unfinished(&mut self, rows: u64) {
        self.configured.unknown += rows;
        for (_, outcomes) in &mut self.thresholds {
            outcomes.unknown += rows;
        }
    }

    fn decide(&self, samples: &[SampleState], rules: &Ensemble) -> Option<Decision> {
        decide(rules, self.has_verdict, self.has_confidence, samples)
    }
}

/// The bin of a confidence.
fn place(confidence: Decimal) -> usize {
    let tenths = confidence.saturating_mul(Decimal::from(BINS)).floor();
    usize::try_from(tenths).unwrap_or(0).min(BINS - 1)
}

fn quotient(part: u64, whole: u64) -> Option<Decimal> {
    Decimal::from(part).checked_div(Decimal::from(whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reason, Rule, Vote};

    fn rules(samples: u16, threshold: i64) -> Ensemble {
        Ensemble {
            samples,
            rule: Rule::Unanimous,
            auto_pass: Decimal::new(threshold, 2),
            auto_fail: Decimal::new(threshold, 2),
            early_stop: true,
            concurrent_samples: false,
        }
    }

    /// `p80` passes with a confidence of 0.80, `f` does not, `x` was refused, `o` throttled, `-` is open.
    fn samples(text: &str) -> Vec<SampleState> {
        text.split(' ')
            .map(|word| match word.split_at(1) {
                ("-", _) => SampleState::Open,
                ("x", _) => SampleState::Failed(Reason::Refused),
                ("o", _) => SampleState::Failed(Reason::RateLimited),
                (kind, hundredths) => SampleState::Valid(Vote {
                    positive: Some(kind == "p"),
                    confidence: Some(Decimal::new(hundredths.parse().unwrap(), 2)),
                    agree_on: None,
                }),
            })
            .collect()
    }

    fn of(rules: &Ensemble, rows: &[(&str, Option<bool>)]) -> Agreement {
        let mut agreement = Agreement::new(rules, true, true);
        for (text, gold) in rows {
            agreement.add(&samples(text), *gold);
        }
        agreement
    }

    fn at(agreement: &Agreement, hundredths: i64) -> Outcomes {
        let threshold = Decimal::new(hundredths, 2);
        agreement.thresholds.iter().find(|(have, _)| *have == threshold).unwrap().1
    }

    fn decimal(text: &str) -> Decimal {
        text.parse().unwrap()
    }

    /// Twelve rows of one sample, counted by hand.
    #[test]
    fn the_table_of_one_sample() {
        let (yes, no) = (Some(true), Some(false));
        let rows = [
            ("p95", yes),
            ("p95", yes),
            ("p90", no),
            ("p85", yes),
            ("p75", no),
            ("p60", yes),
            ("f95", no),
            ("f85", no),
            ("f80", yes),
            ("f55", no),
            ("p100", None),
            ("x", yes),
        ];
        let agreement = of(&rules(1, 80), &rows);
        let configured =
            Outcomes { pass: 5, fail: 3, review: 3, error: 1, unknown: 0, false_pass: 1, false_fail: 1 };
        assert_eq!((agreement.configured, at(&agreement, 80)), (configured, configured));
        assert_eq!(configured.automatic(), Some(Decimal::from(8) / Decimal::from(11)));
        let all =
            Outcomes { pass: 7, fail: 4, review: 0, error: 1, unknown: 0, false_pass: 2, false_fail: 1 };
        assert_eq!((at(&agreement, 0), at(&agreement, 55)), (all, all));
        assert_eq!(at(&agreement, 60), Outcomes { fail: 3, review: 1, ..all });
        assert_eq!(
            at(&agreement, 90),
            Outcomes { pass: 4, fail: 1, review: 6, false_pass: 1, false_fail: 0, ..all }
        );
        assert_eq!(
            at(&agreement, 100),
            Outcomes { pass: 1, fail: 0, review: 10, false_pass: 0, false_fail: 0, ..all }
        );

        assert_eq!(agreement.confusion, Confusion { pass_pass: 4, pass_fail: 1, fail_pass: 2, fail_fail: 3 });
        assert_eq!(agreement.confusion.accuracy(), Some(decimal("0.7")));
        assert_eq!(agreement.confusion.false_pass_rate(), Some(decimal("0.4")));
        assert_eq!(agreement.without_gold, 1);
        assert_eq!(agreement.shares, [(Decimal::ONE, 11)].into());
        let bins: Vec<_> = agreement.bins.iter().map(|bin| (bin.rows, bin.known, bin.right)).collect();
        assert_eq!(bins[..5], [(0, 0, 0); 5]);
        assert_eq!(bins[5..], [(1, 1, 1), (1, 1, 1), (1, 1, 0), (3, 3, 2), (5, 4, 3)]);
        assert_eq!(
            (agreement.bins[9].accuracy(), agreement.bins[9].confidence()),
            (Some(decimal("0.75")), Some(decimal("0.9375")))
        );
        assert_eq!((agreement.bins[0].accuracy(), agreement.bins[0].confidence()), (None, None));
    }

    /// Rows of three samples: agreement in thirds, and samples that early stop has left out.
    #[test]
    fn the_table_of_three_samples() {
        let rows = [
            ("p90 p90 p90", Some(true)),
            ("p90 p90 f90", Some(true)),
            ("p70 f60 -", Some(false)),
            ("p30 - -", Some(false)),
            ("p70 p80 p90", Some(false)),
            ("p90 x -", None),
            ("o - -", Some(true)),
            ("- - -", Some(true)),
        ];
        let agreement = of(&rules(3, 80), &rows);
        let configured =
            Outcomes { pass: 2, fail: 0, review: 4, error: 1, unknown: 1, false_pass: 1, false_fail: 0 };
        assert_eq!(agreement.configured, configured);
        // One sample of 0.30 could still be part of a mean of 0.75.
        assert_eq!(at(&agreement, 75), Outcomes { review: 3, unknown: 2, ..configured });
        assert_eq!(at(&agreement, 85), Outcomes { pass: 1, review: 5, false_pass: 0, ..configured });
        let third = (Decimal::from(2) / Decimal::from(3)).round_dp(12);
        assert_eq!(agreement.shares, [(Decimal::new(5, 1), 1), (third, 1), (Decimal::ONE, 4)].into());
        // A tie is no pass; a split of two to one is what the two say.
        assert_eq!(agreement.confusion, Confusion { pass_pass: 2, pass_fail: 0, fail_pass: 2, fail_fail: 1 });
        assert_eq!((agreement.without_gold, agreement.bins[6].rows, agreement.bins[3].rows), (1, 1, 1));
    }

    #[test]
    fn without_a_confidence_no_threshold_matters() {
        let mut agreement = Agreement::new(&rules(1, 80), true, false);
        agreement.add(&samples("p10"), None);
        agreement.add_unfinished(3);
        assert_eq!((agreement.configured.pass, agreement.configured.unknown), (1, 3));
        assert!(agreement.thresholds.is_empty());
        let empty = Agreement::new(&rules(1, 80), true, true);
        assert_eq!((empty.configured.automatic(), empty.confusion.accuracy()), (None, None));
        assert_eq!(empty.confusion.false_pass_rate(), None);
    }
}
