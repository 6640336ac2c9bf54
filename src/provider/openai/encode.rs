//! Request bodies.

use serde_json::{Value, json};

use crate::base::Secret;
use crate::model::{CallSettings, Learned, Prompt, Repair, Structured};
use crate::provider::ProviderError;
use crate::provider::json::{member, push_text};
use crate::provider::ladder::Ladder;
use crate::provider::openai::strict;
use crate::provider::quirks::{STRICT, Sent, is_dropped};
use crate::provider::wording::{TOOL, TOOL_PURPOSE, instruction, push_repair, push_with, tool_schema};

/// The names of the length limit: the one that the provider's own API takes, and the one that local servers know.
const LENGTH: [&str; 2] = ["max_completion_tokens", "max_tokens"];

/// What a server may refuse of a forced tool.
const TOOL_CHOICE: &str = "tool_choice";
const PARALLEL: &str = "parallel_tool_calls";

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
    /// `response_format` as `json_schema`, the same without `strict`, and as `json_object`; empty where `extra` sets it.
    formats: [Vec<u8>; 3],
    /// `tools` and `tool_choice`; empty where `extra` sets `tools`.
    tool: ToolTexts,
    /// `extra`, and the end of the body.
    tail: Vec<u8>,
    /// The forms of structured output.
    ladder: Ladder,
}

/// The parts of a request that force a tool.
#[derive(Debug, Default)]
struct ToolTexts {
    /// `tools`, and the same without `strict`.
    tools: [Vec<u8>; 2],
    is_strict: bool,
    /// `tool_choice` by name, and as `required` for servers that take words only.
    choices: [Vec<u8>; 2],
    /// `parallel_tool_calls`, which a server may refuse.
    single: Vec<u8>,
}

