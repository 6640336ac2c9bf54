//! What the mock server counts.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::base::{Digest, Moment, Money};
use crate::mock::MockPrice;
use crate::model::Usage;

/// A body and a sample number, as 16 bytes of a digest.
pub(super) type Fingerprint = [u8; 16];

/// On other connections than the one that carried the refusal, a request may have been under way when it was
/// written. One that comes within this time is not called early.
const UNDER_WAY: Duration = Duration::from_millis(100);

/// The wait that a key was told of.
#[derive(Debug, Clone, Copy)]
struct Told {
    at: Moment,
    until: Moment,
}

/// The book: what came, what was answered, what it cost. `GET /stats` shows it, `POST /reset` clears it.
#[derive(Debug, Default)]
pub(super) struct Book {
    requests: u64,
    in_flight: u64,
    max_in_flight: u64,
    /// Every fingerprint seen, and whether it was answered 200, whole.
    seen: HashMap<Fingerprint, bool>,
    repeated: u64,
    status: BTreeMap<u16, u64>,
    tokens: Usage,
    cost: Money,
    early: u64,
    early_by: Duration,
    /// Waits that keys were told of and that may still run, each longer than those before it.
    told: HashMap<String, Vec<Told>>,
}

/// The fingerprint of a request.
pub(super) fn fingerprint(body: &[u8], sample: u16) -> Fingerprint {
    let mut print = Digest::of(body).short();
    for (place, byte) in print.iter_mut().zip(sample.to_le_bytes()) {
        *place ^= byte;
    }
    print
}

impl Book {
    /// Notes a request and returns its number, from 1. `told_here` is the wait that its connection was told of.
    pub(super) fn arrived(
        &mut self,
        now: Moment,
        key: &str,
        print: Fingerprint,
        told_here: Option<Moment>,
    ) -> u64 {
        self.requests += 1;
        if *self.seen.entry(print).or_insert(false) {
            self.repeated += 1;
        }
        let by_key = self.told.get(key).and_then(|waits| {
            waits.iter().rev().find(|told| now.since(told.at) > UNDER_WAY).map(|told| told.until)
        });
        let until = by_key.max(told_here).unwrap_or(Moment::ORIGIN);
        if until > now {
            self.early += 1;
            self.early_by = self.early_by.max(until.since(now));
        }
        self.requests
    }

    /// Notes that a key was told to wait.
    pub(super) fn told(&mut self, key: &str, at: Moment, until: Moment) {
        let told = Told { at, until };
        match self.told.get_mut(key) {
            Some(waits) => {
                waits.retain(|told| told.until > at);
                if waits.last().is_none_or(|last| last.until < until) {
                    waits.push(told);
                }
            }
            None => {
                self.told.insert(key.to_owned(), vec![told]);
            }
        }
    }

    /// Whether `limit` requests are in flight.
    pub(super) fn is_full(&self, limit: Option<u32>) -> bool {
        limit.is_some_and(|limit| self.in_flight >= u64::from(limit))
    }

    /// Lets a request in.
    pub(super) fn admit(&mut self) {
        self.in_flight += 1;
        self.max_in_flight = self.max_in_flight.max(self.in_flight);
    }

    /// A request that was let in is over, answered or not.
    pub(super) fn left(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Bills an answer.
    pub(super) fn bill(&mut self, usage: Usage, price: Option<MockPrice>) {
        self.tokens += usage;
        if let Some(price) = price {
            self.cost += price.input.times(usage.input) + price.output.times(usage.output);
        }
    }

    /// A reply was written whole.
    pub(super) fn delivered(&mut self, status: u16, print: Fingerprint) {
        *self.status.entry(status).or_default() += 1;
        if status == 200 {
            self.seen.insert(print, true);
        }
    }

    /// Forgets everything but the requests in flight.
    pub(super) fn reset(&mut self) {
        let in_flight = self.in_flight;
        *self = Self { in_flight, max_in_flight: in_flight, ..Self::default() };
    }

    /// The book as JSON text.
    pub(super) fn to_json(&self) -> String {
        let status: Vec<String> =
            self.status.iter().map(|(code, count)| format!(r#""{code}":{count}"#)).collect();
        format!(
            concat!(
                r#"{{"requests":{},"in_flight":{},"max_in_flight":{},"distinct":{},"repeated":{},"status":{{{}}},"#,
                r#""tokens":{{"input":{},"cached_input":{},"output":{}}},"usd":{},"early":{},"early_by_ms":{}}}"#
            ),
            self.requests,
            self.in_flight,
            self.max_in_flight,
            self.seen.len(),
            self.repeated,
            status.join(","),
            self.tokens.input,
            self.tokens.cached_input,
            self.tokens.output,
            self.cost,
            self.early,
            self.early_by.as_millis(),
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_origin(Duration::from_millis(millis))
    }

    fn stats(book: &Book) -> Value {
        serde_json::from_str(&book.to_json()).unwrap()
    }

    #[test]
    fn repeated_counts_only_what_was_answered_whole() {
        let mut book = Book::default();
        let (one, two) = (fingerprint(b"a", 1), fingerprint(b"a", 2));
        book.arrived(at(0), "", one, None);
        book.arrived(at(0), "", one, None);
        book.delivered(500, one);
        book.arrived(at(0), "", one, None);
        book.delivered(200, one);
        book.arrived(at(0), "", two, None);
        assert_eq!(stats(&book)["repeated"], 0);
        book.arrived(at(0), "", one, None);
        let stats = stats(&book);
        assert_eq!(
            (&stats["repeated"], &stats["distinct"], &stats["requests"]),
            (&json!(1), &json!(2), &json!(5))
        );
        assert_eq!(stats["status"], json!({"200": 1, "500": 1}));
    }

    #[test]
    fn early_is_what_the_client_could_know() {
        let mut book = Book::default();
        let print = fingerprint(b"a", 1);
        book.told("k", at(1_000), at(3_000));
        book.told("k", at(1_010), at(2_500));
        book.arrived(at(1_050), "k", print, None);
        book.arrived(at(1_050), "other", print, None);
        assert_eq!(stats(&book)["early"], 0);
        book.arrived(at(1_050), "k", print, Some(at(3_000)));
        book.arrived(at(2_000), "k", print, None);
        book.arrived(at(2_000), "other", print, None);
        book.arrived(at(3_000), "k", print, Some(at(3_000)));
        let stats = stats(&book);
        assert_eq!((&stats["early"], &stats["early_by_ms"]), (&json!(2), &json!(1_950)));
    }

    #[test]
    fn flight_and_money_are_counted() {
        let mut book = Book::default();
        book.admit();
        assert!(!book.is_full(None) && !book.is_full(Some(2)));
        book.admit();
        assert!(!book.is_full(None) && book.is_full(Some(2)));
        book.left();
        let price = MockPrice { input: Money::from_pico(1_000_000), output: Money::from_pico(4_000_000) };
        book.bill(Usage { input: 10, output: 5, ..Usage::default() }, Some(price));
        assert_eq!(
            stats(&book),
            json!({"requests": 0, "in_flight": 1, "max_in_flight": 2, "distinct": 0, "repeated": 0, "status": {},
                "tokens": {"input": 10, "cached_input": 0, "output": 5}, "usd": 0.00003, "early": 0, "early_by_ms": 0})
        );
        book.reset();
        let stats = stats(&book);
        assert_eq!(
            (&stats["in_flight"], &stats["max_in_flight"], &stats["usd"]),
            (&json!(1), &json!(1), &json!(0))
        );
    }
}
