//! What a refusal teaches.

use crate::model::{Lesson, Structured};
use crate::provider::anthropic::encode::CACHE;
use crate::provider::errors::ServerError;
use crate::provider::quirks::{Sent, refused_parameter};

/// The lesson in a rejection, if there is one. The errors of this format name no parameter in a member of their own;
/// the sentence has to tell.
pub(super) fn lesson(error: &ServerError, form: Option<Structured>, sent: &Sent) -> Option<Lesson> {
    if let Some(weaker) = &sent.weaker
        && form.is_some_and(|form| is_about(error.lower(), form))
    {
        return Some(weaker.clone());
    }
    if sent.optional.contains(&CACHE) && wants_plain_system(error.lower()) {
        return Some(Lesson::DropParameter(CACHE.to_owned()));
    }
    refused_parameter(error, sent)
}

/// Whether a sentence says that the system prompt must be a text: what is marked for the cache is a list of blocks.
fn wants_plain_system(text: &str) -> bool {
    text.contains("system")
        && ["valid string", "must be a string", "expected a string", "expected string"]
            .iter()
            .any(|words| text.contains(words))
}

/// Whether a sentence is about the form that was sent, as in `output_config.format.schema: For 'integer' type,
/// property 'minimum' is not supported`, `Schema is too complex for compilation.` and `tool_choice: …`.
fn is_about(text: &str, form: Structured) -> bool {
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match form {
        Structured::JsonSchema => {
            says(&["output_config.format", "output_format", "output format", "structured output"])
                || says(&["schema", "grammar"])
                || (says(&["output_config"]) && !says(&["effort"]))
        }
        Structured::Tool => says(&["tool_choice", "tool use", "tools", "tool calling", "schema"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str) -> ServerError {
        let body = serde_json::json!({ "type": "error",
            "error": { "type": "invalid_request_error", "message": message } });
        ServerError::from_json(400, &body)
    }

    fn sent() -> Sent {
        let (refused, next) = (Structured::JsonSchema, Structured::Tool);
        Sent {
            weaker: Some(Lesson::WeakerStructured { steps: 1, refused, next }),
            optional: vec!["temperature", "top_p", "seed", "effort"],
            ..Sent::default()
        }
    }

    #[test]
    fn a_refused_form_gives_way() {
        for message in [
            "output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
            "Schema is too complex for compilation.",
            "output_config: Extra inputs are not permitted",
            "'claude-3-opus' does not support output format.",
        ] {
            let taught = lesson(&error(message), Some(Structured::JsonSchema), &sent());
            assert_eq!(taught, sent().weaker, "{message}");
            assert_eq!(lesson(&error(message), Some(Structured::Prompt), &sent()), None, "{message}");
        }
        let forced = error("tool_choice: forced tool use is not supported on this model");
        assert_eq!(lesson(&forced, Some(Structured::Tool), &sent()), sent().weaker);
        let alone = Sent { weaker: None, tool_choice: true, ..sent() };
        let dropped = Some(Lesson::DropParameter("tool_choice".to_owned()));
        assert_eq!(lesson(&forced, Some(Structured::Tool), &alone), dropped);
    }

    #[test]
    fn a_refused_mark_of_the_cache_is_left_out() {
        let marked = Sent { optional: vec!["temperature", CACHE], ..sent() };
        for message in [
            "system.0.cache_control: Extra inputs are not permitted",
            "system: Input should be a valid string",
        ] {
            let dropped = Some(Lesson::DropParameter(CACHE.to_owned()));
            assert_eq!(lesson(&error(message), None, &marked), dropped, "{message}");
            assert_eq!(lesson(&error(message), None, &sent()), None, "{message}");
        }
        let many = error("A maximum of 4 blocks with cache_control may be provided. Found 5.");
        assert_eq!(lesson(&many, None, &marked), None);
    }

    #[test]
    fn a_refused_parameter_is_left_out() {
        for (message, name) in [
            ("`temperature` is deprecated for this model.", "temperature"),
            ("seed: Extra inputs are not permitted", "seed"),
            ("output_config.effort: Extra inputs are not permitted", "effort"),
            ("This model does not support the effort parameter.", "effort"),
        ] {
            let taught = lesson(&error(message), Some(Structured::JsonSchema), &sent());
            assert_eq!(taught, Some(Lesson::DropParameter(name.to_owned())), "{message}");
        }
        for message in
            ["output_config.effort: Input should be 'low', 'medium' or 'high'", "max_tokens: 200000 > 64000"]
        {
            assert_eq!(lesson(&error(message), Some(Structured::JsonSchema), &sent()), None, "{message}");
        }
    }
}
