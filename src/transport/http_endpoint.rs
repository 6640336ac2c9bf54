//! A place to send requests to, prepared.

use hyper::Uri;
use hyper::header::{self, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use crate::transport::TransportError;

/// How this program calls itself.
pub(super) const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("verify/", env!("CARGO_PKG_VERSION")));

/// An endpoint with its headers, read once so that a call does not have to.
#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    uri: Uri,
    headers: HeaderMap,
    /// Host and port, for messages.
    host: String,
}

impl HttpEndpoint {
    /// Reads the URL and the headers that all requests to it share. A proxy that takes on what is not encrypted is told
    /// with each request who asks.
    pub(super) fn new(
        url: &str,
        headers: &[(&str, String)],
        proxies: &Matcher,
    ) -> Result<Self, TransportError> {
        let url = Url::parse(url).map_err(|_| TransportError::NotAUrl)?;
        let host = url.host_str().ok_or(TransportError::NotAUrl)?;
        let host = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let uri: Uri = url.as_str().parse().map_err(|_| TransportError::NotAUrl)?;
        let mut map = HeaderMap::with_capacity(headers.len() + 8);
        map.insert(header::USER_AGENT, USER_AGENT);
        map.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        map.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let proxy = proxies.intercept(&uri).filter(|_| url.scheme() == "http");
        if let Some(auth) = proxy.as_ref().and_then(|proxy| proxy.basic_auth()) {
            map.insert(header::PROXY_AUTHORIZATION, auth.clone());
        }
        for (name, value) in headers {
            set(&mut map, name, value)?;
        }
        Ok(Self { uri, headers: map, host })
    }

    /// Host and port, fit for a message.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn uri(&self) -> Uri {
        self.uri.clone()
    }

    /// The shared headers with those of one request over them.
    pub(super) fn headers(&self, own: &[(&str, String)]) -> Result<HeaderMap, TransportError> {
        let mut headers = self.headers.clone();
        for (name, value) in own {
            set(&mut headers, name, value)?;
        }
        Ok(headers)
    }
}

/// Sets a header; a credential is marked as such, so that no log of the client's shows it.
fn set(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), TransportError> {
    let refused = || TransportError::Header(name.to_owned());
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
    let mut value = HeaderValue::from_str(value).map_err(|_| refused())?;
    value.set_sensitive(name == AUTHORIZATION || name == "x-api-key" || name == "api-key");
    headers.insert(name, value);
    Ok(())
}
