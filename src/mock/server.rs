//! The mock provider behind HTTP.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::base::Clock;
use crate::mock::MockSettings;
use crate::mock::delivery::{Delivery, Line, Never, Permit, ReplyBody, Watched};
use crate::mock::desk::{Arrival, Desk};
use crate::mock::reply;
use crate::mock::request::Dialect;

/// The largest request body, in bytes.
const LARGEST_BODY: usize = 32 << 20;

/// Loads the tokenizer: a tenth of a second, or most of one in a debug build. [`serve`] does it when it must; who calls
/// this before it accepts connections keeps the first reply from being late.
pub fn load_tokenizer() {
    bpe_openai::o200k_base();
}

/// Serves the mock provider on a listener, for ever; dropping the future closes every connection.
///
/// - `POST /v1/chat/completions` (also `/chat/completions`) and `POST /v1/messages` answer like [`MockModel`], with
///   the sample from `X-Client-Request-Id`, and with usage in o200k tokens of all message texts and of a schema
///   beside them as input, of the answer's text as output. `GET /v1/models` lists one model.
/// - `GET /stats` shows the book and `POST /reset` clears it: `requests` to the two answering paths; `in_flight` and
///   `max_in_flight`, those that were let in and are not over (a refused one is never in flight); `distinct` pairs of
///   body and sample; `repeated`, those that came again after a 200 for them was written whole; `status`, replies
///   written whole; `tokens` and `usd` of all answers, also of those that no client waited for. Besides: `early`,
///   requests that came before the end of a wait that their client knew of (told on the same connection, or on
///   another one for the same key more than 100 ms before), by the server's clock, and `early_by_ms`, by how much at
///   most.
/// - Refusals (401 for a failing key, 400, 429) come at once; answers, 500, 503 (529 in the `Anthropic` format) and
///   replies that are cut off come after the latency.
/// - The rate limit is a token bucket for each key that holds a tenth of a second's tokens, at least one. A 429 says
///   `retry-after-ms`, from one second on also `retry-after`, rounded up: who obeys either is not early.
///
/// [`MockModel`]: crate::mock::MockModel
pub async fn serve(listener: TcpListener, settings: MockSettings, clock: Arc<dyn Clock>) {
    let desk = Arc::new(Desk::new(settings));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // An accept fails when a client has gone again or when files run out; the next one may not.
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(connection(stream, Arc::clone(&desk), Arc::clone(&clock)));
                    }
                    Err(_) => tokio::task::yield_now().await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, desk: Arc<Desk>, clock: Arc<dyn Clock>) {
    // Small replies must not wait for more.
    let _ = stream.set_nodelay(true);
    let line = Line::default();
    let watched = Watched::new(TokioIo::new(stream), line.clone());
    let service = service_fn(move |request| {
        let (desk, clock, line) = (Arc::clone(&desk), Arc::clone(&clock), line.clone());
        async move { Ok::<_, Never>(respond(request, desk, &*clock, line).await) }
    });
    // A client that goes away in the middle of something is no event here.
    let _ = http1::Builder::new().header_read_timeout(None).serve_connection(watched, service).await;
}

async fn respond(
    request: Request<Incoming>,
    desk: Arc<Desk>,
    clock: &dyn Clock,
    line: Line,
) -> Response<ReplyBody> {
    let (head, body) = request.into_parts();
    let dialect = match (&head.method, head.uri.path()) {
        (&Method::POST, "/v1/chat/completions" | "/chat/completions") => Dialect::OpenAi,
        (&Method::POST, "/v1/messages") => Dialect::Anthropic,
        (&Method::GET, "/stats") => return plain(StatusCode::OK, desk.book().to_json()),
        (&Method::POST, "/reset") => {
            desk.reset();
            return plain(StatusCode::OK, desk.book().to_json());
        }
        (&Method::GET, "/v1/models" | "/models") => {
            let list = r#"{"object":"list","data":[{"id":"mock","object":"model","created":0,"owned_by":"verify"}]}"#;
            return plain(StatusCode::OK, list);
        }
        (method, path) => {
            let message = format!("Unknown request URL: {method} {path}.");
            return plain(
                StatusCode::NOT_FOUND,
                reply::error(Dialect::OpenAi, 404, Some("unknown_url"), &message, ""),
            );
        }
    };
    let body = match Limited::new(body, LARGEST_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            let body = reply::error(dialect, 413, None, "The request is larger than 32 MiB.", "");
            return plain(StatusCode::PAYLOAD_TOO_LARGE, body);
        }
        Err(_) => return plain(StatusCode::BAD_REQUEST, Bytes::new()),
    };
    let decision = {
        let arrival = Arrival {
            dialect,
            key: key_of(&head.headers),
            client_request_id: text_header(&head.headers, "x-client-request-id"),
            body: &body,
            told_here: line.told(),
        };
        desk.decide(&arrival, clock.now(), clock.wall())
    };
    // Taken before the wait: if the client goes away meanwhile, this future is dropped, and the permit with it.
    let permit = decision.admitted.then(|| Permit::new(Arc::clone(&desk)));
    if !decision.latency.is_zero() {
        wait(decision.latency).await;
    }
    if let Some(until) = decision.told {
        line.tell(until);
    }
    let reply = if decision.cut {
        ReplyBody::cut(decision.body, permit)
    } else {
        let delivery = Delivery { desk, status: decision.status, print: decision.print, permit };
        ReplyBody::noted(decision.body, line, delivery)
    };
    let status = StatusCode::from_u16(decision.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = with_json(status, reply);
    for (name, value) in decision.headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[expect(
    clippy::disallowed_methods,
    reason = "the latency of a provider is real time; no decision waits for it"
)]
async fn wait(latency: std::time::Duration) {
    tokio::time::sleep(latency).await;
}

fn key_of(headers: &HeaderMap) -> &str {
    let bearer = text_header(headers, "authorization").and_then(|value| value.strip_prefix("Bearer "));
    text_header(headers, "x-api-key").or(bearer).unwrap_or("")
}

fn text_header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn plain(status: StatusCode, body: impl Into<Bytes>) -> Response<ReplyBody> {
    with_json(status, ReplyBody::plain(body))
}

fn with_json(status: StatusCode, body: ReplyBody) -> Response<ReplyBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
