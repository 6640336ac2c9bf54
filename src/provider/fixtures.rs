//! Runs every reply under `fixtures/wire` through the codec of its provider.
//!
//! A file holds `status`, `headers`, `body` (a text, or any JSON value, which is then the body's JSON text;
//! `body_latin1` gives bytes) and `expect`; besides, where a case needs it, what was sent: `own_host`, `model`,
//! `structured`, `sampling`, `free_text`, `extra` and `learned`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::base::WallTime;
use crate::model::{
    CallSettings, Decoded, FailureClass, HttpReply, KeyFault, Learned, Lesson, ProviderKind, ReplyContent,
    Sampling, Structured,
};
use crate::provider::Codec;
use crate::provider::openai::plain;

/// Sunday, 29 November 2026, 12:00:00 UTC.
const NOW: WallTime = WallTime(1_795_953_600_000);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[expect(dead_code, reason = "it is for the reader of the file")]
    about: String,
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    body: Value,
    body_latin1: Option<String>,
    #[serde(default)]
    own_host: bool,
    #[serde(default)]
    free_text: bool,
    model: Option<String>,
    #[serde(default)]
    structured: Option<String>,
    #[serde(default)]
    sampling: BTreeMap<String, Value>,
    #[serde(default)]
    extra: Map<String, Value>,
    #[serde(default)]
    learned: Learned,
    expect: Map<String, Value>,
}

impl Case {
    fn decode(&self, provider: ProviderKind) -> Decoded {
        let number = |name: &str| match self.sampling.get(name) {
            Some(Value::Number(number)) => Some(number.clone()),
            _ => None,
        };
        let call = CallSettings {
            provider,
            endpoint: "http://127.0.0.1:8000/v1".to_owned(),
            own_host: self.own_host,
            model: self.model.clone().unwrap_or_else(|| "m".to_owned()),
            max_output_tokens: 1024,
            structured: match self.structured.as_deref() {
                None | Some("auto") => Structured::Auto,
                Some("json_schema") => Structured::JsonSchema,
                Some("json_object") => Structured::JsonObject,
                Some("tool") => Structured::Tool,
                Some(_) => Structured::Prompt,
            },
            sampling: Sampling {
                temperature: number("temperature"),
                top_p: number("top_p"),
                seed: number("seed").and_then(|seed| seed.as_i64()),
                reasoning_effort: self
                    .sampling
                    .get("reasoning_effort")
                    .and_then(|v| v.as_str())
                    .map(str::to_owned),
            },
            extra: self.extra.clone(),
            cache: false,
            mock_seed: 0,
        };
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let codec = Codec::new(&call, (!self.free_text).then_some(&schema)).unwrap();
        codec.decode(&self.reply(), &self.learned, NOW)
    }

    fn reply(&self) -> HttpReply {
        let body = match (&self.body_latin1, &self.body) {
            (Some(bytes), _) => bytes.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect(),
            (None, Value::String(text)) => text.clone().into_bytes(),
            (None, Value::Null) => Vec::new(),
            (None, value) => value.to_string().into_bytes(),
        };
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        HttpReply { status: self.status, headers, body: body.into() }
    }
}

/// A decoded reply in the words of the fixtures.
fn told(decoded: &Decoded) -> Map<String, Value> {
    let mut told = Map::new();
    let mut tell = |name: &str, value: Value| told.insert(name.to_owned(), value);
    let (content, text) = match &decoded.content {
        ReplyContent::Text(text) => ("text", Some(text)),
        ReplyContent::Truncated(text) => ("truncated", Some(text)),
        ReplyContent::Refused(text) => ("refused", Some(text)),
        ReplyContent::Filtered(text) => ("filtered", Some(text)),
        ReplyContent::Unusable(text) => ("unusable", Some(text)),
        ReplyContent::Empty => ("empty", None),
        ReplyContent::Failed(failure) => {
            tell("class", class_name(&failure.class).into());
            tell("code", failure.code.clone().into());
            tell("message", failure.message.clone().into());
            tell("wait_ms", failure.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap()).into());
            ("failed", None)
        }
    };
    tell("content", content.into());
    tell("text", text.cloned().into());
    tell("request_id", decoded.request_id.clone().into());
    let usage = decoded.usage.map(|u| [u.input, u.cached_input, u.cache_write, u.output, u.reasoning]);
    tell("usage", json!(usage));
    told
}

fn class_name(class: &FailureClass) -> String {
    match class {
        FailureClass::Connection => "connection",
        FailureClass::Timeout { .. } => "timeout",
        FailureClass::Server => "server",
        FailureClass::Throttled => "throttled",
        FailureClass::Key(KeyFault::Unauthorized) => "unauthorized",
        FailureClass::Key(KeyFault::Forbidden) => "forbidden",
        FailureClass::Key(KeyFault::Quota) => "quota",
        FailureClass::UnknownModel => "unknown_model",
        FailureClass::TooLong => "too_long",
        FailureClass::Policy => "policy",
        FailureClass::InvalidAnswer => "invalid_answer",
        FailureClass::Rejected => "rejected",
        FailureClass::Teaches(Lesson::SwapLengthParameter) => "teaches: swap",
        FailureClass::Teaches(Lesson::WeakerStructured { next, .. }) => {
            return format!("teaches: {}", next.as_str());
        }
        FailureClass::Teaches(Lesson::DropParameter(name)) => return format!("teaches: drop {name}"),
    }
    .to_owned()
}

