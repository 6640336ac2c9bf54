//! What a reply with status 200 becomes: answers in disguise, answers that are none, and what is bought again.

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::{asks, completion, files_with, job, results, statuses};
use support::provider::{Provider, Reply};

/// One row against a provider that always replies so; the number of requests, what the row became, and the outcome.
fn one(reply: Reply) -> (usize, String, Value, Outcome) {
    let provider = Provider::start(move |_| reply.clone());
    let outcome = job(&provider, 1).args(["--max-error", "any"]).run().expect_code(0);
    let (status, result) = (statuses(&outcome).remove(0), results(&outcome).remove(0));
    (provider.count(), status, result, outcome)
}

/// The same without a second ask for an invalid answer.
#[track_caller]
fn text(answer: &str) -> (String, Value) {
    let reply = Reply::answer(answer);
    let provider = Provider::start(move |_| reply.clone());
    let outcome = job(&provider, 1).args(["--max-error", "any", "--repair", "0"]).run().expect_code(0);
    assert_eq!(provider.count(), 1, "{answer}");
    (statuses(&outcome).remove(0), results(&outcome).remove(0))
}

#[test]
fn an_answer_is_found_in_a_fence_in_prose_and_after_thoughts() {
    for (answer, extracted) in [
        ("{\"ok\":true}", false),
        (" \n{\"ok\": true}\n", false),
        ("```json\n{\"ok\":true}\n```", true),
        ("```\n{\"ok\":true}\n```\n", true),
        ("Here it is:\n{\"ok\":true}\nI hope that helps {really}.", true),
        ("<think>{\"ok\":false} perhaps</think>{\"ok\":true}", true),
        ("{\"ok\":true} and again {\"ok\":true}", true),
        ("{\"ok\":true} but not {\"ok\":3}", true),
    ] {
        let (status, result) = text(answer);
        assert_eq!((status.as_str(), &result["answer"]), ("pass/valid", &json!({"ok": true})), "{answer}");
        let is_thought = answer.starts_with("<think>");
        assert!(is_thought || result["extracted"] == extracted, "{answer}: {result}");
    }
}

#[test]
fn what_is_not_an_answer_is_never_made_one() {
    for answer in [
        "{\"ok\":true} {\"ok\":false}",
        "{\"ok\":\"true\"}",
        "{\"ok\":1}",
        "{\"ok\":true,\"ok\":true}",
        "{\"ok\":true,\"more\":1}",
        "{}",
        "[{\"ok\":true}]",
        "{\"ok\":NaN}",
        "{'ok':true}",
        "{\"ok\":true",
        "true",
        "yes",
    ] {
        let (status, result) = text(answer);
        assert_eq!((status.as_str(), &result["answer"]), ("error/invalid_answer", &Value::Null), "{answer}");
        assert!(result["error"].as_str().is_some_and(|error| error.len() > 10), "{answer}: {result}");
    }
    let (status, _) = text("<think>{\"ok\":true}");
    assert_eq!(status, "error/truncated");
}

#[test]
fn two_different_answers_are_asked_about_and_none_is_picked() {
    let provider = Provider::start(|call| match call.attempt {
        1 => Reply::answer("{\"ok\":true}\nor rather\n{\"ok\":false}"),
        _ => Reply::answer("{\"ok\":false}"),
    });
    let outcome = job(&provider, 1).run().expect_code(0);
    let result = results(&outcome).remove(0);
    assert_eq!(
        (provider.count(), &result["answer"], &result["extracted"]),
        (2, &json!({"ok": false}), &json!(false))
    );
    assert!(provider.calls()[1].user().contains("two different objects"), "{}", provider.calls()[1].user());
}

#[test]
fn a_text_is_never_made_a_number() {
    for (answer, status) in [
        ("{\"n\":\"42\"}", "error/invalid_answer"),
        ("{\"n\":42.5}", "error/invalid_answer"),
        ("{\"n\":true}", "error/invalid_answer"),
        ("{\"n\":42}", "pass/valid"),
    ] {
        let provider = Provider::start(move |_| Reply::answer(answer));
        let args =
            ["run", "in.jsonl", "--model", "m", "--prompt", "x", "--column", "n=integer", "--repair", "0"];
        let verify = Verify::new().file("in.jsonl", "{}\n").args(args).args(["--base-url", &provider.url()]);
        let outcome = verify.args(["--max-error", "any"]).run().expect_code(0);
        assert_eq!((provider.count(), statuses(&outcome)), (1, vec![status.to_owned()]), "{answer}");
    }
}

