//! The one place that knows which provider speaks which wire format.

use crate::base::{Secret, WallTime};
use crate::model::{CallSettings, Decoded, HttpReply, Learned, Prompt, ProviderKind, Repair};
use crate::provider::ProviderError;
use crate::provider::anthropic::{self, AnthropicRequest};
use crate::provider::openai::{self, OpenaiRequest};

/// Turns prompts into request bodies and replies into content, for one call configuration. All that does not change
/// from row to row is written once, at its making.
#[derive(Debug)]
pub struct Codec {
    wire: Wire,
}

/// One variant for each wire format.
#[derive(Debug)]
enum Wire {
    Openai(OpenaiRequest),
    Anthropic(AnthropicRequest),
}

impl Codec {
    /// A codec for these settings. `schema` is what an answer must satisfy; `None` for free text.
    ///
    /// # Errors
    /// A schema that the chosen structured form cannot carry, and an `extra` that would replace the prompt.
    pub fn new(call: &CallSettings, schema: Option<&serde_json::Value>) -> Result<Self, ProviderError> {
        let wire = match call.provider {
            ProviderKind::Openai | ProviderKind::Mock => Wire::Openai(OpenaiRequest::new(call, schema)?),
            ProviderKind::Anthropic => Wire::Anthropic(AnthropicRequest::new(call, schema)?),
        };
        Ok(Self { wire })
    }

    /// The body of a request. `learned` is what is known of the endpoint; `repair` re-asks after an invalid answer.
    pub fn encode(&self, prompt: &Prompt, learned: &Learned, repair: Option<&Repair>) -> Vec<u8> {
        match &self.wire {
            Wire::Openai(request) => request.encode(prompt, learned, repair),
            Wire::Anthropic(request) => request.encode(prompt, learned, repair),
        }
    }

    /// The headers of a request that depend on format and credential only; names in lower case. The values of
    /// `authorization` and `x-api-key` are credentials.
    pub fn headers(&self, key: Option<&Secret>) -> Vec<(&'static str, String)> {
        match &self.wire {
            Wire::Openai(_) => openai::headers(key),
            Wire::Anthropic(_) => anthropic::headers(key),
        }
    }

    /// Reads a reply. `learned` is what the request was encoded with, so that a lesson that was already learned is a
    /// plain rejection and cannot come again; `now` is for dates that servers send.
    pub fn decode(&self, reply: &HttpReply, learned: &Learned, now: WallTime) -> Decoded {
        match &self.wire {
            Wire::Openai(request) => openai::decode(request, reply, learned, now),
            Wire::Anthropic(request) => anthropic::decode(request, reply, learned, now),
        }
    }
}
