//! A provider that does what a test says, request by request, and remembers all of them.

use std::io::{BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http::{Message, PATIENCE};

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// Its number in order of arrival, from 1.
    pub(crate) n: usize,
    /// When it had come whole, since the provider's start.
    pub(crate) at: Duration,
    /// The path with the query.
    pub(crate) path: String,
    /// Header names in lower case with their values.
    pub(crate) headers: Vec<(String, String)>,
    /// The key's text from `Authorization: Bearer` or `x-api-key`; empty if none was sent.
    pub(crate) key: String,
    /// `X-Client-Request-Id`; empty if it is missing.
    pub(crate) client_request_id: String,
    /// Row, sample and attempt of the client's request id; 0 where they are missing.
    pub(crate) row: u64,
    /// The sample.
    pub(crate) sample: u64,
    /// The attempt.
    pub(crate) attempt: u64,
    /// The body; null if it is no JSON.
    pub(crate) body: Value,
}

impl Call {
    fn new(n: usize, at: Duration, message: Message) -> Self {
        let header = |name: &str| message.header(name).unwrap_or_default().to_owned();
        let bearer = header("authorization").strip_prefix("Bearer ").map(str::to_owned);
        let key = bearer.unwrap_or_else(|| header("x-api-key"));
        let client_request_id = header("x-client-request-id");
        let mut numbers = client_request_id.rsplitn(4, '-').map(|part| part.parse().unwrap_or(0));
        let mut number = || numbers.next().unwrap_or(0);
        let (attempt, sample, row) = (number(), number(), number());
        Self {
            n,
            at,
            path: message.start.split(' ').nth(1).unwrap_or_default().to_owned(),
            body: serde_json::from_slice(&message.body).unwrap_or(Value::Null),
            headers: message.headers,
            key,
            client_request_id,
            row,
            sample,
            attempt,
        }
    }

    /// The first value of a header; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// The system text of either wire format; empty if there is none.
    pub(crate) fn system(&self) -> String {
        let own = text_of(&self.body["system"]);
        if own.is_empty() { self.texts(&["system", "developer"]).concat() } else { own }
    }

    /// The text of the last user message.
    pub(crate) fn user(&self) -> String {
        self.texts(&["user"]).pop().unwrap_or_default()
    }

    /// The texts of all messages with one of these roles.
    pub(crate) fn texts(&self, roles: &[&str]) -> Vec<String> {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        messages
            .filter(|message| message["role"].as_str().is_some_and(|role| roles.contains(&role)))
            .map(|message| text_of(&message["content"]))
            .collect()
    }
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// What to do with a request.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    after: Duration,
    manner: Manner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Whole,
    /// Close after so many bytes of the body, of which all were announced.
    Cut(usize),
    /// Close with nothing sent.
    Reset,
    /// Send the body a byte at a time, with so long between two.
    Drip(Duration),
    /// Never answer; the connection stays open until the client closes it.
    Never,
    /// The body is all that is sent.
    Raw,
}

impl Reply {
    /// A reply of this status with a small JSON body.
    pub(crate) fn status(status: u16) -> Self {
        let (headers, after, manner) = (Vec::new(), Duration::ZERO, Manner::Whole);
        let body = if status < 400 {
            Vec::new()
        } else {
            let error = json!({"message": format!("scripted {status}"), "type": "scripted", "param": null, "code": null});
            json!({ "error": error }).to_string().into_bytes()
        };
        Self { status, headers, body, after, manner }
    }

    /// A `chat.completion` with this text, 100 input tokens and 10 output tokens.
    pub(crate) fn answer(text: &str) -> Self {
        Self::completion(text, "stop", 100, 10)
    }

