//! What servers do that the format does not say: each reply of `fixtures/wire` that stands for such a habit goes
//! through the whole program, and the table says what becomes of the row.
#![expect(clippy::unwrap_used, reason = "a failed expectation is the failure of the test")]

mod support;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::command::{Outcome, Verify};
use support::job::statuses;
use support::provider::{Call, Provider, Reply};

/// A habit, the replies that show it, and what two rows become: the server sends these replies first, then good ones.
struct Quirk {
    /// What it is.
    about: &'static str,
    /// The replies, as names of fixtures with their folder.
    replies: &'static [&'static str],
    /// Arguments besides the usual ones.
    more: &'static [&'static str],
    /// Exit code, requests, and each row's status and reason; no row where there is no output.
    outcome: &'static str,
    /// What standard error or an error of a row says, where it matters.
    says: &'static str,
}

const fn quirk(about: &'static str, replies: &'static [&'static str], outcome: &'static str) -> Quirk {
    Quirk { about, replies, more: &[], outcome, says: "" }
}

impl Quirk {
    const fn with(self, more: &'static [&'static str]) -> Self {
        Self { more, ..self }
    }

    const fn says(self, says: &'static str) -> Self {
        Self { says, ..self }
    }

    fn provider(&self) -> &'static str {
        self.replies[0].split_once('/').unwrap().0
    }

    fn run(&self) -> (Vec<Call>, Outcome) {
        let replies: Vec<Reply> = self.replies.iter().map(|name| reply(name)).collect();
        let is_openai = self.provider() == "openai";
        let provider = Provider::start(move |call| {
            let good = if is_openai { Reply::answer("{\"n\":1}") } else { Reply::message("{\"n\":1}") };
            replies.get(call.n - 1).cloned().unwrap_or(good)
        });
        let url = provider.url();
        let run = Verify::new()
            .file("in.jsonl", "{\"text\":\"one\"}\n{\"text\":\"two\"}\n")
            .args(["run", "in.jsonl", "--provider", self.provider(), "--model", "m", "--base-url", &url])
            .args(["--prompt", "{{ text }}", "--system", "Judge.", "--column", "n=integer"])
            .args(["--concurrency", "1", "--retry-base", "1ms", "--max-backoff", "5ms"])
            .args(self.more.iter().copied());
        let outcome = run.run();
        (provider.calls(), outcome)
    }
}

