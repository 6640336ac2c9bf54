//! Request bodies.

use serde_json::{Map, Value, json};

use crate::base::Secret;
use crate::model::{CallSettings, Learned, Prompt, Repair, Structured};
use crate::provider::anthropic::schema;
use crate::provider::json::{member, push_text};
use crate::provider::ladder::Ladder;
use crate::provider::quirks::{Sent, is_dropped};
use crate::provider::wording::{
    CALL_TOOL, TOOL, TOOL_PURPOSE, instruction, push_repair, push_with, tool_schema,
};
use crate::provider::{PriceTable, ProviderError};

/// The version of the format that is spoken: the newest one refuses sampling parameters of every model.
const VERSION: &str = "2023-06-01";
/// Where effort and format stand.
const CONFIG: &str = "output_config";
const TOOL_CHOICE: &str = "tool_choice";
/// The name under which a refusal speaks of the effort.
const EFFORT: &str = "effort";
/// The mark at the end of what the provider's prompt cache is to keep.
pub(super) const CACHE: &str = "cache_control";

/// A request in all parts that rows share, each already JSON text.
#[derive(Debug)]
pub(crate) struct AnthropicRequest {
    /// The body up to the prompt, without a comma behind it.
    head: Vec<u8>,
    /// What the system prompt gains where the schema stands in the prompt; JSON text without quotes.
    instruction: Vec<u8>,
    /// Optional parameters by name, as `,"name":value`.
    optional: Vec<(&'static str, Vec<u8>)>,
    config: Config,
    /// `tools`; empty where none is sent.
    tools: Vec<u8>,
    /// `tool_choice` by name, and as the model likes; empty where `extra` sets it.
    choices: [Vec<u8>; 2],
    /// Whether the model takes a tool that it must call.
    forces_tools: bool,
    /// Whether the system prompt is marked for the cache. What stands before it in the provider's order, the tools, is
    /// kept with it.
    cache: bool,
    /// `extra`, and the end of the body.
    tail: Vec<u8>,
    /// The forms of structured output.
    ladder: Ladder,
}

/// The `output_config` of a request, as `,"output_config":{…}`, in all its variants.
#[derive(Debug, Default)]
struct Config {
    has_effort: bool,
    has_format: bool,
    /// Without both, with the effort, with the format, with both; empty where nothing is in it.
    variants: [Vec<u8>; 4],
}

impl AnthropicRequest {
    /// Prepares requests for these settings.
    pub(crate) fn new(call: &CallSettings, schema: Option<&Value>) -> Result<Self, ProviderError> {
        let mut extra = call.extra.clone();
        if let Some(name) = ["messages", "system"].into_iter().find(|name| extra.contains_key(*name)) {
            return Err(ProviderError::ReservedExtra(name));
        }
        let tool = schema.and_then(tool_schema);
        if call.structured == Structured::Tool && schema.is_some() && tool.is_none() {
            return Err(ProviderError::ToolNeedsObject);
        }
        let forces_tools = PriceTable::built_in().forces_tools(&call.model);
        let mut head = b"{".to_vec();
        for (name, value) in
            [("model", Value::from(call.model.as_str())), ("max_tokens", Value::from(call.max_output_tokens))]
        {
            if !extra.contains_key(name) && value != "" {
                let text = member(name, &value);
                head.extend_from_slice(if head.len() == 1 { &text[1..] } else { &text });
            }
        }
        let format = schema.and_then(|schema| match call.structured {
            Structured::Auto => schema::derived(schema),
            // A form that somebody chose is sent: the server says what it does not take.
            Structured::JsonSchema => Some(schema::derived(schema).unwrap_or_else(|| schema.clone())),
            _ => None,
        });
        let can_call = tool.is_some() && !extra.contains_key("tools");
        let ladder = match (schema, call.structured) {
            (None, _) => Ladder::none(),
            (Some(_), Structured::Auto) => Ladder::of([
                (Structured::JsonSchema, format.is_some()),
                (Structured::Tool, can_call && forces_tools),
                (Structured::Prompt, true),
            ]),
            (Some(_), Structured::JsonObject) => Ladder::chosen(Structured::Prompt),
            (Some(_), chosen) => Ladder::chosen(chosen),
        };
        let config = Config::new(call, format, &mut extra);
        let mut tail: Vec<u8> = extra.iter().flat_map(|(name, value)| member(name, value)).collect();
        tail.push(b'}');
        let choice = |value: Value| {
            if extra.contains_key(TOOL_CHOICE) { Vec::new() } else { member(TOOL_CHOICE, &value) }
        };
        Ok(Self {
            head,
            instruction: schema.map(instruction).unwrap_or_default(),
            optional: optional(call),
            config,
            tools: match tool.filter(|_| can_call) {
                Some(tool) => member(
                    "tools",
                    &json!([{ "name": TOOL, "description": TOOL_PURPOSE, "input_schema": tool }]),
                ),
                None => Vec::new(),
            },
            choices: [
                choice(json!({ "type": "tool", "name": TOOL, "disable_parallel_tool_use": true })),
                choice(json!({ "type": "auto", "disable_parallel_tool_use": true })),
            ],
            forces_tools,
            cache: call.cache,
            tail,
            ladder,
        })
    }

