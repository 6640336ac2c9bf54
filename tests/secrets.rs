//! Credentials that a server echoes in every way it can are in no file, on no screen and in no later request; and what
//! is kept is for its owner's eyes only.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::{always, completion, files, rows, zipped};
use support::provider::{Call, Provider, Reply};

/// One of each kind: with what JSON, URLs and shells escape, plain, with dots.
const KEYS: [&str; 3] = [
    "sk-live/9A0+b=c\"d\\e~f1g2h3i4j5k6",
    "AIzaSyPlain0123456789abcdefghij",
    "tok.en_with-dots.98765.abcdef",
];

/// The key with each character as JSON may escape it.
fn escaped(key: &str) -> String {
    key.chars().fold(String::new(), |mut text, c| {
        write!(text, "\\u{:04X}", u32::from(c)).unwrap();
        text
    })
}

fn percent(key: &str) -> String {
    key.bytes().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() {
            text.push(byte.into());
        } else {
            write!(text, "%{byte:02x}").unwrap();
        }
        text
    })
}

fn quoted(key: &str) -> String {
    let text = json!(key).to_string();
    text[1..text.len() - 1].replace('/', "\\/")
}

fn pieces(key: &str) -> Vec<String> {
    key.as_bytes().chunks(5).map(|piece| String::from_utf8_lossy(piece).into_owned()).collect()
}

/// A reply in the format of the endpoint that was asked.
fn answer(call: &Call, text: &str) -> Reply {
    if call.path.contains("messages") { Reply::message(text) } else { Reply::answer(text) }
}

