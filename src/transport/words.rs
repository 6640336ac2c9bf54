//! Sentences for what goes wrong on the way. They are fixed: the same failure reads the same for every row.

use std::error::Error;
use std::io;

use hyper_util::client::legacy;

use crate::model::{Failure, FailureClass, KeyFault};
use crate::transport::TransportError;
use crate::transport::connector::NotResolved;

fn failure(class: FailureClass, message: String) -> Failure {
    Failure { class, code: None, message, wait: None }
}

/// A request that could not be sent, or whose reply did not begin.
pub(super) fn unsent(host: &str, error: &legacy::Error) -> Failure {
    if !error.is_connect() {
        return broken(host);
    }
    let kind = io_kind(error);
    if kind == Some(io::ErrorKind::TimedOut) {
        let message = format!("no connection to {host} in time; check base_url and the network");
        return never_sent(failure(FailureClass::Timeout { total: false }, message));
    }
    let (why, advice) = if is_unresolved(error) {
        ("the name cannot be resolved", "check base_url and the network")
    } else {
        match kind {
            Some(io::ErrorKind::ConnectionRefused) => ("connection refused", "is the server running?"),
            Some(io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof) => {
                ("the connection broke", "does base_url say https where the server speaks http?")
            }
            Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
                ("the network cannot reach it", "check base_url and the network")
            }
            Some(io::ErrorKind::InvalidData) => {
                ("the TLS handshake failed", "check the certificate, and http or https in base_url")
            }
            _ => ("it could not be made", "check base_url, the proxy and the network"),
        }
    };
    never_sent(failure(FailureClass::Connection, format!("no connection to {host}: {why}; {advice}")))
}

/// Marks a failure before which nothing was sent: it costs nothing.
fn never_sent(failure: Failure) -> Failure {
    Failure { code: Some(Failure::NEVER_SENT.to_owned()), ..failure }
}

/// No reply, or not all of it, in the time that a request has.
pub(super) fn timed_out(host: &str) -> Failure {
    let message = format!("no whole reply from {host} in time; a slow server needs a larger timeout");
    failure(FailureClass::Timeout { total: true }, message)
}

/// A connection that broke before the reply was whole.
pub(super) fn broken(host: &str) -> Failure {
    failure(FailureClass::Connection, format!("the connection to {host} broke before the reply was whole"))
}

/// A reply over the cap.
pub(super) fn too_large(host: &str) -> Failure {
    failure(
        FailureClass::Server,
        format!("the reply of {host} is larger than any answer; it was not read to its end"),
    )
}

/// A header that cannot be sent. Of the headers of a request only the credential comes from outside.
pub(super) fn unsendable(error: &TransportError) -> Failure {
    never_sent(failure(
        FailureClass::Key(KeyFault::Unauthorized),
        format!("{error}; check the variable or file of the credential"),
    ))
}

/// The kind of the innermost I/O error; `InvalidData` for any error of TLS.
fn io_kind(error: &legacy::Error) -> Option<io::ErrorKind> {
    let mut kind = None;
    let mut source = error.source();
    while let Some(inner) = source {
        if inner.is::<rustls::Error>() {
            return Some(io::ErrorKind::InvalidData);
        }
        source = match inner.downcast_ref::<io::Error>() {
            Some(io) => {
                kind = Some(io.kind());
                // An I/O error passes over the error that it wraps when it is asked for its source.
                io.get_ref().map(|wrapped| wrapped as &(dyn Error + 'static))
            }
            None => inner.source(),
        };
    }
    kind
}

/// Whether the host's name has no address.
fn is_unresolved(error: &legacy::Error) -> bool {
    let mut source = error.source();
    while let Some(inner) = source {
        if inner.is::<NotResolved>() {
            return true;
        }
        source = inner.source();
    }
    false
}
