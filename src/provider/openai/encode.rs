//! Request bodies.

use serde_json::{Map, Value};

use crate::base::Secret;
use crate::model::{CallSettings, Learned, Prompt, Repair, Structured};
use crate::provider::ProviderError;
use crate::provider::openai::strict;
use crate::provider::quirks::Sent;

/// The names of the length limit: the one that the provider's own API takes, and the one that local servers know.
const LENGTH: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// The forms of structured output, from the strongest down. `Learned::structured_steps` counts in them.
const JSON_SCHEMA: u8 = 0;
const JSON_OBJECT: u8 = 1;
const PROMPT_ONLY: u8 = 2;

/// A request in all parts that rows share, each already JSON text.
#[derive(Debug)]
pub(crate) struct OpenaiRequest {
    /// The body up to the first message.
    head: Vec<u8>,
    /// The text that the system prompt gains where the schema stands in the prompt; JSON text without quotes.
    instruction: Vec<u8>,
    /// `,"name":limit` for each name of [`LENGTH`]; `None` where `extra` sets the limit.
    length: Option<[Vec<u8>; 2]>,
    /// Which of [`LENGTH`] comes first.
    first_length: usize,
    /// Optional parameters by name, as `,"name":value`.
    optional: Vec<(&'static str, Vec<u8>)>,
    /// The `response_format` by form; `None` where that form has none.
    formats: [Option<Vec<u8>>; 2],
    /// `extra`, and the end of the body.
    tail: Vec<u8>,
    /// The form to begin with; `None` for free text.
    form: Option<u8>,
    /// Whether a refusal may lead to a weaker form. A form that somebody chose is kept.
    may_weaken: bool,
}

impl OpenaiRequest {
    /// Prepares requests for these settings.
    pub(crate) fn new(call: &CallSettings, schema: Option<&Value>) -> Result<Self, ProviderError> {
        if call.structured == Structured::Tool {
            return Err(ProviderError::UnsupportedStructured(call.structured));
        }
        if call.extra.contains_key("messages") {
            return Err(ProviderError::ReservedExtra("messages"));
        }
        let extra = &call.extra;
        let mut head = b"{".to_vec();
        if !call.model.is_empty() && !extra.contains_key("model") {
            head.extend(member("model", &Value::from(call.model.as_str())).split_off(1));
            head.push(b',');
        }
        head.extend_from_slice(b"\"messages\":[");
        let limited = LENGTH.iter().any(|name| extra.contains_key(*name));
        let limit = Value::from(call.max_output_tokens);
        let mut tail: Vec<u8> = extra.iter().flat_map(|(name, value)| member(name, value)).collect();
        tail.push(b'}');
        Ok(Self {
            head,
            instruction: schema.map(instruction).unwrap_or_default(),
            length: (!limited).then(|| LENGTH.map(|name| member(name, &limit))),
            first_length: usize::from(!call.own_host),
            optional: optional(call),
            formats: match schema {
                Some(schema) if !extra.contains_key("response_format") => formats(schema),
                _ => [None, None],
            },
            tail,
            form: schema.map(|_| match call.structured {
                Structured::Auto | Structured::JsonSchema | Structured::Tool => JSON_SCHEMA,
                Structured::JsonObject => JSON_OBJECT,
                Structured::Prompt => PROMPT_ONLY,
            }),
            may_weaken: call.structured == Structured::Auto,
        })
    }