    /// A `chat.completion` with this finish reason and these token counts.
    pub(crate) fn completion(text: &str, finish_reason: &str, input: u64, output: u64) -> Self {
        Self::status(200).json(&json!({
            "id": "chatcmpl-scripted", "object": "chat.completion", "created": 0, "model": "scripted",
            "choices": [{"index": 0, "finish_reason": finish_reason, "logprobs": null,
                "message": {"role": "assistant", "content": text, "refusal": null}}],
            "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
                "prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}}))
    }

    /// An `Anthropic` message with this text, 100 input tokens and 10 output tokens.
    pub(crate) fn message(text: &str) -> Self {
        Self::status(200).json(&json!({
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": "scripted",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                "output_tokens": 10}}))
    }

    /// An error in the form of `OpenAI`.
    pub(crate) fn error(status: u16, code: &str, message: &str) -> Self {
        Self::status(status)
            .json(&json!({"error": {"message": message, "type": "scripted", "param": null, "code": code}}))
    }

    /// Closes the connection with nothing sent.
    pub(crate) fn reset() -> Self {
        Self { manner: Manner::Reset, ..Self::status(200) }
    }

    /// Never answers.
    pub(crate) fn never() -> Self {
        Self { manner: Manner::Never, ..Self::status(200) }
    }

    /// Sends these bytes and closes.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { manner: Manner::Raw, body: bytes.into(), ..Self::status(200) }
    }

    /// Adds a header.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Replaces the body by a JSON value.
    pub(crate) fn json(self, body: &Value) -> Self {
        self.body(body.to_string())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Replies only after so long.
    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.after = delay;
        self
    }

    /// Closes the connection after `bytes` bytes of the body.
    pub(crate) fn cut_body_after(mut self, bytes: usize) -> Self {
        self.manner = Manner::Cut(bytes);
        self
    }

    /// Sends the body a byte at a time, with so long between two.
    pub(crate) fn drip(mut self, pause: Duration) -> Self {
        self.manner = Manner::Drip(pause);
        self
    }

    /// Sends it; whether the connection can be used again.
    fn send(&self, stream: &mut TcpStream) -> bool {
        let sent = match self.manner {
            Manner::Reset => return false,
            Manner::Never => {
                let mut nothing = [0];
                let _ = stream.set_read_timeout(None);
                let _ = std::io::Read::read(stream, &mut nothing);
                return false;
            }
            Manner::Raw => {
                let _ = stream.write_all(&self.body);
                return false;
            }
            Manner::Whole => &self.body[..],
            Manner::Drip(_) => &[],
            Manner::Cut(bytes) => &self.body[..bytes.min(self.body.len())],
        };
        let mut text = format!("HTTP/1.1 {} Scripted\r\n", self.status).into_bytes();
        let own = |name: &str| self.headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name));
        if !own("content-type") {
            text.extend_from_slice(b"content-type: application/json\r\n");
        }
        for (name, value) in &self.headers {
            text.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        text.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        text.extend_from_slice(sent);
        let mut whole = stream.write_all(&text).is_ok();
        if let Manner::Drip(pause) = self.manner {
            for byte in &self.body {
                thread::sleep(pause);
                whole = whole && stream.write_all(&[*byte]).is_ok();
                if !whole {
                    break;
                }
            }
        }
        whole && matches!(self.manner, Manner::Whole | Manner::Drip(_))
    }
}

#[derive(Debug, Default)]
struct Record {
    calls: Vec<Call>,
    in_flight: usize,
    max_in_flight: usize,
    connections: usize,
    /// Connections that are being served.
    open: usize,
    /// The ports that connections came from, in their order.
    peers: Vec<u16>,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    record: Mutex<Record>,
    changed: Condvar,
    started: Instant,
}

impl Shared {
    fn record(&self) -> MutexGuard<'_, Record> {
        // A test that fails while it looks must not fail again in `Drop`, which would hide what it said.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A provider on a free port of 127.0.0.1, with a thread for each connection. Its threads end with their connections;
/// it takes no new ones once it is dropped.
#[derive(Debug)]
pub(crate) struct Provider {
    shared: Arc<Shared>,
    port: u16,
}

impl Provider {
    /// Starts it. `script` says what to do with each request; it is called on the connection's thread, one request at
    /// a time over all connections in order of arrival, and must not wait: a reply that comes later is
    /// [`Reply::after`].
    pub(crate) fn start(script: impl FnMut(&Call) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (record, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { record, changed, started: Instant::now() });
        let script = Arc::new(Mutex::new(script));
        let held = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if held.record().closed {
                    break;
                }
                let (shared, script) = (Arc::clone(&held), Arc::clone(&script));
                {
                    let mut record = shared.record();
                    record.open += 1;
                    record.peers.extend(stream.peer_addr().map(|peer| peer.port()));
                }
                thread::spawn(move || {
                    serve(stream, &shared, &script);
                    shared.record().open -= 1;
                    shared.changed.notify_all();
                });
            }
        });
        Self { shared, port }
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its `base_url`, with `/v1`.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// All requests so far, in order of arrival.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.record().calls.clone()
    }

    /// How many requests came so far.
    pub(crate) fn count(&self) -> usize {
        self.shared.record().calls.len()
    }

    /// The most requests that were unanswered at once.
    pub(crate) fn max_in_flight(&self) -> usize {
        self.shared.record().max_in_flight
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.shared.record().connections
    }

    /// Waits until `count` requests have come, at most a minute, and returns all that have.
    #[track_caller]
    pub(crate) fn wait_for_calls(&self, count: usize) -> Vec<Call> {
        let record = self.wait_while(|record| record.calls.len() < count);
        assert!(record.calls.len() >= count, "{} requests came, not {count}", record.calls.len());
        record.calls.clone()
    }

    /// Waits until `count` requests are unanswered at once, at most a minute.
    #[track_caller]
    pub(crate) fn wait_for_in_flight(&self, count: usize) {
        let record = self.wait_while(|record| record.in_flight < count);
        assert!(record.in_flight >= count, "{} requests are in flight, not {count}", record.in_flight);
    }

    /// Waits until all that clients have sent which are dead by now has been read, and their connections have ended, at most
    /// a minute.
    #[track_caller]
    pub(crate) fn wait_until_the_dead_are_served(&self) {
        // Connections are taken in their order, so that all before this one are being served when it is.
        let own = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let port = own.local_addr().unwrap().port();
        drop(own);
        let record = self.wait_while(|record| record.open > 0 || !record.peers.contains(&port));
        assert!(record.open == 0, "{} connections are open", record.open);
    }

    fn wait_while(&self, pending: impl Fn(&Record) -> bool) -> MutexGuard<'_, Record> {
        let waited =
            self.shared.changed.wait_timeout_while(self.shared.record(), PATIENCE, |record| pending(record));
        waited.unwrap().0
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.shared.record().closed = true;
        // Wakes the listener, so that it sees that.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve<F: FnMut(&Call) -> Reply>(stream: TcpStream, shared: &Shared, script: &Mutex<F>) {
    let _ = stream.set_nodelay(true);
    shared.record().connections += 1;
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Ok(Some(message)) = Message::read(&mut reader) {
        let reply = {
            // The script is held first, so that its order is the order of the numbers.
            let mut script = script.lock().unwrap();
            let call = {
                let mut record = shared.record();
                let call = Call::new(record.calls.len() + 1, shared.started.elapsed(), message);
                record.calls.push(call.clone());
                record.in_flight += 1;
                record.max_in_flight = record.max_in_flight.max(record.in_flight);
                call
            };
            shared.changed.notify_all();
            script(&call)
        };
        if !reply.after.is_zero() {
            thread::sleep(reply.after);
        }
        // Before it is written: the client may send the next request as soon as it has read this reply.
        if reply.manner != Manner::Never {
            shared.record().in_flight -= 1;
        }
        let goes_on = reply.send(&mut writer);
        if reply.manner == Manner::Never {
            shared.record().in_flight -= 1;
        }
        shared.changed.notify_all();
        if !goes_on {
            break;
        }
    }
    let _ = writer.shutdown(Shutdown::Both);
}
