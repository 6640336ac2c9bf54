//! The line to the provider: waits that a server asks for, failures of every kind, and hosts that must not be trusted.

mod support;

use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use support::command::Verify;
use support::job::{always, asks, epoch, gap, job, results, statuses, zipped};
use support::mock::Mock;
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";

fn throttle(headers: &[(&str, &str)], message: &str) -> Reply {
    let reply = Reply::error(429, "rate_limit_exceeded", message);
    headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value))
}

/// The time between a first reply and the second request of one row, by the server's clock.
fn waited(first: impl Fn() -> Reply + Send + 'static, more: &[&str]) -> Duration {
    let provider = Provider::start(move |call| if call.n == 1 { first() } else { Reply::answer(ANSWER) });
    job(&provider, 1).args(more.iter().copied()).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!(calls.len(), 2);
    gap(&calls[0], &calls[1])
}

#[test]
fn every_form_of_a_servers_wait_is_kept_by_the_servers_clock() {
    let millis = Duration::from_millis;
    let cases = vec![
        (vec![("retry-after-ms", "300")], "", 300),
        (vec![("retry-after-ms", "300"), ("retry-after", "30")], "", 300),
        (vec![("retry-after", "0.3")], "", 300),
        (vec![("retry-after", "1")], "", 1_000),
        (vec![("retry-after", "3")], "", 3_000),
        (vec![("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "300ms")], "", 300),
        (
            vec![
                ("x-ratelimit-remaining-requests", "5"),
                ("x-ratelimit-reset-requests", "1m0s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "0.35s"),
            ],
            "",
            350,
        ),
        (vec![], "Rate limit reached. Please try again in 300ms.", 300),
        (vec![], "Please try again in 0.3s. Visit the page.", 300),
    ];
    std::thread::scope(|scope| {
        for (headers, message, least) in cases {
            scope.spawn(move || {
                let owned: Vec<_> = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
                let message = message.to_owned();
                let waits = waited(
                    move || {
                        let headers: Vec<_> = owned.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
                        throttle(&headers, &message)
                    },
                    &["--max-backoff", "1ms"],
                );
                assert!(waits >= millis(least), "{headers:?}: {waits:?}");
                assert!(waits < millis(least + 5_000), "{headers:?}: {waits:?} is another wait");
            });
        }
    });
}

#[test]
fn an_http_date_is_kept_and_one_of_the_past_is_no_hint() {
    // A date has whole seconds: the next whole second but one is 1 to 2 s ahead.
    let asked = Arc::new(Mutex::new(Duration::ZERO));
    let (given, start) = (Arc::clone(&asked), Arc::new(Mutex::new(None)));
    let began = Arc::clone(&start);
    let provider = Provider::start(move |call| {
        if call.n > 1 {
            return Reply::answer(ANSWER);
        }
        let until = Duration::from_secs(epoch().as_secs() + 2);
        *began.lock().unwrap() = epoch().checked_sub(call.at);
        *given.lock().unwrap() = until;
        throttle(&[("retry-after", &httpdate::fmt_http_date(UNIX_EPOCH + until))], "")
    });
    job(&provider, 1).run().expect_code(0);
    let second = start.lock().unwrap().unwrap() + provider.calls()[1].at;
    // Clock reading on the way costs a moment; the wait itself is never shorter than the date.
    assert!(second + Duration::from_millis(5) >= *asked.lock().unwrap(), "{second:?}");
    let waits = waited(|| throttle(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], ""), &[]);
    assert!(waits < Duration::from_secs(5), "{waits:?}");
}

#[test]
fn values_that_are_no_wait_are_no_hint() {
    std::thread::scope(|scope| {
        for value in ["0", "-1", "inf", "NaN", "1e400", "abc", "", "0x10", "1e300"] {
            scope.spawn(move || {
                let waits = waited(move || throttle(&[("retry-after", value)], ""), &[]);
                assert!(waits < Duration::from_secs(5), "{value}: {waits:?}");
            });
        }
    });
}

#[test]
fn a_throttled_row_without_a_hint_backs_off_longer_each_time_until_patience_ends() {
    let provider =
        Provider::start(|call| if call.row == 1 { Reply::answer(ANSWER) } else { throttle(&[], "busy") });
    let more = ["--throttle-patience", "3s", "--max-backoff", "2s"];
    let outcome = job(&provider, 2).args(more).run().expect_code(6);
    assert!(outcome.stderr.contains("throttle"), "{}", outcome.stderr);
    let calls: Vec<_> = provider.calls().into_iter().filter(|call| call.row == 2).collect();
    // Full jitter over 20, 40, 80 ms … 2 s fills 3 s with about nine tries; always 20 ms would make hundreds.
    assert!((2..=60).contains(&calls.len()), "{} requests", calls.len());
    let partial = outcome.json_lines("in.verified.jsonl.partial");
    assert_eq!((&partial[0]["verify"]["status"], partial.len()), (&json!("pass"), 2));
    assert!(
        ["skipped", "error"].contains(&partial[1]["verify"]["status"].as_str().unwrap()),
        "{}",
        partial[1]
    );
}

#[test]
fn a_server_that_bears_five_at_once_is_found_out_and_no_row_is_lost() {
    let mock = Mock::start(["--latency", "40ms", "--concurrency-limit", "5"]);
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ text }}", "--column", "ok=boolean"];
    let verify = Verify::new().file("in.jsonl", support::job::rows(200)).args(args);
    let verify = verify.args(["--base-url", &mock.openai(), "--concurrency", "64", "--retry-base", "20ms"]);
    let outcome = verify.run().expect_code(0);
    assert!(statuses(&outcome).iter().all(|status| status == "pass/valid"));
    let (distinct, repeated, throttled) =
        (mock.count("distinct"), mock.count("repeated"), mock.count("status/429"));
    assert_eq!((distinct, repeated), (200, 0));
    // Whoever keeps 64 under way is refused for most of its requests.
    assert!(throttled * 2 <= 200, "{throttled} of {} requests were throttled", mock.count("requests"));
}

#[test]
fn requests_a_minute_are_spread_and_waiting_is_no_failure() {
    let provider = always(ANSWER);
    let outcome = job(&provider, 60).args(["--rpm", "1200", "--concurrency", "32"]).run().expect_code(0);
    let calls = provider.calls();
    assert!(results(&outcome).iter().all(|row| row["usage"]["attempts"] == 1));
    // The second goes after the answer to the first; from there on each waits for its twentieth of a second, so that
    // no request can arrive before its turn.
    for (at, call) in calls.iter().enumerate().skip(2) {
        let turn = Duration::from_millis(50) * u32::try_from(at - 1).unwrap();
        assert!(
            gap(&calls[0], call) >= turn,
            "request {} came {:?} after the first",
            at + 1,
            gap(&calls[0], call)
        );
    }
    assert_eq!(calls.len(), 60);
}

#[test]
fn a_servers_wait_holds_the_key_and_not_the_row_alone() {
    // The first answers, so that all others go at once.
    let provider = Provider::start(|call| match call.n {
        2 => throttle(&[("retry-after-ms", "400")], ""),
        _ => Reply::answer(ANSWER),
    });
    let outcome = job(&provider, 30).args(["--concurrency", "2"]).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!((calls.len(), results(&outcome).len()), (31, 30));
    let throttled_at = calls[1].at;
    // What was in flight already may still arrive; nothing more before the time is over.
    let early = calls[2..].iter().filter(|call| call.at < throttled_at + Duration::from_millis(400)).count();
    assert!(early <= 1, "{early} requests came before the key's wait was over");
}

#[test]
fn errors_and_a_rate_limit_at_once_are_no_failures_and_waits_are_kept() {
    let mock = Mock::start(["--rate-limit", "50/s", "--error-rate", "0.05"]);
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ text }}", "--column", "ok=boolean"];
    let verify = Verify::new().file("in.jsonl", support::job::rows(150)).args(args);
    let verify = verify.args(["--base-url", &mock.openai(), "--concurrency", "32", "--retry-base", "50ms"]);
    let outcome = verify.run().expect_code(0);
    assert!(statuses(&outcome).iter().all(|status| status == "pass/valid"));
    let stats = mock.stats();
    assert_eq!((mock.count("distinct"), mock.count("repeated")), (150, 0));
    let throttled = mock.count("status/429");
    assert!(throttled > 0, "{stats}");
    // A request that is on its way when a refusal comes cannot be called back, and on a busy machine it may be so for
    // longer than the server allows for. Who does not hold the key sends early after most refusals.
    assert!(mock.count("early") * 10 <= throttled, "{stats}");
}