#[test]
fn values_with_backticks_and_number_texts_are_unharmed() {
    let answer = "{\"why\":\"```json\\n{\\\"ok\\\":1}\\n```\",\"n\":1.50,\"big\":9007199254740993}";
    let provider = Provider::start(move |_| Reply::answer(answer));
    let url = provider.url();
    let args =
        ["run", "in.jsonl", "--model", "m", "--base-url", &url, "--prompt", "x", "--column", "why=string"];
    let args = [&args[..], &["--column", "n=number", "--column", "big=integer"]].concat();
    let outcome = Verify::new().file("in.jsonl", "{}\n").args(args).run().expect_code(0);
    let out = outcome.file("in.verified.jsonl");
    assert!(out.contains(&format!("\"answer\":{answer},")), "{out}");
    assert_eq!(provider.count(), 1);
}

#[test]
fn a_truncated_answer_is_bought_once_and_booked_even_if_it_validates() {
    for answer in ["{\"ok\":tr", "{\"ok\":true}", ""] {
        let (requests, status, result, outcome) = one(Reply::completion(answer, "length", 100, 1024));
        assert_eq!((requests, status.as_str()), (1, "error/truncated"));
        assert_eq!((&result["usage"]["output"], &result["usage"]["attempts"]), (&json!(1024), &json!(1)));
        let more = outcome.again().args(["status", "--format", "json"]).run().expect_code(0).json();
        assert_eq!(more["tokens"]["output"], 1024);
        assert!(outcome.stderr.contains("max-output-tokens") || outcome.stderr.contains("max_output_tokens"));
    }
}

#[test]
fn an_empty_answer_is_asked_for_once_more_and_both_are_booked() {
    for content in [json!(""), json!(" \n"), Value::Null] {
        let message = json!({"role": "assistant", "content": content, "refusal": null});
        let (requests, status, result, _) = one(completion(&message, "stop"));
        assert_eq!((requests, status.as_str()), (2, "error/empty"), "{content}");
        assert_eq!((&result["usage"]["input"], &result["usage"]["output"]), (&json!(200), &json!(20)));
    }
}

#[test]
fn a_refusal_and_a_filtered_answer_are_final() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I will not judge this."});
    let (requests, status, result, _) = one(completion(&message, "stop"));
    assert_eq!((requests, status.as_str()), (1, "error/refused"));
    assert!(result["error"].as_str().unwrap().contains("I will not judge this."), "{result}");
    let (requests, status, ..) = one(Reply::completion("{\"ok\":", "content_filter", 100, 5));
    assert_eq!((requests, status.as_str()), (1, "error/filtered"));
}

