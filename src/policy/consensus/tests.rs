//! The table of decisions, and what must hold for every set of samples.

use proptest::prelude::*;

use super::*;

fn rules(samples: u16, rule: Rule, threshold: &str, early_stop: bool) -> Ensemble {
    let threshold: Decimal = threshold.parse().unwrap();
    Ensemble {
        samples,
        rule,
        auto_pass: threshold,
        auto_fail: threshold,
        early_stop,
        concurrent_samples: false,
    }
}

/// `p.9` passes, `f.9` and `q.9` do not, `p` carries no confidence, `x:word` failed for that reason, `-` is open,
/// `=text` is a sample without a verdict that says `text`, `=text@.9` one with a confidence.
fn samples(text: &str) -> Vec<SampleState> {
    let number = |text: &str| (!text.is_empty()).then(|| text.parse().unwrap());
    text.split_whitespace()
        .map(|word| match word.split_at(1) {
            ("-", _) => SampleState::Open,
            ("x", reason) => SampleState::Failed(Reason::from_word(reason.trim_start_matches(':')).unwrap()),
            ("=", rest) => {
                let (agree, confidence) = rest.split_once('@').unwrap_or((rest, ""));
                SampleState::Valid(Vote {
                    positive: None,
                    confidence: number(confidence),
                    agree_on: (agree != "null").then(|| agree.to_owned()),
                })
            }
            (kind, confidence) => SampleState::Valid(Vote {
                positive: Some(kind == "p"),
                confidence: number(confidence),
                agree_on: None,
            }),
        })
        .collect()
}

fn judged(rules: &Ensemble, text: &str) -> Option<Decision> {
    let has_verdict = !text.contains('=');
    decide(rules, has_verdict, text.contains('.'), &samples(text))
}

fn outcome(rules: &Ensemble, text: &str) -> String {
    judged(rules, text).map_or("undecided".to_owned(), |it| format!("{}/{}", it.status, it.reason))
}

fn unanimous(text: &str) -> Ensemble {
    rules(u16::try_from(samples(text).len()).unwrap(), Rule::Unanimous, "0.8", false)
}

fn show(number: Option<Decimal>) -> String {
    number.map_or("-".to_owned(), |number| {
        number
            .round_dp_with_strategy(4, rust_decimal::RoundingStrategy::MidpointAwayFromZero)
            .normalize()
            .to_string()
    })
}

#[test]
fn the_table_of_the_unanimous_rule() {
    for (text, agreement, mean, expected, threshold) in [
        ("p.9 p.7", "1", "0.8", "pass/agreed", "0.8"),
        ("q.95 q.95", "1", "0.95", "fail/agreed", "0.8"),
        ("p.95 f.95", "0.5", "0.95", "review/split", "0.8"),
        ("p.95 p.95 x:refused", "1", "0.95", "review/sample_failed", "0.8"),
        ("p.95 p.95 x:rate_limited", "-", "-", "error/rate_limited", "0.8"),
        ("p.95 p.95 x:connection", "-", "-", "error/connection", "0.8"),
        ("p.95 p.95 x:timeout", "-", "-", "error/timeout", "0.8"),
        ("x:invalid_answer x:invalid_answer", "-", "-", "error/invalid_answer", "0.8"),
        ("p.95 p.9", "1", "0.925", "pass/agreed", "0.8"),
        ("f.95", "1", "0.95", "fail/agreed", "0.8"),
        ("p.5", "1", "0.5", "review/low_confidence", "0.8"),
        ("p.6", "1", "0.6", "pass/agreed", "0.5"),
        ("p.8", "1", "0.8", "pass/agreed", "0.8"),
        ("p.7999", "1", "0.7999", "review/low_confidence", "0.8"),
        ("p.8 p.8 p.8", "1", "0.8", "pass/agreed", "0.8"),
        ("f.95 q.95", "1", "0.95", "fail/agreed", "0.8"),
        ("p.95 p.95 q.95", "0.6667", "0.95", "review/split", "0.8"),
        ("f.95 f.95 x:refused", "1", "0.95", "review/sample_failed", "0.8"),
        ("p.0", "1", "0", "pass/agreed", "0"),
        ("p.95 f.95", "0.5", "0.95", "review/split", "0"),
    ] {
        for early_stop in [false, true] {
            let rules = rules(unanimous(text).samples, Rule::Unanimous, threshold, early_stop);
            let decision = judged(&rules, text).unwrap();
            assert_eq!(format!("{}/{}", decision.status, decision.reason), expected, "{text}");
            assert_eq!(show(decision.agreement), agreement, "{text}");
            assert_eq!(show(decision.confidence), mean, "{text}");
        }
    }
}

