//! Small jobs for the binary, against a scripted provider.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::command::{Outcome, Verify};
use super::provider::{Call, Provider, Reply};

/// JSONL of `count` rows: `{"text":"row 1"}` and so on.
pub(crate) fn rows(count: usize) -> String {
    let lines: Vec<String> =
        (1..=count).map(|n| json!({"text": format!("row {n}")}).to_string() + "\n").collect();
    lines.concat()
}

/// JSONL of `count` rows: `{"id":1}` and so on.
pub(crate) fn numbered(count: u64) -> String {
    (1..=count).map(|id| json!({"id": id}).to_string() + "\n").collect()
}

/// How often a test kills a run: as `VERIFY_TEST_KILLS` says, or so often.
#[expect(clippy::disallowed_methods, reason = "a variable sets the size of a test")]
pub(crate) fn kills(usually: u64) -> u64 {
    std::env::var("VERIFY_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usually)
}

/// A provider that gives every request this answer.
pub(crate) fn always(text: &'static str) -> Provider {
    Provider::start(move |_| Reply::answer(text))
}

/// `verify run in.jsonl` over so many rows, each asked for `ok`, with short back-offs.
pub(crate) fn job(provider: &Provider, count: usize) -> Verify {
    Verify::new().file("in.jsonl", rows(count)).args(asks(provider, "in.jsonl", "{{ text }}"))
}

/// The arguments that ask this provider for `ok` of each row of an input.
pub(crate) fn asks(provider: &Provider, input: &str, prompt: &str) -> Vec<String> {
    let url = provider.url();
    let all = ["run", input, "--model", "m", "--base-url", &url, "--prompt", prompt];
    let more = ["--column", "ok=boolean", "--retry-base", "20ms"];
    all.into_iter().chain(more).map(str::to_owned).collect()
}

/// The names in the working directory besides the state, the home and the files that were given.
pub(crate) fn left_behind(outcome: &Outcome, given: &[&str]) -> Vec<String> {
    let entries = fs::read_dir(outcome.path(".")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let own = [".verify", ".home", "in.jsonl", "in.csv", "verify.toml"];
    let mut names: Vec<_> =
        names.filter(|name| !own.contains(&&**name) && !given.contains(&&**name)).collect();
    names.sort();
    names
}

/// The `verify` members of `in.verified.jsonl`.
pub(crate) fn results(outcome: &Outcome) -> Vec<Value> {
    outcome.json_lines("in.verified.jsonl").into_iter().map(|line| line["verify"].clone()).collect()
}

/// Status and reason of each row of `in.verified.jsonl`, as in `error/timeout`.
pub(crate) fn statuses(outcome: &Outcome) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    results(outcome).iter().map(|row| format!("{}/{}", word(&row["status"]), word(&row["reason"]))).collect()
}

/// A `chat.completion` with this message and finish reason, 100 input tokens and 10 output tokens.
pub(crate) fn completion(message: &Value, finish_reason: &str) -> Reply {
    Reply::status(200).json(&json!({
        "id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish_reason, "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}))
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// Every file under the working directory that holds these bytes, the state included.
pub(crate) fn files_with(outcome: &Outcome, text: &str) -> Vec<String> {
    let holds =
        |path: &PathBuf| fs::read(path).unwrap().windows(text.len()).any(|part| part == text.as_bytes());
    files(&outcome.path("."))
        .iter()
        .filter(|path| holds(path))
        .map(|path| path.display().to_string())
        .collect()
}

/// The time between the arrivals of two requests.
pub(crate) fn gap(first: &Call, second: &Call) -> Duration {
    second.at.checked_sub(first.at).unwrap()
}

/// The time since the Unix epoch.
pub(crate) fn epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// JSON as gzip, in one stored block.
pub(crate) fn zipped(value: &Value) -> Vec<u8> {
    let text = value.to_string().into_bytes();
    let length = u16::try_from(text.len()).unwrap();
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    let crc = text.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1)))
    });
    bytes.extend(text);
    bytes.extend((!crc).to_le_bytes());
    bytes.extend(u32::from(length).to_le_bytes());
    bytes
}