    /// The body for one prompt.
    pub(crate) fn encode(&self, prompt: &Prompt, learned: &Learned, repair: Option<&Repair>) -> Vec<u8> {
        let texts = prompt.user.len() + prompt.system.as_ref().map_or(0, String::len);
        let repairing = repair.map_or(0, |repair| repair.answer.len() + 512);
        let fixed = self.head.len() + self.instruction.len() + self.tail.len() + 512;
        let format = self.format(learned);
        let room = texts + texts / 8 + repairing + fixed + format.map_or(0, Vec::len);
        let mut body = Vec::with_capacity(room);
        body.extend_from_slice(&self.head);
        let form = self.form(learned);
        let instruction = if matches!(form, None | Some(JSON_SCHEMA)) { &[][..] } else { &self.instruction };
        let system = prompt.system.as_deref().unwrap_or_default();
        if !(system.is_empty() && instruction.is_empty()) {
            body.extend_from_slice(br#"{"role":"system","content":"#);
            push_system(&mut body, system, instruction);
            body.extend_from_slice(b"},");
        }
        body.extend_from_slice(br#"{"role":"user","content":"#);
        push_text(&mut body, &prompt.user);
        body.push(b'}');
        if let Some(repair) = repair {
            push_repair(&mut body, repair);
        }
        body.push(b']');
        if let Some(length) = &self.length {
            body.extend_from_slice(&length[self.length_index(learned)]);
        }
        for (name, text) in &self.optional {
            if !is_dropped(learned, name) {
                body.extend_from_slice(text);
            }
        }
        if let Some(format) = format {
            body.extend_from_slice(format);
        }
        body.extend_from_slice(&self.tail);
        body
    }

    /// What of a request that was encoded with `learned` a server might refuse.
    pub(crate) fn sent(&self, learned: &Learned) -> Sent {
        let untried = self.length.is_some() && !learned.swap_length_parameter;
        let optional = self.optional.iter().map(|(name, _)| *name).filter(|name| !is_dropped(learned, name));
        Sent {
            length_name: untried.then(|| LENGTH[self.length_index(learned)]),
            response_format: self.may_weaken && self.format(learned).is_some(),
            optional: optional.collect(),
        }
    }

    fn length_index(&self, learned: &Learned) -> usize {
        self.first_length ^ usize::from(learned.swap_length_parameter)
    }

    fn form(&self, learned: &Learned) -> Option<u8> {
        let steps = if self.may_weaken { learned.structured_steps } else { 0 };
        self.form.map(|form| form.saturating_add(steps).min(PROMPT_ONLY))
    }

    fn format(&self, learned: &Learned) -> Option<&Vec<u8>> {
        self.formats.get(usize::from(self.form(learned)?))?.as_ref()
    }
}

/// The headers of every request.
pub(crate) fn headers(key: Option<&Secret>) -> Vec<(&'static str, String)> {
    let mut headers = vec![("content-type", "application/json".to_owned())];
    if let Some(key) = key {
        headers.push(("authorization", format!("Bearer {}", key.expose())));
    }
    headers
}

fn is_dropped(learned: &Learned, name: &str) -> bool {
    learned.dropped.iter().any(|dropped| dropped == name)
}

/// The sampling parameters that are set and that `extra` does not set otherwise.
fn optional(call: &CallSettings) -> Vec<(&'static str, Vec<u8>)> {
    let sampling = &call.sampling;
    let set = [
        ("temperature", sampling.temperature.clone().map(Value::Number)),
        ("top_p", sampling.top_p.clone().map(Value::Number)),
        ("seed", sampling.seed.map(Value::from)),
        ("reasoning_effort", sampling.reasoning_effort.clone().map(Value::String)),
    ];
    let own = set.into_iter().filter(|(name, _)| !call.extra.contains_key(*name));
    own.filter_map(|(name, value)| Some((name, member(name, &value?)))).collect()
}

/// `response_format` as `json_schema` and as `json_object`. The second exists for objects only: no other root could
/// ever come back.
fn formats(schema: &Value) -> [Option<Vec<u8>>; 2] {
    let mut inner = Map::new();
    inner.insert("name".to_owned(), Value::from("answer"));
    inner.insert("strict".to_owned(), Value::from(strict::is_strict(schema)));
    inner.insert("schema".to_owned(), schema.clone());
    let by_schema = serde_json::json!({ "type": "json_schema", "json_schema": inner });
    let other_root = schema.get("type").is_some_and(|kind| kind != "object");
    let object =
        (!other_root).then(|| member("response_format", &serde_json::json!({ "type": "json_object" })));
    [Some(member("response_format", &by_schema)), object]
}

/// What the system prompt gains, as JSON text without quotes. Servers refuse `json_object` unless the messages hold
/// the word JSON.
fn instruction(schema: &Value) -> Vec<u8> {
    let text = format!(
        "Answer with JSON only: one value that satisfies the JSON Schema below, without any other text and without \
         a Markdown fence.\n\n{schema}"
    );
    let mut quoted = Vec::with_capacity(text.len() + 64);
    push_text(&mut quoted, &text);
    quoted[1..quoted.len() - 1].to_vec()
}

fn push_system(body: &mut Vec<u8>, system: &str, instruction: &[u8]) {
    push_text(body, system);
    if !instruction.is_empty() {
        body.pop();
        if !system.is_empty() {
            body.extend_from_slice(br"\n\n");
        }
        body.extend_from_slice(instruction);
        body.push(b'"');
    }
}

/// The invalid answer as the model's turn, then what is wrong with it. Servers refuse an empty turn.
fn push_repair(body: &mut Vec<u8>, repair: &Repair) {
    let answer = if repair.answer.trim().is_empty() { "(no text)" } else { &repair.answer };
    body.extend_from_slice(br#",{"role":"assistant","content":"#);
    push_text(body, answer);
    let mut ask = "That answer is not valid:\n".to_owned();
    for error in &repair.errors {
        ask.push_str("- ");
        ask.push_str(error);
        ask.push('\n');
    }
    ask.push_str("Answer again with the whole corrected JSON and nothing else.");
    body.extend_from_slice(br#"},{"role":"user","content":"#);
    push_text(body, &ask);
    body.push(b'}');
}

/// `,"name":value`.
fn member(name: &str, value: &Value) -> Vec<u8> {
    let mut text = b",".to_vec();
    push_text(&mut text, name);
    text.push(b':');
    text.extend_from_slice(value.to_string().as_bytes());
    text
}

/// A JSON string.
fn push_text(body: &mut Vec<u8>, text: &str) {
    // Writing text to memory cannot fail; should it ever, the mark keeps the body valid JSON.
    let before = body.len();
    if serde_json::to_writer(&mut *body, text).is_err() {
        body.truncate(before);
        body.extend_from_slice(b"\"\"");
    }
}

#[cfg(test)]
mod tests;