#[test]
fn seven_eight_nine_pass_in_every_order() {
    for text in ["p.7 p.8 p.9", "p.7 p.9 p.8", "p.8 p.7 p.9", "p.8 p.9 p.7", "p.9 p.7 p.8", "p.9 p.8 p.7"] {
        let decision = judged(&unanimous(text), text).unwrap();
        assert_eq!((decision.status, decision.reason), (Status::Pass, Reason::Agreed), "{text}");
        assert_eq!(decision.confidence, Some(Decimal::new(8, 1)), "{text}");
    }
}

#[test]
fn each_verdict_has_its_own_threshold() {
    let mut rules = rules(1, Rule::Unanimous, "0.8", true);
    rules.auto_fail = Decimal::new(99, 2);
    assert_eq!(outcome(&rules, "f.95"), "review/low_confidence");
    assert_eq!(outcome(&rules, "p.95"), "pass/agreed");
}

#[test]
fn operational_failures_come_before_final_ones_and_then_the_lowest_sample() {
    let all = rules(3, Rule::Unanimous, "0.8", false);
    let decision = judged(&all, "x:refused x:timeout x:rate_limited").unwrap();
    assert_eq!((decision.reason, decision.error_sample), (Reason::Timeout, Some(2)));
    assert_eq!(decision.counts, SampleCounts { planned: 3, made: 1, valid: 0 });
    let decision = judged(&all, "x:refused x:filtered x:empty").unwrap();
    assert_eq!((decision.reason, decision.error_sample), (Reason::Refused, Some(1)));
    assert_eq!(decision.answer_sample, None);
}

#[test]
fn the_majority_rule() {
    for (text, expected) in [
        ("p.9 p.9 f.9", "pass/agreed"),
        ("p.7 p.9 f.1", "pass/agreed"),
        ("p.7 p.8 f.99", "review/low_confidence"),
        ("f.9 p.9 f.9", "fail/agreed"),
        ("p.9 f.9 x:refused", "review/split"),
        ("p.9 x:refused x:refused", "review/sample_failed"),
        ("p.9 p.9 x:refused", "pass/agreed"),
        ("p.9 f.9", "review/split"),
        ("p.9 p.9 f.9 f.9", "review/split"),
        ("x:refused x:empty x:refused", "error/refused"),
        ("p.9 x:timeout p.9", "error/timeout"),
        ("x:timeout p.9 p.9", "error/timeout"),
    ] {
        for early_stop in [false, true] {
            let mut rules = rules(unanimous(text).samples, Rule::Majority, "0.8", early_stop);
            rules.concurrent_samples = true;
            assert_eq!(outcome(&rules, text), expected, "{text} {early_stop}");
        }
    }
}

#[test]
fn a_majority_that_was_settled_before_outlives_a_lost_sample() {
    for early_stop in [false, true] {
        let rules = rules(3, Rule::Majority, "0.8", early_stop);
        assert_eq!(outcome(&rules, "p p x:timeout"), "pass/agreed");
        // With confidences .9 and .9 a third agreeing sample of 0 would pull the mean below .8: not settled.
        assert_eq!(outcome(&rules, "p.9 p.9 x:timeout"), "error/timeout");
    }
    // No majority is possible any more after two samples; that alone does not outlive a loss without early stop.
    let even = rules(2, Rule::Majority, "0.8", false);
    assert_eq!(outcome(&even, "p.9 x:timeout"), "error/timeout");
}

#[test]
fn the_means_and_columns_of_a_majority_are_those_that_agree() {
    let rules = rules(5, Rule::Majority, "0.8", false);
    let decision = judged(&rules, "f.1 p.9 x:empty p.8 p.85").unwrap();
    assert_eq!(decision.answer_sample, Some(2));
    assert_eq!(show(decision.confidence), "0.85");
    assert_eq!(show(decision.agreement), "0.75");
    assert_eq!(decision.counts, SampleCounts { planned: 5, made: 5, valid: 4 });
}

