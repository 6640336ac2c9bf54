//! What becomes of a request: everything but the sockets and the waiting.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::base::{Dice, Moment, WallTime};
use crate::mock::book::{Book, Fingerprint, fingerprint};
use crate::mock::bucket::{Admission, Bucket, whole_millis};
use crate::mock::first::First;
use crate::mock::reply::{self, Said};
use crate::mock::request::{Asked, Dialect};
use crate::mock::tokens::Tokens;
use crate::mock::{MockModel, MockSettings};
use crate::model::Usage;

/// Keep the dice of errors and of jitter apart.
const ERROR: u64 = 0xe;
const JITTER: u64 = 0x11;

/// A request as it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival<'a> {
    /// The wire format, by the path.
    pub(super) dialect: Dialect,
    /// The key's text; empty if none was sent.
    pub(super) key: &'a str,
    /// `X-Client-Request-Id`.
    pub(super) client_request_id: Option<&'a str>,
    /// The body.
    pub(super) body: &'a [u8],
    /// Until when the connection that it came on was told to wait.
    pub(super) told_here: Option<Moment>,
}

/// What to send back.
#[derive(Debug)]
pub(super) struct Decision {
    /// The status.
    pub(super) status: u16,
    /// Header names and values besides the usual ones.
    pub(super) headers: Vec<(&'static str, String)>,
    /// The body.
    pub(super) body: Vec<u8>,
    /// How long to wait before.
    pub(super) latency: Duration,
    /// Whether to close the connection in the middle of the body.
    pub(super) cut: bool,
    /// Whether it was let in, so that it counts as in flight until it is over.
    pub(super) admitted: bool,
    /// The end of the wait that the reply tells of.
    pub(super) told: Option<Moment>,
    /// For the book.
    pub(super) print: Fingerprint,
}

/// Decides, and keeps the book.
pub(super) struct Desk {
    settings: MockSettings,
    model: MockModel,
    tokens: Tokens,
    schema_tokens: First<u64>,
    system_tokens: First<u64>,
    book: Mutex<Book>,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl fmt::Debug for Desk {
    /// Shows no settings: keys stand in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    /// A desk with an empty book. Loads the tokenizer if nobody has.
    pub(super) fn new(settings: MockSettings) -> Self {
        let model = MockModel::new(settings.seed, settings.bad_answer_rate);
        let tokens = Tokens::new();
        let (schema_tokens, system_tokens) = (First::new(), First::new());
        let (book, buckets) = (Mutex::default(), Mutex::default());
        Self { settings, model, tokens, schema_tokens, system_tokens, book, buckets }
    }

    /// The book.
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the book, the waits and what the limits have used.
    pub(super) fn reset(&self) {
        self.book().reset();
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Decides on a request: key, form, limits and errors in this order, then the answer. An answer is billed here,
    /// before its latency: a client that goes away has bought it all the same. Errors cost nothing.
    pub(super) fn decide(&self, arrival: &Arrival<'_>, now: Moment, wall: WallTime) -> Decision {
        let sample = sample_of(arrival.client_request_id);
        let print = fingerprint(arrival.body, sample);
        let number = self.book().arrived(now, arrival.key, print, arrival.told_here);
        let mut open = Open { dialect: arrival.dialect, print, id: format!("req_mock_{number:08}") };
        if self.settings.fail_keys.iter().any(|key| key == arrival.key) {
            return open.error(401, Some("invalid_api_key"), "Incorrect API key provided.");
        }
        let asked = match Asked::read(arrival.dialect, arrival.body) {
            Ok(asked) if asked.stream => {
                return open.error(
                    400,
                    Some("unsupported_value"),
                    "The mock provider sends no event streams.",
                );
            }
            Ok(asked) => asked,
            Err(message) => return open.error(400, None, &message),
        };
        if self.book().is_full(self.settings.concurrency_limit) {
            let wait = whole_millis((self.settings.latency / 2).max(Duration::from_millis(20)));
            return self.throttled(&mut open, "concurrent requests", wait, arrival.key, now);
        }
        let admission = self.take(arrival.key, now);
        if let Some((limit, Admission { wait: Some(wait), .. })) = admission {
            let mut decision = self.throttled(&mut open, "requests", wait, arrival.key, now);
            limit_headers(arrival.dialect, limit, 0, wait, wall, &mut decision.headers);
            return decision;
        }
        self.book().admit();
        let mut decision = match self.error_for(number) {
            Some(Fault::Status(status, code, message)) => open.error(status, Some(code), message),
            fault => self.answer(&mut open, &asked, sample, fault.is_some()),
        };
        decision.admitted = true;
        decision.latency = self.latency(number);
        if let Some((limit, admission)) = admission {
            let headers = &mut decision.headers;
            limit_headers(arrival.dialect, limit, admission.remaining, admission.reset, wall, headers);
        }
        decision
    }

    fn take(&self, key: &str, now: Moment) -> Option<(u32, Admission)> {
        let limit = self.settings.rate_limit?;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(key) {
            return Some((bucket.limit(), bucket.take(now)));
        }
        let bucket = buckets.entry(key.to_owned()).or_insert(Bucket::new(limit, now));
        Some((bucket.limit(), bucket.take(now)))
    }

    fn throttled(&self, open: &mut Open, what: &str, wait: Duration, key: &str, now: Moment) -> Decision {
        let until = now.after(wait);
        self.book().told(key, now, until);
        let message =
            format!("Rate limit reached for the mock on {what}. Please try again in {}.", go_duration(wait));
        let mut decision = open.error(429, Some("rate_limit_exceeded"), &message);
        decision.headers.push(("retry-after-ms", wait.as_millis().to_string()));
        // In whole seconds only where that is not much longer than the wait itself.
        if wait >= Duration::from_secs(1) {
            decision.headers.push(("retry-after", wait.as_millis().div_ceil(1_000).to_string()));
        }
        decision.told = Some(until);
        decision
    }

    fn error_for(&self, number: u64) -> Option<Fault> {
        let mut dice = Dice::new(self.settings.seed, &[number, ERROR]);
        if dice.fraction() >= self.settings.error_rate {
            return None;
        }
        Some(match dice.below(5) {
            0 | 1 => {
                Fault::Status(500, "server_error", "The server had an error while processing your request.")
            }
            2 | 3 => {
                Fault::Status(503, "server_is_overloaded", "The mock is overloaded. Please try again later.")
            }
            _ => Fault::Cut,
        })
    }

    fn answer(&self, open: &mut Open, asked: &Asked<'_>, sample: u16, cut: bool) -> Decision {
        let prompt = asked.prompt_number();
        let mut text = self.model.answer(asked, prompt, sample);
        let count = |text: &str| self.tokens.count(text);
        let known =
            |first: &First<u64>, text: &str| first.get(text, count).copied().unwrap_or_else(|| count(text));
        let texts = asked.texts.iter().map(|(role, text)| match *role {
            "system" => known(&self.system_tokens, text),
            _ => count(text),
        });
        let schema = asked.schema_text.map_or(0, |text| known(&self.schema_tokens, text));
        let input = texts.sum::<u64>() + schema;
        let mut output = count(&text);
        let truncated = asked.limit.is_some_and(|limit| output > limit);
        if truncated {
            output = asked.limit.unwrap_or(output);
            text = self.tokens.first(&text, output);
        }
        let usage = Usage { input, output, ..Usage::default() };
        if !cut {
            self.book().bill(usage, self.settings.price);
        }
        let said = Said { text, truncated, usage, id: self.model.id(prompt, sample) };
        Decision { cut, ..open.decision(200, reply::answer(asked, &said)) }
    }

    fn latency(&self, number: u64) -> Duration {
        let MockSettings { latency, jitter, seed, .. } = &self.settings;
        if jitter.is_zero() {
            return *latency;
        }
        let shift = jitter.mul_f64(2.0 * Dice::new(*seed, &[number, JITTER]).fraction());
        (*latency + shift).saturating_sub(*jitter)
    }
}

/// An error that the dice choose.
#[derive(Debug)]
enum Fault {
    Status(u16, &'static str, &'static str),
    Cut,
}

/// What is known of a reply before its content.
#[derive(Debug)]
struct Open {
    dialect: Dialect,
    print: Fingerprint,
    id: String,
}

impl Open {
    fn decision(&mut self, status: u16, body: Vec<u8>) -> Decision {
        let name = match self.dialect {
            Dialect::OpenAi => "x-request-id",
            Dialect::Anthropic => "request-id",
        };
        Decision {
            status,
            headers: vec![(name, std::mem::take(&mut self.id))],
            body,
            latency: Duration::ZERO,
            cut: false,
            admitted: false,
            told: None,
            print: self.print,
        }
    }

    fn error(&mut self, status: u16, code: Option<&str>, message: &str) -> Decision {
        let status = if (status, self.dialect) == (503, Dialect::Anthropic) { 529 } else { status };
        let body = reply::error(self.dialect, status, code, message, &self.id);
        self.decision(status, body)
    }
}

/// The sample number of `RUN-ROW-SAMPLE-ATTEMPT`, read from the right because RUN has dashes of its own; 1 where the
/// header is missing or says something else.
fn sample_of(client_request_id: Option<&str>) -> u16 {
    let read = |id: &str| {
        let mut parts = id.rsplitn(4, '-');
        let _attempt: u32 = parts.next()?.parse().ok()?;
        let sample: u16 = parts.next()?.parse().ok()?;
        let _row: u64 = parts.next()?.parse().ok()?;
        parts.next().filter(|run| !run.is_empty())?;
        Some(sample)
    };
    client_request_id.and_then(read).filter(|sample| *sample > 0).unwrap_or(1)
}

fn limit_headers(
    dialect: Dialect,
    limit: u32,
    remaining: u64,
    reset: Duration,
    wall: WallTime,
    headers: &mut Vec<(&'static str, String)>,
) {
    let reset = whole_millis(reset);
    match dialect {
        Dialect::OpenAi => headers.extend([
            ("x-ratelimit-limit-requests", limit.to_string()),
            ("x-ratelimit-remaining-requests", remaining.to_string()),
            ("x-ratelimit-reset-requests", go_duration(reset)),
        ]),
        Dialect::Anthropic => headers.extend([
            ("anthropic-ratelimit-requests-limit", limit.to_string()),
            ("anthropic-ratelimit-requests-remaining", remaining.to_string()),
            ("anthropic-ratelimit-requests-reset", wall.after(reset).to_rfc3339()),
        ]),
    }
}

/// A duration as `OpenAI` writes it: `20ms`, `1.5s`, `6m0s`.
fn go_duration(wait: Duration) -> String {
    let millis = wait.as_millis();
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let seconds = format!("{}.{:03}", rest / 1_000, rest % 1_000);
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{seconds}s") }
}

#[cfg(test)]
mod tests;
