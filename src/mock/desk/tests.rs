use serde_json::Value;

use super::*;
use crate::base::Money;
use crate::mock::{MockPrice, RateLimit};

const BODY: &[u8] = br#"{"model":"m","messages":[{"role":"user","content":"hello world"}]}"#;

fn at(millis: u64) -> Moment {
    Moment::from_origin(Duration::from_millis(millis))
}

fn arrival(key: &str) -> Arrival<'_> {
    Arrival { dialect: Dialect::OpenAi, key, client_request_id: None, body: BODY, told_here: None }
}

fn ask(desk: &Desk, arrival: &Arrival<'_>, now: Moment) -> Decision {
    desk.decide(arrival, now, WallTime(0))
}

fn json(decision: &Decision) -> Value {
    serde_json::from_slice(&decision.body).unwrap()
}

fn header<'d>(decision: &'d Decision, name: &str) -> Option<&'d str> {
    decision.headers.iter().find(|(have, _)| *have == name).map(|(_, value)| value.as_str())
}

#[test]
fn the_sample_is_read_from_the_right() {
    let id = |id| sample_of(Some(id));
    assert_eq!(id("0190b2c4-7a3e-7000-8000-0123456789ab-12-3-1"), 3);
    assert_eq!((id("x-1-2"), id("7"), id("run-1-0-1"), id("run-a-2-1"), sample_of(None)), (1, 1, 1, 1, 1));
}

#[test]
fn answers_are_billed_in_o200k_tokens() {
    let price = MockPrice { input: Money::from_pico(1_000_000), output: Money::from_pico(4_000_000) };
    let desk = Desk::new(MockSettings { price: Some(price), ..MockSettings::default() });
    let decision = ask(&desk, &arrival(""), at(0));
    let reply = json(&decision);
    let usage = &reply["usage"];
    assert_eq!((decision.status, &usage["prompt_tokens"]), (200, &Value::from(2)));
    let output = bpe_openai::o200k_base().count(reply["choices"][0]["message"]["content"].as_str().unwrap());
    assert_eq!(usage["completion_tokens"], output);
    let stats: Value = serde_json::from_str(&desk.book().to_json()).unwrap();
    let cost = Money::from_pico(2_000_000 + 4_000_000 * i64::try_from(output).unwrap());
    assert_eq!(stats["usd"].to_string(), cost.to_string());
    assert_eq!((&stats["in_flight"], &stats["tokens"]["output"]), (&Value::from(1), &Value::from(output)));
    let in_process = MockModel::new(0, 0.0).reply(BODY, 1);
    let in_process: Value = serde_json::from_slice(&in_process).unwrap();
    assert_eq!(in_process["choices"], reply["choices"]);
}

#[test]
fn a_limit_of_tokens_cuts_the_answer() {
    let desk = Desk::new(MockSettings::default());
    let body = br#"{"messages":[{"role":"user","content":"hello"}],"max_tokens":2}"#;
    let reply = json(&ask(&desk, &Arrival { body, ..arrival("") }, at(0)));
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
    assert_eq!(reply["usage"]["completion_tokens"], 2);
}

#[test]
fn a_failing_key_is_refused_and_others_are_not() {
    let desk = Desk::new(MockSettings { fail_keys: vec!["bad".to_owned()], ..MockSettings::default() });
    let refused = ask(&desk, &arrival("bad"), at(0));
    assert_eq!((refused.status, refused.admitted), (401, false));
    assert_eq!(json(&refused)["error"]["code"], "invalid_api_key");
    assert_eq!(ask(&desk, &arrival("good"), at(0)).status, 200);
    let anthropic = Arrival { dialect: Dialect::Anthropic, ..arrival("bad") };
    assert_eq!(json(&ask(&desk, &anthropic, at(0)))["error"]["type"], "authentication_error");
}

