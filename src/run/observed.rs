//! What the store says of how a job's requests went so far.

use std::collections::BTreeMap;

use crate::base::WallTime;
use crate::model::{Settings, Usage};
use crate::prompt::TokenCounter;
use crate::run::error::RunError;
use crate::run::execute::Plan;
use crate::store::{Reader, RunRecord};

/// Rows that are looked at, at most: enough for a mean.
const ROWS: usize = 1_000;
const PAGE: usize = 250;

/// Sums over samples of a run that were bought.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Observed {
    /// Samples whose tokens are known.
    pub(super) samples: u64,
    /// Tokens of all their attempts.
    pub(super) usage: Usage,
    /// The same without the attempt that came first, which found nothing in a cache and may have written it: what the
    /// requests to come will be like. Where there was no other one, what it wrote counts as read.
    pub(super) steady: Usage,
    /// What a counter says of their prompts, each once; 0 where the input is another one by now.
    pub(super) counted: u64,
    /// Replies that came whole.
    pub(super) replies: u64,
    /// Milliseconds that these took together.
    pub(super) millis: u64,
}

impl Observed {
    /// Looks at the first rows of a run that have something stored, and counts their prompts again.
    pub(super) fn of(
        plan: &Plan,
        run: &RunRecord,
        store: &mut Reader,
        counter: &TokenCounter,
    ) -> Result<Self, RunError> {
        let mut observed = Self::default();
        let mut bought: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut after, mut left) = (0, ROWS);
        let mut first: Option<(WallTime, Usage)> = None;
        let mut known = 0_u64;
        while left > 0 {
            let page = store.rows_after(run.seq, after, PAGE.min(left))?;
            let Some(last) = page.last() else { break };
            after = last.row;
            left -= page.len();
            for history in &page {
                let mut last_sample = None;
                for attempt in &history.attempts {
                    if attempt.is_answered() {
                        observed.replies += 1;
                        observed.millis = observed.millis.saturating_add(attempt.millis);
                    }
                    let Some(usage) = attempt.usage.filter(|_| !attempt.estimated) else { continue };
                    observed.usage += usage;
                    known += 1;
                    if first.is_none_or(|(started, _)| attempt.started < started) {
                        first = Some((attempt.started, usage));
                    }
                    if last_sample != Some(attempt.ticket.sample) {
                        last_sample = Some(attempt.ticket.sample);
                        observed.samples += 1;
                        *bought.entry(history.row).or_default() += 1;
                    }
                }
            }
        }
        observed.steady = match first {
            Some((_, first)) if known > 1 => without(&observed.usage, &first),
            _ => Usage {
                cached_input: observed.usage.cached_input.saturating_add(observed.usage.cache_write),
                cache_write: 0,
                ..observed.usage
            },
        };
        if run.input_digest == plan.checked.digest {
            observed.counted = count(plan, &bought, counter)?;
        }
        Ok(observed)
    }
}

/// The input of `all` without that of `one` of them.
fn without(all: &Usage, one: &Usage) -> Usage {
    Usage {
        input: all.input.saturating_sub(one.input),
        cached_input: all.cached_input.saturating_sub(one.cached_input),
        cache_write: all.cache_write.saturating_sub(one.cache_write),
        ..Usage::default()
    }
}

/// What the counter says of the prompts of these rows, each as often as it was sent.
fn count(plan: &Plan, bought: &BTreeMap<u64, u64>, counter: &TokenCounter) -> Result<u64, RunError> {
    let Some(last) = bought.keys().next_back() else { return Ok(0) };
    let header = plan.checked.header.as_ref();
    let fixed = fixed_tokens(&plan.settings, counter);
    let mut sum = 0_u64;
    for row in plan.source.rows(&plan.checked)? {
        let row = row?;
        if let Some(times) = bought.get(&row.number)
            && let Ok(prompt) = plan.template.render(&row, header)
        {
            let system = prompt.system.as_deref().map_or(0, |text| counter.count(text));
            sum += (system + counter.count(&prompt.user) + fixed) * times;
        }
        if row.number >= *last {
            break;
        }
    }
    Ok(sum)
}

/// Input tokens that every request has besides its texts: the schema, and where the endpoint is the provider's own
/// host what it wraps messages in, three tokens each and three for the reply.
pub(super) fn fixed_tokens(settings: &Settings, counter: &TokenCounter) -> u64 {
    let schema = settings.answer.schema.as_ref().map_or(0, |schema| counter.count(&schema.to_string()));
    let messages = if settings.prompt.system.is_some() { 2 } else { 1 };
    schema + if settings.call.own_host { 3 * messages + 3 } else { 0 }
}