#[test]
fn a_tie_is_not_a_pass() {
    let decision = judged(&unanimous("p.9 f.7"), "p.9 f.7").unwrap();
    assert_eq!((decision.answer_sample, show(decision.confidence)), (Some(2), "0.8".to_owned()));
}

#[test]
fn early_stop_judges_in_sample_order() {
    let three = rules(3, Rule::Unanimous, "0.8", true);
    for (text, expected, made) in [
        ("p.9 f.9 -", "review/split", 2),
        ("p.9 x:refused -", "review/sample_failed", 2),
        ("x:refused p.9 -", "review/sample_failed", 2),
        ("p.3 - -", "review/low_confidence", 1),
        ("p.39 - p.1", "review/low_confidence", 1),
        ("p.5 p.8 p.9", "review/low_confidence", 2),
        ("p.5 p.9 p.9", "review/low_confidence", 3),
        ("x:timeout - -", "error/timeout", 0),
    ] {
        assert_eq!(outcome(&three, text), expected, "{text}");
        assert_eq!(judged(&three, text).unwrap().counts.made, made, "{text}");
    }
    for text in ["p.9 - f.9", "p.4 - -", "- p.9 f.9", "x:refused - -", "p.9 p.9 -", "- x:timeout -"] {
        assert_eq!(outcome(&three, text), "undecided", "{text}");
    }
    let off = rules(3, Rule::Unanimous, "0.8", false);
    for text in ["p.9 f.9 -", "p.3 - -", "x:timeout - -"] {
        assert_eq!(outcome(&off, text), "undecided", "{text}");
    }
}

#[test]
fn early_stop_of_a_majority_holds_whatever_comes() {
    let five = rules(5, Rule::Majority, "0.8", true);
    assert_eq!(outcome(&five, "p p p - -"), "pass/agreed");
    assert_eq!(judged(&five, "p p p f f").unwrap().counts.made, 3);
    assert_eq!(outcome(&five, "p1.0 p1.0 p1.0 p1.0 -"), "pass/agreed");
    assert_eq!(outcome(&five, "p1.0 p1.0 p1.0 - -"), "undecided");
    assert_eq!(outcome(&five, "p.9 f.9 x:refused x:refused -"), "review/split");
    assert_eq!(outcome(&five, "p.9 x:refused x:refused x:refused -"), "review/sample_failed");
    assert_eq!(outcome(&five, "x:refused x:refused x:refused - -"), "undecided");
}

#[test]
fn without_a_verdict_samples_agree_on_their_values() {
    let early = rules(3, Rule::Unanimous, "0.8", true);
    let all = rules(3, Rule::Unanimous, "0.8", false);
    let most = rules(3, Rule::Majority, "0.8", false);
    for (rules, text, expected) in [
        (&all, "=a =a =a", "pass/valid"),
        (&all, "=a =b =a", "review/split"),
        (&all, "=a =a x:refused", "review/sample_failed"),
        (&all, "=a@.7 =a@.8 =a@.9", "pass/valid"),
        (&all, "=a@.7 =a@.8 =a@.89", "review/low_confidence"),
        (&all, "=null =null =null", "pass/valid"),
        (&all, "=null =null x:refused", "review/sample_failed"),
        (&all, "=null@.5 =null@.5 =null@.5", "review/low_confidence"),
        (&most, "=a =b =a", "pass/valid"),
        (&most, "=a =b =c", "review/split"),
        (&most, "=a =a x:refused", "review/sample_failed"),
        (&most, "=a =b x:refused", "review/split"),
        (&most, "=a@.9 =b@.1 =a@.9", "pass/valid"),
        (&early, "=a =b -", "review/split"),
        (&early, "=a =a -", "undecided"),
        (&early, "=a =a x:timeout", "error/timeout"),
    ] {
        assert_eq!(outcome(rules, text), expected, "{text}");
    }
    let decision = judged(&all, "=b =a =a").unwrap();
    assert_eq!((decision.answer_sample, show(decision.agreement)), (Some(2), "0.6667".to_owned()));
    assert_eq!(judged(&all, "=null =null =null").unwrap().agreement, None);
}

