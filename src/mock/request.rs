//! What a request asks for, read from either wire format.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::base::DigestBuilder;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `OpenAI` Chat Completions.
    OpenAi,
    /// `Anthropic` Messages.
    Anthropic,
}

/// The form in which the answer is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// Text, JSON or not.
    Text,
    /// Some JSON object.
    JsonObject,
    /// The arguments of this tool.
    Tool(String),
}

/// A request, as far as it shapes the answer.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// The wire format that it came in.
    pub(super) dialect: Dialect,
    /// The model's name; empty if none was given.
    pub(super) model: Cow<'a, str>,
    /// All texts with their roles, the system text first.
    pub(super) texts: Vec<(&'static str, Cow<'a, str>)>,
    /// A schema that stands in the prompt itself, where none stands beside the messages.
    pub(super) found_schema: Option<Value>,
    /// The text of the schema beside the messages: JSON, and billed as input.
    pub(super) schema_text: Option<&'a str>,
    /// The wanted form.
    pub(super) form: Form,
    /// The most output tokens.
    pub(super) limit: Option<u64>,
    /// Whether an event stream was asked for.
    pub(super) stream: bool,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    system: Option<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
    #[serde(borrow)]
    response_format: Option<Format<'a>>,
    #[serde(borrow)]
    output_config: Option<OutputConfig<'a>>,
    #[serde(borrow)]
    output_format: Option<Format<'a>>,
    #[serde(borrow, default)]
    tools: Vec<Tool<'a>>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    json_schema: Option<NamedSchema<'a>>,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct NamedSchema<'a> {
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct OutputConfig<'a> {
    #[serde(borrow)]
    format: Option<Format<'a>>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct NamedChoice<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

impl<'a> Asked<'a> {
    /// Reads a request body. The error is a sentence for the client.
    pub(super) fn read(dialect: Dialect, body: &'a [u8]) -> Result<Self, String> {
        let body: Body<'a> = serde_json::from_slice(body)
            .map_err(|error| format!("We could not parse the JSON body of your request: {error}"))?;
        let mut texts = Vec::with_capacity(body.messages.len() + 1);
        if let Some(system) = body.system {
            texts.push(("system", text_of(system)?));
        }
        for message in &body.messages {
            let role = match &*message.role.0 {
                "system" | "developer" => "system",
                "assistant" => "assistant",
                _ => "user",
            };
            if let Some(content) = message.content {
                texts.push((role, text_of(content)?));
            }
        }
        if body.messages.is_empty() {
            return Err("Missing required parameter: 'messages'.".to_owned());
        }
        let limit = body.max_completion_tokens.or(body.max_tokens);
        if limit == Some(0) || (limit.is_none() && dialect == Dialect::Anthropic) {
            return Err("max_tokens: must be given and at least 1".to_owned());
        }
        let (form, schema_text) = form_and_schema(&body)?;
        let found_schema = if schema_text.is_none() { schema_in_prompt(&texts, &form) } else { None };
        Ok(Self {
            dialect,
            model: body.model.map_or(Cow::Borrowed(""), |model| model.0),
            texts,
            found_schema,
            schema_text,
            form,
            limit,
            stream: body.stream == Some(true),
        })
    }

    /// A number that stands for the prompt: the same whatever wire format carries the texts.
    pub(super) fn prompt_number(&self) -> u64 {
        let mut builder = DigestBuilder::new("mock prompt");
        for (role, text) in &self.texts {
            builder = builder.field(role, text.as_bytes());
        }
        let short = builder.finish().short();
        short[..8].iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
    }
}

/// The text of a content that is a string or a list of blocks.
fn text_of(content: &RawValue) -> Result<Cow<'_, str>, String> {
    let raw = content.get();
    let read = |error: serde_json::Error| format!("Invalid type for 'content': {error}");
    if raw.starts_with('"') {
        return serde_json::from_str::<Text<'_>>(raw).map(|text| text.0).map_err(read);
    }
    if raw == "null" {
        return Ok(Cow::Borrowed(""));
    }
    let mut blocks: Vec<Block<'_>> = serde_json::from_str(raw).map_err(read)?;
    if let [only] = blocks.as_mut_slice() {
        return Ok(only.text.take().map_or(Cow::Borrowed(""), |text| text.0));
    }
    Ok(Cow::Owned(blocks.iter().filter_map(|block| block.text.as_ref()).map(|text| &*text.0).collect()))
}

fn form_and_schema<'a>(body: &Body<'a>) -> Result<(Form, Option<&'a str>), String> {
    let wants_tool = !matches!(body.tool_choice.map(RawValue::get), Some("\"none\""));
    if wants_tool && !body.tools.is_empty() {
        let chosen = match body.tool_choice.map(RawValue::get) {
            Some(raw) if raw.starts_with('{') => {
                let choice: NamedChoice<'a> =
                    serde_json::from_str(raw).map_err(|error| format!("Invalid 'tool_choice': {error}"))?;
                choice.function.map(|function| function.name).or(choice.name)
            }
            _ => None,
        };
        let named = |tool: &Tool<'a>| -> Option<(String, Option<&'a str>)> {
            let (name, schema) = match &tool.function {
                Some(function) => (&function.name, function.parameters),
                None => (tool.name.as_ref()?, tool.input_schema),
            };
            Some((name.0.clone().into_owned(), schema.map(RawValue::get)))
        };
        let tool = body
            .tools
            .iter()
            .filter_map(named)
            .find(|(name, _)| chosen.as_ref().is_none_or(|chosen| chosen.0 == *name));
        let (name, schema) = tool.ok_or_else(|| "Tool choice names no tool of the request.".to_owned())?;
        return Ok((Form::Tool(name), schema));
    }
    let format = body
        .response_format
        .as_ref()
        .or_else(|| body.output_config.as_ref().and_then(|config| config.format.as_ref()))
        .or(body.output_format.as_ref());
    Ok(match format {
        Some(format) if format.kind.0 == "json_schema" => {
            let schema = format.schema.or_else(|| format.json_schema.as_ref().and_then(|named| named.schema));
            (if schema.is_some() { Form::Text } else { Form::JsonObject }, schema.map(RawValue::get))
        }
        Some(format) if format.kind.0 == "json_object" => (Form::JsonObject, None),
        _ => (Form::Text, None),
    })
}

