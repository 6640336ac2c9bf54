//! HTTP: sends a body to an endpoint and brings back the whole reply.
//!
//! What it is for: one connection pool, its time-outs, the cap on a reply's size, and the words for what can go wrong
//! on the way. Replies are freed of credentials before anyone sees them.
//! It uses `base` and `model`, and the HTTP client.
//! What never happens here: nothing is tried again, no redirect is followed, no status is judged, no URL with a query
//! or a credential gets into a message.

mod connector;
mod http;
mod http_endpoint;
mod tls;
mod transport_error;
mod words;

#[cfg(test)]
mod tests;

pub use http::{Http, HttpSettings};
pub use http_endpoint::HttpEndpoint;
pub use tls::install_tls;
pub use transport_error::TransportError;
