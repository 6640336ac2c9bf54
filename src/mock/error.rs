//! What can be wrong with the mock server.

use std::io;

/// An error of the mock server or of its settings.
#[derive(Debug, thiserror::Error)]
pub enum MockError {
    /// The port is in use, or may not be used.
    #[error(
        "port {port} on 127.0.0.1 cannot be used: {source}; choose another, or `--port 0` for any free one"
    )]
    Port {
        /// The port.
        port: u16,
        /// Why.
        source: io::Error,
    },
    /// The runtime, the signals or standard output failed.
    #[error("the mock server cannot start: {0}")]
    Start(#[from] io::Error),
    /// A rate limit that cannot be read.
    #[error(
        "`{0}` is no rate limit: write a whole number a second, minute or hour, as in 50/s, 600/m or 1000/h"
    )]
    RateLimit(String),
    /// A price that cannot be read.
    #[error("`{0}` is no price: write USD per million tokens as in `input=1,output=4`")]
    Price(String),
}