#[test]
fn requests_a_minute_are_spread_by_the_servers_clock_and_over_executions() {
    let provider = Provider::start(|_| Reply::answer(ANSWER));
    // A hundred and twenty a minute are one in half a second.
    let limited = job(&provider, 5).args(["--rpm", "120", "--concurrency", "5"]);
    let first = limited.spawn();
    provider.wait_for_calls(3);
    first.kill9();
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    limited.again().args(args).args(["--rpm", "120", "--concurrency", "5"]).run().expect_code(0);
    let calls = provider.calls();
    assert!((5..=8).contains(&calls.len()), "{} requests", calls.len());
    // The first may have been longer on its way than the last.
    let least = Duration::from_millis(500 * (calls.len() as u64 - 1) - 400);
    let took = gap(&calls[0], &calls[calls.len() - 1]);
    assert!(took >= least, "{} requests in {took:?}", calls.len());
}

#[test]
fn an_outage_ends_no_row_whether_or_not_anything_has_answered() {
    for answers in [0, 3] {
        let provider =
            Provider::start(
                move |call| {
                    if call.n <= answers { Reply::answer(ANSWER) } else { Reply::status(503) }
                },
            );
        let args =
            ["--attempts", "2", "--concurrency", "2", "--outage-patience", "1s", "--summary", "s.json"];
        let outcome = job(&provider, 15).args(args).run().expect_code(6);
        let told: serde_json::Value = serde_json::from_str(&outcome.file("s.json")).unwrap();
        let counts = ["pass", "error", "skipped"].map(|name| told["status"][name].as_u64().unwrap());
        assert_eq!(counts, [answers as u64, 0, 15 - answers as u64], "{}", outcome.stderr);
        // Nothing is written before the first row has ended.
        assert_eq!(outcome.path("in.verified.jsonl.partial").exists(), answers > 0);
        assert!(!outcome.path("in.verified.jsonl").exists());
    }
}

