//! A place to send requests to, prepared.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use crate::transport::TransportError;

/// An endpoint with its headers, read once so that a call does not have to.
#[derive(Debug, Clone)]
pub struct HttpEndpoint {
    url: Url,
    headers: HeaderMap,
    /// Host and port, for messages.
    host: String,
}

impl HttpEndpoint {
    /// Reads the URL and the headers that all requests to it share.
    pub(super) fn new(url: &str, headers: &[(&str, String)]) -> Result<Self, TransportError> {
        let url = Url::parse(url).map_err(|_| TransportError::NotAUrl)?;
        let host = url.host_str().ok_or(TransportError::NotAUrl)?;
        let host = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let mut map = HeaderMap::with_capacity(headers.len() + 4);
        for (name, value) in headers {
            set(&mut map, name, value)?;
        }
        Ok(Self { url, headers: map, host })
    }

    /// Host and port, fit for a message.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn url(&self) -> Url {
        self.url.clone()
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
