//! Replies that no provider should send: what each becomes, in how many requests, with which code, and in which words.
//! Both formats, wherever they differ.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::{always, gap, results, statuses, zipped};
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";
const ROWS: &str = "{\"text\":\"row 1\"}\n{\"text\":\"row 2\"}\n";

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Openai,
    Anthropic,
}

const SHAPES: [Shape; 2] = [Shape::Openai, Shape::Anthropic];

impl Shape {
    fn body(self, answer: &str) -> Value {
        match self {
            Self::Openai => {
                json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": answer}}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10}})
            }
            Self::Anthropic => json!({"type": "message", "content": [{"type": "text", "text": answer}],
                "stop_reason": "end_turn", "usage": {"input_tokens": 100, "output_tokens": 10}}),
        }
    }

    fn good(self) -> Reply {
        Reply::status(200).json(&self.body(ANSWER))
    }

    /// An answer, changed as text.
    fn edited(self, edit: impl Fn(String) -> String) -> Reply {
        Reply::status(200).body(edit(self.body(ANSWER).to_string()))
    }

    fn error(self, status: u16, code: &str, message: &str) -> Reply {
        match self {
            Self::Openai => Reply::error(status, code, message),
            Self::Anthropic => Reply::status(status)
                .json(&json!({"type": "error", "error": {"type": code, "message": message}})),
        }
    }

    /// An event stream; without its last events if it is cut.
    fn stream(self, cut: bool) -> Reply {
        let events = match self {
            Self::Openai => {
                let part = |text: &str, reason: Value| json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": reason}]});
                vec![part("{\"ok\"", Value::Null), part(":true}", Value::Null), part("", json!("stop"))]
            }
            Self::Anthropic => vec![
                json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 100}}}),
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "{\"ok\""}}),
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ":true}"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}}),
                json!({"type": "message_stop"}),
            ],
        };
        let kept = if cut { 2 } else { events.len() };
        let line = |event: &Value| match event["type"].as_str() {
            Some(kind) => format!("event: {kind}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        let mut body = ": keep-alive\n\n".to_owned() + &events[..kept].iter().map(line).collect::<String>();
        if !cut && self == Self::Openai {
            body.push_str("data: [DONE]\n\n");
        }
        Reply::status(200).header("content-type", "text/event-stream").body(body)
    }

    fn job(self, provider: &Provider) -> Verify {
        let model = if self == Self::Openai { "m" } else { "claude-haiku-5-5" };
        let args = ["run", "in.jsonl", "--model", model, "--prompt", "{{ text }}", "--column", "ok=boolean"];
        let quick = ["--concurrency", "1", "--retry-base", "1ms", "--max-backoff", "2ms", "--base-url"];
        Verify::new().file("in.jsonl", ROWS).args(args).args(quick).arg(provider.url())
    }
}

/// What became of the second row, which always gets this reply; the first gets an answer.
struct Told {
    status: String,
    requests: usize,
    error: String,
    outcome: Outcome,
}

fn told(shape: Shape, reply: Reply, more: &[&str]) -> Told {
    let provider = Provider::start(move |call| if call.row == 1 { shape.good() } else { reply.clone() });
    let outcome = shape.job(&provider).args(more.iter().copied()).run();
    let (status, result) = (statuses(&outcome).remove(1), results(&outcome).remove(1));
    // No verdict on the row means 0, an error means 4, and neither a panic.
    let code = if status.starts_with("pass") { 0 } else { 4 };
    let outcome = outcome.expect_code(code);
    assert!(
        !outcome.stderr.contains("panic") && !outcome.stderr.contains("RUST_BACKTRACE"),
        "{}",
        outcome.stderr
    );
    let error = result["error"].as_str().unwrap_or_default().to_owned();
    Told { status, requests: provider.calls().iter().filter(|call| call.row == 2).count(), error, outcome }
}

#[track_caller]
fn expect(what: &str, shape: Shape, reply: Reply, (status, requests, words): (&str, usize, &str)) {
    let told = told(shape, reply, &[]);
    let has = (told.status.as_str(), told.requests);
    assert_eq!(has, (status, requests), "{what}, {shape:?}: {} {}", told.error, told.outcome.stderr);
    assert!(told.error.contains(words), "{what}, {shape:?}: no `{words}` in: {}", told.error);
    assert!(!told.error.contains("expected") && !told.error.contains("column"), "{what}: {}", told.error);
}

