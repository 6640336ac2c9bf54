//! What a refusal teaches about an endpoint.

use crate::model::{Learned, Lesson, Structured};
use crate::provider::errors::ServerError;

/// The promise that an answer keeps to its schema, which some servers do not know.
pub(super) const STRICT: &str = "strict";

/// The parts of a request that a server may refuse and that can then be sent otherwise.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The name under which the length limit was sent, if its other name has not been tried yet.
    pub(super) length_name: Option<&'static str>,
    /// The lesson of a refused form of structured output, where one was sent that has a weaker one.
    pub(super) weaker: Option<Lesson>,
    /// Whether `strict` was sent. Without it the form is still the same.
    pub(super) strict: bool,
    /// Whether a tool was asked for by name, which some servers do not take.
    pub(super) tool_choice: bool,
    /// The optional parameters that were sent.
    pub(super) optional: Vec<&'static str>,
}

/// The lesson in a rejection, if there is one. Only what was sent can be at fault, so a lesson that has been applied
/// never comes again.
pub(super) fn lesson(error: &ServerError, sent: &Sent) -> Option<Lesson> {
    if let Some(name) = sent.length_name
        && refuses(error, name)
        && first_mentioned(error, &["max_tokens", "max_completion_tokens"]) == Some(name)
    {
        return Some(Lesson::SwapLengthParameter);
    }
    if sent.strict && refuses(error, STRICT) {
        return Some(Lesson::DropParameter(STRICT.to_owned()));
    }
    if let Some(weaker) = &sent.weaker
        && names_response_format(error)
    {
        return Some(weaker.clone());
    }
    refused_parameter(error, sent)
}

/// The lesson about a parameter that can be left out.
pub(super) fn refused_parameter(error: &ServerError, sent: &Sent) -> Option<Lesson> {
    // There is no other value of it to choose, so that naming it is enough.
    if sent.tool_choice && mentioned_at(error.lower(), "tool_choice").is_some() {
        return Some(Lesson::DropParameter("tool_choice".to_owned()));
    }
    let refused = |name: &str| refuses(error, name);
    let culprit = match error.param() {
        Some(param) => sent.optional.iter().find(|name| **name == param && refused(name)).copied(),
        None => None,
    };
    let culprit = culprit.or_else(|| first_mentioned(error, &sent.optional).filter(|name| refused(name)));
    culprit.map(|name| Lesson::DropParameter(name.to_owned()))
}

/// Whether a parameter has been found to be refused.
pub(super) fn is_dropped(learned: &Learned, name: &str) -> bool {
    learned.dropped.iter().any(|dropped| dropped == name)
}

/// Whether the error says of this parameter that it, or its value, is not taken. A value out of range is no such
/// thing: the person chose it and must choose another.
fn refuses(error: &ServerError, name: &str) -> bool {
    const CODES: [&str; 4] =
        ["unsupported_parameter", "unsupported_value", "unknown_parameter", "extra_forbidden"];
    const PHRASES: [&str; 10] = [
        "unsupported parameter",
        "unsupported value",
        "not supported",
        "does not support",
        "unrecognized",
        "unknown",
        "unexpected",
        "extra inputs",
        "not permitted",
        "deprecated for this model",
    ];
    let named = error.param() == Some(name) || mentioned_at(error.lower(), name).is_some();
    named
        && (CODES.iter().any(|code| error.has_word(code))
            || PHRASES.iter().any(|phrase| error.lower().contains(phrase)))
}

/// Whether the error is about the form of structured output. Some servers answer 500 to a form that they do not know
/// (llama.cpp), so a 500 counts if it names the parameter.
fn names_response_format(error: &ServerError) -> bool {
    let named = error.param().is_some_and(|param| param.starts_with("response_format"))
        || error.lower().contains("response_format");
    let described = || {
        ["json_schema", "structured output", "json mode"].iter().any(|words| error.lower().contains(words))
    };
    named || (error.status() < 500 && described())
}

fn first_mentioned(error: &ServerError, names: &[&'static str]) -> Option<&'static str> {
    if let Some(name) = names.iter().find(|name| error.param() == Some(name)) {
        return Some(name);
    }
    let places = names.iter().filter_map(|name| Some((mentioned_at(error.lower(), name)?, *name)));
    places.min().map(|(_, name)| name)
}

/// Where a text has this name as a word of its own.
fn mentioned_at(text: &str, name: &str) -> Option<usize> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).map(|(at, _)| at).find(|&at| {
        !text[..at].chars().next_back().is_some_and(part)
            && !text[at + name.len()..].chars().next().is_some_and(part)
    })
}

