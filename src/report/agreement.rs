//! What the samples of a run say of its thresholds, as people and pipelines read it.

use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};
use serde::Serialize;

use crate::base::RunId;
use crate::model::{Ensemble, Rule};
use crate::policy::{Agreement, BINS, Outcomes};
use crate::report::json::{Number, line};
use crate::report::printable;

/// What `verify agreement` says.
#[derive(Debug)]
pub struct AgreementView<'a> {
    /// The run.
    pub run: RunId,
    /// Its rules.
    pub rules: &'a Ensemble,
    /// Its samples, counted.
    pub agreement: &'a Agreement,
    /// The column that holds the truth, if one does.
    pub gold: Option<&'a str>,
}

#[derive(Serialize)]
struct Object<'a> {
    run: String,
    samples: u16,
    rule: &'static str,
    auto_pass: Number,
    auto_fail: Number,
    rows: OutcomesObject,
    agreement: Vec<ShareObject>,
    confidence: Vec<BinObject>,
    thresholds: Vec<ThresholdObject>,
    gold: Option<GoldObject<'a>>,
}

#[derive(Serialize)]
struct OutcomesObject {
    pass: u64,
    fail: u64,
    review: u64,
    error: u64,
    unknown: u64,
    automatic: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    false_pass: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    false_fail: Option<u64>,
}

#[derive(Serialize)]
struct ThresholdObject {
    threshold: Number,
    #[serde(flatten)]
    rows: OutcomesObject,
}

#[derive(Serialize)]
struct ShareObject {
    agreement: Number,
    rows: u64,
}

#[derive(Serialize)]
struct BinObject {
    from: Number,
    to: Number,
    rows: u64,
}

#[derive(Serialize)]
struct GoldObject<'a> {
    column: &'a str,
    rows: u64,
    without: u64,
    accuracy: Number,
    false_pass_rate: Number,
    confusion: ConfusionObject,
    calibration: Vec<CalibrationObject>,
}

#[derive(Serialize)]
struct ConfusionObject {
    pass: VerdictsObject,
    fail: VerdictsObject,
}

#[derive(Serialize)]
struct VerdictsObject {
    pass: u64,
    fail: u64,
}

#[derive(Serialize)]
struct CalibrationObject {
    from: Number,
    to: Number,
    rows: u64,
    right: u64,
    confidence: Number,
    accuracy: Number,
}

fn number(value: impl Into<Option<Decimal>>) -> Number {
    Number::exact(value.into().map(four_places))
}

fn four_places(value: Decimal) -> Decimal {
    value.round_dp_with_strategy(4, RoundingStrategy::MidpointAwayFromZero).normalize()
}

fn shown(value: Option<Decimal>) -> String {
    value.map_or("-".to_owned(), |value| four_places(value).to_string())
}

fn percent(value: Option<Decimal>) -> String {
    let cut = |value: Decimal| {
        let hundredfold = value.saturating_mul(Decimal::ONE_HUNDRED);
        hundredfold.round_dp_with_strategy(1, RoundingStrategy::MidpointAwayFromZero)
    };
    value.map_or("-".to_owned(), |value| format!("{:.1} %", cut(value)))
}

fn edges(at: usize) -> (Decimal, Decimal) {
    let tenth = |at: usize| Decimal::new(i64::try_from(at).unwrap_or(0), 1);
    (tenth(at), tenth(at + 1))
}

fn rule_word(rules: &Ensemble) -> &'static str {
    match rules.rule {
        Rule::Unanimous => "unanimous",
        Rule::Majority => "majority",
    }
}

