//! The tools of the other test files do what they say.

mod support;

use std::io;
use std::time::Duration;

use serde_json::json;
use support::command::Verify;
use support::http::{self, Message};
use support::mock::Mock;
use support::provider::{Provider, Reply};

fn ask(port: u16, id: &str) -> io::Result<Message> {
    let body = json!({"messages": [{"role": "system", "content": "s"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}]}]});
    let headers = [("authorization", "Bearer key-1"), ("x-client-request-id", id)];
    http::request(port, "POST", "/v1/chat/completions", &headers, &body.to_string())
}

#[test]
fn the_provider_follows_its_script_and_remembers() {
    let provider = Provider::start(|call| match call.n {
        1 => Reply::answer("{}"),
        2 => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after", "3"),
        3 => Reply::answer("{}").cut_body_after(10),
        4 => Reply::reset(),
        5 => Reply::raw("HTTP/1.1 200 OK\r\n\r\n"),
        _ => Reply::status(503).after(Duration::from_millis(1)),
    });
    let first = ask(provider.port(), "0190b2c4-7a3e-7000-8000-0123456789ab-12-3-2").unwrap();
    assert_eq!(first.start, "HTTP/1.1 200 Scripted");
    let throttled = ask(provider.port(), "").unwrap();
    assert_eq!(throttled.header("retry-after"), Some("3"));
    assert_eq!(ask(provider.port(), "").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    assert!(ask(provider.port(), "").is_err());
    assert!(ask(provider.port(), "").unwrap().body.is_empty());
    assert_eq!(ask(provider.port(), "").unwrap().start, "HTTP/1.1 503 Scripted");
    let calls = provider.wait_for_calls(6);
    let call = &calls[0];
    assert_eq!((call.row, call.sample, call.attempt, call.key.as_str()), (12, 3, 2, "key-1"));
    assert_eq!((call.system(), call.user()), ("s".to_owned(), "hi".to_owned()));
    assert_eq!((provider.count(), provider.max_in_flight(), provider.connections()), (6, 1, 6));
}

#[test]
fn the_provider_sees_what_is_in_flight() {
    let provider = Provider::start(|_| Reply::never());
    let port = provider.port();
    let streams = [0; 2].map(|_| {
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        io::Write::write_all(&mut stream, b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        stream
    });
    provider.wait_for_in_flight(2);
    assert_eq!((provider.max_in_flight(), provider.calls()[1].body.clone()), (2, json!({})));
    drop(streams);
}

#[test]
fn the_binary_is_run_and_judged() {
    let verify = Verify::new().file("folder/a.jsonl", "{\"a\":1}\n{\"a\":2}\n");
    let outcome = verify.again().args(["mock", "--error-rate", "2"]).run().expect_code(2);
    assert!(outcome.stderr.contains("--error-rate"));
    assert_eq!(
        (outcome.output_lines("folder/a.jsonl").len(), &outcome.json_lines("folder/a.jsonl")[1]),
        (2, &json!({"a": 2}))
    );
    let running = verify.again().args(["mock", "--port", "0"]).spawn();
    running.wait_for_stdout("\n");
    running.signal("TERM");
    let ended = running.wait().expect_code(0);
    assert!(ended.json()["openai"].as_str().is_some_and(|url| url.ends_with("/v1")));
    let running = verify.again().args(["mock"]).spawn();
    running.wait_for_stdout("\n");
    assert_eq!(running.kill9().code, 137);
}

#[test]
fn the_mock_provider_runs_beside_a_test() {
    let mock = Mock::start(["--fail-keys", "key-2"]);
    assert!(ask(mock.port(), "x-1-1-1").unwrap().start.starts_with("HTTP/1.1 200"));
    assert_eq!((mock.count("requests"), mock.count("status/200"), mock.count("status/500")), (1, 1, 0));
    assert!(mock.openai().starts_with(&mock.anthropic()));
    mock.reset();
    assert_eq!(mock.count("requests"), 0);
}