fn stream(call: &Call, parts: &[String]) -> Reply {
    let mut body = String::new();
    let mut event = |event: Value| write!(body, "data: {event}\n\n").unwrap();
    if call.path.contains("messages") {
        event(json!({"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 1}}}));
        event(
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        );
        for text in parts {
            let delta = json!({"type": "text_delta", "text": text});
            event(json!({"type": "content_block_delta", "index": 0, "delta": delta}));
        }
        event(json!({"type": "content_block_stop", "index": 0}));
        event(
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        );
        event(json!({"type": "message_stop"}));
    } else {
        for text in parts {
            event(json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]}));
        }
        event(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        body.push_str("data: [DONE]\n\n");
    }
    Reply::status(200).header("content-type", "text/event-stream").body(body)
}

const KINDS: u64 = 31;

/// An echo of the key that the call came with, of the kind that its row says.
fn echo(call: &Call) -> Reply {
    let key = call.key.as_str();
    let (plain, unicode, url) = (quoted(key), escaped(key), percent(key));
    let error = |text: &str| {
        Reply::status(400).body(format!("{{\"error\":{{\"message\":\"{text}\",\"code\":\"bad\"}}}}"))
    };
    let why = |text: &str| answer(call, &json!({"ok": true, "why": text}).to_string());
    match call.row {
        1 => why("a first answer"),
        2 => error(&format!("Incorrect API key provided: {plain}. You can find")),
        3 => error(&format!("Authorization: Bearer {unicode}")),
        4 => error(&format!("GET /v1?key={url}&a=b")),
        5 => why(&format!("the key is {key}.")),
        6 => Reply::status(200).body(why("MARK").text().replace("MARK", &escaped(key).replace("\\u", "\\\\u"))),
        7 => answer(call, &json!({"ok": key, "why": key}).to_string()),
        8 => answer(call, &json!({"ok": true, "why": "x", key: 1}).to_string()),
        9 => answer(call, &format!("Not JSON: {key} {url} {unicode}")),
        10 => Reply::status(500).header("content-type", "text/html").body(format!("<p title=\"{key}\">{url}</p>")),
        11 => Reply::status(302).header("location", &format!("http://127.0.0.1:1/{url}/{key}?{key}")),
        12 => Reply::raw(format!("HTTP/1.1 500 {key}\r\nx-{}: 1\r\ncontent-length: 0\r\n\r\n", url.replace('%', "-"))),
        13 => Reply::raw(format!("HTTP/1.1 {key}\r\n\r\n")),
        14 => Reply::raw(format!("{key}\r\n\r\n")),
        15 => Reply::status(500).body(format!("{key}{key}")).cut_body_after(key.len() + 3),
        16 if call.attempt == 1 => Reply::status(429).body(format!("{{\"error\":{{\"message\":\"{plain}: try again in 5ms\"}}}}")),
        16 => why("an answer"),
        17 => {
            let parts = [vec!["{\"ok\":true,\"why\":\"".to_owned()], pieces(&quoted(key)), vec!["\"}".to_owned()]];
            stream(call, &parts.concat())
        }
        18 => stream(call, &[vec!["no JSON ".to_owned()], pieces(key)].concat()),
        19 => {
            let parts: Vec<Value> = pieces(key).iter().map(|text| json!({"type": "text", "text": text})).collect();
            if call.path.contains("messages") {
                Reply::status(200).json(&json!({"type": "message", "content": parts, "stop_reason": "end_turn"}))
            } else {
                completion(&json!({"role": "assistant", "content": parts}), "stop")
            }
        }
        20 => completion(&json!({"role": "assistant", "content": null, "refusal": format!("no, {key}")}), "stop"),
        21 => Reply::status(200).header("content-encoding", "gzip").body(zipped(&json!({"error": {"message": key}}))),
        22 => Reply::error(400, key, key),
        23 => Reply::status(400).json(&json!({"error": {"message": "bad", "param": key, "type": key, "code": key}})),
        24 => {
            let inner = json!({"error": {"message": format!("Bearer {key}")}}).to_string();
            Reply::status(400).json(&json!({"error": {"message": "upstream", "metadata": {"raw": inner}}}))
        }
        25 => Reply::error(400, "unsupported_parameter", &format!("Unsupported parameter: '{key}'")),
        26 => Reply::status(200).json(&json!({"id": key, "model": key, "service_tier": key, "object": key,
            "type": "message", "content": [{"type": "text", "text": "{\"ok\":true,\"why\":\"w\"}"}], "stop_reason": key,
            "choices": [{"finish_reason": key, "message": {"content": "{\"ok\":true,\"why\":\"w\"}"}}]})),
        27 => Reply::error(413, "request_too_large", &format!("Request too large for {key}")),
        28 => Reply::error(404, "x", &format!("no path /v1/{key}")),
        29 => Reply::status(200).json(&json!({"error": {"code": 503, "message": key}})),
        30 => Reply::status(400).body([key.as_bytes(), b"\xff\xfe", url.as_bytes()].concat()),
        // The end of a key at once, without a time to cool down.
        _ => Reply::error(429, "insufficient_quota", &format!("You exceeded the quota of API key {key}")),
    }
    .header("x-request-id", &format!("req {key}"))
    .header("request-id", &format!("Bearer {url}"))
    .header("retry-after", key)
    .header("set-cookie", key)
    .header("www-authenticate", &format!("Bearer realm=\"{key}\""))
}

/// A text with escapes of JSON and URLs undone, as often as they may be nested.
fn undone(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..3 {
        let mut plain = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['\\', '%']) {
            plain.push_str(&rest[..at]);
            let code = |from: usize, to: usize| {
                rest.get(at + from..at + to)
                    .and_then(|hex| u32::from_str_radix(hex, 16).ok())
                    .and_then(char::from_u32)
            };
            let (c, length) = match rest.as_bytes().get(at..at + 2) {
                Some(b"\\u") => (code(2, 6), 6),
                Some(b"\\/" | b"\\\"" | b"\\\\") => (rest[at + 1..].chars().next(), 2),
                Some([b'%', _]) => (code(1, 3), 3),
                _ => (None, 1),
            };
            let length = if c.is_some() { length } else { 1 };
            plain.push_str(&c.map_or_else(|| rest[at..=at].to_owned(), String::from));
            rest = &rest[at + length..];
        }
        plain.push_str(rest);
        text = plain;
    }
    text
}

/// No part of 15 characters of any key is in any of these texts, as they stand or with escapes undone.
#[track_caller]
fn none_in(texts: &[(String, String)]) {
    // Each part of 15 holds one of 10 that begins at a multiple of 5.
    let parts: Vec<String> = KEYS
        .iter()
        .flat_map(|key| {
            (0..=key.len() - 10).step_by(5).map(|start| key[start..start + 10].to_ascii_lowercase())
        })
        .collect();
    for (name, text) in texts {
        for text in [text.to_ascii_lowercase(), undone(text).to_ascii_lowercase()] {
            for part in &parts {
                let around = |at: usize| {
                    let around = &text.as_bytes()[at.saturating_sub(80)..(at + 80).min(text.len())];
                    String::from_utf8_lossy(around).into_owned()
                };
                let found = text.find(part).map(around);
                assert!(found.is_none(), "{name} holds {part}: {found:?}");
            }
        }
    }
}