#[test]
fn the_rate_limit_holds_for_each_key_and_tells_the_wait() {
    let rate_limit = Some(RateLimit { requests: 1, per: Duration::from_millis(1_500) });
    let desk = Desk::new(MockSettings { rate_limit, ..MockSettings::default() });
    assert_eq!(ask(&desk, &arrival("a"), at(0)).status, 200);
    assert_eq!(ask(&desk, &arrival("b"), at(0)).status, 200);
    let refused = ask(&desk, &arrival("a"), at(200));
    assert_eq!((refused.status, refused.admitted, refused.told), (429, false, Some(at(1_500))));
    assert_eq!(header(&refused, "retry-after-ms"), Some("1300"));
    assert_eq!(header(&refused, "retry-after"), Some("2"));
    assert_eq!(header(&refused, "x-ratelimit-remaining-requests"), Some("0"));
    assert_eq!(header(&refused, "x-ratelimit-reset-requests"), Some("1.3s"));
    let error = &json(&refused)["error"];
    assert_eq!(error["code"], "rate_limit_exceeded");
    assert!(error["message"].as_str().unwrap().ends_with("Please try again in 1.3s."));
    assert_eq!(ask(&desk, &arrival("a"), at(1_500)).status, 200);
    assert_eq!(ask(&desk, &arrival("a"), at(1_600)).status, 429);
    let stats: Value = serde_json::from_str(&desk.book().to_json()).unwrap();
    assert_eq!((&stats["early"], &stats["max_in_flight"]), (&Value::from(0), &Value::from(3)));
}

#[test]
fn the_concurrency_limit_asks_for_half_the_latency() {
    let latency = Duration::from_millis(300);
    let desk = Desk::new(MockSettings { latency, concurrency_limit: Some(1), ..MockSettings::default() });
    assert_eq!(ask(&desk, &arrival(""), at(0)).latency, latency);
    let refused = ask(&desk, &arrival(""), at(1));
    assert_eq!((refused.status, header(&refused, "retry-after-ms")), (429, Some("150")));
    assert_eq!(header(&refused, "retry-after"), None);
    desk.book().left();
    assert_eq!(ask(&desk, &arrival(""), at(2)).status, 200);
}

#[test]
fn errors_come_at_their_rate_and_the_same_again_after_a_reset() {
    let desk = Desk::new(MockSettings { error_rate: 0.2, seed: 3, ..MockSettings::default() });
    let round = || (0..400).map(|_| ask(&desk, &arrival(""), at(0))).collect::<Vec<_>>();
    let first = round();
    let count = |status| first.iter().filter(|decision| decision.status == status && !decision.cut).count();
    let cut = first.iter().filter(|decision| decision.cut).count();
    assert!(count(500) > 15 && count(503) > 15 && cut > 5, "{} {} {cut}", count(500), count(503));
    assert!((50..110).contains(&(400 - count(200))), "{}", count(200));
    desk.reset();
    let shape = |decisions: &[Decision]| decisions.iter().map(|d| (d.status, d.cut)).collect::<Vec<_>>();
    assert_eq!(shape(&first), shape(&round()));
}

#[test]
fn jitter_stays_around_the_latency() {
    let (latency, jitter) = (Duration::from_millis(200), Duration::from_millis(50));
    let desk = Desk::new(MockSettings { latency, jitter, ..MockSettings::default() });
    let all: Vec<_> = (0..200).map(|number| desk.latency(number)).collect();
    assert!(all.iter().all(|wait| wait.abs_diff(latency) <= jitter));
    assert!(all.iter().max().unwrap().abs_diff(*all.iter().min().unwrap()) > jitter);
}

#[test]
fn durations_are_written_as_openai_writes_them() {
    let text = |millis| go_duration(Duration::from_millis(millis));
    assert_eq!(
        [text(20), text(1_000), text(1_500), text(360_000), text(179_560)],
        ["20ms", "1s", "1.5s", "6m0s", "2m59.56s"]
    );
}
