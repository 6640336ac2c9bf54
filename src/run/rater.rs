//! What one request will probably cost, from what is known before it is sent.

use std::time::Duration;

use crate::answer::{shortest, usual};
use crate::base::Money;
use crate::model::{ProviderKind, ServiceTier, Settings, Usage};
use crate::prompt::TokenCounter;
use crate::provider::{Price, PriceTable, bound, cost};
use crate::report::CostRange;
use crate::run::execute::{fixed_bytes, output_limit};
use crate::run::observed::{Observed, fixed_tokens};

/// Tokens of an answer in free text, where nothing is known of it.
const FREE_TEXT: u64 = 200;
/// Tokens that a model thinks before it answers, if it is one that does.
const THINKING: u64 = 500;
/// Tokens that the bound of a request adds to its bytes.
const MARGIN: u64 = 1_024;
/// Prompts below this are never read from a cache.
const LEAST_CACHED: u64 = 1_024;
/// What a request takes besides writing its answer, where nothing was observed.
const LATENCY: Duration = Duration::from_secs(1);
/// What a token of an answer takes.
const A_TOKEN: Duration = Duration::from_millis(20);

/// Rates the requests of a job.
#[derive(Debug)]
pub(super) struct Rater {
    price: Option<Price>,
    observed: Observed,
    /// Output tokens of the shortest reply.
    shortest: u64,
    /// Output tokens of a usual sample, in thousandths.
    usual: u64,
    /// The most output tokens of a reply.
    limit: u64,
    /// Input tokens besides the texts.
    fixed: u64,
    /// Bytes besides the texts, and the margin, for the bound.
    fixed_bound: u64,
    /// What part of the counted input is certain, in hundredths.
    certain: u64,
    in_process: bool,
    reasons: bool,
}

/// A request, rated.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rated {
    /// Its input tokens.
    pub(super) input: u64,
    /// Its cost; `None` without a price.
    pub(super) cost: Option<CostRange>,
}

impl Rater {
    pub(super) fn new(
        settings: &Settings,
        price: Option<&Price>,
        counter: &TokenCounter,
        observed: Observed,
    ) -> Self {
        let call = &settings.call;
        let limit = output_limit(call);
        let schema = settings.answer.schema.as_ref();
        let reasons = PriceTable::built_in().reasons(&call.model);
        let guess = schema.map_or(FREE_TEXT, |schema| counter.count(&usual(schema)))
            + if reasons { THINKING } else { 0 };
        // A tokenizer may join what stands in a longer answer otherwise.
        let certain = if counter.is_exact() { 67 } else { 50 };
        let least = schema.map_or(1, |schema| counter.count(&shortest(schema)) * certain / 100);
        Self {
            price: price.copied(),
            observed,
            shortest: least.clamp(1, limit.max(1)),
            usual: if observed.samples > 0 {
                per_mille(observed.usage.output, observed.samples)
            } else {
                guess.min(limit).saturating_mul(1_000)
            },
            limit,
            fixed: fixed_tokens(settings, counter),
            fixed_bound: fixed_bytes(settings) as u64 + MARGIN,
            certain: if counter.is_exact() { 100 } else { 50 },
            in_process: call.provider == ProviderKind::Mock,
            reasons,
        }
    }