impl AgreementView<'_> {
    fn outcomes(&self, rows: &Outcomes) -> OutcomesObject {
        OutcomesObject {
            pass: rows.pass,
            fail: rows.fail,
            review: rows.review,
            error: rows.error,
            unknown: rows.unknown,
            automatic: number(rows.automatic()),
            false_pass: self.gold.map(|_| rows.false_pass),
            false_fail: self.gold.map(|_| rows.false_fail),
        }
    }

    /// The object on one line, without a line end. Shares are between 0 and 1, to four places.
    pub fn to_json(&self) -> String {
        let Self { run, rules, agreement, gold } = self;
        let shares = agreement.shares.iter().rev();
        let bins = || agreement.bins.iter().enumerate().map(|(at, bin)| (edges(at), bin));
        let confusion = &agreement.confusion;
        line(&Object {
            run: run.to_string(),
            samples: rules.samples,
            rule: rule_word(rules),
            auto_pass: number(rules.auto_pass),
            auto_fail: number(rules.auto_fail),
            rows: self.outcomes(&agreement.configured),
            agreement: shares
                .map(|(share, rows)| ShareObject { agreement: number(*share), rows: *rows })
                .collect(),
            confidence: bins()
                .map(|((from, to), bin)| BinObject { from: number(from), to: number(to), rows: bin.rows })
                .collect(),
            thresholds: agreement
                .thresholds
                .iter()
                .map(|(at, rows)| ThresholdObject { threshold: number(*at), rows: self.outcomes(rows) })
                .collect(),
            gold: gold.map(|column| GoldObject {
                column,
                rows: confusion.rows(),
                without: agreement.without_gold,
                accuracy: number(confusion.accuracy()),
                false_pass_rate: number(confusion.false_pass_rate()),
                confusion: ConfusionObject {
                    pass: VerdictsObject { pass: confusion.pass_pass, fail: confusion.pass_fail },
                    fail: VerdictsObject { pass: confusion.fail_pass, fail: confusion.fail_fail },
                },
                calibration: bins()
                    .map(|((from, to), bin)| CalibrationObject {
                        from: number(from),
                        to: number(to),
                        rows: bin.known,
                        right: bin.right,
                        confidence: number(bin.confidence()),
                        accuracy: number(bin.accuracy()),
                    })
                    .collect(),
            }),
        })
    }

    /// Tables for people, with a line end.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let Self { run, rules, agreement, .. } = self;
        let _ = writeln!(text, "run {run}: {} a row, {} rule", samples(rules.samples), rule_word(rules));
        let rows = &agreement.configured;
        let _ = writeln!(
            text,
            "by its samples and its thresholds (pass {}, fail {}): {} pass, {} fail, {} review, {} error, {} unknown; {} need no person",
            rules.auto_pass.normalize(),
            rules.auto_fail.normalize(),
            rows.pass,
            rows.fail,
            rows.review,
            rows.error,
            rows.unknown,
            percent(rows.automatic())
        );
        if !agreement.shares.is_empty() {
            text.push_str("\nagreement      rows\n");
            for (share, rows) in agreement.shares.iter().rev() {
                let _ = writeln!(text, "{:<9} {rows:>9}", shown(Some(*share)));
            }
        }
        if agreement.thresholds.is_empty() {
            text.push_str("\nno confidence is configured, so no threshold changes anything\n");
        } else {
            text.push_str("\nconfidence     rows\n");
            for (at, bin) in agreement.bins.iter().enumerate() {
                let _ = writeln!(text, "{:<9} {:>9}", bin_name(at), bin.rows);
            }
            self.push_thresholds(&mut text);
        }
        if let Some(column) = self.gold {
            self.push_gold(&mut text, column);
        }
        text
    }

    fn push_thresholds(&self, text: &mut String) {
        let gold = self.gold.is_some();
        text.push_str("\nthreshold      pass      fail    review   unknown  automatic");
        text.push_str(if gold { "  false pass  false fail\n" } else { "\n" });
        for (threshold, rows) in &self.agreement.thresholds {
            let _ = write!(
                text,
                "{threshold:<9.2} {:>9} {:>9} {:>9} {:>9} {:>10}",
                rows.pass,
                rows.fail,
                rows.review,
                rows.unknown,
                percent(rows.automatic())
            );
            if gold {
                let _ = write!(text, " {:>11} {:>11}", rows.false_pass, rows.false_fail);
            }
            text.push('\n');
        }
        if self.agreement.thresholds.iter().any(|(_, rows)| rows.unknown > 0) {
            text.push_str(
                "unknown: too few samples were made to say; a run with --early-stop=false makes all\n",
            );
        }
    }

    fn push_gold(&self, text: &mut String, column: &str) {
        let confusion = &self.agreement.confusion;
        let _ = writeln!(
            text,
            "\nbeside the column {}: {} rows, {} more without a value; accuracy {}",
            printable(column),
            confusion.rows(),
            self.agreement.without_gold,
            percent(confusion.accuracy())
        );
        let _ = writeln!(
            text,
            "false passes: {} of {} rows that should not pass, {}",
            confusion.fail_pass,
            confusion.fails(),
            percent(confusion.false_pass_rate())
        );
        text.push_str("\ntruth     verdict pass  verdict fail\n");
        let _ = writeln!(text, "pass      {:>12}  {:>12}", confusion.pass_pass, confusion.pass_fail);
        let _ = writeln!(text, "fail      {:>12}  {:>12}", confusion.fail_pass, confusion.fail_fail);
        if self.agreement.thresholds.is_empty() {
            return;
        }
        text.push_str("\nconfidence     rows     right   accuracy  mean confidence\n");
        for (at, bin) in self.agreement.bins.iter().enumerate() {
            let _ = writeln!(
                text,
                "{:<9} {:>9} {:>9} {:>10} {:>16}",
                bin_name(at),
                bin.known,
                bin.right,
                percent(bin.accuracy()),
                shown(bin.confidence())
            );
        }
    }
}