#[test]
fn a_wait_of_a_day_parks_the_key_and_stops_the_run_with_the_time() {
    let provider = Provider::start(|_| throttle(&[("retry-after", "86400")], ""));
    let outcome = job(&provider, 20).args(["--concurrency", "4"]).run().expect_code(6);
    assert_eq!(provider.count(), 1);
    let date =
        |day: u64| jiff::Timestamp::from_second((epoch().as_secs() + day).cast_signed()).unwrap().to_string();
    let (early, late) = (date(86_395 - 60), date(86_400));
    assert!(
        outcome.stderr.contains(&early[..10]) || outcome.stderr.contains(&late[..10]),
        "no {late} in: {}",
        outcome.stderr
    );
    // The wait is known to the next execution, which sends nothing at all.
    let again = job_again(&outcome, &provider).run().expect_code(6);
    assert_eq!(provider.count(), 1, "{}", again.stderr);
}

fn job_again(outcome: &support::command::Outcome, provider: &Provider) -> Verify {
    outcome.again().args(support::job::asks(provider, "in.jsonl", "{{ text }}"))
}

#[test]
fn with_no_patience_each_row_ends_at_its_first_429() {
    let provider = Provider::start(|call| match call.row {
        1 => Reply::answer(ANSWER),
        _ => throttle(&[], "busy"),
    });
    let more = ["--throttle-patience", "0s", "--max-backoff", "1ms"];
    let outcome = job(&provider, 5).args(more).args(["--summary", "s.json"]).run().expect_code(4);
    assert_eq!(provider.count(), 5);
    assert_eq!(statuses(&outcome)[1..], ["error/rate_limited"; 4]);
    let told: serde_json::Value = serde_json::from_str(&outcome.file("s.json")).unwrap();
    let counts = ["attempts", "throttled", "retries"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [5, 4, 0]);
    let again = job_again(&outcome, &provider).args(more).run().expect_code(4);
    assert_eq!((provider.count(), statuses(&again)[0].as_str()), (9, "pass/valid"));
}

