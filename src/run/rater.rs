//! What one request will probably cost, from what is known before it is sent.

use std::time::Duration;

use crate::answer::{shortest, usual};
use crate::base::Money;
use crate::model::{CallSettings, ProviderKind, ServiceTier, Settings, Usage};
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
/// The fewest tokens that any provider reads from a cache, for models of which it is not known.
const LEAST_CACHED: u64 = 64;
/// The fewest that a model is likely to be served from a cache where it is not known.
const USUALLY_CACHED: u64 = 1_024;
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
    cache: Cache,
    in_process: bool,
    reasons: bool,
}

/// What a provider may read from its prompt cache.
#[derive(Debug, Clone, Copy)]
struct Cache {
    /// The part of a prompt that it may keep.
    reach: Reach,
    /// The fewest tokens that it keeps, where that is known.
    least: Option<u64>,
    /// Whether the system prompt is meant to be read from it.
    is_meant: bool,
}

/// A part of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Nothing,
    /// The system prompt with the schema.
    System,
    All,
}

/// The texts of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Texts {
    /// Tokens of the system prompt.
    pub(super) system: u64,
    /// Tokens of the user prompt.
    pub(super) user: u64,
    /// Bytes of both.
    pub(super) bytes: u64,
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
            cache: Cache::of(call),
            in_process: call.provider == ProviderKind::Mock,
            reasons,
        }
    }

    /// Rates a request. `is_first`: no earlier one has the same system prompt, so that it can only write it to a cache.
    pub(super) fn rate(&self, texts: &Texts, is_first: bool) -> Rated {
        let Texts { system, user, bytes } = *texts;
        let counted = system.saturating_add(user).saturating_add(self.fixed);
        let Observed { usage, steady, counted: seen, samples, .. } = &self.observed;
        let input = if *seen > 0 && usage.input > 0 { by(usage.input, *seen, counted) } else { counted };
        let Some(price) = &self.price else { return Rated { input, cost: None } };
        let (read, written) = if *samples > 0 {
            (by(steady.cached_input, steady.input, input), by(steady.cache_write, steady.input, input))
        } else {
            (self.cache.likely(system + self.fixed), 0)
        };
        let (cached_input, cache_write) = if is_first { (0, read + written) } else { (read, written) };
        let probable = Usage { input, cached_input, cache_write, ..Usage::default() };
        let asked = price.asked;
        let input_cost = cost(price, &probable, asked).unwrap_or(Money::ZERO);
        let output_rate = price.rates_of(asked, input).map_or(Money::ZERO, |rates| rates.output);
        let high = bound(price, bytes.saturating_add(self.fixed_bound), self.limit);
        let low = self.low(price, texts).min(high);
        let likely = input_cost + Money::from_pico(output_rate.times(self.usual).pico() / 1_000);
        Rated { input, cost: Some(CostRange { low, likely: likely.clamp(low, high), high }) }
    }

    /// The least: what can be read from a cache is, in the cheaper of the tiers.
    fn low(&self, price: &Price, texts: &Texts) -> Money {
        let Texts { system, user, .. } = *texts;
        let within = match self.cache.reach {
            Reach::Nothing => 0,
            Reach::System => system,
            Reach::All => system + user,
        };
        // What a guess takes for too short may be twice as long.
        let longest = by(100, self.certain, within.saturating_add(self.fixed));
        let is_kept = longest >= self.cache.least.unwrap_or(LEAST_CACHED);
        let kept = by(self.certain, 100, if is_kept { within } else { 0 });
        let input = by(self.certain, 100, system + user);
        let least = |tier| {
            let rates = price.rates_of(tier, input)?;
            let cached = rates.cached_input.unwrap_or(rates.input).min(rates.input);
            let ordinary = rates.input.times(input.saturating_sub(kept));
            Some(cached.times(kept) + ordinary + rates.output.times(self.shortest))
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
    pub(super) fn notes(&self, counter: &TokenCounter, system: u64) -> Vec<String> {
        let seen = self.observed.samples;
        let mut notes = vec![format!("tokens: {}", counter.describe())];
        if self.cache.is_meant {
            notes.push(self.cache.note(system + self.fixed, seen > 0));
        }
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

impl Cache {
    fn of(call: &CallSettings) -> Self {
        // A mark of one's own may stand anywhere.
        let marks_itself = call.extra.contains_key("cache_control");
        let reach = match call.provider {
            ProviderKind::Anthropic if marks_itself => Reach::All,
            ProviderKind::Anthropic if call.cache => Reach::System,
            ProviderKind::Mock | ProviderKind::Anthropic => Reach::Nothing,
            ProviderKind::Openai => Reach::All,
        };
        let least = PriceTable::built_in().cache_min(&call.model);
        Self { reach, least, is_meant: call.cache && reach != Reach::Nothing }
    }

    /// The tokens of a beginning of so many that are probably kept.
    fn likely(&self, beginning: u64) -> u64 {
        let least = self.least.unwrap_or(USUALLY_CACHED);
        if self.is_meant && beginning >= least { beginning } else { 0 }
    }

    fn note(&self, beginning: u64, is_observed: bool) -> String {
        let least = self.least.unwrap_or(USUALLY_CACHED);
        match (is_observed, self.likely(beginning) > 0) {
            (true, _) => "cache: as the answered samples of this job found it".to_owned(),
            (false, true) => {
                format!(
                    "cache: {beginning} tokens of each prompt are read from it once the first call has written them"
                )
            }
            (false, false) => format!(
                "cache: nothing is kept of prompts that begin with less than {least} equal tokens; here they are {beginning}"
            ),
        }
    }
}

/// `amount * part / whole`.
fn by(part: u64, whole: u64, amount: u64) -> u64 {
    let scaled = u128::from(amount) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
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
    let texts = Texts { system: 0, user: tokens, bytes: tokens.saturating_mul(4) };
    Some(rater.rate(&texts, false).cost?.likely.times(calls))
}
