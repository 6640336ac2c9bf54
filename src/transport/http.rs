//! The HTTP client.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Request, Response, redirect, retry};

use crate::base::Redactor;
use crate::model::{Failure, FailureClass, HttpReply};
use crate::transport::{HttpEndpoint, TransportError, tls, words};

/// The most bytes of a body that are copied rather than shared with the connection's buffer of 8 KiB and more.
const COPIED: usize = 16 << 10;

/// How to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpSettings {
    /// The time of one request in all, from connecting to the last byte.
    pub timeout: Duration,
    /// The time to connect, part of `timeout`.
    pub connect_timeout: Duration,
    /// Idle connections kept for each host; as many as requests may be in flight, or each burst connects anew.
    pub max_idle_per_host: usize,
    /// The most bytes of a reply's body, decompressed.
    pub reply_cap: usize,
}

impl HttpSettings {
    /// The time to connect where nothing else is said.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// The cap of a reply where nothing else is said: 64 MiB.
    pub const REPLY_CAP: usize = 64 << 20;

    /// Settings with the usual time to connect and the usual cap.
    pub fn new(timeout: Duration, max_idle_per_host: usize) -> Self {
        Self {
            timeout,
            connect_timeout: Self::CONNECT_TIMEOUT,
            max_idle_per_host,
            reply_cap: Self::REPLY_CAP,
        }
    }
}

/// A pool of HTTP/1.1 connections. One request is one attempt: nothing is tried again here, so that all retries are
/// counted in one place, and redirects are not followed, so that no credential goes to another host.
#[derive(Debug, Clone)]
pub struct Http {
    client: Client,
    reply_cap: usize,
    redactor: Redactor,
}

impl Http {
    /// A client. `redactor` knows the credentials, which servers may echo. The proxy variables of the environment
    /// are honoured by the client itself.
    ///
    /// # Errors
    /// No TLS provider is installed, or the client cannot be set up on this machine.
    pub fn new(settings: HttpSettings, redactor: Redactor) -> Result<Self, TransportError> {
        let tls = tls::config().ok_or(TransportError::NoTls)?;
        // HTTP/2 is left out: one of its connections stops at the server's limit of streams, and the limiter would
        // take that wait for an overloaded provider.
        let client = Client::builder()
            .user_agent(concat!("verify/", env!("CARGO_PKG_VERSION")))
            .http1_only()
            .tls_backend_preconfigured(tls)
            .retry(retry::never())
            .redirect(redirect::Policy::none())
            .referer(false)
            .tcp_nodelay(true)
            .gzip(true)
            .timeout(settings.timeout)
            .connect_timeout(settings.connect_timeout)
            .pool_max_idle_per_host(settings.max_idle_per_host)
            .build()
            .map_err(|error| TransportError::Client(error.without_url()))?;
        Ok(Self { client, reply_cap: settings.reply_cap, redactor })
    }

    /// Prepares an endpoint with the headers that all its requests share.
    ///
    /// # Errors
    /// A text that is no URL with a host, and a header that HTTP cannot carry.
    pub fn endpoint(&self, url: &str, headers: &[(&str, String)]) -> Result<HttpEndpoint, TransportError> {
        HttpEndpoint::new(url, headers)
    }

    /// Sends one POST request and reads the whole reply. `headers` go over those of the endpoint. A reply of any
    /// status is a reply.
    ///
    /// A status of 429 or 5xx is a reply also where its body cannot be read.
    ///
    /// # Errors
    /// [`Failure`] of the classes `Connection` (none could be made, or it broke), `Timeout` (`total` unless it was
    /// connecting that took too long), `Server` (the reply is over the cap), and `Key` (a credential that no header
    /// can carry; nothing was sent).
    pub async fn send(
        &self,
        endpoint: &HttpEndpoint,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<HttpReply, Failure> {
        let mut request = Request::new(Method::POST, endpoint.url());
        *request.headers_mut() = endpoint.headers(headers).map_err(|error| words::unsendable(&error))?;
        *request.body_mut() = Some(body.into());
        let sent = self.client.execute(request).await;
        let mut response = sent.map_err(|error| words::unsent(endpoint.host(), &error))?;
        let status = response.status().as_u16();
        let headers = self.headers(response.headers());
        let body = match self.body(endpoint.host(), &mut response).await {
            // These statuses say what to do by themselves, and a wait in the headers counts although the body is cut,
            // or is not compressed as it says.
            Err(failure) if status == 429 || status >= 500 => {
                if matches!(failure.class, FailureClass::Timeout { .. }) {
                    return Err(failure);
                }
                Bytes::new()
            }
            body => body?,
        };
        Ok(HttpReply { status, headers, body })
    }

    fn headers(&self, headers: &HeaderMap) -> Vec<(String, String)> {
        let clean = |value: &[u8]| {
            let clean = self.redactor.redact(value).map_or(Cow::Borrowed(value), Cow::Owned);
            String::from_utf8_lossy(&clean).into_owned()
        };
        headers.iter().map(|(name, value)| (name.as_str().to_owned(), clean(value.as_bytes()))).collect()
    }

    /// The body, decompressed and without credentials. Most bodies come in one piece. A small one is copied: it is kept
    /// until its row is on disk, and would keep the whole buffer of its connection from being used again. A large one
    /// is not.
    async fn body(&self, host: &str, response: &mut Response) -> Result<Bytes, Failure> {
        if response.content_length().is_some_and(|length| length > self.reply_cap as u64) {
            return Err(words::too_large(host));
        }
        let mut whole = Bytes::new();
        let mut pieces = BytesMut::new();
        while let Some(piece) = response.chunk().await.map_err(|error| words::cut(host, &error))? {
            if whole.len() + pieces.len() + piece.len() > self.reply_cap {
                return Err(words::too_large(host));
            }
            if whole.is_empty() && pieces.is_empty() {
                whole = if piece.len() <= COPIED { Bytes::copy_from_slice(&piece) } else { piece };
            } else {
                pieces.extend_from_slice(&std::mem::take(&mut whole));
                pieces.extend_from_slice(&piece);
            }
        }
        let body = if pieces.is_empty() { whole } else { pieces.freeze() };
        Ok(self.redactor.redact(&body).map_or(body, Bytes::from))
    }
}
