//! What a provider sent back, raw and decoded.

use crate::model::{Failure, ServiceTier, Usage};

/// A complete HTTP reply, its body decompressed and free of credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// Header names in lower case with their values, in order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: bytes::Bytes,
}

impl HttpReply {
    /// The first value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

/// A reply as the codec reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// What it says.
    pub content: ReplyContent,
    /// The token counts that it carries, if it carries any.
    pub usage: Option<Usage>,
    /// The tier of service that it says it was made in, if it says so.
    pub tier: Option<ServiceTier>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
}

/// What a reply says, before the answer is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyContent {
    /// A complete text, to be read and checked.
    Text(String),
    /// The text stops at the length limit; so much of it as there is.
    Truncated(String),
    /// The model declined, with its words.
    Refused(String),
    /// A content filter cut the answer, with what the server says about it.
    Filtered(String),
    /// There is no text.
    Empty,
    /// A reply that cannot hold an answer, such as a call of an unknown tool; why.
    Unusable(String),
    /// An error, by status or in the body of a 200.
    Failed(Failure),
}