#[test]
fn one_sample_without_a_verdict_passes_as_valid() {
    let one = rules(1, Rule::Unanimous, "0.8", true);
    assert_eq!(outcome(&one, "=null"), "pass/valid");
    assert_eq!(outcome(&one, "=null@.5"), "review/low_confidence");
    assert_eq!(outcome(&one, "x:bad_input"), "error/bad_input");
    assert_eq!(outcome(&one, "-"), "undecided");
    assert_eq!(decide(&one, true, true, &[]), None);
}

#[test]
fn an_absent_confidence_meets_no_threshold() {
    let two = rules(2, Rule::Unanimous, "0.8", true);
    assert_eq!(decide(&two, true, true, &samples("p p")).unwrap().status, Status::Pass);
    assert_eq!(decide(&two, true, true, &samples("p p")).unwrap().confidence, None);
    assert_eq!(outcome(&two, "p p.9"), "pass/agreed");
    assert_eq!(outcome(&two, "p p.7"), "review/low_confidence");
}

#[test]
fn what_is_still_wanted() {
    let needed = |rules: &Ensemble, text: &str| next_needed(rules, true, text.contains('.'), &samples(text));
    let early = rules(4, Rule::Unanimous, "0.8", true);
    let all = rules(4, Rule::Unanimous, "0.8", false);
    assert_eq!(needed(&early, "- - - -"), [1, 2, 3, 4]);
    assert_eq!(needed(&early, "p.9"), [2, 3, 4]);
    assert_eq!(needed(&early, "p.9 f.9 - -"), Vec::<u16>::new());
    assert_eq!(needed(&all, "p.9 f.9 - -"), [3, 4]);
    assert_eq!(needed(&early, "- x:timeout - -"), [1]);
    assert_eq!(needed(&all, "- x:timeout - -"), [1, 3, 4]);
    assert!(is_settled(&early, true, true, &samples("x:timeout - - -")));
}

fn any_sample() -> impl Strategy<Value = SampleState> {
    let confidence = (0..=100_i64).prop_map(|hundredths| Decimal::new(hundredths, 2));
    prop_oneof![
        6 => (any::<bool>(), confidence).prop_map(|(positive, confidence)| {
            SampleState::Valid(Vote {
                positive: Some(positive),
                confidence: Some(confidence),
                agree_on: None,
            })
        }),
        1 => prop_oneof![Just(Reason::Refused), Just(Reason::Empty)].prop_map(SampleState::Failed),
    ]
}

fn any_rules() -> impl Strategy<Value = Ensemble> {
    (any::<bool>(), 0..=10_i64, 0..=10_i64).prop_map(|(majority, pass, fail)| Ensemble {
        samples: 1,
        rule: if majority { Rule::Majority } else { Rule::Unanimous },
        auto_pass: Decimal::new(pass, 1),
        auto_fail: Decimal::new(fail, 1),
        early_stop: false,
        concurrent_samples: false,
    })
}

proptest! {
    #[test]
    fn the_order_of_a_complete_set_does_not_matter(
        (set, shuffled) in prop::collection::vec(any_sample(), 1..8)
            .prop_flat_map(|set| (Just(set.clone()), Just(set).prop_shuffle())),
        mut rules in any_rules(),
    ) {
        rules.samples = u16::try_from(set.len()).unwrap();
        let one = decide(&rules, true, true, &set).unwrap();
        let other = decide(&rules, true, true, &shuffled).unwrap();
        prop_assert_eq!((one.status, one.agreement, one.counts), (other.status, other.agreement, other.counts));
        prop_assert_eq!(one.confidence, other.confidence);
        if one.status != Status::Error {
            prop_assert_eq!(one.reason, other.reason);
        }
    }

    #[test]
    fn early_stop_never_changes_the_status_of_a_complete_set(
        set in prop::collection::vec(any_sample(), 1..8),
        mut rules in any_rules(),
    ) {
        rules.samples = u16::try_from(set.len()).unwrap();
        let all = decide(&rules, true, true, &set).unwrap();
        rules.early_stop = true;
        let early = decide(&rules, true, true, &set).unwrap();
        prop_assert_eq!(all.status, early.status);
        prop_assert!(early.counts.made <= all.counts.made);
        // A prefix decides as soon as the whole does.
        let prefix = &set[..usize::from(early.counts.made)];
        prop_assert_eq!(decide(&rules, true, true, prefix), Some(early));
    }
}