impl OpenaiRequest {
    /// Prepares requests for these settings.
    pub(crate) fn new(call: &CallSettings, schema: Option<&Value>) -> Result<Self, ProviderError> {
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
                Some(schema) if !extra.contains_key("response_format") => formats(schema, call),
                _ => Default::default(),
            },
            tool: match schema {
                Some(schema) if call.structured == Structured::Tool => tool_texts(schema, call)?,
                _ => ToolTexts::default(),
            },
            tail,
            ladder: schema.map_or_else(Ladder::none, |schema| ladder(schema, call.structured)),
        })
    }

    /// The body for one prompt.
    pub(crate) fn encode(&self, prompt: &Prompt, learned: &Learned, repair: Option<&Repair>) -> Vec<u8> {
        let texts = prompt.user.len() + prompt.system.as_ref().map_or(0, String::len);
        let repairing = repair.map_or(0, |repair| repair.answer.len() + self.instruction.len() + 512);
        let fixed = self.head.len() + self.instruction.len() + self.tail.len() + 512;
        let form = self.ladder.form(learned);
        let format = self.format(form, learned);
        let room = texts + texts / 8 + repairing + fixed + format.len() + self.tool.tools[0].len();
        let mut body = Vec::with_capacity(room);
        body.extend_from_slice(&self.head);
        let in_prompt = matches!(form, Some(Structured::JsonObject | Structured::Prompt));
        let instruction = if in_prompt { &self.instruction[..] } else { &[] };
        let system = prompt.system.as_deref().unwrap_or_default();
        if !(system.is_empty() && instruction.is_empty()) {
            body.extend_from_slice(br#"{"role":"system","content":"#);
            push_with(&mut body, system, instruction);
            body.extend_from_slice(b"},");
        }
        body.extend_from_slice(br#"{"role":"user","content":"#);
        push_text(&mut body, &prompt.user);
        body.push(b'}');
        if let Some(repair) = repair {
            // Some servers pass over the schema beside the messages: then the model reads it here for the first time.
            let by_format = form == Some(Structured::JsonSchema);
            push_repair(&mut body, repair, if by_format { &self.instruction } else { &[] });
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
        body.extend_from_slice(format);
        if form == Some(Structured::Tool) {
            self.push_tool(&mut body, learned);
        }
        body.extend_from_slice(&self.tail);
        body
    }

    fn push_tool(&self, body: &mut Vec<u8>, learned: &Learned) {
        let ToolTexts { tools, choices, single, .. } = &self.tool;
        body.extend_from_slice(&tools[usize::from(is_dropped(learned, STRICT))]);
        body.extend_from_slice(&choices[usize::from(is_dropped(learned, TOOL_CHOICE))]);
        if !is_dropped(learned, PARALLEL) {
            body.extend_from_slice(single);
        }
    }

    /// Whether a request that was encoded with `learned` asks for a tool.
    pub(crate) fn wants_tool(&self, learned: &Learned) -> bool {
        self.ladder.form(learned) == Some(Structured::Tool)
    }

    /// What of a request that was encoded with `learned` a server might refuse.
    pub(crate) fn sent(&self, learned: &Learned) -> Sent {
        let untried = self.length.is_some() && !learned.swap_length_parameter;
        let form = self.ladder.form(learned);
        let has_tool = form == Some(Structured::Tool) && !self.tool.tools[0].is_empty();
        let optional = self.optional.iter().map(|(name, _)| *name).chain(has_tool.then_some(PARALLEL));
        let has_format = !self.format(form, learned).is_empty();
        let promises = has_tool && self.tool.is_strict || has_format && form == Some(Structured::JsonSchema);
        Sent {
            length_name: untried.then(|| LENGTH[self.length_index(learned)]),
            weaker: self.ladder.weaker(learned).filter(|_| has_format),
            strict: promises && !is_dropped(learned, STRICT),
            tool_choice: has_tool && !is_dropped(learned, TOOL_CHOICE),
            optional: optional.filter(|name| !is_dropped(learned, name)).collect(),
        }
    }

    fn length_index(&self, learned: &Learned) -> usize {
        self.first_length ^ usize::from(learned.swap_length_parameter)
    }

    fn format(&self, form: Option<Structured>, learned: &Learned) -> &[u8] {
        match form {
            Some(Structured::JsonSchema) => &self.formats[usize::from(is_dropped(learned, STRICT))],
            Some(Structured::JsonObject) => &self.formats[2],
            _ => &[],
        }
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

/// The forms for a schema. `json_object` exists for objects only: no other root could ever come back.
fn ladder(schema: &Value, structured: Structured) -> Ladder {
    let is_object = schema.get("type").is_none_or(|kind| kind == "object");
    match structured {
        Structured::Auto => Ladder::of([
            (Structured::JsonSchema, true),
            (Structured::JsonObject, is_object),
            (Structured::Prompt, true),
        ]),
        Structured::JsonObject if !is_object => Ladder::chosen(Structured::Prompt),
        chosen => Ladder::chosen(chosen),
    }
}

/// `response_format` as `json_schema`, the same without `strict`, and as `json_object`. A form that is ours to choose
/// may carry a derived schema; a chosen one carries the schema as it stands.
fn formats(schema: &Value, call: &CallSettings) -> [Vec<u8>; 3] {
    let derived =
        if call.structured == Structured::Auto { strict::derived(schema, call.own_host) } else { None };
    let is_strict = derived.is_some() || strict::is_strict(schema);
    let schema = derived.as_ref().unwrap_or(schema);
    [
        json!({ "type": "json_schema", "json_schema": { "name": TOOL, "strict": is_strict, "schema": schema } }),
        json!({ "type": "json_schema", "json_schema": { "name": TOOL, "schema": schema } }),
        json!({ "type": "json_object" }),
    ]
    .map(|format| member("response_format", &format))
}

/// A forced tool. `strict` is sent only where it holds: some servers know no such member.
fn tool_texts(schema: &Value, call: &CallSettings) -> Result<ToolTexts, ProviderError> {
    let parameters = tool_schema(schema).ok_or(ProviderError::ToolNeedsObject)?;
    if call.extra.contains_key("tools") {
        return Ok(ToolTexts::default());
    }
    let is_strict = strict::is_strict(&parameters);
    let tools = |strict: bool| {
        let mut function = json!({ "name": TOOL, "description": TOOL_PURPOSE });
        if strict {
            function[STRICT] = Value::Bool(true);
        }
        function["parameters"] = parameters.clone();
        member("tools", &json!([{ "type": "function", "function": function }]))
    };
    let own = |name: &str, value: Value| {
        if call.extra.contains_key(name) { Vec::new() } else { member(name, &value) }
    };
    let by_name = json!({ "type": "function", "function": { "name": TOOL } });
    Ok(ToolTexts {
        tools: [tools(is_strict), tools(false)],
        is_strict,
        choices: [own(TOOL_CHOICE, by_name), own(TOOL_CHOICE, Value::from("required"))],
        single: own(PARALLEL, Value::Bool(false)),
    })
}

#[cfg(test)]
mod tests;