#[test]
fn tool_calls_that_nobody_asked_for_are_an_invalid_answer() {
    let calls =
        json!([{"id": "c", "type": "function", "function": {"name": "search", "arguments": "{\"q\":1}"}}]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let (requests, status, ..) = one(completion(&message, "tool_calls"));
    assert_eq!((requests, status.as_str()), (2, "error/invalid_answer"));
    // The same call is the answer where it was asked for.
    let calls = json!([{"id": "c", "type": "function", "function": {"name": "answer", "arguments": "{\"ok\":true}"}}]);
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let provider = Provider::start(move |_| completion(&message, "tool_calls"));
    let outcome = job(&provider, 1).args(["--structured", "tool"]).run().expect_code(0);
    assert_eq!((provider.count(), &results(&outcome)[0]["answer"]), (1, &json!({"ok": true})));
}

#[test]
fn a_repair_carries_the_answer_and_the_errors_and_both_are_booked_and_kept() {
    let provider = Provider::start(|call| match call.attempt {
        1 => Reply::completion("{\"ok\":\"maybe\"}", "stop", 100, 10),
        _ => Reply::completion("{\"ok\":true}", "stop", 150, 12),
    });
    let outcome = job(&provider, 1).run().expect_code(0);
    let usage = &results(&outcome)[0]["usage"];
    assert_eq!((&usage["attempts"], &usage["input"], &usage["output"]), (&json!(2), &json!(250), &json!(22)));
    let calls = provider.calls();
    assert_eq!((calls.len(), calls[1].attempt, calls[1].sample), (2, 2, 1));
    assert_eq!(calls[1].texts(&["assistant"]), ["{\"ok\":\"maybe\"}"]);
    assert!(calls[1].user().contains("ok") && calls[1].user() != calls[0].user(), "{}", calls[1].user());
    let shown = outcome.again().args(["show", "last", "1", "--format", "json"]).run().expect_code(0).json();
    let attempts = shown["samples"][0]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    assert!(attempts[0]["raw"].as_str().unwrap().contains("maybe"), "{shown}");
}

#[test]
fn a_repair_that_meets_a_failure_is_still_a_repair() {
    let provider = Provider::start(|call| match call.n {
        1 => Reply::answer("{\"ok\":\"perhaps\"}"),
        2 => Reply::status(500),
        3 => Reply::error(429, "rate_limit_exceeded", "slow down").header("retry-after-ms", "20"),
        _ => Reply::answer("{\"ok\":true}"),
    });
    let outcome = job(&provider, 1).run().expect_code(0);
    let calls = provider.calls();
    let bodies: Vec<_> = calls.iter().map(|call| call.body["messages"].clone()).collect();
    assert_eq!(bodies.len(), 4);
    assert!(bodies[1].to_string().contains("perhaps"), "{}", bodies[1]);
    assert_eq!((&bodies[2], &bodies[3]), (&bodies[1], &bodies[1]));
    assert_eq!(statuses(&outcome), ["pass/valid"]);
}

#[test]
fn an_answer_that_stays_invalid_costs_one_repair_each() {
    let (requests, status, result, _) = one(Reply::answer("no"));
    assert_eq!((requests, status.as_str()), (2, "error/invalid_answer"));
    assert_eq!(result["usage"]["attempts"], 2);
}

#[test]
fn errors_under_status_200_are_classed_by_their_inner_code() {
    let error = |code: Value| Reply::status(200).json(&json!({"error": {"code": code, "message": "busy"}}));
    let then_answer = |first: Reply| {
        let provider = Provider::start(move |call| match call.n {
            1 => first.clone(),
            _ => Reply::answer("{\"ok\":true}"),
        });
        let outcome = job(&provider, 1).run().expect_code(0);
        let summary = outcome.again().args(["status", "--format", "json"]).run().json();
        (provider.count(), summary["throttled"].as_u64().unwrap(), summary["retries"].as_u64().unwrap())
    };
    assert_eq!(then_answer(error(json!(429))), (2, 1, 0));
    assert_eq!(then_answer(error(json!("rate_limit_exceeded"))), (2, 1, 0));
    assert_eq!(then_answer(error(json!(502))), (2, 0, 1));
    assert_eq!(then_answer(Reply::status(200).json(&json!({"choices": null}))), (2, 0, 1));
    assert_eq!(then_answer(Reply::status(200).body("<html>gateway</html>")), (2, 0, 1));
    assert_eq!(then_answer(Reply::status(200).body("")), (2, 0, 1));
}

#[test]
fn usage_that_is_missing_is_estimated_and_marked() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "{\"ok\":true}"}}]});
    let (requests, status, result, _) = one(Reply::status(200).json(&body));
    let usage = &result["usage"];
    assert_eq!((requests, status.as_str(), &usage["estimated"]), (1, "pass/valid", &json!(true)));
    assert!(usage["input"].as_u64() > Some(0) && usage["output"].as_u64() > Some(0), "{usage}");
}

#[test]
fn cached_input_is_a_part_of_the_input_and_cheaper() {
    let mut body = json!({"choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "{\"ok\":true}"}}]});
    body["usage"] = json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 600}});
    let provider = Provider::start(move |_| Reply::status(200).json(&body));
    let price = ["--price", "input=10,cached_input=1,output=100"];
    let outcome = job(&provider, 1).args(price).run().expect_code(0);
    let usage = &results(&outcome)[0]["usage"];
    // 400 × 10 + 600 × 1 + 100 × 100, each USD a million.
    assert_eq!((&usage["input"], &usage["cached_input"]), (&json!(1000), &json!(600)));
    assert!(outcome.file("in.verified.jsonl").contains("\"cost_usd\":0.0146,"), "{usage}");
    let status = outcome.again().args(["status", "--format", "json"]).run();
    assert!(status.stdout.contains("\"spent_usd\":0.0146,"), "{}", status.stdout);
}

