//! Anthropic Messages, version `2023-06-01`.
//!
//! What it is for: request bodies and replies of that format, with what its models differ in: the forms of structured
//! output, sampling, and how much thinking they do of their own accord.
//! It uses the parts of `provider` that all formats share.
//! What never happens here: the model's turn is opened for it. Newer models refuse that; the last message is always
//! the user's.

mod decode;
mod encode;
mod lesson;
mod schema;
mod stream;
mod usage;

pub(super) use decode::decode;
pub(super) use encode::{AnthropicRequest, headers};