/// All that is in the working directory but the files that hold keys, and all that was said.
fn everything(verify: &Verify, said: &[Outcome]) -> Vec<(String, String)> {
    let mut texts: Vec<_> = said
        .iter()
        .enumerate()
        .flat_map(|(n, said)| {
            [(format!("stdout {n}"), said.stdout.clone()), (format!("stderr {n}"), said.stderr.clone())]
        })
        .collect();
    for file in files(verify.directory()) {
        if !file.ends_with("key.txt") {
            let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
            texts.push((file.display().to_string(), text));
        }
    }
    texts
}

fn job(provider: &Provider, kind: &str, count: usize) -> Verify {
    let model = if kind == "anthropic" { "claude-haiku-5-5" } else { "m" };
    let config = format!(
        "model = \"{model}\"\nprovider = \"{kind}\"\nbase_url = \"{}\"\n[[keys]]\nlabel = \"one\"\nenv = \"K1\"\n[[keys]]\n\
         label = \"two\"\nenv = \"K2\"\n[[keys]]\nlabel = \"three\"\nfile = \"key.txt\"\n[prompt]\nuser = \"{{{{ text }}}}\"\n\
         [answer]\ncolumns = {{ ok = \"boolean\", why = \"string\" }}\nverdict = \"ok\"\n\
         [limits]\nconcurrency = 3\n[retry]\nattempts = 2\nbase = \"1ms\"\nmax_backoff = \"2ms\"\n",
        provider.url()
    );
    Verify::new().file("in.jsonl", rows(count)).file("key.txt", format!("{}\n", KEYS[2])).config(&config)
}

fn with_keys(verify: Verify) -> Verify {
    verify.env("K1", KEYS[0]).env("K2", KEYS[1])
}

#[test]
fn no_echo_of_a_key_is_in_any_file_or_on_any_screen() {
    for kind in ["openai", "anthropic"] {
        let provider = Provider::start(echo);
        // Each kind is met more than once, so that each key meets most of them; the last rows end the keys.
        let verify = job(&provider, kind, usize::try_from(KINDS).unwrap());
        let call = |args: &[&str]| with_keys(verify.again().args(args.iter().copied())).run();
        let mut said = vec![call(&["check", "in.jsonl"]), call(&["run", "in.jsonl", "--dry-run"])];
        let run = [
            "run",
            "in.jsonl",
            "--log",
            "run.log",
            "--summary",
            "s.json",
            "--junit",
            "out.xml",
            "--github",
            "-v",
        ];
        for more in [
            &["--progress", "json", "--format", "json"][..],
            &["--retry", "all"],
            &["--new", "-o", "out.csv", "--retry", "final"],
        ] {
            said.push(call(&[&run[..], more].concat()));
        }
        for row in 1..=KINDS {
            let row = row.to_string();
            said.extend([call(&["show", "last", &row]), call(&["show", "last", &row, "--format", "json"])]);
        }
        for args in [
            &["status"][..],
            &["status", "--format", "json"],
            &["runs"],
            &["runs", "--format", "json"],
            &["export", "last", "-o", "export.csv"],
            &["export", "last", "-o", "-"],
            &["review", "list", "last"],
            &["review", "export", "last", "-o", "review.csv"],
            &["review", "export", "last", "-o", "review.jsonl"],
            &["agreement", "last"],
        ] {
            said.push(call(args));
        }
        let calls = provider.calls();
        assert!(KEYS.iter().all(|key| calls.iter().any(|call| call.key == *key)), "a key was not used");
        let met: std::collections::BTreeSet<u64> = calls.iter().map(|call| call.row).collect();
        assert!(met.len() as u64 >= KINDS - 2, "{met:?}");
        let texts = everything(&verify, &said);
        assert!(texts.iter().any(|(name, text)| name.ends_with("store.db") && text.contains("[redacted]")));
        assert!(texts.iter().any(|(name, _)| name.ends_with("run.log")) && texts.len() > 80);
        none_in(&texts);
        // A repair carries what was said back, without the key.
        let bodies: Vec<_> =
            calls.iter().map(|call| ("a request".to_owned(), call.body.to_string())).collect();
        none_in(&bodies);
    }
}