#[test]
fn an_event_stream_in_reply_is_merged() {
    let chunk = |content: &str, finish: Value| {
        let choice = json!({"index": 0, "delta": {"content": content}, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let body = format!("{}{}data: [DONE]\n\n", chunk("{\"ok\"", Value::Null), chunk(":true}", json!("stop")));
    let reply = Reply::status(200).header("content-type", "text/event-stream").body(body);
    let (requests, status, ..) = one(reply);
    assert_eq!((requests, status.as_str()), (1, "pass/valid"));
}

#[test]
fn a_verdict_and_a_confidence_decide() {
    let provider = Provider::start(|call| {
        let (ok, sure) = match call.row {
            1 => (true, "0.8"),
            2 => (true, "0.79"),
            3 => (false, "0.95"),
            _ => (false, "1.5"),
        };
        Reply::answer(&format!("{{\"ok\":{ok},\"sure\":{sure}}}"))
    });
    let verify =
        job(&provider, 4).args(["--column", "sure=number", "--verdict", "ok", "--confidence", "sure"]);
    let gates = ["--max-fail", "any", "--max-review", "any", "--max-error", "any", "--repair", "0"];
    let outcome = verify.args(gates).run().expect_code(0);
    let wanted = ["pass/agreed", "review/low_confidence", "fail/agreed", "error/invalid_answer"];
    assert_eq!(statuses(&outcome), wanted);
    assert_eq!(results(&outcome)[0]["confidence"], 0.8);
    assert!(outcome.file("in.verified.jsonl").contains("\"confidence\":0.8,\"agreement\":1,"));
    let rejudged = job(&provider, 4).args(["--verdict", "okk"]).run().expect_code(2);
    assert!(rejudged.stderr.contains("okk"), "{}", rejudged.stderr);
}

#[test]
fn free_text_is_the_answer_as_it_stands() {
    let provider = Provider::start(|_| Reply::answer("Guten Tag, \"du\" ```x```"));
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "Translate {{ text }}", "--base-url"];
    let verify = Verify::new().file("in.jsonl", "{\"text\":\"a\"}\n").args(args).arg(provider.url());
    let outcome = verify.run().expect_code(0);
    assert_eq!(results(&outcome)[0]["answer"], "Guten Tag, \"du\" ```x```");
    assert_eq!(provider.calls()[0].body.get("response_format"), None);
    let csv = outcome.again().args(args).arg(provider.url()).args(["-o", "out.csv"]).run().expect_code(0);
    let out = csv.file("out.csv");
    assert!(out.starts_with("text,answer,verify_status,"), "{out}");
    assert!(out.contains("\na,\"Guten Tag, \"\"du\"\" ```x```\",pass,valid,"), "{out}");
}

#[test]
fn control_characters_of_answers_and_errors_never_reach_a_terminal_raw() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[31mred\u{9b}2J\r\u{0}";
    for reply in [Reply::answer(evil), Reply::error(400, "bad", evil), Reply::error(418, evil, evil)] {
        let provider = Provider::start(move |_| reply.clone());
        let outcome = job(&provider, 2).args(["--max-error", "any"]).run();
        let raw = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
        assert!(!raw(&outcome.stderr), "{:?}", outcome.stderr);
        for row in ["1", "2"] {
            let shown = outcome.again().args(["show", "last", row]).run();
            assert!(!raw(&shown.stdout) && !raw(&shown.stderr), "{:?}", shown.stdout);
        }
        let status = outcome.again().args(["status"]).run().expect_code(0);
        assert!(!raw(&status.stdout), "{:?}", status.stdout);
    }
}

#[test]
fn nesting_and_size_of_an_answer_break_nothing() {
    let deep = format!("{{\"ok\":{}true{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let (status, _) = text(&deep);
    assert_eq!(status, "error/invalid_answer");
    let (status, _) = text(&"{\"ok\":".repeat(50_000));
    assert_eq!(status, "error/invalid_answer");
    let long = format!("{{\"ok\":\"{}\"}}", "x".repeat(10 << 20));
    let (status, result) = text(&long);
    assert_eq!(status, "error/invalid_answer");
    assert!(result["error"].as_str().unwrap().chars().count() <= 300, "the error is not cut");
    let deep_reply = Reply::status(200).body("[".repeat(200_000));
    let (requests, status, ..) = one(deep_reply);
    assert_eq!((requests, status.as_str()), (5, "error/server_error"));
}

#[test]
fn a_credential_that_the_server_echoes_is_nowhere() {
    let key = "sk-test-0123456789abcdefghij";
    for reply in [
        Reply::error(400, "bad", &format!("Incorrect request with Authorization: Bearer {key}")),
        Reply::answer(&format!("{{\"ok\":\"{key}\"}}")),
        Reply::status(500).body(format!("<p>{key}</p>")).header("x-request-id", key),
        Reply::status(302).header("location", &format!("http://127.0.0.1:1/{key}")),
    ] {
        let provider = Provider::start(move |_| reply.clone());
        let verify = job(&provider, 1).args(["--attempts", "2"]).env("OPENAI_API_KEY", key);
        let outcome = verify.args(["--summary", "s.json", "--max-error", "any"]).run();
        assert_eq!(provider.calls()[0].key, key);
        let shown = outcome.again().args(["show", "last", "1", "--format", "json"]).run();
        let said = [outcome.stderr.as_str(), &outcome.stdout, &shown.stdout, &shown.stderr].concat();
        assert!(!said.contains(key), "{said}");
        assert_eq!(files_with(&outcome, key), Vec::<String>::new());
    }
}

#[test]
fn an_escaped_or_split_echo_of_the_key_is_found_too() {
    let key = "sk/test+0123456789=abcdef\"x";
    let escaped = key.replace('/', "\\/").replace('"', "\\\"");
    let body = format!("{{\"error\":{{\"message\":\"key {escaped} is bad\",\"code\":\"bad\"}}}}");
    let provider = Provider::start(move |_| Reply::status(400).body(body.clone()));
    let outcome = job(&provider, 1).env("OPENAI_API_KEY", key).run();
    assert!(!outcome.stderr.contains("0123456789=abcdef"), "{}", outcome.stderr);
    assert_eq!(files_with(&outcome, "0123456789=abcdef"), Vec::<String>::new());
}

#[test]
fn the_shown_row_and_the_summary_keep_their_schemas() {
    let provider = Provider::start(|call| match (call.row, call.attempt) {
        (1, 1) => Reply::status(503),
        (2, _) => Reply::answer("no"),
        _ => Reply::answer("{\"ok\":true}"),
    });
    let outcome = job(&provider, 3).args(["--summary", "s.json", "--format", "json"]).run().expect_code(4);
    let summary: Value = serde_json::from_str(&outcome.file("s.json")).unwrap();
    assert_eq!(outcome.json(), summary);
    let schema = |name: &str| {
        let text = std::fs::read_to_string(format!("{}/docs/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
    };
    let valid = schema("summary.schema.json");
    assert!(valid.is_valid(&summary), "{:?}", valid.iter_errors(&summary).next());
    assert_eq!(
        (&summary["attempts"], &summary["retries"], &summary["exit"]["code"]),
        (&json!(5), &json!(1), &json!(4))
    );
    let valid = schema("show.schema.json");
    for row in ["1", "2", "3"] {
        let shown =
            outcome.again().args(["show", "last", row, "--format", "json"]).run().expect_code(0).json();
        assert!(valid.is_valid(&shown), "{:?}", valid.iter_errors(&shown).next());
    }
    let id = summary["run"].as_str().unwrap();
    outcome.again().args(["show", &id[..13], "1"]).run().expect_code(0);
    for (run, row) in [("last", "4"), ("ffff", "1"), ("last", "0"), ("01", "1")] {
        let unknown = outcome.again().args(["show", run, row]).run().expect_code(2);
        assert!(unknown.stderr.len() > 10 && unknown.stdout.is_empty());
    }
}

#[test]
fn no_escape_code_where_nobody_can_see_colours() {
    let provider = support::job::always("{\"ok\":true}");
    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "xterm-256color")] {
        let outcome = job(&provider, 3).env(name, value).run().expect_code(0);
        assert!(!outcome.stderr.contains('\u{1b}') && !outcome.stderr.contains('\r'), "{}", outcome.stderr);
        assert!(outcome.stderr.lines().count() < 30);
        let help = outcome.again().args(["run", "--nonsense"]).env(name, value).run().expect_code(2);
        assert!(!help.stderr.contains('\u{1b}'), "{}", help.stderr);
    }
    // On a terminal the same variables count.
    let verify = Verify::new().file("in.jsonl", support::job::rows(3));
    let words: Vec<String> =
        asks(&provider, "in.jsonl", "{{ text }}").iter().map(|arg| format!("'{arg}'")).collect();
    let line = format!("{} {}", env!("CARGO_BIN_EXE_verify"), words.join(" "));
    let on_terminal = |name: &str, value: &str| {
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).current_dir(verify.directory()).env(name, value);
        script.stdin(std::process::Stdio::null()).output().map(|output| output.stdout)
    };
    // Without that program there is no terminal to try.
    let Ok(dumb) = on_terminal("TERM", "dumb") else { return };
    let dumb = String::from_utf8_lossy(&dumb).into_owned();
    assert!(dumb.contains("3 valid") && !dumb.contains('\u{1b}'), "{dumb:?}");
    // The bar moves up and clears; what ends with an `m` are colours.
    let plain = String::from_utf8_lossy(&on_terminal("NO_COLOR", "1").unwrap()).into_owned();
    let is_colour =
        |part: &str| part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m');
    assert!(!plain.split("\u{1b}[").skip(1).any(is_colour), "{plain:?}");
}