/// A schema that stands in the prompt itself: the last one of the system text or, where a JSON object is wanted, of
/// the user text.
fn schema_in_prompt(texts: &[(&'static str, Cow<'_, str>)], form: &Form) -> Option<Value> {
    let find = |wanted: &str| {
        texts.iter().filter(|(role, _)| *role == wanted).filter_map(|(_, text)| last_schema(text)).next_back()
    };
    find("system").or_else(|| if *form == Form::JsonObject { find("user") } else { None })
}

/// The last top-level JSON object of a text that looks like a schema. At most 256 places are tried, so that a text
/// full of braces costs no more than a long one.
fn last_schema(text: &str) -> Option<Value> {
    const MOST_TRIES: usize = 256;
    let mut found = None;
    let mut at = 0;
    for _ in 0..MOST_TRIES {
        let Some(step) = text[at..].find('{') else { break };
        at += step;
        let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                at += stream.byte_offset();
                if looks_like_schema(&value) {
                    found = Some(value);
                }
            }
            _ => at += 1,
        }
    }
    found
}

fn looks_like_schema(value: &Value) -> bool {
    const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
    let named = |value: &Value| value.as_str().is_some_and(|word| TYPES.contains(&word));
    let typed = match value.get("type") {
        Some(Value::Array(types)) => !types.is_empty() && types.iter().all(named),
        Some(word) => named(word),
        None => false,
    };
    typed
        || value.get("properties").is_some_and(Value::is_object)
        || ["anyOf", "oneOf", "allOf"].iter().any(|word| value.get(word).is_some_and(Value::is_array))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_read_alike() {
        let openai = br#"{"model":"m","messages":[{"role":"developer","content":"be \"brief\""},
            {"role":"user","content":[{"type":"text","text":"hi"}]}],
            "response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object"}}}}"#;
        let anthropic = br#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"be \"brief\""}],
            "messages":[{"role":"user","content":"hi"}],
            "output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}"#;
        let one = Asked::read(Dialect::OpenAi, openai).unwrap();
        let two = Asked::read(Dialect::Anthropic, anthropic).unwrap();
        assert_eq!(one.texts, two.texts);
        assert_eq!(one.prompt_number(), two.prompt_number());
        assert_eq!(one.schema_text, two.schema_text);
        assert_eq!(one.schema_text, Some(r#"{"type":"object"}"#));
        assert_eq!((one.limit, two.limit), (None, Some(9)));
    }

    #[test]
    fn the_forced_tool_names_the_schema() {
        let openai = br#"{"messages":[{"role":"user","content":"hi"}],
            "tools":[{"type":"function","function":{"name":"a","parameters":{"type":"null"}}},
                     {"type":"function","function":{"name":"b","parameters":{"type":"boolean"}}}],
            "tool_choice":{"type":"function","function":{"name":"b"}}}"#;
        let asked = Asked::read(Dialect::OpenAi, openai).unwrap();
        assert_eq!(asked.form, Form::Tool("b".to_owned()));
        assert_eq!(asked.schema_text, Some(r#"{"type":"boolean"}"#));
        let anthropic = br#"{"max_tokens":1,"messages":[{"role":"user","content":"hi"}],
            "tools":[{"name":"b","input_schema":{"type":"boolean"}}],"tool_choice":{"type":"tool","name":"b"}}"#;
        let asked = Asked::read(Dialect::Anthropic, anthropic).unwrap();
        assert_eq!(
            (asked.form, asked.schema_text),
            (Form::Tool("b".to_owned()), Some(r#"{"type":"boolean"}"#))
        );
    }

    #[test]
    fn a_schema_is_found_in_the_system_text() {
        let text = "Rows look like {\"type\":\"shoe\"}. The schema:\n```json\n{\"type\":\"object\",\"properties\":{\"a\":{}}}\n```\n{x}";
        let found = last_schema(text).unwrap();
        assert!(found.get("properties").is_some());
        assert_eq!(last_schema("{\"type\":\"shoe\"} {{{{"), None);
        assert_eq!(last_schema(&"{".repeat(100_000)), None);
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_sentence() {
        for body in
            ["", "[]", "{}", r#"{"messages":[]}"#, r#"{"messages":[{"role":"user","content":7}]}"#, "\u{1}"]
        {
            assert!(Asked::read(Dialect::OpenAi, body.as_bytes()).is_err(), "{body}");
        }
        assert!(Asked::read(Dialect::OpenAi, b"{\"messages\":\"\xff\"}").is_err());
    }
}