/// Applies a lesson, and says to a person what is done differently from now on. A lesson may be applied again without
/// harm.
pub fn learn(learned: &mut Learned, lesson: &Lesson) -> String {
    match lesson {
        Lesson::SwapLengthParameter => {
            learned.swap_length_parameter = true;
            "the server refuses this name of the length limit: the other of `max_tokens` and \
             `max_completion_tokens` is sent from now on"
                .to_owned()
        }
        Lesson::DropParameter(name) => {
            if !learned.dropped.contains(name) {
                learned.dropped.push(name.clone());
            }
            if name == "tool_choice" {
                return "the server refuses a tool to be chosen by name: it is asked for in general from now on"
                    .to_owned();
            }
            format!("the server refuses `{name}`: it is left out from now on")
        }
        Lesson::WeakerStructured { steps, refused, next } => {
            learned.structured_steps = learned.structured_steps.max(*steps);
            let refused = form(*refused);
            match next {
                Structured::JsonObject => format!(
                    "the server refuses {refused}: `json_object` is sent from now on, and the schema in the prompt"
                ),
                Structured::Tool => {
                    format!("the server refuses {refused}: a forced tool is sent from now on")
                }
                _ => {
                    format!("the server refuses {refused}: the schema is sent in the prompt only from now on")
                }
            }
        }
    }
}

/// A form in words.
fn form(form: Structured) -> String {
    if form == Structured::Tool { "a forced tool".to_owned() } else { format!("`{}`", form.as_str()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str, code: &str, param: Option<&str>) -> ServerError {
        let body = serde_json::json!({ "error": { "message": message, "code": code, "param": param } });
        ServerError::from_json(400, &body)
    }

    fn sent() -> Sent {
        Sent {
            length_name: Some("max_tokens"),
            optional: vec!["temperature", "top_p", "seed"],
            ..Sent::default()
        }
    }

    #[test]
    fn only_a_refusal_of_what_was_sent_teaches() {
        let swap = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        let refused = error(swap, "unsupported_parameter", Some("max_tokens"));
        assert_eq!(lesson(&refused, &sent()), Some(Lesson::SwapLengthParameter));
        assert_eq!(lesson(&refused, &Sent { length_name: None, ..sent() }), None);
        let other = Sent { length_name: Some("max_completion_tokens"), ..sent() };
        assert_eq!(lesson(&refused, &other), None);
        let large = error("max_tokens is too large: 100000", "invalid_value", Some("max_tokens"));
        assert_eq!(lesson(&large, &sent()), None);
    }

    #[test]
    fn parameters_are_found_by_field_or_by_sentence() {
        let drop = |name: &str| Some(Lesson::DropParameter(name.to_owned()));
        let by_field =
            error("Only the default (1) value is supported.", "unsupported_value", Some("temperature"));
        assert_eq!(lesson(&by_field, &sent()), drop("temperature"));
        let by_sentence = error("Unrecognized request argument supplied: seed", "", None);
        assert_eq!(lesson(&by_sentence, &sent()), drop("seed"));
        let not_sent = error("Unrecognized request argument supplied: service_tier", "", None);
        assert_eq!(lesson(&not_sent, &sent()), None);
        let value = error("top_p must be 1 when using greedy sampling", "", None);
        assert_eq!(lesson(&value, &sent()), None);
        let inside = error("unknown field `xseed`", "", None);
        assert_eq!(lesson(&inside, &sent()), None);
    }

    #[test]
    fn a_tool_by_name_is_refused_by_naming_it() {
        let refused = error("Invalid tool_choice type: 'object'. Supported: none, auto, required", "", None);
        let named = Sent { tool_choice: true, ..sent() };
        assert_eq!(lesson(&refused, &named), Some(Lesson::DropParameter("tool_choice".to_owned())));
        assert_eq!(lesson(&refused, &sent()), None);
    }

    #[test]
    fn a_form_is_kept_without_its_promise() {
        let refused = error("response_format.json_schema.strict: Extra inputs are not permitted", "", None);
        let (form, next) = (Structured::JsonSchema, Structured::JsonObject);
        let weaker = Some(Lesson::WeakerStructured { steps: 1, refused: form, next });
        let promised = Sent { weaker: weaker.clone(), strict: true, ..sent() };
        assert_eq!(lesson(&refused, &promised), Some(Lesson::DropParameter("strict".to_owned())));
        assert_eq!(lesson(&refused, &Sent { strict: false, ..promised }), weaker);
    }

    #[test]
    fn learning_twice_is_harmless() {
        let mut learned = Learned::default();
        let down = |steps, refused, next| Lesson::WeakerStructured { steps, refused, next };
        let first = down(1, Structured::JsonSchema, Structured::JsonObject);
        for _ in 0..3 {
            learn(&mut learned, &Lesson::SwapLengthParameter);
            learn(&mut learned, &Lesson::DropParameter("seed".to_owned()));
            assert!(learn(&mut learned, &first).contains("`json_schema`: `json_object` is sent"));
        }
        assert!(learned.swap_length_parameter);
        assert_eq!((learned.dropped.join(","), learned.structured_steps), ("seed".to_owned(), 1));
        let second = down(2, Structured::Tool, Structured::Prompt);
        assert!(
            learn(&mut learned, &second).contains("a forced tool: the schema is sent in the prompt only")
        );
        learn(&mut learned, &first);
        assert_eq!(learned.structured_steps, 2);
    }
}
