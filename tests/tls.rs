//! Encrypted connections: straight, through a proxy's tunnel, and where nobody vouches for the server.

#![expect(clippy::unwrap_used, reason = "a failed expectation is the failure of the test")]

mod support;

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use support::command::{Outcome, Verify};
use support::job::rows;
use support::provider::Reply;

const ANSWER: &str = r#"{"ok":true}"#;

/// What somebody who listens has read of each connection.
type Heads = Arc<Mutex<Vec<String>>>;

/// A server with a certificate for `localhost`.
struct Server {
    port: u16,
    heads: Heads,
    /// The certificate of the authority that vouches for it.
    authority: String,
}

impl Server {
    /// Answers one request a connection.
    fn start() -> Self {
        let authority_key = KeyPair::generate().unwrap();
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&authority_key).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
        let secret = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![leaf.der().clone()], secret).unwrap());
        let (port, heads) = listen(move |stream| {
            let mut tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
            let head = head(&mut tls)?;
            let body = Reply::answer(ANSWER).text();
            let length = body.len();
            write!(tls, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")?;
            tls.flush()?;
            Ok(head)
        });
        Self { port, heads, authority: root.pem() }
    }

    /// Asks it about one row, trusting this authority and no other.
    fn asked(&self, authority: &str, variables: &[(&str, String)]) -> Outcome {
        let url = format!("https://localhost:{}/v1", self.port);
        let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ text }}", "--base-url", &url];
        let verify = Verify::new().file("in.jsonl", rows(1)).file("roots.pem", authority);
        let roots = verify.path("roots.pem").display().to_string();
        let verify = verify
            .args(args)
            .args(["--column", "ok=boolean", "--attempts", "1", "--outage-patience", "1s"])
            .env("SSL_CERT_FILE", &roots);
        variables.iter().fold(verify, |verify, (name, value)| verify.env(name, value)).run()
    }
}

/// Lets `serve` answer each connection; what it returns is kept.
fn listen(serve: impl Fn(TcpStream) -> io::Result<String> + Send + 'static) -> (u16, Heads) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let heads = Heads::default();
    let kept = Arc::clone(&heads);
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            // A client that goes away is a part of some tests.
            if let Ok(head) = serve(stream) {
                kept.lock().unwrap().push(head);
            }
        }
    });
    (port, heads)
}

/// Reads to the blank line that ends a head.
fn head(from: &mut impl Read) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).to_lowercase())
}

/// A proxy that tunnels every request to this port.
fn proxy(to: u16) -> (u16, Heads) {
    listen(move |mut client| {
        let head = head(&mut client)?;
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
        let server = TcpStream::connect(("127.0.0.1", to))?;
        let (mut up, mut down) = ((client.try_clone()?, server.try_clone()?), (server, client));
        thread::spawn(move || {
            let _ = io::copy(&mut up.0, &mut up.1);
            let _ = up.1.shutdown(Shutdown::Write);
        });
        thread::spawn(move || {
            let _ = io::copy(&mut down.0, &mut down.1);
            let _ = down.1.shutdown(Shutdown::Write);
        });
        Ok(head)
    })
}

#[test]
fn a_server_that_somebody_vouches_for_is_asked() {
    let server = Server::start();
    server.asked(&server.authority, &[]).expect_code(0);
    let heads = server.heads.lock().unwrap();
    assert!(heads[0].starts_with("post /v1/chat/completions http/1.1\r\n"), "{heads:?}");
    assert!(heads[0].contains(&format!("host: localhost:{}\r\n", server.port)), "{heads:?}");
}

#[test]
fn a_server_that_nobody_vouches_for_is_told_nothing() {
    let (server, other) = (Server::start(), Server::start());
    let outcome = server.asked(&other.authority, &[]).expect_code(4);
    assert!(outcome.stderr.contains("the TLS handshake failed"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("certificate"), "{}", outcome.stderr);
    assert_eq!(server.heads.lock().unwrap().len(), 0);
}

#[test]
fn a_proxy_sees_where_to_and_nothing_else() {
    let server = Server::start();
    let (port, heads) = proxy(server.port);
    let address = format!("http://who:tunnel-word@127.0.0.1:{port}");
    let variables = [("HTTPS_PROXY", address), ("OPENAI_API_KEY", "sk-for-the-server".to_owned())];
    let outcome = server.asked(&server.authority, &variables).expect_code(0);
    assert!(!outcome.stderr.contains("tunnel-word"), "{}", outcome.stderr);
    let heads = heads.lock().unwrap();
    let goal = format!("localhost:{}", server.port);
    assert!(heads[0].starts_with(&format!("connect {goal} http/1.1\r\n")), "{heads:?}");
    // `who:tunnel-word` in Base64, and in small letters like all that was read.
    assert!(heads[0].contains("proxy-authorization: basic d2hvonr1bm5lbc13b3jk\r\n"), "{heads:?}");
    assert!(!heads[0].contains("sk-for-the-server"), "{heads:?}");
    let asked = server.heads.lock().unwrap();
    assert!(asked[0].contains("authorization: bearer sk-for-the-server\r\n"), "{asked:?}");
    assert!(!asked[0].contains("proxy-authorization"), "{asked:?}");
}

#[test]
fn a_proxy_is_passed_by_where_the_variables_say_so() {
    let server = Server::start();
    let (port, heads) = proxy(server.port);
    let address = format!("http://127.0.0.1:{port}");
    server
        .asked(&server.authority, &[("HTTPS_PROXY", address), ("NO_PROXY", "localhost".to_owned())])
        .expect_code(0);
    assert_eq!((heads.lock().unwrap().len(), server.heads.lock().unwrap().len()), (0, 1));
}