fn samples(count: u16) -> String {
    if count == 1 { "1 sample".to_owned() } else { format!("{count} samples") }
}

fn bin_name(at: usize) -> String {
    let (from, to) = edges(at);
    format!("{from:.1}..{to:.1}{}", if at + 1 == BINS { "" } else { "-" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::WallTime;
    use crate::model::Vote;
    use crate::policy::SampleState;

    fn view(with_gold: bool) -> (String, String) {
        let threshold = Decimal::new(80, 2);
        let rules = Ensemble {
            samples: 1,
            rule: Rule::Unanimous,
            auto_pass: threshold,
            auto_fail: threshold,
            early_stop: true,
            concurrent_samples: false,
        };
        let mut agreement = Agreement::new(&rules, true, true);
        for (positive, hundredths, gold) in
            [(true, 95, true), (true, 85, false), (false, 85, false), (true, 45, true)]
        {
            let confidence = Some(Decimal::new(hundredths, 2));
            let vote = Vote { positive: Some(positive), confidence, agree_on: None };
            agreement.add(&[SampleState::Valid(vote)], with_gold.then_some(gold));
        }
        let view = AgreementView {
            run: RunId::new(WallTime(0)),
            rules: &rules,
            agreement: &agreement,
            gold: with_gold.then_some("truth\u{1b}"),
        };
        (view.to_text(), view.to_json())
    }

    #[test]
    fn tables_are_for_people() {
        let (text, _) = view(true);
        for line in [
            "2 pass, 1 fail, 1 review, 0 error, 0 unknown; 75.0 % need no person",
            "1                 4",
            "0.80              2         1         1         0     75.0 %           1           0",
            "4 rows, 0 more without a value; accuracy 75.0 %",
            "false passes: 1 of 2 rows that should not pass, 50.0 %",
            "pass                 2             0",
            "fail                 1             1",
            "0.8..0.9-         2         1     50.0 %             0.85",
            "0.9..1.0          1         1    100.0 %             0.95",
            "0.0..0.1-         0         0          -                -",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(!view(false).0.contains("false"));
    }

    #[test]
    fn the_object_is_exact() {
        let json: serde_json::Value = serde_json::from_str(&view(true).1).unwrap();
        assert_eq!(json["gold"]["accuracy"], serde_json::json!(0.75));
        assert_eq!(json["gold"]["confusion"]["fail"], serde_json::json!({"pass": 1, "fail": 1}));
        assert_eq!(json["thresholds"][16]["threshold"], serde_json::json!(0.8));
        assert_eq!(json["thresholds"][16]["false_pass"], 1);
        assert_eq!(
            (json["confidence"][9]["rows"].clone(), json["agreement"][0]["rows"].clone()),
            (1.into(), 4.into())
        );
        let plain: serde_json::Value = serde_json::from_str(&view(false).1).unwrap();
        assert_eq!((&plain["gold"], plain["rows"].get("false_pass")), (&serde_json::Value::Null, None));
    }
}