const PROVIDERS: [(&str, ProviderKind, usize); 2] =
    [("openai", ProviderKind::Openai, 80), ("anthropic", ProviderKind::Anthropic, 40)];

fn cases() -> Vec<(String, ProviderKind, Case)> {
    let mut cases = Vec::new();
    for (folder, provider, least) in PROVIDERS {
        let folder_path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/wire").join(folder);
        let before = cases.len();
        for entry in std::fs::read_dir(folder_path).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{folder}/{}", path.file_stem().unwrap().to_string_lossy());
            let case = serde_json::from_slice(&std::fs::read(&path).unwrap());
            let case = case.unwrap_or_else(|error| panic!("{name}: {error}"));
            cases.push((name, provider, case));
        }
        assert!(cases.len() - before >= least, "only {} cases of {folder}", cases.len() - before);
    }
    cases.sort_by(|one, other| one.0.cmp(&other.0));
    cases
}

#[test]
fn every_reply_reads_as_expected() {
    let mut wrong = Vec::new();
    for (name, provider, case) in cases() {
        assert!(case.expect.contains_key("content"), "{name} expects nothing");
        let told = told(&case.decode(provider));
        for (what, expected) in &case.expect {
            if told.get(what) != Some(expected) {
                wrong.push(format!(
                    "{name}: {what} is {:?}, not {expected}",
                    told.get(what).map(Value::to_string)
                ));
            }
        }
        // What is not named is not there: no wait, no usage, no id.
        for what in ["wait_ms", "usage", "request_id"] {
            if !case.expect.contains_key(what) && told.get(what).is_some_and(|value| !value.is_null()) {
                wrong.push(format!("{name}: {what} is {}, which nobody expects", told[what]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_plain_answer_reads_like_any_other() {
    let mut plain_ones = 0;
    for (name, provider, case) in cases() {
        let reply = case.reply();
        if provider != ProviderKind::Openai || plain::answer(&reply).is_none() {
            continue;
        }
        plain_ones += 1;
        // A byte order mark says nothing, and makes the reply one to be read with care.
        let marked = HttpReply { body: [b"\xef\xbb\xbf", &reply.body[..]].concat().into(), ..reply.clone() };
        assert!(plain::answer(&marked).is_none(), "{name}");
        for structured in [Structured::Auto, Structured::Tool] {
            let codec = codec(provider, structured);
            let decode = |reply: &HttpReply| codec.decode(reply, &Learned::default(), NOW);
            assert_eq!(decode(&reply), decode(&marked), "{name}");
        }
    }
    assert!(plain_ones >= 3, "{plain_ones}");
}

#[test]
fn no_message_is_long_or_shows_a_credential() {
    for (name, provider, case) in cases() {
        if let ReplyContent::Failed(failure) = case.decode(provider).content {
            let message = &failure.message;
            assert!(!message.is_empty() && message.chars().count() <= 300, "{name}: {message}");
            assert!(!message.chars().any(char::is_control), "{name}: {message}");
            for secret in ["sk-ab", "abcdef0123456789", "org-x"] {
                assert!(!message.contains(secret), "{name}: {message}");
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn any_reply_is_read_without_panic(
        status in 100_u16..600,
        body in proptest::collection::vec(proptest::num::u8::ANY, 0..200),
        words in "[{}\\[\\]\",:a-z0-9_ ]{0,120}",
        at in proptest::num::usize::ANY,
    ) {
        let whole = json!({"error": {"code": 429, "message": "try again in 2s", "details": [{"retryDelay": "3s"}]},
            "choices": [{"message": {"content": [{"type": "text", "text": "é"}]}, "finish_reason": "stop"}],
            "content": [{"type": "tool_use", "input": {}}, {"type": "text", "text": "é"}], "type": "content_block_delta",
            "delta": {"partial_json": "{"}, "content_block": {}}).to_string();
        let cut = at % whole.len();
        for body in [body, words.into_bytes(), whole.as_bytes()[..cut].to_vec(), [b"data: ", whole.as_bytes()].concat()] {
            let case: Case = serde_json::from_value(json!({ "about": "", "status": status, "expect": {} })).unwrap();
            let reply = HttpReply { body: body.into(), ..case.reply() };
            for (provider, structured) in PROVIDERS.iter().flat_map(|(_, provider, _)| {
                [Structured::Auto, Structured::Tool].map(|structured| (*provider, structured))
            }) {
                let decoded = codec(provider, structured).decode(&reply, &Learned::default(), NOW);
                proptest::prop_assert!(status < 300 || matches!(decoded.content, ReplyContent::Failed(_)));
            }
        }
    }
}

fn codec(provider: ProviderKind, structured: Structured) -> Codec {
    let call = CallSettings {
        provider,
        endpoint: "mock".to_owned(),
        own_host: false,
        model: String::new(),
        max_output_tokens: 1,
        structured,
        sampling: Sampling::default(),
        extra: Map::new(),
        cache: false,
        mock_seed: 0,
    };
    Codec::new(&call, Some(&json!({ "type": "object" }))).unwrap()
}
