//! The HTTP client.

use std::borrow::Cow;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::{HeaderMap, Method, Request, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::base::Redactor;
use crate::model::{Failure, HttpReply};
use crate::transport::connector::Connector;
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
    client: Client<Connector, Full<Bytes>>,
    proxies: Arc<Matcher>,
    timeout: Duration,
    reply_cap: usize,
    redactor: Redactor,
}

impl Http {
    /// A client. `redactor` knows the credentials, which servers may echo. The proxy variables of the environment
    /// are honoured here: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, as curl reads them.
    ///
    /// # Errors
    /// No TLS provider is installed.
    pub fn new(settings: HttpSettings, redactor: Redactor) -> Result<Self, TransportError> {
        let tls = tls::config().ok_or(TransportError::NoTls)?;
        let HttpSettings { timeout, connect_timeout, max_idle_per_host, reply_cap } = settings;
        let proxies = Arc::new(Matcher::from_system());
        // HTTP/2 is left out: one of its connections stops at the server's limit of streams, and the limiter would
        // take that wait for an overloaded provider.
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(max_idle_per_host)
            .build(Connector::new(tls, Arc::clone(&proxies), connect_timeout));
        Ok(Self { client, proxies, timeout, reply_cap, redactor })
    }

    /// Prepares an endpoint with the headers that all its requests share.
    ///
    /// # Errors
    /// A text that is no URL with a host, and a header that HTTP cannot carry.
    pub fn endpoint(&self, url: &str, headers: &[(&str, String)]) -> Result<HttpEndpoint, TransportError> {
        HttpEndpoint::new(url, headers, &self.proxies)
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
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = endpoint.uri();
        *request.headers_mut() = endpoint.headers(headers).map_err(|error| words::unsendable(&error))?;
        let reply = tokio::time::timeout(self.timeout, self.reply(endpoint.host(), request)).await;
        reply.unwrap_or_else(|_| Err(words::timed_out(endpoint.host())))
    }

    async fn reply(&self, host: &str, request: Request<Full<Bytes>>) -> Result<HttpReply, Failure> {
        let sent = self.client.request(request).await;
        let (head, body) = sent.map_err(|error| words::unsent(host, &error))?.into_parts();
        let status = head.status.as_u16();
        let body = match self.body(host, body, is_gzip(&head.headers)).await {
            // These statuses say what to do by themselves, and a wait in the headers counts although the body is cut,
            // or is not compressed as it says.
            Err(_) if status == 429 || status >= 500 => Bytes::new(),
            body => body?,
        };
        Ok(HttpReply { status, headers: self.headers(&head.headers), body })
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
    async fn body(&self, host: &str, mut body: Incoming, is_gzip: bool) -> Result<Bytes, Failure> {
        let cap = self.reply_cap;
        if body.size_hint().exact().is_some_and(|length| length > cap as u64) {
            return Err(words::too_large(host));
        }
        let mut whole = Bytes::new();
        let mut pieces = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| words::broken(host))?;
            // Trailers say nothing that is asked for.
            let Ok(piece) = frame.into_data() else { continue };
            if whole.len() + pieces.len() + piece.len() > cap {
                return Err(words::too_large(host));
            }
            if whole.is_empty() && pieces.is_empty() {
                whole = if piece.len() <= COPIED { Bytes::copy_from_slice(&piece) } else { piece };
            } else {
                pieces.extend_from_slice(&std::mem::take(&mut whole));
                pieces.extend_from_slice(&piece);
            }
        }
        let mut body = if pieces.is_empty() { whole } else { pieces.freeze() };
        if is_gzip && !body.is_empty() {
            let mut text = Vec::new();
            let read = MultiGzDecoder::new(&body[..]).take(cap as u64 + 1).read_to_end(&mut text);
            read.map_err(|_| words::broken(host))?;
            if text.len() > cap {
                return Err(words::too_large(host));
            }
            body = text.into();
        }
        Ok(self.redactor.redact(&body).map_or(body, Bytes::from))
    }
}

/// Whether a body is compressed in the one way that is asked for.
fn is_gzip(headers: &HeaderMap) -> bool {
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    encoding
        .is_some_and(|name| ["gzip", "x-gzip"].iter().any(|known| name.trim().eq_ignore_ascii_case(known)))
}
