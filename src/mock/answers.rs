//! The pure part: an answer for a request.

use serde_json::Value;

use crate::base::Dice;
use crate::mock::first::First;
use crate::mock::generator::Generator;
use crate::mock::reply::{self, Said};
use crate::mock::request::{Asked, Dialect, Form};
use crate::mock::{bad, noted, words};
use crate::model::Usage;

/// Keeps the dice of bad answers apart from those of the answers.
const BAD: u64 = 0xbad;

/// A model that makes its answers up.
///
/// An answer is a function of the seed, the texts of the prompt, the schema and the sample number, and of nothing
/// else: the same in process and behind HTTP, in either wire format, whatever the model is called. It satisfies the
/// schema (as far as the generator understands it), unless the dice say that it is a bad one. A property named
/// `confidence` lies in the upper fifth of its range and nine of ten booleans are true, so that most rows pass.
///
/// Where the schema is not a part of the request, it is looked for in the system text; without one, the answer is
/// `{"answer": "…"}` where a JSON object is wanted, and one sentence where nothing is. An answer that is longer than
/// the request's limit of output tokens is cut there and marked, as a provider does it.
#[derive(Debug, Clone)]
pub struct MockModel {
    seed: u64,
    bad_answer_rate: f64,
    schema: First<Value>,
}

impl MockModel {
    /// A model. `bad_answer_rate` is the share of answers, 0 to 1, that break their schema, stop in the middle or
    /// are prose; free text is never bad.
    pub const fn new(seed: u64, bad_answer_rate: f64) -> Self {
        Self { seed, bad_answer_rate, schema: First::new() }
    }

    /// The reply to an `OpenAI` Chat Completions body, for one sample (from 1): a `chat.completion`, or an error
    /// body if the request is not one.
    ///
    /// Its usage is an estimate that costs nothing: UTF-8 bytes divided by four, rounded up, of all message texts
    /// and of a schema beside them as input, and of the answer as output.
    pub fn reply(&self, request_body: &[u8], sample: u16) -> Vec<u8> {
        self.reply_in(Dialect::OpenAi, request_body, sample)
    }

    /// The reply to an `Anthropic` Messages body. Otherwise like [`MockModel::reply`].
    pub fn reply_anthropic(&self, request_body: &[u8], sample: u16) -> Vec<u8> {
        self.reply_in(Dialect::Anthropic, request_body, sample)
    }

    fn reply_in(&self, dialect: Dialect, request_body: &[u8], sample: u16) -> Vec<u8> {
        let asked = match Asked::read(dialect, request_body) {
            Ok(asked) => asked,
            Err(message) => return reply::error(dialect, 400, None, &message, "req_mock"),
        };
        let prompt = asked.prompt_number();
        let mut text = self.answer(&asked, prompt, sample);
        let input = asked.texts.iter().map(|(_, text)| text.len()).sum::<usize>()
            + asked.schema_text.map_or(0, str::len);
        let tokens = |bytes: usize| bytes.div_ceil(4) as u64;
        let mut output = tokens(text.len());
        let truncated = asked.limit.is_some_and(|limit| output > limit);
        if truncated {
            output = asked.limit.unwrap_or(output);
            let bytes = usize::try_from(output.saturating_mul(4)).unwrap_or(usize::MAX);
            text.truncate(text.floor_char_boundary(bytes));
        }
        let usage = Usage { input: tokens(input), output, ..Usage::default() };
        reply::answer(&asked, &Said { text, truncated, usage, id: self.id(prompt, sample) })
    }

    /// A number for the reply's id.
    pub(super) fn id(&self, prompt: u64, sample: u16) -> u64 {
        Dice::new(self.seed, &[prompt, u64::from(sample), 0x1d]).next_u64()
    }

