//! The reply that nearly all replies are, read without building a tree of it.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::model::{HttpReply, ServiceTier, Usage};
use crate::provider::openai::usage::PlainUsage;

/// A whole answer in the shape that the provider documents. Any other member is passed over; a member of another type,
/// or one that is there twice, makes the reply none of these.
#[derive(Debug, Deserialize)]
struct Reply<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
    object: Option<&'a str>,
    error: Option<IgnoredAny>,
    usage: Option<PlainUsage>,
    #[serde(borrow)]
    service_tier: Option<Cow<'a, str>>,
}

#[derive(Debug, Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Message<'a>,
    finish_reason: &'a str,
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Cow<'a, str>,
    refusal: Option<IgnoredAny>,
    tool_calls: Option<IgnoredAny>,
}

/// The text, the usage and the tier of a plain answer: a 200 with a first choice that ended by itself and holds text.
/// `None` for whatever else it is, which is then read with more care and, where it is a plain answer after all, to the
/// same end.
pub(in crate::provider) fn answer(reply: &HttpReply) -> Option<(String, Option<Usage>, Option<ServiceTier>)> {
    if reply.status != 200 {
        return None;
    }
    let read: Reply<'_> = serde_json::from_str(std::str::from_utf8(&reply.body).ok()?).ok()?;
    let first = read.choices.into_iter().next()?;
    let is_plain = read.error.is_none()
        && read.object == Some("chat.completion")
        && first.error.is_none()
        && first.finish_reason == "stop"
        && first.message.refusal.is_none()
        && first.message.tool_calls.is_none()
        && !first.message.content.trim().is_empty();
    is_plain.then(|| {
        let tier = read.service_tier.as_deref().map(ServiceTier::from_word);
        (first.message.content.into_owned(), read.usage.as_ref().and_then(PlainUsage::usage), tier)
    })
}
