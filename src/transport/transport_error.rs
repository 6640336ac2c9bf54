//! Why no request can be sent at all.

/// A transport, or an endpoint of it, that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// No cryptography is installed for this process.
    #[error("no TLS provider is installed: this is a fault of the program")]
    NoTls,
    /// The endpoint is no URL with a host.
    #[error("the endpoint is no URL with a host: check base_url")]
    NotAUrl,
    /// A header that HTTP cannot carry. Its value is not shown.
    #[error("header `{0}` holds characters that HTTP cannot carry")]
    Header(String),
}