#[test]
fn transient_statuses_are_tried_again_and_told_with_status_and_first_bytes() {
    let html = "<html><head><title>502</title></head><body>Bad Gateway nginx</body></html>";
    for status in [408, 409, 425, 500, 502, 503, 529] {
        let provider = Provider::start(move |call| match call.n {
            1 => Reply::status(status).header("content-type", "text/html").body(html),
            _ => Reply::answer(ANSWER),
        });
        let outcome = job(&provider, 1).run().expect_code(0);
        assert_eq!(provider.count(), 2, "{status}");
        assert_eq!(results(&outcome)[0]["usage"]["attempts"], 2);
    }
    let provider =
        Provider::start(move |_| Reply::status(502).header("content-type", "text/html").body(html));
    let outcome = job(&provider, 1).args(["--max-error", "1"]).run().expect_code(0);
    assert_eq!((provider.count(), statuses(&outcome)), (5, vec!["error/server_error".to_owned()]));
    let error = results(&outcome)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.contains("502") && error.contains("Bad Gateway") && !error.contains("expected"), "{error}");
}

#[test]
fn a_wait_beside_a_transient_failure_is_a_floor_for_its_row() {
    let waits = waited(|| Reply::status(503).header("retry-after-ms", "300"), &["--max-backoff", "1ms"]);
    assert!(waits >= Duration::from_millis(300), "{waits:?}");
}

#[test]
fn connections_that_break_in_any_place_are_tried_again() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{\"choices\":";
    for broken in [
        Reply::reset(),
        Reply::answer(ANSWER).cut_body_after(20),
        Reply::answer(ANSWER).cut_body_after(0),
        Reply::raw(chunked),
        Reply::raw("HTTP/1.1 200 OK\r\n"),
        Reply::raw("nonsense\r\n\r\n"),
    ] {
        let said = format!("{broken:?}");
        let provider =
            Provider::start(move |call| if call.n == 1 { broken.clone() } else { Reply::answer(ANSWER) });
        let outcome = job(&provider, 1).args(["--price", "input=1,output=1"]).run().expect_code(0);
        assert_eq!(provider.count(), 2, "{said}");
        let status = outcome.again().args(["status", "--format", "json"]).run().json();
        // What such a request cost is not known, so its worst case is possible: more than the length limit alone.
        let possible = status["cost"]["possible_usd"].as_f64().unwrap();
        assert!(possible > 0.001_024, "{said}: {possible}");
        assert_eq!(status["retries"], 1, "{said}");
    }
}

#[test]
fn a_server_that_never_answers_is_left_at_the_timeout() {
    let provider = Provider::start(|call| if call.n == 1 { Reply::never() } else { Reply::answer(ANSWER) });
    job(&provider, 1).args(["--timeout", "300ms"]).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!(calls.len(), 2);
    assert!(gap(&calls[0], &calls[1]) >= Duration::from_millis(300));
    // What is under way can be seen from outside, with its age.
    let stuck = Provider::start(|_| Reply::never());
    let verify = job(&stuck, 1);
    let running = verify.args(["--timeout", "60s"]).spawn();
    stuck.wait_for_calls(1);
    let shown = |_| running.again().args(["status"]).run().stdout;
    let text = (0..500).map(shown).find(|text| text.contains("the oldest for "));
    assert!(text.is_some(), "{}", shown(0));
    running.kill9();
    let provider = Provider::start(|_| Reply::never());
    let outcome = job(&provider, 1).args(["--timeout", "200ms", "--max-error", "any"]).run().expect_code(0);
    // A time-out in all is tried once more only.
    assert_eq!((provider.count(), statuses(&outcome)), (2, vec!["error/timeout".to_owned()]));
}