/// The reply first and an answer then: the second row passes at the second request.
#[track_caller]
fn mended(what: &str, shape: Shape, reply: Reply) {
    let mut first = Some(reply);
    let provider = Provider::start(move |call| {
        if call.row == 2 { first.take().unwrap_or_else(|| shape.good()) } else { shape.good() }
    });
    let outcome = shape.job(&provider).run().expect_code(0);
    assert_eq!((provider.count(), statuses(&outcome)[1].as_str()), (3, "pass/valid"), "{what}, {shape:?}");
}

#[test]
fn a_reply_that_breaks_off_is_tried_again_to_the_last_attempt() {
    let broke = ("error/connection", 5, "broke before the reply was whole");
    for shape in SHAPES {
        let chunk = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{\"choices\":";
        for (what, reply) in [
            ("cut at once", shape.good().cut_body_after(0)),
            ("cut inside", shape.good().cut_body_after(40)),
            ("cut at the last byte", shape.good().cut_body_after(shape.body(ANSWER).to_string().len() - 1)),
            ("reset", Reply::reset()),
            ("a chunk that does not end", Reply::raw(chunk)),
            ("half a head", Reply::raw("HTTP/1.1 200 OK\r\ncontent-le")),
            ("no HTTP", Reply::raw("SSH-2.0-OpenSSH_9.6\r\n")),
            ("a header of a megabyte", shape.good().header("x-large", &"x".repeat(1 << 20))),
            (
                "more headers than anybody sends",
                (0..500).fold(shape.good(), |reply, n| reply.header(&format!("x-{n}"), "1")),
            ),
            (
                "two lengths",
                Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 9\r\n\r\n{}"),
            ),
        ] {
            expect(what, shape, reply.clone(), broke);
            mended(what, shape, reply);
        }
    }
}

#[test]
fn a_server_that_stalls_is_left_at_the_timeout_and_tried_once_more() {
    std::thread::scope(|scope| {
        for shape in SHAPES {
            for (what, reply) in [
                ("never answers", Reply::never()),
                ("a byte a second", shape.good().drip(Duration::from_secs(1))),
                ("a byte a second of an error", shape.error(500, "x", "y").drip(Duration::from_secs(1))),
            ] {
                scope.spawn(move || {
                    let told = told(shape, reply, &["--timeout", "4s"]);
                    assert_eq!(
                        (told.status.as_str(), told.requests),
                        ("error/timeout", 2),
                        "{what}: {}",
                        told.error
                    );
                    assert!(
                        told.error.contains("in time") && told.error.contains("timeout"),
                        "{what}: {}",
                        told.error
                    );
                });
            }
        }
    });
}

#[test]
fn compression_is_undone_and_false_compression_is_a_broken_reply() {
    let gzip = |reply: Reply| reply.header("content-encoding", "gzip");
    for shape in SHAPES {
        let whole = zipped(&shape.body(ANSWER));
        let mut flipped = whole.clone();
        let checksum = flipped.len() - 6;
        flipped[checksum] ^= 0x55;
        expect("gzip", shape, gzip(Reply::status(200).body(whole.clone())), ("pass/valid", 1, ""));
        let broke = ("error/connection", 5, "broke before the reply was whole");
        expect("plain text called gzip", shape, gzip(shape.good()), broke);
        expect("half of a gzip", shape, gzip(Reply::status(200).body(&whole[..whole.len() / 2])), broke);
        expect("a wrong checksum", shape, gzip(Reply::status(200).body(flipped)), broke);
        // A compression that nobody asked for is not understood.
        let brotli = Reply::status(200).header("content-encoding", "br").body([0x8b, 0x0a, 0x80, 0x03]);
        expect("brotli", shape, brotli, ("error/server_error", 5, "200"));
    }
}

#[test]
fn a_throttling_reply_is_obeyed_whatever_its_body_is() {
    let error = json!({"error": {"message": "try again in 400ms", "code": "rate_limit_exceeded"}});
    let waits = |reply: Reply| reply.header("retry-after-ms", "400");
    let garbage = || Reply::status(429).header("content-encoding", "gzip").body("no gzip");
    for shape in SHAPES {
        for (what, reply) in [
            (
                "gzip, the wait in its text",
                Reply::status(429).header("content-encoding", "gzip").body(zipped(&error)),
            ),
            ("false gzip", waits(garbage())),
            ("cut", waits(shape.error(429, "rate_limit_error", "slow")).cut_body_after(9)),
            (
                "HTML",
                waits(Reply::status(429).header("content-type", "text/html").body("<html>slow down</html>")),
            ),
            ("empty", waits(Reply::status(429).body(""))),
            ("no UTF-8", waits(Reply::status(429).body(&b"\xff\xfe\x00"[..]))),
            (
                "cut, of an overloaded server",
                waits(shape.error(503, "overloaded_error", "slow")).cut_body_after(9),
            ),
        ] {
            let mut first = Some(reply);
            let provider = Provider::start(move |call| {
                if call.row == 2 { first.take().unwrap_or_else(|| shape.good()) } else { shape.good() }
            });
            shape.job(&provider).run().expect_code(0);
            let calls = provider.calls();
            assert_eq!(calls.len(), 3, "{what}");
            assert!(
                gap(&calls[1], &calls[2]) >= Duration::from_millis(400),
                "{what}: {:?}",
                gap(&calls[1], &calls[2])
            );
        }
    }
}

#[test]
fn what_is_no_reply_of_a_provider_is_a_failing_server() {
    for shape in SHAPES {
        let page = "<html><head><title>502</title></head><body>Bad Gateway nginx</body></html>";
        let html = |status| Reply::status(status).header("content-type", "text/html").body(page);
        let deep = format!("{}{}", "{\"a\":".repeat(100_000), "[".repeat(100_000));
        let nan = |body: String| body.replacen("100", "NaN", 1);
        let failing = |words| ("error/server_error", 5, words);
        for (what, reply, words) in [
            ("HTML 502", html(502), "502"),
            ("HTML 200", html(200), "Bad Gateway"),
            ("an empty body", Reply::status(200).body(""), "200 with an empty body"),
            ("blank lines only", Reply::status(200).body("\n\n \n"), "200 with an empty body"),
            ("deep nesting", Reply::status(200).body(deep), "200"),
            ("NaN", shape.edited(nan), "200"),
            ("text behind the value", shape.edited(|body| body + " trailing"), "200"),
            ("a cut value with the right length", shape.edited(|body| body[..40].to_owned()), "200"),
            ("a list", Reply::status(200).body("[]"), ""),
            ("a text", Reply::status(200).body("\"ok\""), ""),
            ("another object", Reply::status(200).body("{\"result\":1}"), "without"),
            ("NUL bytes", Reply::status(200).body(vec![0; 64]), "200"),
            ("a stream that is cut", shape.stream(true), "ends before its end"),
            ("204", Reply::status(204).body(""), ""),
        ] {
            expect(what, shape, reply.clone(), failing(words));
            mended(what, shape, reply);
        }
    }
    for (what, shape, body) in [
        ("null choices", Shape::Openai, json!({"choices": null})),
        ("no choices", Shape::Openai, json!({"choices": []})),
        ("a null message", Shape::Openai, json!({"choices": [{"message": null}]})),
        (
            "null content",
            Shape::Anthropic,
            json!({"type": "message", "content": null, "stop_reason": "end_turn"}),
        ),
    ] {
        expect(what, shape, Reply::status(200).json(&body), ("error/server_error", 5, "without"));
    }
}

#[test]
fn an_error_under_200_is_what_its_code_says() {
    for shape in SHAPES {
        let under = |code: &str| shape.error(200, code, "said so");
        expect("a failing server", shape, under("api_error"), ("error/server_error", 5, "said so"));
        expect("overloaded", shape, under("overloaded_error"), ("error/server_error", 5, "said so"));
        expect("too long", shape, under("context_length_exceeded"), ("error/too_long", 1, "said so"));
        expect("a wrong request", shape, under("invalid_request_error"), ("error/rejected", 1, "said so"));
        mended("throttled", shape, under("rate_limit_error"));
    }
    let inner =
        json!({"choices": [{"error": {"code": 502, "message": "upstream"}, "message": {"content": ""}}]});
    expect(
        "inside of a choice",
        Shape::Openai,
        Reply::status(200).json(&inner),
        ("error/server_error", 5, "upstream"),
    );
}

#[test]
fn a_reply_in_odd_clothes_is_still_an_answer() {
    for shape in SHAPES {
        let padded = |fill: &str| {
            let fill = fill.to_owned();
            shape.edited(move |body| fill.clone() + &body)
        };
        let text = shape.body(ANSWER).to_string();
        let until_close = format!("HTTP/1.0 200 OK\r\n\r\n{text}");
        let (start, end) = text.split_at(30);
        let chunked = format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{start}\r\n{:x};x=y\r\n{end}\r\n0\r\nx-trailer: 1\r\n\r\n",
            start.len(),
            end.len()
        );
        let mut bytes = text.clone().into_bytes();
        bytes.splice(1..1, b"\"id\":\"\xff\xfe\xc3(\",".iter().copied());
        let twice = |body: String| {
            body.replacen('{', "{\"choices\":3,\"content\":4,\"usage\":5,\"id\":1,\"id\":2,", 1)
        };
        for (what, reply) in [
            ("keep-alive blank lines", padded(&"\n".repeat(4_000))),
            ("ten megabytes of them", padded(&" \r\n".repeat((10 << 20) / 3))),
            ("a byte order mark", padded("\u{feff}")),
            ("bytes that are no UTF-8", Reply::status(200).body(bytes)),
            ("an event stream", shape.stream(false)),
            (
                "a stream that calls itself JSON",
                shape.stream(false).header("content-type", "application/json"),
            ),
            ("another content type", shape.good().header("content-type", "text/plain; charset=x")),
            ("HTTP/1.0 until it closes", Reply::raw(until_close)),
            ("chunks with a trailer", Reply::raw(chunked)),
            ("members that stand twice", shape.edited(twice)),
            ("unknown members", padded("").header("x-a", "1").header("x-a", "2")),
        ] {
            expect(what, shape, reply, ("pass/valid", 1, ""));
        }
    }
}

