//! From the counts of rows to the exit code, with the reason that people read.

use rust_decimal::Decimal;
use thiserror::Error;

use crate::model::{GateSettings, Share, StatusCounts};

/// Why a run stopped before its last row. A greater one wins over a lesser one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopCause {
    /// The time of this execution ran out.
    Deadline,
    /// The ceiling of requests is reached.
    Calls,
    /// The ceiling of money is reached.
    Budget,
    /// Something that a person fixes in command, configuration, schema, template or input.
    Usage(String),
    /// The run could not go on: output, state, lock, store, keys, model, rejections.
    Unable(String),
    /// Nobody reads standard output any more.
    ClosedOutput,
    /// A signal.
    Signal(Signal),
}

/// The signals that end a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// SIGHUP.
    Hangup,
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Signal {
    /// The exit code of a run that it has ended.
    pub const fn code(self) -> u8 {
        match self {
            Self::Hangup => 129,
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// Its name, as in `SIGINT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hangup => "SIGHUP",
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// How a run ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The exit code.
    pub code: u8,
    /// Why, fit for a person.
    pub why: String,
}

/// A bound that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no bound: write a count such as 3, a share such as 5%, or any")]
pub struct ShareError {
    /// What was given.
    pub text: String,
}

/// Reads a bound on a count of rows: `3`, `5%`, `2.5%` or `any`.
pub fn parse_share(text: &str) -> Result<Share, ShareError> {
    let refused = || ShareError { text: text.to_owned() };
    let word = text.trim();
    if word == "any" {
        return Ok(Share::Any);
    }
    if let Some(number) = word.strip_suffix('%') {
        let number = number.trim_end();
        let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let share = Decimal::from_str_exact(number).map_err(|_| refused())?;
        return if plain && share <= Decimal::ONE_HUNDRED {
            Ok(Share::Percent(share))
        } else {
            Err(refused())
        };
    }
    if !word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    word.parse().map(Share::Count).map_err(|_| refused())
}

/// The exit code of a run and its reason, from what became of its rows and from what stopped it.
///
/// The first that applies: a signal or a closed output, 6, 2, 1, 5, 4, 3, 0. A share is judged only when no row is
/// `skipped`; rows that are not finished then keep the code from being 0, unless `max_error` is `any`.
pub fn exit(
    counts: &StatusCounts,
    open: u64,
    selected: u64,
    gates: &GateSettings,
    stop: Option<StopCause>,
) -> Exit {
    let limited = match stop {
        Some(StopCause::Signal(signal)) => {
            return ending(signal.code(), format!("stopped by {}", signal.name()));
        }
        Some(StopCause::ClosedOutput) => return ending(141, "standard output was closed"),
        Some(StopCause::Unable(why)) => return ending(6, why),
        Some(StopCause::Usage(why)) => return ending(2, why),
        Some(StopCause::Budget) => Some("max_cost"),
        Some(StopCause::Calls) => Some("max_calls"),
        Some(StopCause::Deadline) => Some("deadline"),
        None => None,
    };
    let judged = u128::from(counts.pass) + u128::from(counts.fail) + u128::from(counts.review);
    let unfinished = u128::from(counts.error) + u128::from(counts.skipped);
    let breaks = |bound, rows, base| exceeds(bound, rows, base, counts.skipped == 0);
    if breaks(gates.max_fail, counts.fail.into(), judged) {
        return ending(1, gate("fail", counts.fail.into(), "max_fail", gates.max_fail));
    }
    if let Some(limit) = limited {
        return ending(5, format!("stopped by {limit}"));
    }
    let stranded = counts.skipped > 0 && matches!(gates.max_error, Share::Percent(_));
    if stranded || breaks(gates.max_error, unfinished, selected.into()) {
        let kinds = match (counts.error, counts.skipped) {
            (0, _) => "skipped",
            (_, 0) => "error",
            _ => "error or skipped",
        };
        let why = if stranded {
            format!(
                "{unfinished} {kinds} {}, so max_error = {} cannot be judged",
                rows(unfinished),
                show(gates.max_error)
            )
        } else {
            gate(kinds, unfinished, "max_error", gates.max_error)
        };
        return ending(4, format!("{why}; {}", what_next(unfinished, open.into())));
    }
    if breaks(gates.max_review, counts.review.into(), judged) {
        return ending(3, gate("review", counts.review.into(), "max_review", gates.max_review));
    }
    ending(0, "every row is finished and every gate holds")
}

/// What to do about `unfinished` rows, of which the same command asks for `open` again.
fn what_next(unfinished: u128, open: u128) -> String {
    let lost = unfinished.saturating_sub(open);
    let (have, are) = if lost == 1 { ("has", "is") } else { ("have", "are") };
    let end = format!("{have} failed for good, and {are} asked again only with --retry final");
    match (lost, open) {
        (0, _) => "run again to finish".to_owned(),
        (1, 0) => format!("it {end}"),
        (_, 0) => format!("they {end}"),
        _ => format!("run again to finish {open} of them; the other {lost} {end}"),
    }
}

/// Whether so many rows are too many. Exact: no share is rounded.
fn exceeds(bound: Share, rows: u128, base: u128, finished: bool) -> bool {
    match bound {
        Share::Any => false,
        Share::Count(most) => rows > u128::from(most),
        Share::Percent(share) => {
            let most = decimal(base).and_then(|base| share.checked_mul(base));
            let have = decimal(rows).and_then(|rows| rows.checked_mul(Decimal::ONE_HUNDRED));
            finished && matches!((have, most), (Some(have), Some(most)) if have > most)
        }
    }
}

fn decimal(number: u128) -> Option<Decimal> {
    i128::try_from(number).ok().and_then(|number| Decimal::try_from_i128_with_scale(number, 0).ok())
}

fn ending(code: u8, why: impl Into<String>) -> Exit {
    Exit { code, why: why.into() }
}

fn gate(kind: &str, count: u128, name: &str, bound: Share) -> String {
    format!("{count} {kind} {}, more than {name} = {}", rows(count), show(bound))
}

const fn rows(count: u128) -> &'static str {
    if count == 1 { "row" } else { "rows" }
}

fn show(bound: Share) -> String {
    match bound {
        Share::Any => "any".to_owned(),
        Share::Count(most) => most.to_string(),
        Share::Percent(share) => format!("{}%", share.normalize()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gates(fail: &str, review: &str, error: &str) -> GateSettings {
        GateSettings {
            max_fail: parse_share(fail).unwrap(),
            max_review: parse_share(review).unwrap(),
            max_error: parse_share(error).unwrap(),
        }
    }

    fn rows_of(pass: u64, fail: u64, review: u64, error: u64, skipped: u64) -> StatusCounts {
        StatusCounts { pass, fail, review, error, skipped }
    }

    fn code(counts: StatusCounts, gates: &GateSettings, stop: Option<StopCause>) -> u8 {
        exit(&counts, counts.skipped, counts.total(), gates, stop).code
    }

    #[test]
    fn bounds_are_counts_shares_or_any() {
        assert_eq!(parse_share("3"), Ok(Share::Count(3)));
        assert_eq!(parse_share("5%"), Ok(Share::Percent(Decimal::from(5))));
        assert_eq!(parse_share("2.5 %"), Ok(Share::Percent(Decimal::new(25, 1))));
        assert_eq!(parse_share("any"), Ok(Share::Any));
        for wrong in ["", "%", "-1", "+1", "-1%", "101%", "1e1%", "1_0%", "five", "3.5", "Any"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_code_that_applies_wins() {
        let none = gates("0", "0", "0");
        let all = rows_of(1, 1, 1, 1, 1);
        assert_eq!(code(all, &none, Some(StopCause::Signal(Signal::Hangup))), 129);
        assert_eq!(code(all, &none, Some(StopCause::Signal(Signal::Interrupt))), 130);
        assert_eq!(code(all, &none, Some(StopCause::Signal(Signal::Terminate))), 143);
        assert_eq!(code(all, &none, Some(StopCause::ClosedOutput)), 141);
        assert_eq!(code(all, &none, Some(StopCause::Unable("disk".into()))), 6);
        assert_eq!(code(all, &none, Some(StopCause::Usage("schema".into()))), 2);
        assert_eq!(code(all, &none, Some(StopCause::Budget)), 1);
        assert_eq!(code(rows_of(1, 0, 1, 1, 1), &none, Some(StopCause::Calls)), 5);
        assert_eq!(code(rows_of(1, 0, 1, 1, 0), &none, Some(StopCause::Deadline)), 5);
        assert_eq!(code(rows_of(1, 0, 1, 1, 0), &none, None), 4);
        assert_eq!(code(rows_of(1, 0, 1, 0, 1), &none, None), 4);
        assert_eq!(code(rows_of(1, 0, 1, 0, 0), &none, None), 3);
        assert_eq!(code(rows_of(1, 0, 0, 0, 0), &none, None), 0);
    }

    #[test]
    fn shares_are_exact_and_have_their_own_bases() {
        assert_eq!(code(rows_of(95, 5, 0, 0, 0), &gates("5%", "0", "0"), None), 0);
        assert_eq!(code(rows_of(94, 5, 0, 1, 0), &gates("5%", "0", "any"), None), 1);
        assert_eq!(code(rows_of(2, 1, 0, 0, 0), &gates("33.33%", "0", "0"), None), 1);
        assert_eq!(code(rows_of(2, 1, 0, 0, 0), &gates("33.34%", "0", "0"), None), 0);
        assert_eq!(code(rows_of(95, 0, 0, 5, 0), &gates("0", "0", "5%"), None), 0);
        assert_eq!(code(rows_of(94, 0, 0, 5, 0), &gates("0", "0", "5%"), None), 4);
        assert_eq!(code(rows_of(0, 0, 0, 3, 0), &gates("0%", "0%", "100%"), None), 0);
        assert_eq!(code(rows_of(28, 3, 0, 0, 0), &gates("20%", "0", "0"), None), 0);
        assert_eq!(code(rows_of(28, 3, 0, 0, 0), &gates("0%", "0", "0"), None), 1);
    }

    #[test]
    fn a_share_waits_for_every_row_and_a_count_does_not() {
        assert_eq!(code(rows_of(0, 9, 0, 0, 1), &gates("5%", "0", "any"), None), 0);
        assert_eq!(code(rows_of(0, 9, 0, 0, 1), &gates("8", "0", "any"), Some(StopCause::Budget)), 1);
        assert_eq!(code(rows_of(0, 9, 0, 0, 1), &gates("5%", "0", "5%"), Some(StopCause::Budget)), 5);
        assert_eq!(code(rows_of(9, 0, 0, 0, 1), &gates("0", "0", "50%"), None), 4);
    }

    #[test]
    fn the_text_says_what_the_code_says() {
        let exit = exit(&rows_of(0, 2, 0, 0, 0), 0, 2, &gates("1", "0", "0"), None);
        assert_eq!((exit.code, exit.why.as_str()), (1, "2 fail rows, more than max_fail = 1"));
    }

    #[test]
    fn only_rows_that_are_asked_again_are_finished_by_running_again() {
        let why = |error, skipped, open, bound| {
            exit(&rows_of(5, 0, 0, error, skipped), open, 10, &gates("0", "0", bound), None).why
        };
        assert_eq!(why(2, 0, 2, "0"), "2 error rows, more than max_error = 0; run again to finish");
        assert_eq!(
            why(1, 0, 0, "0"),
            "1 error row, more than max_error = 0; it has failed for good, and is asked again only with --retry final"
        );
        assert_eq!(
            why(3, 2, 4, "1"),
            "5 error or skipped rows, more than max_error = 1; run again to finish 4 of them; the other 1 has failed \
             for good, and is asked again only with --retry final"
        );
        assert_eq!(
            why(2, 1, 1, "50%"),
            "3 error or skipped rows, so max_error = 50% cannot be judged; run again to finish 1 of them; the other 2 \
             have failed for good, and are asked again only with --retry final"
        );
    }

    #[test]
    fn worse_causes_are_greater() {
        let ordered = [
            StopCause::Deadline,
            StopCause::Budget,
            StopCause::Usage(String::new()),
            StopCause::Unable(String::new()),
            StopCause::Signal(Signal::Interrupt),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0] < pair[1]));
    }

    fn share() -> impl Strategy<Value = Share> {
        prop_oneof![
            Just(Share::Any),
            (0..20_u64).prop_map(Share::Count),
            (0..=1000_i64).prop_map(|tenths| Share::Percent(Decimal::new(tenths, 1))),
        ]
    }

    proptest! {
        #[test]
        fn one_more_bad_row_never_opens_a_closed_gate(
            counts in [0..30_u64, 0..30, 0..30, 0..30],
            bounds in [share(), share(), share()],
        ) {
            let [pass, fail, review, error] = counts;
            let gates = GateSettings { max_fail: bounds[0], max_review: bounds[1], max_error: bounds[2] };
            let before = code(rows_of(pass, fail, review, error, 0), &gates, None);
            if before == 1 {
                prop_assert_eq!(code(rows_of(pass, fail + 1, review, error, 0), &gates, None), 1);
            }
            if before == 4 {
                prop_assert!(matches!(code(rows_of(pass, fail, review, error + 1, 0), &gates, None), 4));
            }
            if before == 3 {
                prop_assert_eq!(code(rows_of(pass, fail, review + 1, error, 0), &gates, None), 3);
            }
            // A row that turns from pass to fail, review or error never makes the run succeed.
            if before != 0 && pass > 0 {
                for worse in [
                    rows_of(pass - 1, fail + 1, review, error, 0),
                    rows_of(pass - 1, fail, review + 1, error, 0),
                    rows_of(pass - 1, fail, review, error + 1, 0),
                ] {
                    prop_assert_ne!(code(worse, &gates, None), 0);
                }
            }
        }
    }
}
