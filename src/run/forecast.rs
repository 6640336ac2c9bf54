//! What a run will take: a pass over all rows that sends nothing.

use std::time::Duration;

use crate::base::{AttemptKey, WallTime};
use crate::model::{Limits, ProviderKind, Rule, Settings};
use crate::policy::SampleState;
use crate::prompt::TokenCounter;
use crate::report::{CostRange, Estimate};
use crate::run::decisions::Decisions;
use crate::run::distinct::Distinct;
use crate::run::error::{RunError, chain};
use crate::run::execute::Plan;
use crate::run::feed::{FedRow, FeedPlan, FinishedRows, RowLoad};
use crate::run::history::{Retry, RowJudge};
use crate::run::identity::{job_key, request_prefix};
use crate::run::observed::Observed;
use crate::run::rater::{Rater, Texts};
use crate::run::resume::{finished_in, wanted};
use crate::run::seen::SeenRequests;
use crate::store::{RunRecord, Store, StoreError};

/// Rows that are looked at together.
const BATCH: usize = 64;

/// How tokens are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counting {
    /// As exactly as it can be, for which an encoding may have to be loaded.
    Exact,
    /// By characters.
    Ratio,
}

/// Estimates what `execute` would do with this plan. It opens no connection, writes no output, takes no lock and makes
/// no state folder; the rows are read once, in memory that does not grow with them.
///
/// # Errors
/// An input that has changed since its check, a run that is named and not there. A store that cannot be read is a note:
/// then nothing counts as stored.
pub fn forecast(plan: &Plan, counting: Counting) -> Result<Estimate, RunError> {
    let settings = &plan.settings;
    let scratch = tempfile::tempdir().map_err(|source| RunError::Start { what: "the estimate", source })?;
    let mut notes = Vec::new();
    let store = match Store::open_existing(&plan.state) {
        Ok(store) => store,
        Err(error) => {
            if !matches!(error, StoreError::Missing { .. }) {
                notes.push(format!("stored answers are not counted: {}", chain(&error)));
            }
            Store::open(scratch.path())?
        }
    };
    let earlier = Past::find(plan, &store)?;
    let counter = match (settings.call.provider, counting) {
        (ProviderKind::Mock, _) => TokenCounter::by_bytes(),
        (_, Counting::Exact) => TokenCounter::new(&settings.call.model),
        (_, Counting::Ratio) => TokenCounter::by_ratio(&settings.call.model),
    };
    let observed = match earlier.continued.as_ref().or(earlier.newest.as_ref()) {
        Some(run) => Observed::of(plan, run, &mut store.reader()?, &counter)?,
        None => Observed::default(),
    };
    let rater = Rater::new(settings, plan.price.as_ref(), &counter, observed);
    let mut pass = Pass {
        judge: RowJudge::new(plan.answers.clone(), &settings.answer, &settings.ensemble),
        run: earlier.run(),
        fewest: fewest_calls(settings),
        planned: settings.ensemble.samples.into(),
        counter,
        seen: Distinct::default(),
        system: None,
        sums: Sums { cost: plan.price.map(|_| CostRange::default()), ..Sums::default() },
        rater,
    };
    let mut feed = earlier.feed(plan, &store)?;
    loop {
        let batch = feed.batch(BATCH)?;
        pass.sums.finished += batch.passed * pass.planned;
        for row in &batch.rows {
            pass.row(row)?;
        }
        if batch.exhausted {
            break;
        }
    }
    let Sums { bad, finished, replayed, calls, input, cost } = pass.sums;
    let output = pass.rater.output(calls);
    let wall = wall(settings, calls, input.saturating_add(output), pass.rater.latency());
    let system = pass.system.map_or(0, |(_, tokens)| tokens);
    notes.splice(0..0, pass.rater.notes(&pass.counter, system));
    let rows = plan.checked.selected;
    Ok(Estimate { rows, bad, finished, replayed, calls, input, output, cost, wall, notes })
}

/// The runs of the job so far.
struct Past {
    /// The one that would be continued.
    continued: Option<RunRecord>,
    /// The newest of the job, whatever its input.
    newest: Option<RunRecord>,
    retry: Retry,
}

impl Past {
    fn find(plan: &Plan, store: &Store) -> Result<Self, RunError> {
        let parent = plan.state.parent().map(std::path::PathBuf::from).unwrap_or_default();
        let job = job_key(&plan.settings, &parent, plan.checked.digest);
        let (continued, retry) = wanted(plan, store, job)?;
        Ok(Self { continued, newest: store.newest_run(&job)?, retry })
    }

    /// Number of the run, one that nothing is filed under for a new one.
    fn run(&self) -> u64 {
        self.continued.as_ref().map_or(AttemptKey::MAX_RUN, |run| run.seq)
    }

    fn feed(&self, plan: &Plan, store: &Store) -> Result<FeedPlan, RunError> {
        let settings = &plan.settings;
        let same_input = |run: &&RunRecord| run.input_digest == plan.checked.digest;
        let previous = self.newest.as_ref().filter(|_| self.continued.is_none()).filter(same_input);
        let finished = match &self.continued {
            Some(run) => finished_in(store, run.seq, &self.retry, settings.ensemble.samples)?,
            None => FinishedRows::default(),
        };
        let judge = RowJudge::new(plan.answers.clone(), &settings.answer, &settings.ensemble);
        Ok(FeedPlan {
            rows: plan.source.rows(&plan.checked)?,
            header: plan.checked.header.clone(),
            template: plan.template.clone(),
            judge: judge.into(),
            prefix: request_prefix(settings),
            store: store.reader()?,
            run: self.run(),
            previous: previous.map(|run| run.seq),
            continued: self.continued.is_some(),
            finished,
            // Nothing is claimed here.
            price: None,
            fixed_bytes: 0,
            output_tokens: settings.call.max_output_tokens,
            retry: self.retry.clone(),
            left: None,
            decisions: Decisions::any(store, &plan.template, settings.answer.schema.as_ref())?,
            // Nothing has been asked again yet.
            started: WallTime(i64::MAX),
            seen: SeenRequests::default(),
        })
    }
}