#[test]
fn keys_that_are_refused_are_told_by_their_labels() {
    let provider = Provider::start(|call| {
        let told = format!("Incorrect API key provided: {}, {}", call.key, percent(&call.key));
        Reply::error(401, "invalid_api_key", &told).header("www-authenticate", &call.key)
    });
    let verify = job(&provider, "openai", 5);
    let run = ["run", "in.jsonl", "--log", "run.log", "--summary", "s.json", "-v"];
    let outcome = with_keys(verify.again().args(run)).run().expect_code(6);
    assert_eq!(provider.count(), 3);
    for label in ["one", "two", "three"] {
        assert!(outcome.stderr.contains(&format!("key {label} is out")), "{}", outcome.stderr);
    }
    none_in(&everything(&verify, &[outcome]));
}

#[test]
fn a_kill_leaves_no_key_behind_and_nothing_for_others_to_read() {
    let provider = Provider::start(|call| match call.row {
        // Not the end of all keys, and something that never comes.
        1..=15 => echo(call),
        _ => Reply::never(),
    });
    let verify = job(&provider, "openai", 40);
    let line = format!(
        "umask 000; exec {} run in.jsonl --log run.log --max-cost 5 --price input=1,output=1 --attempts 1",
        env!("CARGO_BIN_EXE_verify")
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(verify.directory()).env("K1", KEYS[0]).env("K2", KEYS[1]);
    let mut child = shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let rows_begun = |calls: Vec<Call>| calls.iter().filter(|call| call.row > 15).count();
    while rows_begun(provider.calls()) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    let state = verify.path(".verify");
    let private = |when: &str| {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join("jobs"))), (0o700, 0o700), "{when}");
        for file in files(&state) {
            assert_eq!(mode(&file), 0o600, "{when}: {}", file.display());
        }
    };
    private("while it runs");
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    private("after a kill");
    let names: Vec<_> = files(&state).iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert!(names.iter().any(|name| name == "store.db-wal"), "{names:?}");
    let mut texts = everything(&verify, &[]);
    texts.push(("stderr".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()));
    none_in(&texts);
}

#[test]
fn a_credential_in_the_address_is_refused_before_it_is_kept() {
    let provider = always("{\"ok\":true}");
    let url = |before: &str, query: &str| format!("http://{before}127.0.0.1:{}/v1{query}", provider.port());
    let key = KEYS[1];
    for address in [
        url(&format!("user:{key}@"), ""),
        url(&format!("{key}@"), ""),
        url("", &format!("?key={key}")),
        url("", &format!("?api-version=1&Api-Key={key}")),
        url("", &format!("?access_token={key}#x")),
        url("", &format!("?q={key}")),
    ] {
        let verify = Verify::new().file("in.jsonl", rows(1));
        let fixed = ["in.jsonl", "--model", "m", "--prompt", "x"];
        let mut said = Vec::new();
        for command in ["run", "check"] {
            said.push(
                verify.again().arg(command).args(fixed).args(["--base-url", &address]).run().expect_code(2),
            );
            let variable = verify.again().arg(command).args(fixed).env("VERIFY_BASE_URL", &address);
            said.push(variable.run().expect_code(2));
        }
        none_in(&everything(&verify, &said));
        assert!(said[0].stderr.contains("base_url holds a credential"), "{}", said[0].stderr);
    }
    assert_eq!(provider.connections(), 0);
    let verify =
        Verify::new().file("in.jsonl", rows(1)).args(["run", "in.jsonl", "--model", "m", "--prompt", "x"]);
    verify.args(["--base-url", &url("", "?api-version=2024-10-21")]).run().expect_code(0);
    assert_eq!(provider.calls()[0].path, "/v1/chat/completions?api-version=2024-10-21");
}

#[test]
fn a_key_that_no_header_can_carry_is_not_shown_either() {
    let provider = always("{\"ok\":true}");
    let key = "sk-live\u{1}\u{7f}AIzaSyPlain0123456789abcdefghij\nx";
    let verify = Verify::new().file("in.jsonl", rows(1)).file("key.txt", key);
    let config = "[[keys]]\nlabel = \"f\"\nfile = \"key.txt\"\n";
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "x", "--base-url", &provider.url()];
    let outcome = verify.again().config(config).args(args).args(["--log", "run.log"]).run();
    assert_eq!((outcome.code, provider.count()), (6, 0), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("header `authorization`"), "{}", outcome.stderr);
    let said = [outcome];
    none_in(&everything(&verify, &said));
}