#[test]
fn compressed_replies_are_read_whatever_their_status() {
    // gzip of {"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"{\"ok\":true}"}}]}
    let answer = zipped(&json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": ANSWER}}]}));
    let error = zipped(&json!({"error": {"message": "try again in 250ms", "code": "rate_limit_exceeded"}}));
    let provider = Provider::start(move |call| {
        let (status, body) = if call.n == 1 { (429, error.clone()) } else { (200, answer.clone()) };
        Reply::status(status).header("content-encoding", "gzip").body(body)
    });
    job(&provider, 1).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!(calls.len(), 2);
    assert!(gap(&calls[0], &calls[1]) >= Duration::from_millis(250));
    // Only what can be read is asked for.
    assert!(calls[0].header("accept-encoding").is_none_or(|value| value == "gzip"), "{:?}", calls[0].headers);
}

#[test]
fn a_redirect_is_never_followed_and_its_target_named() {
    let other = always(ANSWER);
    let target = other.url();
    let provider = Provider::start(move |_| Reply::status(307).header("location", &target));
    let outcome = job(&provider, 3).env("OPENAI_API_KEY", "sk-test-0123456789").run().expect_code(6);
    assert_eq!((other.count(), provider.count()), (0, 3));
    assert!(outcome.stderr.contains(&format!("127.0.0.1:{}", other.port())), "{}", outcome.stderr);
}

#[test]
fn a_row_that_is_too_long_fails_alone_with_one_request() {
    let message = "This model's maximum context length is 8192 tokens.";
    for reply in [Reply::error(400, "context_length_exceeded", message), Reply::status(413)] {
        let provider =
            Provider::start(move |call| if call.row == 7 { reply.clone() } else { Reply::answer(ANSWER) });
        let outcome = job(&provider, 30).run().expect_code(4);
        assert_eq!((provider.count(), statuses(&outcome)[6].as_str()), (30, "error/too_long"));
        assert_eq!(statuses(&outcome).iter().filter(|status| *status == "pass/valid").count(), 29);
        // Final failures are not bought again.
        job_again(&outcome, &provider).run().expect_code(4);
        assert_eq!(provider.count(), 30);
    }
}

#[test]
fn long_error_bodies_are_cut_in_all_that_is_kept() {
    let message = "long words ".repeat(600);
    let provider = Provider::start(move |call| match call.row {
        1 => Reply::answer(ANSWER),
        _ => Reply::error(400, "bad", &message),
    });
    let outcome = job(&provider, 20).run().expect_code(4);
    for result in &results(&outcome)[1..] {
        let error = result["error"].as_str().unwrap();
        assert!((100..=300).contains(&error.chars().count()), "{error}");
    }
    assert!(outcome.stderr.len() < 4_000, "{}", outcome.stderr);
}

#[test]
fn the_whole_text_of_equal_errors_stands_in_the_log_once() {
    let message = format!("{}the end", "long words ".repeat(600));
    let provider = Provider::start(move |call| match call.row {
        1 => Reply::answer(ANSWER),
        _ => Reply::error(400, "bad", &message),
    });
    let outcome = job(&provider, 20).args(["--log", "run.log"]).run().expect_code(4);
    let log = outcome.file("run.log");
    assert_eq!((log.matches("the end").count(), provider.count()), (1, 20));
    let failed = outcome.json_lines("run.log").into_iter().find(|event| event["event"] == "failed").unwrap();
    assert!(failed["row"].as_u64().unwrap() > 1 && failed["text"].as_str().unwrap().len() > 6_000);
    assert_eq!(failed["message"], results(&outcome)[1]["error"]);
    // There is one more place for it, where each reply is kept as it came.
    let shown = outcome.again().args(["show", "last", "20", "--format", "json"]).run().expect_code(0).json();
    assert!(shown["samples"][0]["attempts"][0]["raw"].as_str().unwrap().contains("the end"));
}

#[test]
fn a_body_of_ten_megabytes_is_read_and_an_endless_one_is_not() {
    let padding = " ".repeat(10 << 20);
    let provider = Provider::start(move |call| {
        let body = json!({"choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": ANSWER}}]});
        if call.n == 1 { Reply::status(200).body(format!("{padding}{body}")) } else { Reply::answer(ANSWER) }
    });
    job(&provider, 1).run().expect_code(0);
    assert_eq!(provider.count(), 1);
}
