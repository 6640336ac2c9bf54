//! Anthropic Messages, and forced tools in both formats, through the program.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::mock::Mock;
use support::provider::{Call, Provider, Reply};

const FORMS: [&str; 5] = ["auto", "json_schema", "tool", "json_object", "prompt"];
const KEY: &str = "sk-ant-test-0123456789";

fn rows(count: usize) -> String {
    (1..=count).map(|n| json!({ "text": format!("row {n}") }).to_string() + "\n").collect()
}

/// A run of `count` rows against a server, with the key in its usual variable; failures are tried again at once.
fn run(url: &str, count: usize) -> Verify {
    let fixed = ["run", "in.jsonl", "--prompt", "Is {{ text }} fine?", "--column", "ok=boolean"];
    Verify::new().file("in.jsonl", rows(count)).env("ANTHROPIC_API_KEY", KEY).args(fixed).args([
        "--retry-base",
        "1ms",
        "--model",
        "claude-haiku-5-5",
        "--base-url",
        url,
    ])
}

fn results(outcome: &Outcome) -> Vec<Value> {
    outcome.json_lines("in.verified.jsonl").into_iter().map(|mut line| line["verify"].take()).collect()
}

fn error(status: u16, kind: &str, message: &str) -> Reply {
    let error =
        json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_1" });
    Reply::status(status).json(&error)
}

fn message(content: &Value, stop_reason: &str) -> Reply {
    Reply::status(200).json(&json!({ "type": "message", "content": content, "stop_reason": stop_reason,
        "usage": { "input_tokens": 7, "output_tokens": 5 } }))
}

fn is_format(call: &Call) -> bool {
    call.body["output_config"]["format"].is_object()
}

#[test]
fn every_form_gets_answers_that_keep_to_the_bounds_of_the_schema() {
    let mock = Mock::start([]);
    let bounded = ["--column", "n=integer 1..5", "--column", "share=number 0..1", "--column", "why=string?"];
    for (provider, url) in [("anthropic", mock.anthropic()), ("openai", mock.openai())] {
        for form in FORMS {
            mock.reset();
            let outcome = run(&url, 20)
                .args(bounded)
                .args(["--provider", provider, "--structured", form])
                .run()
                .expect_code(0);
            assert!(results(&outcome).iter().all(|row| row["reason"] == "valid"), "{provider} {form}");
            assert_eq!(mock.count("status/200"), 20, "{provider} {form}: no repair was needed");
        }
    }
}

