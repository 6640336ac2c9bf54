//! How connections are made: straight or through the proxy that the environment names, with TLS where the address asks
//! for it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::http::uri::Scheme;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::{HeaderMap, Uri, header};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::dns::{GaiAddrs, GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Matcher;
use rustls::ClientConfig;
use tower_service::Service;

use crate::transport::http_endpoint::USER_AGENT;

/// How long a connection may be silent before the kernel asks whether its other end is still there, and how often.
const KEEPALIVE: (Duration, u32) = (Duration::from_secs(15), 3);

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Makes connections.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    straight: HttpsConnector<HttpConnector<Resolver>>,
    tls: Arc<ClientConfig>,
    proxies: Arc<Matcher>,
    timeout: Duration,
}

impl Connector {
    /// A connector that gives up after `timeout`, TLS included.
    pub(super) fn new(tls: ClientConfig, proxies: Arc<Matcher>, timeout: Duration) -> Self {
        let mut http = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
        http.enforce_http(false);
        http.set_nodelay(true);
        // Shared among the addresses of a name, so that a dead one leaves time for the next.
        http.set_connect_timeout(Some(timeout));
        http.set_keepalive(Some(KEEPALIVE.0));
        http.set_keepalive_interval(Some(KEEPALIVE.0));
        http.set_keepalive_retries(Some(KEEPALIVE.1));
        let tls = Arc::new(tls);
        Self { straight: HttpsConnector::from((http, Arc::clone(&tls))), tls, proxies, timeout }
    }

    fn connect(&self, to: Uri) -> Connecting<Line> {
        let Some(proxy) = self.proxies.intercept(&to) else {
            return Line::over(self.straight.clone(), to, false);
        };
        if to.scheme() == Some(&Scheme::HTTP) {
            return Line::over(self.straight.clone(), proxy.uri().clone(), true);
        }
        let headers = HeaderMap::from_iter([(header::USER_AGENT, USER_AGENT)]);
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.straight.clone()).with_headers(headers);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        Line::over(HttpsConnector::from((tunnel, Arc::clone(&self.tls))), to, false)
    }
}

impl Service<Uri> for Connector {
    type Response = Line;
    type Error = BoxError;
    type Future = Connecting<Line>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.straight.poll_ready(context)
    }

    fn call(&mut self, to: Uri) -> Connecting<Line> {
        let connecting = tokio::time::timeout(self.timeout, self.connect(to));
        Box::pin(async move { connecting.await.map_err(io::Error::from)? })
    }
}

trait Wire: Read + Write + Unpin + Send {}

impl<W: Read + Write + Unpin + Send> Wire for W {}

/// A connection.
pub(super) struct Line {
    wire: Box<dyn Wire>,
    /// A proxy takes requests on and needs whole addresses in them.
    is_forwarded: bool,
}

impl Line {
    /// A connection made by `connector`.
    fn over<C>(mut connector: C, to: Uri, is_forwarded: bool) -> Connecting<Self>
    where
        C: Service<Uri, Error = BoxError>,
        C::Response: Wire + 'static,
        C::Future: Send + 'static,
    {
        let connecting = connector.call(to);
        Box::pin(async move { Ok(Self { wire: Box::new(connecting.await?), is_forwarded }) })
    }
}

impl Connection for Line {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_forwarded)
    }
}

impl Read for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_read(context, buffer)
    }
}

impl Write for Line {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write_vectored(context, bytes)
    }
}

/// The system's resolver of names, whose failures are told apart from those of connecting.
#[derive(Debug, Clone)]
struct Resolver(GaiResolver);

/// A name that has no address.
#[derive(Debug, thiserror::Error)]
#[error("the name cannot be resolved")]
pub(super) struct NotResolved(#[source] io::Error);

impl Service<Name> for Resolver {
    type Response = GaiAddrs;
    type Error = NotResolved;
    type Future = Pin<Box<dyn Future<Output = Result<GaiAddrs, NotResolved>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), NotResolved>> {
        self.0.poll_ready(context).map_err(NotResolved)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.call(name);
        Box::pin(async move { resolving.await.map_err(NotResolved) })
    }
}