/// A reply of `fixtures/wire`.
fn reply(name: &str) -> Reply {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/wire/{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let case: Value = serde_json::from_str(&text).unwrap();
    let body = match (&case["body_latin1"], &case["body"]) {
        (Value::String(bytes), _) => bytes.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect(),
        (_, Value::String(text)) => text.clone().into_bytes(),
        (_, Value::Null) => Vec::new(),
        (_, body) => body.to_string().into_bytes(),
    };
    let status = u16::try_from(case["status"].as_u64().unwrap()).unwrap();
    let headers = case["headers"].as_object().cloned().unwrap_or_default();
    headers.iter().fold(Reply::status(status).body(body), |reply, (name, value)| {
        reply.header(name, value.as_str().unwrap())
    })
}

fn told(calls: &[Call], outcome: &Outcome) -> String {
    let mut told = format!("{}: {} requests", outcome.code, calls.len());
    if outcome.path("in.verified.jsonl").exists() {
        told = format!("{told}, {}", statuses(outcome).join(" "));
    }
    told
}

/// Everything that a person can read of a run: what it said, and what it wrote.
fn said(outcome: &Outcome) -> String {
    let rows = fs::read_to_string(outcome.path("in.verified.jsonl")).unwrap_or_default();
    format!("{}{}", outcome.stderr, rows.replace("\\\"", "\""))
}

const PASS: &str = "0: 2 requests, pass/valid pass/valid";
const AGAIN: &str = "0: 3 requests, pass/valid pass/valid";
/// One request for the first row, which nothing can help.
const REJECTED: &str = "4: 2 requests, error/rejected pass/valid";

const TOOL: &[&str] = &["--structured", "tool"];
const FORMAT: &[&str] = &["--structured", "json_schema"];

/// The habits, by their number in the notes on compatible servers.
static QUIRKS: &[Quirk] = &[
    quirk("1 json_schema is refused", &["openai/learn-format-llama-cpp"], AGAIN).says("json_object"),
    quirk("1 json_schema is refused", &["openai/learn-format-not-supported"], AGAIN).says("json_object"),
    quirk("1 json_schema is refused", &["openai/learn-format-deepseek"], AGAIN).says("json_object"),
    quirk("1 a chosen form is kept", &["openai/learn-format-not-supported"], REJECTED).with(FORMAT),
    quirk("1 a schema is refused", &["anthropic/learn-format"], AGAIN).says("tool"),
    quirk(
        "2 json_object is refused, the error is a text",
        &["openai/learn-format-not-supported", "openai/learn-format-lm-studio"],
        "0: 4 requests, pass/valid pass/valid",
    )
    .says("prompt"),
    quirk("3 the schema is ignored", &["openai/ok-schema-ignored"], AGAIN),
    quirk(
        "3 the schema is ignored, in the repair too",
        &["openai/ok-schema-ignored", "openai/ok-schema-ignored"],
        "4: 3 requests, error/invalid_answer pass/valid",
    )
    .says("the answer does not satisfy the schema"),
    quirk("4 a bad schema is 500 with an empty message", &["openai/server-vllm-empty-message"], AGAIN),
    quirk(
        "4 again and again",
        &["openai/server-vllm-empty-message", "openai/server-vllm-empty-message"],
        "4: 3 requests, error/server_error pass/valid",
    )
    .with(&["--attempts", "2"])
    .says("500 with an empty message"),
    quirk("5 vLLM, new: the code is a number", &["openai/rejected-vllm-new"], REJECTED).says("min_p must be"),
    quirk("5 vLLM, old: the error at the root", &["openai/rejected-vllm-old"], REJECTED)
        .says("min_p must be"),
    quirk("5 vLLM: the error is a text", &["openai/key-vllm-unauthorized"], "6: 1 requests")
        .says("Unauthorized"),
    quirk("5 Ollama", &["openai/server-ollama"], AGAIN),
    quirk("5 Ollama's own API", &["openai/model-ollama-native"], "6: 1 requests").says("not found"),
    quirk("5 FastAPI: a list", &["openai/rejected-fastapi-422"], REJECTED)
        .says("body.messages: Field required"),
    quirk("5 FastAPI: a wrong path", &["openai/path-fastapi"], REJECTED).says("check base_url"),
    quirk("5 a relay", &["openai/model-relay-503"], "6: 1 requests").says("no channel for model x"),
    quirk("6 a page of nginx", &["openai/server-502-html"], AGAIN),
    quirk("6 words of a gateway", &["openai/server-504"], AGAIN),
    quirk(
        "6 Cloudflare",
        &["openai/server-520", "openai/server-524"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk(
        "6 a captive portal",
        &["openai/body-html", "anthropic/body-html"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk("6 a page of the edge", &["anthropic/server-502-html"], AGAIN),
    quirk(
        "7 an error under 200",
        &["openai/error-200-text", "openai/error-200-code-502"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk("7 a rate limit under 200", &["openai/error-200-code-429"], AGAIN),
    quirk("7 a rejection under 200", &["openai/error-200-invalid-request"], REJECTED),
    quirk(
        "7 no choices",
        &["openai/choices-missing", "openai/choices-null", "openai/choices-none"],
        "0: 5 requests, pass/valid pass/valid",
    ),
    quirk("7 no message", &["openai/message-null"], AGAIN),
    quirk(
        "7 no content",
        &["anthropic/content-missing", "anthropic/error-200"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk("8 no usage", &["openai/ok-bare"], PASS).says("estimated"),
    quirk("8 usage is null", &["openai/ok-usage-null"], PASS).says("estimated"),
    quirk("8 usage is all zeros", &["openai/ok-usage-zero"], PASS).says("estimated"),
    quirk("8 usage in the last event", &["openai/stream"], PASS),
    quirk("8 no usage", &["anthropic/ok-usage-null"], "0: 3 requests, pass/valid pass/valid"),
    quirk("9 no finish_reason", &["openai/ok-no-finish-reason", "openai/ok-finish-blank"], PASS),
    quirk("9 other words for the end", &["openai/ok-finish-eos", "openai/ok-finish-eos_token"], PASS),
    quirk("9 other words for the end", &["openai/ok-finish-stop_sequence", "openai/ok-finish-unknown"], PASS),
    quirk(
        "9 other words for a cut",
        &["openai/truncated-max-tokens", "openai/truncated-model-length"],
        "4: 2 requests, error/truncated error/truncated",
    ),
    quirk(
        "9 other words for the filter",
        &["openai/filtered-sensitive", "openai/filtered-content_filtered"],
        "4: 2 requests, error/filtered error/filtered",
    ),
    quirk(
        "9 words for a failure",
        &["openai/finish-error", "openai/finish-abort"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk(
        "9 words for a failure",
        &["openai/finish-network-error", "openai/finish-insufficient-system-resource"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk("9 no stop reason", &["anthropic/ok-no-stop-reason"], AGAIN),
    quirk("10 a fence, prose", &["openai/ok-fence", "openai/ok-prose"], PASS).says("extracted"),
    quirk("11 reasoning beside the answer", &["openai/ok-reasoning-content", "openai/ok-reasoning"], PASS),
    quirk("11 reasoning before the answer", &["openai/ok-think-block", "openai/ok-thinking-block"], PASS),
    quirk("11 only its end", &["openai/ok-think-closed-only"], PASS),
    quirk(
        "11 only its beginning",
        &["openai/ok-think-unclosed"],
        "4: 2 requests, error/truncated pass/valid",
    ),
    quirk("12 content in parts", &["openai/ok-parts"], PASS),
    quirk("12 an empty text and a call", &["openai/tool-call-empty-content"], AGAIN),
    quirk("13 the other name of the limit is wanted", &["openai/learn-max-tokens"], AGAIN)
        .says("max_completion_tokens"),
    quirk("14 tool_choice is ignored", &["openai/tool-forced-text"], PASS).with(TOOL),
    quirk(
        "15 prompt and limit exceed the context",
        &["openai/long-vllm"],
        "4: 2 requests, error/too_long pass/valid",
    ),
    quirk("16 streams only", &["openai/rejected-stream-only"], REJECTED).says("stream must be true"),
    quirk("16 streams only", &["openai/rejected-stream-must"], REJECTED).says("only supports stream mode"),
    quirk("16 a stream that nobody asked for", &["openai/stream", "openai/stream-comments"], PASS),
    quirk("16 a stream that nobody asked for", &["anthropic/stream"], PASS),
    quirk("17 blank lines before the body", &["openai/ok-deepseek-usage"], PASS),
    quirk("17 comments before the body", &["openai/ok-comments-before-json"], PASS),
    quirk("17 blank lines before the body", &["anthropic/ok-keep-alive"], AGAIN),
    quirk("18 a wrong path", &["openai/path-openai"], REJECTED).says("check base_url"),
    quirk("18 a wrong path", &["openai/path-405"], REJECTED).says("check base_url"),
    quirk("18 a redirect", &["openai/redirect"], REJECTED).says("set base_url to the final address"),
    quirk(
        "19 waits that are none",
        &["openai/rate-junk-0", "openai/rate-junk-1", "openai/rate-junk-2"],
        "0: 5 requests, pass/valid pass/valid",
    ),
    quirk(
        "19 waits that are none",
        &["openai/rate-junk-3", "openai/rate-junk-4", "openai/rate-junk-5"],
        "0: 5 requests, pass/valid pass/valid",
    ),
    quirk(
        "19 waits that are none",
        &["openai/rate-junk-6", "openai/rate-date-past"],
        "0: 4 requests, pass/valid pass/valid",
    ),
    quirk("19 both headers", &["openai/rate-retry-after-ms"], AGAIN),
    quirk("19 a wait of a day", &["openai/rate-day-long"], "6: 1 requests")
        .says("every key must wait beyond max_wait"),
    quirk(
        "20 another name, no id, counts as texts and floats",
        &["openai/ok-model-echo", "openai/ok-usage-odd-numbers"],
        PASS,
    ),
    quirk("20 a byte order mark, keys twice", &["openai/ok-bom", "openai/ok-duplicate-keys"], PASS),
    quirk("20 bytes that are no UTF-8", &["openai/ok-invalid-utf8"], AGAIN),
    quirk("21 a model that is not there", &["openai/model-ollama"], "6: 1 requests").says("not found"),
    quirk("21 a model that is being loaded", &["openai/server-503-loading"], AGAIN),
    quirk("22 strict is refused", &["openai/learn-strict"], AGAIN).says("strict"),
    quirk("22 a role is refused", &["openai/rejected-role"], REJECTED),
    quirk("23 tool_choice takes words only", &["openai/learn-tool-choice"], AGAIN)
        .with(TOOL)
        .says("chosen by name"),
    quirk("23 arguments as an object", &["openai/tool-forced-object"], AGAIN).with(TOOL),
    quirk("23 arguments encoded twice", &["openai/tool-forced-twice-encoded"], PASS).with(TOOL),
    quirk("23 a call under another name", &["openai/tool-forced-other-name"], PASS).with(TOOL),
    quirk("23 a call under another name", &["anthropic/tool-other-name"], PASS).with(TOOL),
    quirk("24 an error in an array", &["openai/key-gemini-400"], "6: 1 requests").says("API key not valid"),
    quirk("24 an unknown field, in an array", &["openai/learn-seed-gemini"], AGAIN)
        .with(&["--seed", "7"])
        .says("seed"),
    quirk("24 a wait in an array", &["openai/ok-in-array"], PASS),
];

#[test]
fn every_habit_of_a_server_ends_as_it_should() {
    let mut wrong = Vec::new();
    for some in QUIRKS.chunks(8) {
        std::thread::scope(|scope| {
            let runs: Vec<_> = some.iter().map(|quirk| (quirk, scope.spawn(|| quirk.run()))).collect();
            for (quirk, run) in runs {
                let (calls, outcome) = run.join().unwrap();
                let told = told(&calls, &outcome);
                let said = said(&outcome);
                if told != quirk.outcome || !said.contains(quirk.says) {
                    wrong.push(format!("{} {:?}: {told}; {said}", quirk.about, quirk.replies));
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_request_holds_what_every_server_takes() {
    let (calls, _) = quirk("13, 22", &["openai/ok"], PASS).run();
    for call in &calls {
        let roles: Vec<_> = call.body["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
        assert_eq!(roles, ["system", "user"]);
        // Ollama and others pass over the newer name in silence, and would write without an end.
        assert_eq!(call.body["max_tokens"], 1024);
        assert!(call.body.get("max_completion_tokens").is_none() && call.body.get("stream").is_none());
    }
    let (calls, _) = quirk("13", &["openai/learn-max-tokens"], AGAIN).run();
    let limits: Vec<_> = calls.iter().map(|call| call.body.get("max_completion_tokens").is_some()).collect();
    assert_eq!(limits, [false, true, true]);
    let (calls, _) =
        quirk("1, 2", &["openai/learn-format-not-supported", "openai/learn-format-lm-studio"], "").run();
    let forms: Vec<_> = calls.iter().map(|call| call.body["response_format"]["type"].as_str()).collect();
    assert_eq!(forms, [Some("json_schema"), Some("json_object"), None, None]);
}