#[test]
fn an_answer_is_strict_json_in_both_formats() {
    for shape in SHAPES {
        for (what, answer) in [
            ("NaN", "{\"ok\":NaN}".to_owned()),
            ("a key twice", "{\"ok\":true,\"ok\":true}".to_owned()),
            ("deep nesting", format!("{{\"ok\":{}", "[".repeat(100_000))),
            ("a raw NUL", "{\"ok\":true,\u{0}}".to_owned()),
        ] {
            let told = told(shape, Reply::status(200).json(&shape.body(&answer)), &[]);
            assert_eq!(
                (told.status.as_str(), told.requests),
                ("error/invalid_answer", 2),
                "{what}, {shape:?}"
            );
            assert!(told.error.contains("the answer"), "{what}: {}", told.error);
        }
    }
}

#[test]
fn a_redirect_to_another_host_is_a_rejection_and_takes_no_key_along() {
    for shape in SHAPES {
        for status in [301, 302, 303, 307, 308] {
            let other = always(ANSWER);
            let target = format!("http://user:pass@127.0.0.1:{}/v1/elsewhere?token=abc", other.port());
            let reply = Reply::status(status).header("location", &target);
            let told = told(shape, reply, &[]);
            assert_eq!(
                (told.status.as_str(), told.requests, other.connections()),
                ("error/rejected", 1, 0),
                "{status}"
            );
            assert!(
                told.error.contains(&format!("127.0.0.1:{}/v1/elsewhere", other.port())),
                "{}",
                told.error
            );
            assert!(!told.error.contains("pass") && !told.error.contains("abc"), "{}", told.error);
        }
        for target in ["", "::::", "/relative", "javascript:alert(1)"] {
            let reply = Reply::status(302).header("location", target);
            expect(target, shape, reply, ("error/rejected", 1, "redirects"));
        }
    }
}