/// What is added up over the rows.
#[derive(Debug, Default)]
struct Sums {
    bad: u64,
    finished: u64,
    replayed: u64,
    calls: u64,
    input: u64,
    cost: Option<CostRange>,
}

/// The state of a pass.
struct Pass {
    judge: RowJudge,
    run: u64,
    fewest: u64,
    planned: u64,
    counter: TokenCounter,
    seen: Distinct,
    /// The last system prompt and its tokens: most often it is the same for all rows. `None` before the first call.
    system: Option<(String, u64)>,
    sums: Sums,
    rater: Rater,
}

impl Pass {
    fn row(&mut self, row: &FedRow) -> Result<(), RunError> {
        let RowLoad::Ask { prompt, hashes } = &row.load else {
            self.sums.bad += 1;
            return Ok(());
        };
        // What a person has decided is not asked.
        if row.plan.decided.is_some() {
            self.sums.finished += row.plan.samples.len() as u64;
            return Ok(());
        }
        let states: Vec<SampleState> = row.plan.samples.iter().map(|sample| sample.state.clone()).collect();
        let is_decided = self.judge.decides(&states);
        let mut calls = 0;
        for (sample, hash) in row.plan.samples.iter().zip(hashes) {
            match (&sample.state, sample.source) {
                // An equal row asks it, or the row is decided without it.
                (SampleState::Open, _) if is_decided || !self.seen.insert(*hash)? => self.sums.replayed += 1,
                (SampleState::Open, _) => calls += 1,
                (_, Some(source)) if (source.run(), source.ticket().row) == (self.run, row.plan.row) => {
                    self.sums.finished += 1;
                }
                _ => self.sums.replayed += 1,
            }
        }
        if calls == 0 {
            return Ok(());
        }
        let system = prompt.system.as_deref().unwrap_or_default();
        let (tokens, is_new) = match &self.system {
            Some((last, tokens)) if last == system => (*tokens, false),
            _ => (self.counter.count(system), true),
        };
        if is_new {
            self.system = Some((system.to_owned(), tokens));
        }
        let texts = Texts {
            system: tokens,
            user: self.counter.count(&prompt.user),
            bytes: (system.len() + prompt.user.len()) as u64,
        };
        let rated = self.rater.rate(&texts, false);
        let first = if is_new { self.rater.rate(&texts, true) } else { rated };
        self.sums.calls += calls;
        self.sums.input = self.sums.input.saturating_add(rated.input.saturating_mul(calls));
        if let (Some(sum), Some(cost), Some(first)) = (&mut self.sums.cost, rated.cost, first.cost) {
            let closed = self.planned - calls.min(self.planned);
            sum.low += cost.low.times(self.fewest.saturating_sub(closed).clamp(1, calls));
            sum.likely += first.likely + cost.likely.times(calls - 1);
            sum.high += cost.high.times(calls);
        }
        Ok(())
    }
}

/// The fewest samples after which a row can be decided.
fn fewest_calls(settings: &Settings) -> u64 {
    let ensemble = &settings.ensemble;
    let samples = u64::from(ensemble.samples);
    match ensemble.rule {
        _ if !ensemble.early_stop => samples,
        // One answer without confidence can rule an automatic outcome out.
        Rule::Unanimous => 1,
        Rule::Majority => samples / 2 + 1,
    }
}

/// How long calls take under the limits, without retries.
fn wall(settings: &Settings, calls: u64, tokens: u64, latency: Duration) -> Duration {
    let Limits { concurrency, rpm, tpm, .. } = settings.limits;
    let keys = &settings.keys;
    // A limit of the keys together holds only where each of them has one.
    let least = |own: u64, of_keys: Option<u64>| match (own, of_keys) {
        (0, of_keys) => of_keys.unwrap_or(0),
        (own, Some(of_keys)) => own.min(of_keys),
        (own, None) => own,
    };
    let sum = |values: Vec<u64>| (!values.is_empty() && !values.contains(&0)).then(|| values.iter().sum());
    let at_once =
        least(concurrency.into(), sum(keys.iter().map(|key| key.concurrency.into()).collect())).max(1);
    let rpm = least(rpm, sum(keys.iter().map(|key| key.rpm).collect()));
    let tpm = least(tpm, sum(keys.iter().map(|key| key.tpm).collect()));
    let minutes = |count: u64, a_minute: u64| {
        let nanos = u128::from(count) * 60_000_000_000 / u128::from(a_minute.max(1));
        if a_minute == 0 { 0 } else { nanos }
    };
    let by_latency = u128::from(calls.div_ceil(at_once)) * latency.as_nanos();
    let longest = by_latency.max(minutes(calls.saturating_sub(1), rpm)).max(minutes(tokens, tpm));
    Duration::from_nanos(u64::try_from(longest).unwrap_or(u64::MAX))
}
