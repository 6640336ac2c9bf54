//! What makes two runs the same job, and two requests the same request.

use std::path::Path;

use serde_json::Value;

use crate::base::{Digest, DigestBuilder};
use crate::model::{
    AnswerSettings, BadRows, CallSettings, Encoding, InputFormat, InputPath, Prompt, Ragged, Rule, Selection,
    Settings,
};

/// Version of the canonical form of requests. A change of the form makes every stored answer unreachable.
const REQUEST_FORMAT: u64 = 1;
/// Version of the canonical form of contents. A change of the form makes every decision of a person unreachable.
const CONTENT_FORMAT: u64 = 1;

/// The job's key: a digest of what decides which rows get which answers and what they mean. Limits, keys, retries,
/// repair, early stop, gates, output and screen are not in it.
///
/// `state_parent` is the folder that holds the state folder; the input counts by its path relative to it, so that a
/// project may be moved as a whole. Standard input counts by its content, which is `input_digest`.
pub fn job_key(settings: &Settings, state_parent: &Path, input_digest: Digest) -> Digest {
    let input = &settings.input;
    let builder = match &input.path {
        InputPath::File(path) => DigestBuilder::new("verify job 1")
            .field("path", relative_path(path, state_parent).as_encoded_bytes()),
        InputPath::Stdin { .. } => DigestBuilder::new("verify job 1").field("stdin", input_digest.as_bytes()),
    };
    let (format, delimiter) = match input.format {
        InputFormat::Csv { delimiter } => ("csv", delimiter),
        InputFormat::Jsonl => ("jsonl", 0),
    };
    let encoding = match input.encoding {
        Encoding::Unicode => "unicode",
        Encoding::Named(encoding) => encoding.name(),
    };
    let builder = builder
        .field("format", format)
        .number("delimiter", delimiter.into())
        .field("encoding", encoding)
        .field("bad rows", if input.bad_rows == BadRows::Keep { "keep" } else { "stop" })
        .field("ragged", if input.ragged == Ragged::Pad { "pad" } else { "error" });
    let builder = selection(builder, &input.selection);
    let builder = call(builder, &settings.call);
    let builder =
        builder.optional("system", settings.prompt.system.as_deref()).field("user", &settings.prompt.user);
    let builder = answer(builder, &settings.answer);
    let ensemble = &settings.ensemble;
    builder
        .number("samples", ensemble.samples.into())
        .field("rule", if ensemble.rule == Rule::Majority { "majority" } else { "unanimous" })
        .field("auto pass", ensemble.auto_pass.normalize().to_string())
        .field("auto fail", ensemble.auto_fail.normalize().to_string())
        .finish()
}

fn relative_path(path: &Path, parent: &Path) -> std::ffi::OsString {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // What a relative state folder lies in is the working directory.
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let parent = parent.canonicalize().unwrap_or_else(|_| parent.to_owned());
    real.strip_prefix(&parent).unwrap_or(&real).as_os_str().to_owned()
}

fn selection(builder: DigestBuilder, selection: &Selection) -> DigestBuilder {
    match selection {
        Selection::All => builder.field("rows", "all"),
        Selection::First(count) => builder.number("first", *count),
        Selection::Ranges(ranges) => {
            ranges.iter().fold(builder.field("rows", "ranges"), |builder, (from, to)| {
                builder.number("from", *from).number("to", *to)
            })
        }
        Selection::Pick { count, seed } => builder.number("pick", *count).number("seed", *seed),
    }
}

/// What a call is made of, as configured. What the program has learned is not in it, and neither is the length
/// limit, which cannot change a complete answer.
fn call(builder: DigestBuilder, call: &CallSettings) -> DigestBuilder {
    let sampling = &call.sampling;
    builder
        .field("provider", call.provider.as_str())
        .field("endpoint", &call.endpoint)
        .field("model", &call.model)
        .field("structured", call.structured.as_str())
        .optional("temperature", sampling.temperature.as_ref().map(ToString::to_string))
        .optional("top_p", sampling.top_p.as_ref().map(ToString::to_string))
        .optional("seed", sampling.seed.map(|seed| seed.to_string()))
        .optional("reasoning_effort", sampling.reasoning_effort.as_deref())
        .field("extra", canonical(&Value::Object(call.extra.clone())))
        .number("mock seed", call.mock_seed)
}

fn answer(builder: DigestBuilder, answer: &AnswerSettings) -> DigestBuilder {
    let pass = Value::Array(answer.pass.clone());
    builder
        .optional("schema", answer.schema.as_ref().map(canonical))
        .optional("verdict", answer.verdict.as_deref())
        .field("pass", canonical(&pass))
        .optional("confidence", answer.confidence.as_deref())
        .optional("agree on", answer.agree_on.as_ref().map(|names| names.join("\u{0}")))
}

/// The part of the requests' digests that all rows share.
pub fn request_prefix(settings: &Settings) -> DigestBuilder {
    let builder = DigestBuilder::new("verify request").number("format", REQUEST_FORMAT);
    call(builder, &settings.call).optional("schema", settings.answer.schema.as_ref().map(canonical))
}

/// The part of the requests' digests that a row's samples share.
pub(super) fn row_prefix(prefix: &DigestBuilder, prompt: &Prompt) -> DigestBuilder {
    prefix.clone().optional("system", prompt.system.as_deref()).field("user", &prompt.user)
}

/// The part of a content's digest that all rows share.
pub(super) fn content_prefix(schema: Option<&Value>) -> DigestBuilder {
    DigestBuilder::new("verify content")
        .number("format", CONTENT_FORMAT)
        .optional("schema", schema.map(canonical))
}

/// The digest of what a person sees of a row: its prompts and the schema, whatever model or server answers.
pub(super) fn content_digest(prefix: &DigestBuilder, prompt: &Prompt) -> Digest {
    row_prefix(prefix, prompt).finish()
}

/// The first 16 bytes of a sample's request digest.
pub(super) fn sample_hash(row: &DigestBuilder, sample: u16) -> [u8; 16] {
    row.clone().number("sample", sample.into()).finish().short()
}

/// JSON with sorted keys and no white space: the same value always gives the same text.
fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => {
            let mut names: Vec<_> = members.keys().collect();
            names.sort();
            text.push('{');
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push_str(&Value::String(name.clone()).to_string());
                text.push(':');
                write_canonical(&members[name], text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_matter_and_array_order_does() {
        let text = |json: &str| canonical(&serde_json::from_str(json).unwrap());
        assert_eq!(
            text(r#"{"b":1,"a":[2,{"d":0,"c":null}]}"#),
            text(r#"{ "a":[2,{"c":null,"d":0}], "b":1 }"#)
        );
        assert_ne!(text("[1,2]"), text("[2,1]"));
    }
}
