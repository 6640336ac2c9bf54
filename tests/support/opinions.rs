//! Rows that say what each of their samples answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::provider::{Call, Reply};

/// The configuration of an ensemble over rows with a field `says`: a verdict `match` and a confidence.
pub(crate) fn config(base_url: &str, ensemble: &str) -> String {
    format!(
        r#"
        model = "judge"
        base_url = "{base_url}"
        [prompt]
        user = "{{{{ n }}}}: {{{{ says }}}}"
        [answer]
        columns = {{ match = ["pass", "fail", "partial"], confidence = "number 0..1" }}
        verdict = "match"
        confidence = "confidence"
        repair = 0
        [retry]
        attempts = 1
        throttle_patience = "0s"
        base = "1ms"
        [limits]
        timeout = "2s"
        [ensemble]
        {ensemble}
        "#
    )
}

/// A JSONL input with a row for each text of opinions.
pub(crate) fn rows<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let row = |(n, says): (usize, &str)| format!("{}\n", json!({"n": n + 1, "says": says}));
    texts.into_iter().enumerate().map(row).collect()
}

/// What the words of the prompt's row say for this sample: `p.9` is a pass with confidence 0.9, `f` a fail, `q`
/// partial; `x` is no answer, for the reason behind the colon.
pub(crate) fn reply(call: &Call) -> Reply {
    let user = call.user();
    let words: Vec<&str> = user.split(": ").last().unwrap_or_default().split(' ').collect();
    say(words[usize::try_from(call.sample).unwrap() - 1])
}

/// What one word says.
pub(crate) fn say(word: &str) -> Reply {
    let (kind, rest) = word.split_at(1);
    let verdict = match kind {
        "p" => "pass",
        "f" => "fail",
        "q" => "partial",
        _ => return no_answer(rest.trim_start_matches(':')),
    };
    let confidence = if rest.starts_with('.') { format!("0{rest}") } else { rest.to_owned() };
    Reply::answer(&format!(r#"{{"match":"{verdict}","confidence":{confidence}}}"#))
}

fn no_answer(reason: &str) -> Reply {
    let without_text = |message: Value| {
        Reply::status(200).json(&json!({
            "id": "c", "object": "chat.completion", "created": 0, "model": "judge",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}))
    };
    match reason {
        "refused" => without_text(json!({"role": "assistant", "content": null, "refusal": "I will not."})),
        "invalid" => Reply::answer(r#"{"match":"perhaps","confidence":1}"#),
        "429" => Reply::error(429, "rate_limit_exceeded", "too many"),
        "network" => Reply::reset(),
        "timeout" => Reply::never(),
        "slow" => Reply::status(503).after(Duration::from_millis(100)),
        other => panic!("no such word: {other}"),
    }
}
