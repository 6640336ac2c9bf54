//! `OpenAI` Chat Completions, and every server that is compatible with it.
//!
//! What it is for: request bodies, and replies of any shape that such servers have been seen to send.
//! It uses the parts of `provider` that all formats share.
//! What never happens here: a reply is trusted to be what its status and its headers say.

mod decode;
mod encode;
pub(super) mod plain;
mod stream;
mod strict;
mod tool;
mod usage;

pub(super) use decode::decode;
pub(super) use encode::{OpenaiRequest, headers};
