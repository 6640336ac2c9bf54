//! What a row's samples decide.
//!
//! Samples are judged in their own order, never in the order of arrival, so that a row's result depends on its
//! answers only. Sums and thresholds are compared as decimals, by multiplication, so that no order of addition and no
//! rounding of a quotient can move a row across a threshold.

use rust_decimal::Decimal;

use crate::model::{Ensemble, Reason, Rule, SampleCounts, Status, Vote};

/// What is known of a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SampleState {
    /// Not asked for, or still under way.
    Open,
    /// Ended with a valid answer.
    Valid(Vote),
    /// Ended without one, for an operational or a final reason.
    Failed(Reason),
}

/// The decision of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The status; never `skipped`.
    pub status: Status,
    /// Why.
    pub reason: Reason,
    /// The sample whose answer fills the answer columns, from 1; `None` for an `error` row.
    pub answer_sample: Option<u16>,
    /// The mean confidence: over all valid samples, under `majority` over those that agree; `None` where no sample
    /// carries one and for an `error` row.
    pub confidence: Option<Decimal>,
    /// The share of the valid samples that agree; `None` where nothing is to agree on and for an `error` row.
    pub agreement: Option<Decimal>,
    /// Samples planned, made and valid. One that came after the decision, or that was lost for an operational
    /// reason, is not made.
    pub counts: SampleCounts,
    /// The sample whose failure gives the reason of an `error` row, from 1.
    pub error_sample: Option<u16>,
}

/// The decision of a row from its samples, `samples[i]` being sample `i + 1`; `None` while samples are missing.
///
/// A missing entry counts as open, and entries beyond `rules.samples` are not looked at.
pub fn decide(
    rules: &Ensemble,
    has_verdict: bool,
    has_confidence: bool,
    samples: &[SampleState],
) -> Option<Decision> {
    let judge = Judge { rules, has_verdict, has_confidence };
    let planned = usize::from(rules.samples.max(1));
    let mut tally = Tally::default();
    let mut lost = None;
    let mut settled = false;
    for index in 0..planned {
        let number = u16::try_from(index + 1).unwrap_or(u16::MAX);
        match samples.get(index).unwrap_or(&SampleState::Open) {
            SampleState::Open => return None,
            SampleState::Valid(vote) => tally.add(number, vote, has_verdict),
            SampleState::Failed(reason) if reason.is_operational() => {
                // A majority that was settled before stands; everything else is an error, and the first loss names it.
                if !settled {
                    lost = lost.or(Some((number, *reason)));
                    if rules.early_stop {
                        break;
                    }
                }
            }
            SampleState::Failed(reason) => tally.fail(number, *reason),
        }
        let left = planned - index - 1;
        if lost.is_none() {
            settled = settled || judge.majority_holds(&tally, left);
            if rules.early_stop && judge.settles(&tally, left) {
                break;
            }
        }
    }
    Some(match lost {
        Some(failure) => judge.error(&tally, failure),
        None => judge.verdict(&tally),
    })
}

/// Whether the row is decided, so that no further sample is wanted.
pub fn is_settled(
    rules: &Ensemble,
    has_verdict: bool,
    has_confidence: bool,
    samples: &[SampleState],
) -> bool {
    decide(rules, has_verdict, has_confidence, samples).is_some()
}

/// The samples that are still wanted, from 1, in the order in which to ask for them; empty once the row is decided.
///
/// With early stop, none behind a sample that was lost for an operational reason: the row is an error whatever they
/// say, and continuing the run asks for them. Without early stop, every open one.
pub fn next_needed(
    rules: &Ensemble,
    has_verdict: bool,
    has_confidence: bool,
    samples: &[SampleState],
) -> Vec<u16> {
    if is_settled(rules, has_verdict, has_confidence, samples) {
        return Vec::new();
    }
    let mut wanted = Vec::new();
    for number in 1..=rules.samples.max(1) {
        match samples.get(usize::from(number - 1)) {
            None | Some(SampleState::Open) => wanted.push(number),
            Some(SampleState::Failed(reason)) if rules.early_stop && reason.is_operational() => break,
            Some(_) => {}
        }
    }
    wanted
}

/// Samples that say the same.
#[derive(Debug, Clone, Default)]
struct Group<'a> {
    /// What they say: the verdict, or the values to agree on.
    key: Key<'a>,
    /// The lowest of them.
    first: u16,
    /// How many.
    size: usize,
    /// How many carry a confidence.
    confident: usize,
    /// The sum of their confidences.
    sum: Decimal,
}

/// What a sample says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Key<'a> {
    /// Nothing that could differ.
    #[default]
    Same,
    /// The verdict is positive.
    Pass,
    /// The verdict is not positive.
    Fail,
    /// The canonical text of the values to agree on.
    Text(&'a str),
}

/// The samples counted so far.
#[derive(Debug, Clone, Default)]
struct Tally<'a> {
    groups: Vec<Group<'a>>,
    valid: usize,
    failed: usize,
    first_failure: Option<(u16, Reason)>,
}

impl<'a> Tally<'a> {
    fn add(&mut self, number: u16, vote: &'a Vote, has_verdict: bool) {
        let key = match (has_verdict, vote.positive, &vote.agree_on) {
            (true, Some(true), _) => Key::Pass,
            (true, _, _) => Key::Fail,
            (false, _, Some(text)) => Key::Text(text),
            (false, _, None) => Key::Same,
        };
        let at = self.groups.iter().position(|group| group.key == key).unwrap_or_else(|| {
            self.groups.push(Group { key, first: number, ..Group::default() });
            self.groups.len() - 1
        });
        let group = &mut self.groups[at];
        group.size += 1;
        if let Some(confidence) = vote.confidence {
            group.confident += 1;
            group.sum = group.sum.saturating_add(confidence);
        }
        self.valid += 1;
    }