    /// The whole answer, uncut.
    pub(super) fn answer(&self, asked: &Asked<'_>, prompt: u64, sample: u16) -> String {
        let own;
        let schema = if let Some(text) = asked.schema_text {
            let known = self.schema.get(text, read_schema);
            own = if known.is_none() { read_schema(text) } else { Value::Null };
            Some(known.unwrap_or(&own))
        } else {
            asked.found_schema.as_ref()
        };
        let Some(schema) = schema else {
            let text = words::sentence(&mut Dice::new(self.seed, &[prompt, u64::from(sample)]));
            return if asked.form == Form::Text { text } else { format!(r#"{{"answer":"{text}"}}"#) };
        };
        let good = Generator::new(schema, self.seed, prompt, sample).write();
        let mut dice = Dice::new(self.seed, &[prompt, u64::from(sample), BAD]);
        if dice.fraction() < self.bad_answer_rate { bad::spoilt(&good, schema, &mut dice) } else { good }
    }
}

/// The schema's text is JSON; one that is nested too deeply to be read allows everything.
fn read_schema(text: &str) -> Value {
    let mut schema = serde_json::from_str(text).unwrap_or(Value::Bool(true));
    noted::heed(&mut schema);
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    static MODEL: MockModel = MockModel::new(7, 0.0);

    fn schema() -> Value {
        json!({"type": "object", "additionalProperties": false, "required": ["ok", "confidence", "why"],
            "properties": {"ok": {"type": "boolean"}, "confidence": {"type": "number", "minimum": 0, "maximum": 1},
                           "why": {"type": "string"}}})
    }

    fn openai(user: &str) -> Value {
        json!({"model": "m", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": user}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema()}}})
    }

    fn anthropic(user: &str) -> Value {
        json!({"model": "other", "max_tokens": 500, "system": "s", "messages": [{"role": "user", "content": user}],
            "tools": [{"name": "emit", "input_schema": schema()}], "tool_choice": {"type": "tool", "name": "emit"}})
    }

    fn read(reply: &[u8]) -> Value {
        serde_json::from_slice(reply).unwrap()
    }

    fn ask(model: &MockModel, request: &Value, sample: u16) -> Value {
        read(&model.reply(request.to_string().as_bytes(), sample))
    }

    fn content(reply: &Value) -> &str {
        reply["choices"][0]["message"]["content"].as_str().unwrap()
    }

    #[test]
    fn both_wire_formats_say_the_same() {
        for sample in 1..20 {
            let one = ask(&MODEL, &openai("hi"), sample);
            let two = read(&MODEL.reply_anthropic(anthropic("hi").to_string().as_bytes(), sample));
            let answer: Value = serde_json::from_str(content(&one)).unwrap();
            assert_eq!(answer, two["content"][0]["input"]);
            assert_eq!(
                (&two["stop_reason"], &two["content"][0]["type"]),
                (&json!("tool_use"), &json!("tool_use"))
            );
            assert!(jsonschema::validator_for(&schema()).unwrap().is_valid(&answer));
        }
    }

    #[test]
    fn seed_prompt_and_sample_make_the_answer_and_the_model_does_not() {
        let why =
            |model: &MockModel, request: &Value, sample| content(&ask(model, request, sample)).to_owned();
        let base = why(&MODEL, &openai("hi"), 1);
        let mut renamed = openai("hi");
        renamed["model"] = json!("another");
        renamed["temperature"] = json!(0.5);
        assert_eq!(base, why(&MODEL, &renamed, 1));
        assert_ne!(base, why(&MODEL, &openai("hi"), 2));
        assert_ne!(base, why(&MODEL, &openai("ho"), 1));
        assert_ne!(base, why(&MockModel::new(8, 0.0), &openai("hi"), 1));
    }

    #[test]
    fn one_model_serves_several_schemas() {
        let model = MockModel::new(1, 0.0);
        let with = |schema: Value| {
            let mut request = openai("hi");
            request["response_format"]["json_schema"]["schema"] = schema;
            content(&ask(&model, &request, 1)).to_owned()
        };
        assert_eq!(with(json!({"const": 1})), "1");
        assert_eq!(with(json!({"const": 2})), "2");
        assert_eq!(with(json!({"const": 1})), "1");
    }

    #[test]
    fn usage_is_a_quarter_of_the_bytes_rounded_up() {
        let request = json!({"messages": [{"role": "user", "content": "12345"}]});
        let reply = ask(&MODEL, &request, 1);
        assert_eq!(reply["usage"]["prompt_tokens"], 2);
        let text = content(&reply);
        assert_eq!(reply["usage"]["completion_tokens"], text.len().div_ceil(4));
        assert!(text.ends_with('.') && !text.starts_with('{'), "{text}");
    }

    #[test]
    fn json_object_mode_finds_the_schema_in_the_system_text() {
        let system = format!("Judge.\n\nReply with JSON for this schema:\n{}", schema());
        let mut request = json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": "x"}],
            "response_format": {"type": "json_object"}});
        let answer: Value = serde_json::from_str(content(&ask(&MODEL, &request, 1))).unwrap();
        assert!(jsonschema::validator_for(&schema()).unwrap().is_valid(&answer));
        request["messages"][0]["content"] = json!("no schema");
        let answer: Value = serde_json::from_str(content(&ask(&MODEL, &request, 1))).unwrap();
        assert!(answer["answer"].is_string());
    }

    #[test]
    fn a_limit_cuts_the_answer_and_says_so() {
        let mut request = openai("hi");
        request["max_completion_tokens"] = json!(3);
        let reply = ask(&MODEL, &request, 1);
        assert_eq!(reply["choices"][0]["finish_reason"], "length");
        assert_eq!(reply["usage"]["completion_tokens"], 3);
        assert_eq!(content(&reply).len(), 12);
    }

    #[test]
    fn bad_answers_come_at_their_rate_and_are_never_valid() {
        let model = MockModel::new(1, 0.25);
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let (mut bad, mut wrong, mut cut, mut prose) = (0, 0, 0, 0);
        for row in 0..1_000 {
            let request = openai(&format!("row {row}"));
            let reply = ask(&model, &request, 1);
            let text = content(&reply);
            assert_eq!(text, content(&ask(&model, &request, 1)));
            let value: Result<Value, _> = serde_json::from_str(text);
            match value {
                Ok(value) if validator.is_valid(&value) => continue,
                Ok(_) => wrong += 1,
                Err(_) if text.starts_with('{') => cut += 1,
                Err(_) => prose += 1,
            }
            bad += 1;
        }
        assert!((200..300).contains(&bad), "{bad}");
        assert!(wrong > 40 && cut > 40 && prose > 40, "{wrong} {cut} {prose}");
        let always = MockModel::new(1, 1.0);
        assert!((0..50).all(|row| {
            let reply = ask(&always, &openai(&row.to_string()), 1);
            serde_json::from_str(content(&reply)).map_or(true, |value: Value| !validator.is_valid(&value))
        }));
    }

    #[test]
    fn a_request_that_is_none_gets_an_error_body() {
        assert!(read(&MODEL.reply(b"nonsense", 1))["error"]["message"].is_string());
        assert_eq!(read(&MODEL.reply_anthropic(b"{}", 1))["type"], "error");
    }
}