    /// The body for one prompt.
    pub(crate) fn encode(&self, prompt: &Prompt, learned: &Learned, repair: Option<&Repair>) -> Vec<u8> {
        let texts = prompt.user.len() + prompt.system.as_ref().map_or(0, String::len);
        let repairing = repair.map_or(0, |repair| repair.answer.len() + self.instruction.len() + 512);
        let fixed = self.head.len() + self.instruction.len() + self.tools.len() + self.tail.len() + 512;
        let form = self.form(learned);
        let config = self.config.text(learned, form == Some(Structured::JsonSchema));
        let mut body = Vec::with_capacity(texts + texts / 8 + repairing + fixed + config.len());
        body.extend_from_slice(&self.head);
        let addition = match form {
            Some(Structured::Prompt) => &self.instruction[..],
            Some(Structured::Tool) if !self.is_forced(learned) => CALL_TOOL.as_bytes(),
            _ => &[],
        };
        // A system prompt without text is refused.
        let system = prompt.system.as_deref().filter(|system| !system.trim().is_empty()).unwrap_or_default();
        if !(system.is_empty() && addition.is_empty()) {
            let marked = self.marks(learned);
            body.extend_from_slice(br#","system":"#);
            if marked {
                body.extend_from_slice(br#"[{"type":"text","text":"#);
            }
            push_with(&mut body, system, addition);
            if marked {
                body.extend_from_slice(br#","cache_control":{"type":"ephemeral"}}]"#);
            }
        }
        body.extend_from_slice(br#","messages":[{"role":"user","content":"#);
        push_text(&mut body, &prompt.user);
        body.push(b'}');
        if let Some(repair) = repair {
            // Some servers pass over the schema beside the messages: then the model reads it here for the first time.
            let by_format = form == Some(Structured::JsonSchema);
            push_repair(&mut body, repair, if by_format { &self.instruction } else { &[] });
        }
        body.push(b']');
        for (name, text) in &self.optional {
            if !is_dropped(learned, name) {
                body.extend_from_slice(text);
            }
        }
        body.extend_from_slice(config);
        if form == Some(Structured::Tool) {
            body.extend_from_slice(&self.tools);
            if !self.tools.is_empty() {
                body.extend_from_slice(&self.choices[usize::from(!self.is_forced(learned))]);
            }
        }
        body.extend_from_slice(&self.tail);
        if body.starts_with(b"{,") {
            body.remove(1);
        }
        body
    }

    /// The form of structured output of a request that was encoded with `learned`.
    pub(crate) fn form(&self, learned: &Learned) -> Option<Structured> {
        self.ladder.form(learned)
    }

    /// What of a request that was encoded with `learned` a server might refuse.
    pub(crate) fn sent(&self, learned: &Learned) -> Sent {
        let effort = self.config.has_effort.then_some(EFFORT);
        let mark = self.cache.then_some(CACHE);
        let optional = self.optional.iter().map(|(name, _)| *name).chain(effort).chain(mark);
        let weaker = self.ladder.weaker(learned);
        let calls = self.form(learned) == Some(Structured::Tool) && !self.tools.is_empty();
        Sent {
            tool_choice: calls && weaker.is_none() && self.is_forced(learned),
            weaker,
            optional: optional.filter(|name| !is_dropped(learned, name)).collect(),
            ..Sent::default()
        }
    }

    /// Whether the system prompt is marked for the cache.
    fn marks(&self, learned: &Learned) -> bool {
        self.cache && !is_dropped(learned, CACHE)
    }

    /// Whether a tool that is sent must be called.
    fn is_forced(&self, learned: &Learned) -> bool {
        self.forces_tools && !is_dropped(learned, TOOL_CHOICE)
    }
}

impl Config {
    /// Takes `output_config` out of `extra`: its members go beside ours, and before them.
    fn new(call: &CallSettings, format: Option<Value>, extra: &mut Map<String, Value>) -> Self {
        let theirs = match extra.get(CONFIG) {
            None => Map::new(),
            Some(Value::Object(members)) => members.clone(),
            Some(_) => return Self::default(),
        };
        extra.shift_remove(CONFIG);
        let ours = |name: &str| !theirs.contains_key(name);
        let effort = call.sampling.reasoning_effort.as_deref().filter(|_| ours(EFFORT));
        let format = format.filter(|_| ours("format"));
        let variant = |at: usize| {
            let mut members = theirs.clone();
            if let Some(effort) = effort.filter(|_| at & 1 != 0) {
                members.insert(EFFORT.to_owned(), Value::from(effort));
            }
            if let Some(schema) = format.as_ref().filter(|_| at & 2 != 0) {
                let format = json!({ "type": "json_schema", "schema": schema });
                members.insert("format".to_owned(), format);
            }
            if members.is_empty() { Vec::new() } else { member(CONFIG, &Value::Object(members)) }
        };
        Self {
            has_effort: effort.is_some(),
            has_format: format.is_some(),
            variants: [0, 1, 2, 3].map(variant),
        }
    }

    fn text(&self, learned: &Learned, by_format: bool) -> &[u8] {
        let effort = self.has_effort && !is_dropped(learned, EFFORT);
        &self.variants[usize::from(effort) | usize::from(by_format && self.has_format) << 1]
    }
}

/// The headers of every request.
pub(crate) fn headers(key: Option<&Secret>) -> Vec<(&'static str, String)> {
    let mut headers =
        vec![("content-type", "application/json".to_owned()), ("anthropic-version", VERSION.to_owned())];
    if let Some(key) = key {
        headers.push(("x-api-key", key.expose().to_owned()));
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
    ];
    let own = set.into_iter().filter(|(name, _)| !call.extra.contains_key(*name));
    own.filter_map(|(name, value)| Some((name, member(name, &value?)))).collect()
}

#[cfg(test)]
mod tests;
