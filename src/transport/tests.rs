//! Against a server made of a plain socket, which can do all that a library would forbid.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::base::{Redactor, Secret};
use crate::model::{Failure, FailureClass, HttpReply, KeyFault};
use crate::transport::{Http, HttpSettings, TransportError, install_tls};

/// `{"error":{"message":"slow down"}}`, compressed.
const GZIP: &[u8] = &[
    0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0x4a, 0x2d, 0x2a, 0xca, 0x2f,
    0x52, 0xb2, 0xaa, 0x56, 0xca, 0x4d, 0x2d, 0x2e, 0x4e, 0x4c, 0x4f, 0x55, 0xb2, 0x52, 0x2a, 0xce, 0xc9,
    0x2f, 0x57, 0x48, 0xc9, 0x2f, 0xcf, 0x53, 0xaa, 0xad, 0x05, 0x00, 0x73, 0x34, 0xb5, 0x6a, 0x21, 0x00,
    0x00, 0x00,
];

/// A server that answers each connection by a function of its own, one after the other.
struct Server {
    address: SocketAddr,
    thread: JoinHandle<Vec<String>>,
}

impl Server {
    /// Takes `count` connections; on each it reads one request whole, then lets `answer` do the rest.
    fn start(count: usize, answer: impl Fn(&mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for _ in 0..count {
                let (mut stream, _) = listener.accept().unwrap();
                requests.push(read_request(&mut stream));
                answer(&mut stream);
            }
            requests
        });
        Self { address, thread }
    }

    fn replying(bytes: Vec<u8>) -> Self {
        Self::start(1, move |stream| {
            // The client may have hung up: a reply over its cap is not read to the end.
            let _ = stream.write_all(&bytes);
        })
    }

    fn url(&self) -> String {
        format!("http://{}/v1/chat/completions?key=hunter2", self.address)
    }

    fn requests(self) -> Vec<String> {
        self.thread.join().unwrap()
    }
}

/// Head and body of a request whose body says `{}`.
fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut buffer = [0; 4_096];
    while !request.ends_with(b"\r\n\r\n{}") {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the client hung up");
        request.extend_from_slice(&buffer[..read]);
    }
    String::from_utf8(request).unwrap()
}

fn settings() -> HttpSettings {
    HttpSettings::new(Duration::from_secs(20), 4)
}

fn http(settings: HttpSettings) -> Http {
    install_tls();
    install_tls();
    Http::new(settings, Redactor::new([Secret::new("sk-test-12345".to_owned())])).unwrap()
}

async fn send(http: &Http, url: &str) -> Result<HttpReply, Failure> {
    let endpoint = http.endpoint(url, &[("content-type", "application/json".to_owned())]).unwrap();
    let own =
        [("authorization", "Bearer sk-test-12345".to_owned()), ("x-client-request-id", "r-1-1-1".to_owned())];
    http.send(&endpoint, &own, b"{}".to_vec()).await
}

async fn fail(http: &Http, url: &str) -> Failure {
    let failure = send(http, url).await.unwrap_err();
    for secret in ["hunter2", "sk-test", "http://", "completions"] {
        assert!(!failure.message.contains(secret), "{}", failure.message);
    }
    failure
}

fn plain(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn a_request_goes_out_and_its_reply_comes_back() {
    let server = Server::replying(plain("200 OK", "X-Request-Id: req_1\r\n", b"{\"a\":1}"));
    let reply = send(&http(settings()), &server.url()).await.unwrap();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"{\"a\":1}"[..]));
    assert_eq!(reply.header("x-request-id"), Some("req_1"));
    let request = server.requests().remove(0);
    assert!(request.starts_with("POST /v1/chat/completions?key=hunter2 HTTP/1.1\r\n"), "{request}");
    for header in [
        "content-type: application/json\r\n",
        "authorization: Bearer sk-test-12345\r\n",
        "x-client-request-id: r-1-1-1\r\n",
        "accept-encoding: gzip\r\n",
        "content-length: 2\r\n",
    ] {
        assert!(request.contains(header), "{header} in {request}");
    }
}

#[tokio::test]
async fn a_reply_that_echoes_the_credential_is_redacted() {
    let body = b"{\"error\":\"bad key sk-test-12345\"}";
    let server = Server::replying(plain("401 Unauthorized", "x-echo: Bearer sk-test-12345\r\n", body));
    let reply = send(&http(settings()), &server.url()).await.unwrap();
    assert_eq!(reply.status, 401);
    assert_eq!(&reply.body[..], b"{\"error\":\"bad key [redacted]\"}");
    assert_eq!(reply.header("x-echo"), Some("Bearer [redacted]"));
}

#[tokio::test]
async fn gzip_is_decoded_under_any_status() {
    let server = Server::replying(plain("429 Too Many Requests", "content-encoding: gzip\r\n", GZIP));
    let reply = send(&http(settings()), &server.url()).await.unwrap();
    assert_eq!(reply.status, 429);
    assert_eq!(&reply.body[..], b"{\"error\":{\"message\":\"slow down\"}}");
}