    /// Rates a request whose texts have so many tokens and bytes.
    pub(super) fn rate(&self, tokens: u64, bytes: u64) -> Rated {
        let counted = tokens.saturating_add(self.fixed);
        let Observed { usage, counted: seen, .. } = &self.observed;
        let by = |part: u64, whole: u64, amount: u64| {
            let scaled = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let input = if *seen > 0 && usage.input > 0 { by(usage.input, *seen, counted) } else { counted };
        let Some(price) = &self.price else { return Rated { input, cost: None } };
        let probable = Usage {
            input,
            cached_input: by(usage.cached_input, usage.input, input),
            cache_write: by(usage.cache_write, usage.input, input),
            ..Usage::default()
        };
        let asked = price.asked;
        let input_cost = cost(price, &probable, asked).unwrap_or(Money::ZERO);
        let output_rate = price.rates_of(asked, input).map_or(Money::ZERO, |rates| rates.output);
        let high = bound(price, bytes.saturating_add(self.fixed_bound), self.limit);
        let low = self.low(price, by(self.certain, 100, tokens)).min(high);
        let likely = input_cost + Money::from_pico(output_rate.times(self.usual).pico() / 1_000);
        Rated { input, cost: Some(CostRange { low, likely: likely.clamp(low, high), high }) }
    }

    /// The least: all input read from a cache where there can be one, in the cheaper of the tiers.
    fn low(&self, price: &Price, input: u64) -> Money {
        let least = |tier| {
            let rates = price.rates_of(tier, input)?;
            let cached = rates.cached_input.filter(|_| input >= LEAST_CACHED).unwrap_or(rates.input);
            Some(cached.min(rates.input).times(input) + rates.output.times(self.shortest))
        };
        [price.asked, ServiceTier::Standard].into_iter().filter_map(least).min().unwrap_or(Money::ZERO)
    }

    /// Output tokens of so many samples.
    pub(super) fn output(&self, samples: u64) -> u64 {
        let tokens = (u128::from(self.usual) * u128::from(samples) + 500) / 1_000;
        u64::try_from(tokens).unwrap_or(u64::MAX)
    }

    /// How long a request takes.
    pub(super) fn latency(&self) -> Duration {
        let Observed { millis, replies, .. } = &self.observed;
        if *replies > 0 {
            return Duration::from_micros(millis.saturating_mul(1_000) / replies);
        }
        if self.in_process {
            return Duration::ZERO;
        }
        LATENCY + A_TOKEN * u32::try_from(self.usual / 1_000).unwrap_or(u32::MAX)
    }

    /// Where the numbers come from, one sentence each.
    pub(super) fn notes(&self, counter: &TokenCounter) -> Vec<String> {
        let seen = self.observed.samples;
        let mut notes = vec![format!("tokens: {}", counter.describe())];
        if seen > 0 {
            let by = if self.observed.counted > 0 { "input and output" } else { "output" };
            notes.push(format!("{by}: corrected by {seen} answered samples of this job"));
        } else {
            let thought = if self.reasons { format!(", {THINKING} of them thinking") } else { String::new() };
            notes.push(format!(
                "output: guessed at {} tokens a call{thought}; --probe N asks N rows and knows better",
                self.usual / 1_000
            ));
        }
        let latency = self.latency().as_millis();
        notes.push(match (self.observed.replies, self.in_process) {
            (0, true) => "time: the built-in provider answers at once".to_owned(),
            (0, false) => {
                format!("time: {latency} ms a call are assumed, 1 s and 20 ms for each token of output")
            }
            _ => format!("time: {latency} ms a call, as observed in this job"),
        });
        notes
    }
}

/// `part / whole` in thousandths, half up.
fn per_mille(part: u64, whole: u64) -> u64 {
    let scaled = (u128::from(part) * 1_000 + u128::from(whole) / 2) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// What so many rows will probably cost if a prompt has so many tokens by [`TokenCounter::by_ratio`]; without a look at
/// what is stored. `None` without a price.
pub fn quick_likely(settings: &Settings, price: Option<&Price>, rows: u64, tokens: u64) -> Option<Money> {
    let counter = TokenCounter::by_ratio(&settings.call.model);
    let rater = Rater::new(settings, Some(price?), &counter, Observed::default());
    let calls = rows.saturating_mul(settings.ensemble.samples.into());
    // The bound, which nothing is above, is not known here: a generous one cuts nothing.
    Some(rater.rate(tokens, tokens.saturating_mul(4)).cost?.likely.times(calls))
}