    fn fail(&mut self, number: u16, reason: Reason) {
        self.failed += 1;
        self.first_failure = self.first_failure.or(Some((number, reason)));
    }

    /// The group that speaks for the row: the larger one. A tie of verdicts is not a pass; of other groups the one
    /// with the lowest sample speaks.
    fn leader(&self) -> Option<&Group<'a>> {
        let most = self.groups.iter().map(|group| group.size).max()?;
        let mut largest = self.groups.iter().filter(|group| group.size == most);
        let first = largest.next()?;
        if first.key == Key::Pass { Some(largest.next().unwrap_or(first)) } else { Some(first) }
    }

    fn sum(&self) -> Decimal {
        self.groups.iter().fold(Decimal::ZERO, |sum, group| sum.saturating_add(group.sum))
    }

    fn confident(&self) -> usize {
        self.groups.iter().map(|group| group.confident).sum()
    }
}

/// The rules of a row.
struct Judge<'a> {
    rules: &'a Ensemble,
    has_verdict: bool,
    has_confidence: bool,
}

impl Judge<'_> {
    fn planned(&self) -> usize {
        usize::from(self.rules.samples.max(1))
    }

    /// Whether the outcome of the complete set is certain while `left` samples are missing.
    fn settles(&self, tally: &Tally<'_>, left: usize) -> bool {
        let Some(leader) = tally.leader() else { return false };
        let threshold = self.threshold(leader);
        let fails = tally.failed > 0;
        match self.rules.rule {
            Rule::Unanimous => {
                tally.groups.len() > 1
                    || fails
                    || (self.has_confidence
                        && tally.confident() > 0
                        && less(
                            tally.sum().saturating_add(count(left)),
                            product(threshold, tally.confident() + left),
                        ))
            }
            Rule::Majority => {
                let impossible = 2 * (leader.size + left) <= self.planned();
                // Without a verdict a final failure alone keeps the row from passing.
                self.majority_holds(tally, left) || impossible || (!self.has_verdict && fails)
            }
        }
    }

    /// Whether there is a majority that stays one, and automatic, whatever the `left` missing samples say.
    fn majority_holds(&self, tally: &Tally<'_>, left: usize) -> bool {
        self.rules.rule == Rule::Majority
            && tally.leader().is_some_and(|leader| {
                let worst = product(self.threshold(leader), leader.confident + left);
                2 * leader.size > self.planned() && (!self.has_confidence || !less(leader.sum, worst))
            })
    }

    /// The threshold that the leading group must reach.
    fn threshold(&self, leader: &Group<'_>) -> Decimal {
        if leader.key == Key::Fail { self.rules.auto_fail } else { self.rules.auto_pass }
    }

    /// The decision when no sample was lost for an operational reason.
    fn verdict(&self, tally: &Tally<'_>) -> Decision {
        let Some(leader) = tally.leader() else {
            return self.error(tally, tally.first_failure.unwrap_or((1, Reason::InvalidAnswer)));
        };
        let majority = self.rules.rule == Rule::Majority;
        let (sum, confident) =
            if majority { (leader.sum, leader.confident) } else { (tally.sum(), tally.confident()) };
        let split = tally.groups.len() > 1;
        let agreed = if majority { 2 * leader.size > self.planned() } else { !split };
        let failures_matter = !(majority && self.has_verdict && agreed);
        let low =
            self.has_confidence && confident > 0 && less(sum, product(self.threshold(leader), confident));
        let (status, reason) = if !agreed && split {
            (Status::Review, Reason::Split)
        } else if !agreed || (tally.failed > 0 && failures_matter) {
            (Status::Review, Reason::SampleFailed)
        } else if low {
            (Status::Review, Reason::LowConfidence)
        } else if !self.has_verdict {
            (Status::Pass, Reason::Valid)
        } else if leader.key == Key::Pass {
            (Status::Pass, Reason::Agreed)
        } else {
            (Status::Fail, Reason::Agreed)
        };
        Decision {
            status,
            reason,
            answer_sample: Some(leader.first),
            confidence: (confident > 0).then(|| quotient(sum, confident)),
            agreement: (leader.key != Key::Same).then(|| quotient(count(leader.size), tally.valid)),
            counts: self.counts(tally),
            error_sample: None,
        }
    }

    fn error(&self, tally: &Tally<'_>, (number, reason): (u16, Reason)) -> Decision {
        Decision {
            status: Status::Error,
            reason,
            answer_sample: None,
            confidence: None,
            agreement: None,
            counts: self.counts(tally),
            error_sample: Some(number),
        }
    }

    fn counts(&self, tally: &Tally<'_>) -> SampleCounts {
        let short = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        SampleCounts {
            planned: self.rules.samples.max(1),
            made: short(tally.valid + tally.failed),
            valid: short(tally.valid),
        }
    }
}

fn count(number: usize) -> Decimal {
    Decimal::from(number)
}

/// `threshold` times `times`; `None` where that is beyond every sum.
fn product(threshold: Decimal, times: usize) -> Option<Decimal> {
    threshold.checked_mul(count(times))
}

fn less(sum: Decimal, bound: Option<Decimal>) -> bool {
    bound.is_none_or(|bound| sum < bound)
}

fn quotient(sum: Decimal, of: usize) -> Decimal {
    sum.checked_div(count(of)).unwrap_or(sum).normalize()
}

#[cfg(test)]
mod tests;