#[test]
fn every_form_of_the_address_means_the_endpoint() {
    let provider = Provider::start(|_| Reply::message("{\"ok\":true}"));
    let host = format!("http://127.0.0.1:{}", provider.port());
    for (base, path) in [
        ("", "/v1/messages"),
        ("/v1/", "/v1/messages"),
        ("/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("/anthropic", "/anthropic/v1/messages"),
    ] {
        run(&format!("{host}{base}"), 1).run().expect_code(0);
        assert_eq!(provider.calls().pop().unwrap().path, path);
    }
}

#[test]
fn a_request_says_what_the_format_asks_for() {
    let provider = Provider::start(|_| {
        Reply::status(200).header("request-id", "req_abc").json(&json!({
            "type": "message", "stop_reason": "end_turn",
            "content": [{ "type": "thinking", "thinking": "" }, { "type": "text", "text": "{\"ok\":true}" }],
            "usage": { "input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 900,
                "output_tokens": 10 } }))
    });
    let outcome = run(&provider.url(), 1)
        .args([
            "--system",
            "Be brief.",
            "--reasoning-effort",
            "low",
            "--price",
            "input=1,cached_input=0.1,output=2",
        ])
        .run()
        .expect_code(0);
    let call = &provider.calls()[0];
    assert_eq!((call.header("x-api-key"), call.header("authorization")), (Some(KEY), None));
    assert_eq!(call.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(
        call.body,
        json!({ "model": "claude-haiku-5-5", "max_tokens": 16000, "system": "Be brief.",
            "messages": [{ "role": "user", "content": "Is row 1 fine?" }],
            "output_config": { "effort": "low", "format": { "type": "json_schema", "schema": {
                "type": "object", "properties": { "ok": { "type": "boolean" } },
                "required": ["ok"], "additionalProperties": false } } } })
    );
    let usage = &results(&outcome)[0]["usage"];
    assert_eq!(
        (&usage["input"], &usage["cached_input"], &usage["output"]),
        (&json!(1000), &json!(900), &json!(10))
    );
    assert_eq!(usage["cost_usd"], json!(0.00021));
    let shown = outcome.again().args(["show", "last", "1", "--format", "json"]).run().expect_code(0).json();
    assert_eq!(shown["samples"][0]["attempts"][0]["request_id"], "req_abc");
}

#[test]
fn an_overloaded_server_is_tried_again_and_a_throttling_one_is_left_alone_for_so_long() {
    let provider = Provider::start(|call| match call.n {
        1 => error(529, "overloaded_error", "Overloaded"),
        2 => error(429, "rate_limit_error", "Slow down").header("retry-after", "0.4"),
        _ => Reply::message("{\"ok\":true}"),
    });
    let outcome = run(&provider.url(), 3).args(["--format", "json"]).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!(calls.len(), 5);
    assert!(calls[2].at.checked_sub(calls[1].at).unwrap() >= Duration::from_millis(400));
    let summary = outcome.json();
    assert_eq!((&summary["throttled"], &summary["retries"]), (&json!(1), &json!(1)));
    assert_eq!(summary["status"]["pass"], 3);
}

#[test]
fn refused_and_truncated_answers_end_their_rows_after_one_request() {
    let provider = Provider::start(|call| match call.row {
        1 => Reply::status(200).json(&json!({ "type": "message", "content": [], "stop_reason": "refusal",
            "stop_details": { "type": "refusal", "category": "bio", "explanation": "Not this." },
            "usage": { "input_tokens": 7, "output_tokens": 0 } })),
        2 => message(&json!([{ "type": "text", "text": "{\"ok\":true}" }]), "max_tokens"),
        3 => error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        _ => Reply::message("{\"ok\":true}"),
    });
    let outcome = run(&provider.url(), 4).run().expect_code(4);
    let rows = results(&outcome);
    let reasons: Vec<&Value> = rows.iter().map(|row| &row["reason"]).collect();
    assert_eq!(reasons, ["refused", "truncated", "too_long", "valid"]);
    assert_eq!(rows[0]["error"], "the model refused: bio: Not this.");
    assert_eq!(provider.count(), 4);
}

#[test]
fn an_unknown_model_and_an_invalid_key_cost_one_request() {
    for (reply, said) in [
        (error(404, "not_found_error", "model: claude-haiku-5-5"), "model: claude-haiku-5-5"),
        (error(401, "authentication_error", &format!("invalid x-api-key {KEY}")), "invalid x-api-key"),
        (
            error(400, "invalid_request_error", "Your credit balance is too low to access the API."),
            "credit balance",
        ),
    ] {
        let provider = Provider::start(move |_| reply.clone());
        let outcome = run(&provider.url(), 5).run().expect_code(6);
        assert_eq!(provider.count(), 1, "{said}");
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
        assert!(!outcome.stderr.contains(KEY), "{}", outcome.stderr);
    }
}

#[test]
fn refused_forms_give_way_once_and_are_remembered() {
    let provider = Provider::start(|call| {
        if is_format(call) {
            error(400, "invalid_request_error", "output_config.format: Extra inputs are not permitted")
        } else if call.body.get("tools").is_some() {
            error(400, "invalid_request_error", "tool_choice: forced tool use is not supported")
        } else {
            Reply::message("Here it is:\n```json\n{\"ok\":true}\n```")
        }
    });
    let outcome = run(&provider.url(), 4).run().expect_code(0);
    for line in ["a forced tool is sent from now on", "the schema is sent in the prompt only from now on"] {
        assert_eq!(outcome.stderr.matches(line).count(), 1, "{}", outcome.stderr);
    }
    assert_eq!(provider.count(), 6, "two refusals, then four answers");
    assert!(provider.calls()[2].system().contains("JSON Schema"));
    let again = outcome.again().env("ANTHROPIC_API_KEY", KEY);
    let fixed = ["run", "in.jsonl", "--prompt", "And {{ text }}?", "--column", "ok=boolean"];
    let url = provider.url();
    let model = ["--model", "claude-haiku-5-5", "--base-url", url.as_str()];
    let second = again.args(fixed).args(model).run().expect_code(0);
    assert!(!second.stderr.contains("refuses"), "{}", second.stderr);
    assert_eq!(provider.count(), 10, "no form is tried twice");
}

#[test]
fn refused_parameters_are_left_out_and_nothing_is_bought_twice() {
    let provider = Provider::start(|call| {
        for (name, message) in [
            ("temperature", "`temperature` is deprecated for this model."),
            ("seed", "seed: Extra inputs are not permitted"),
        ] {
            if call.body.get(name).is_some() {
                return error(400, "invalid_request_error", message);
            }
        }
        Reply::message("{\"ok\":true}")
    });
    let set = ["--temperature", "0", "--seed", "7"];
    let outcome = run(&provider.url(), 3).args(set).run().expect_code(0);
    for name in ["`temperature`", "`seed`"] {
        assert_eq!(outcome.stderr.matches(&format!("refuses {name}")).count(), 1, "{}", outcome.stderr);
    }
    assert_eq!(provider.count(), 5);
    assert!(provider.calls()[4].body.get("temperature").is_none());
}

#[test]
fn the_input_of_a_forced_tool_is_the_answer_as_it_was_written() {
    let provider = Provider::start(|call| {
        assert_eq!(call.body["tool_choice"]["type"], "tool");
        Reply::status(200).body(
            r#"{"type":"message","content":[{"type":"text","text":"Calling."},{"type":"tool_use","id":"t",
                "name":"answer","input":{"x":1.50,"ok":true}}],"stop_reason":"tool_use",
                "usage":{"input_tokens":7,"output_tokens":5}}"#,
        )
    });
    let outcome =
        run(&provider.url(), 1).args(["--structured", "tool", "--column", "x=number"]).run().expect_code(0);
    assert!(outcome.file("in.verified.jsonl").contains(r#""answer":{"x":1.50,"ok":true}"#));
}

#[test]
fn a_tool_that_cannot_be_forced_is_asked_for() {
    let provider = Provider::start(|call| {
        if call.body["tool_choice"]["type"] == "tool" {
            error(400, "invalid_request_error", "tool_choice: forced tool use is not supported")
        } else {
            let content =
                json!([{ "type": "tool_use", "id": "t", "name": "answer", "input": { "ok": true } }]);
            message(&content, "tool_use")
        }
    });
    let outcome = run(&provider.url(), 2).args(["--structured", "tool"]).run().expect_code(0);
    assert_eq!(provider.count(), 3);
    assert_eq!(outcome.stderr.matches("refuses a tool to be chosen by name").count(), 1);
    assert!(provider.calls()[1].system().contains("calling the tool"));
}

#[test]
fn compatible_servers_give_the_arguments_of_a_tool_in_every_shape() {
    let provider = Provider::start(|call| {
        let arguments = match call.row {
            1 => json!("{\"ok\":true}"),
            2 => json!({ "ok": true }),
            _ => json!("\"{\\\"ok\\\":true}\""),
        };
        if call.body["tool_choice"].is_object() {
            return Reply::error(400, "invalid_request", "tool_choice must be one of none, auto, required");
        }
        assert_eq!(call.body["tool_choice"], "required");
        Reply::status(200)
            .json(&json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "content": null,
            "tool_calls": [{ "function": { "name": "answer", "arguments": arguments } }] } }] }))
    });
    let outcome =
        run(&provider.url(), 3).args(["--provider", "openai", "--structured", "tool"]).run().expect_code(0);
    assert!(results(&outcome).iter().all(|row| row["answer"] == json!({ "ok": true })));
    assert_eq!(provider.count(), 4);
}

#[test]
fn a_tool_needs_a_schema_with_an_object_at_its_root() {
    let list = json!({ "type": "array", "items": { "type": "string" } }).to_string();
    let provider = Provider::start(|_| Reply::message("[]"));
    for kind in ["anthropic", "openai"] {
        let url = provider.url();
        let fixed = ["run", "in.jsonl", "--prompt", "x", "--schema", "s.json", "--structured", "tool"];
        let outcome = Verify::new()
            .file("in.jsonl", rows(1))
            .file("s.json", &list)
            .args(fixed)
            .args(["--model", "m", "--base-url", &url, "--provider", kind])
            .run()
            .expect_code(2);
        assert!(outcome.stderr.contains("structured `tool` needs a schema"), "{}", outcome.stderr);
    }
    assert_eq!(provider.count(), 0);
}