#[tokio::test]
async fn a_redirect_comes_back_as_it_is() {
    let server = Server::replying(plain("307 Temporary Redirect", "location: http://127.0.0.1:9/x\r\n", b""));
    let reply = send(&http(settings()), &server.url()).await.unwrap();
    assert_eq!((reply.status, reply.header("location")), (307, Some("http://127.0.0.1:9/x")));
}

#[tokio::test]
async fn a_large_body_comes_whole_and_a_larger_one_not_at_all() {
    let body = vec![b'x'; 10 << 20];
    let server = Server::replying(plain("200 OK", "", &body));
    let reply = send(&http(settings()), &server.url()).await.unwrap();
    assert_eq!(reply.body.len(), body.len());

    let small = HttpSettings { reply_cap: 1_000, ..settings() };
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3e8\r\n";
    let chunked = [chunked.as_bytes(), &body[..1_000], b"\r\n1\r\nx\r\n0\r\n\r\n"].concat();
    for reply in [plain("200 OK", "", &body[..1_001]), chunked] {
        let server = Server::replying(reply);
        let failure = fail(&http(small), &server.url()).await;
        assert_eq!(failure.class, FailureClass::Server);
        assert!(failure.message.starts_with(&format!("the reply of {} is larger", server.address)));
    }
    let server = Server::replying(plain("200 OK", "", &body[..1_000]));
    assert_eq!(send(&http(small), &server.url()).await.unwrap().body.len(), 1_000);
}

#[tokio::test]
async fn a_cut_body_is_a_broken_connection_and_asked_for_once() {
    let whole = plain("200 OK", "", b"{\"a\":1}");
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n".to_vec();
    let gzip = plain("200 OK", "content-encoding: gzip\r\n", GZIP);
    let cut_gzip = gzip[..gzip.len() - 20].to_vec();
    for reply in [whole[..whole.len() - 2].to_vec(), chunked, cut_gzip, b"HTTP/1.1 200".to_vec(), Vec::new()]
    {
        let server = Server::replying(reply);
        let failure = fail(&http(settings()), &server.url()).await;
        assert_eq!(failure.class, FailureClass::Connection);
        let expected = format!("the connection to {} broke before the reply was whole", server.address);
        assert_eq!(failure.message, expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_refused_connection_says_what_to_look_at() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let failure = fail(&http(settings()), &format!("http://{address}/v1?key=hunter2")).await;
    assert_eq!(failure.class, FailureClass::Connection);
    assert_eq!(
        failure.message,
        format!("no connection to {address}: connection refused; is the server running?")
    );
}

#[tokio::test]
async fn tls_to_a_plain_server_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 1_024];
        let _ = stream.read(&mut hello);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let failure = fail(&http(settings()), &format!("https://{address}/v1")).await;
    assert_eq!(failure.class, FailureClass::Connection);
    assert!(failure.message.contains("TLS handshake failed"), "{}", failure.message);
    server.join().unwrap();
}

#[tokio::test]
async fn a_server_that_never_answers_costs_the_whole_time() {
    // It holds the connection until the client lets go.
    let hold = |stream: &mut TcpStream| {
        let _ = stream.read(&mut [0; 1]);
    };
    let short = HttpSettings { timeout: Duration::from_millis(50), ..settings() };
    let server = Server::start(1, hold);
    let failure = fail(&http(short), &server.url()).await;
    assert_eq!(failure.class, FailureClass::Timeout { total: true });
    assert!(failure.message.starts_with(&format!("no whole reply from {} in time", server.address)));

    let server = Server::start(1, move |stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{").unwrap();
        hold(stream);
    });
    let failure = fail(&http(short), &server.url()).await;
    assert_eq!(failure.class, FailureClass::Timeout { total: true });
}

#[tokio::test]
async fn one_connection_serves_many_requests() {
    let server = Server::start(1, |stream| {
        for _ in 0..2 {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            read_request(stream);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
    });
    let http = http(settings());
    for _ in 0..3 {
        assert_eq!(send(&http, &server.url()).await.unwrap().status, 200);
    }
    server.requests();
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_without_its_value() {
    let http = http(settings());
    for url in ["", "127.0.0.1:8000", "data:x", "mock"] {
        assert!(matches!(http.endpoint(url, &[]), Err(TransportError::NotAUrl)), "{url}");
    }
    let endpoint = http.endpoint("http://127.0.0.1:9", &[]).unwrap();
    let key = [("authorization", "Bearer sk-test\n12345".to_owned())];
    let failure = http.send(&endpoint, &key, Vec::new()).await.unwrap_err();
    assert_eq!(failure.class, FailureClass::Key(KeyFault::Unauthorized));
    assert!(!failure.message.contains("sk-test"), "{}", failure.message);
    assert!(!format!("{endpoint:?}").contains("Bearer"));
    let named = http.endpoint("http://h", &[("authorization", "Bearer sk-test".to_owned())]).unwrap();
    assert!(!format!("{named:?}").contains("sk-test"));
}
