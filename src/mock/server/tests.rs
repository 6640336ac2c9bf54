use std::future::Future;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::base::SystemClock;

/// Runs a client against a server, at most 30 seconds.
fn with_server<F: Future<Output = ()>>(settings: MockSettings, client: impl FnOnce(u16) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = tokio::time::timeout(Duration::from_secs(30), client(port));
        tokio::select! {
            () = serve(listener, settings, Arc::new(SystemClock::new())) => {}
            ended = client => ended.unwrap(),
        }
    });
}

/// One connection of a client.
struct Client(TcpStream);

struct Reply {
    status: u16,
    head: String,
    /// `None` where it stopped before its end.
    body: Option<Value>,
}

impl Client {
    async fn connect(port: u16) -> Self {
        Self(TcpStream::connect(("127.0.0.1", port)).await.unwrap())
    }

    async fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) {
        let length = body.len();
        let text =
            format!("{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n{body}");
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Reply {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            bytes.push(self.0.read_u8().await.unwrap());
        }
        let head = String::from_utf8(bytes).unwrap();
        let length = head.split_once("content-length: ").unwrap().1.split_once("\r\n").unwrap().0;
        let mut body = vec![0; length.parse().unwrap()];
        let body = match self.0.read_exact(&mut body).await {
            Ok(_) => Some(serde_json::from_slice(&body).unwrap()),
            Err(_) => None,
        };
        Reply { status: head[9..12].parse().unwrap(), head, body }
    }

    async fn ask(&mut self, sample: u16, user: &str) -> Reply {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": user}]}).to_string();
        let id = format!("x-client-request-id: 0190b2c4-7a3e-7000-8000-0123456789ab-1-{sample}-1\r\n");
        self.send("POST", "/v1/chat/completions", &id, &body).await;
        self.receive().await
    }

    async fn stats(&mut self) -> Value {
        self.send("GET", "/stats", "", "").await;
        self.receive().await.body.unwrap()
    }
}

#[test]
fn answers_are_counted_once_they_are_out() {
    with_server(MockSettings::default(), |port| async move {
        let mut client = Client::connect(port).await;
        let first = client.ask(1, "hi").await;
        assert_eq!((first.status, first.head.contains("x-request-id: req_mock_00000001")), (200, true));
        let other = client.ask(2, "hi").await;
        let content =
            |reply: &Reply| reply.body.as_ref().unwrap()["choices"][0]["message"]["content"].clone();
        assert_ne!(content(&first), content(&other));
        assert_eq!(content(&first), content(&client.ask(1, "hi").await));
        let stats = client.stats().await;
        let part = |name: &str| stats[name].as_u64().unwrap();
        assert_eq!((part("requests"), part("distinct"), part("repeated")), (3, 2, 1));
        assert_eq!((part("in_flight"), part("max_in_flight"), &stats["status"]), (0, 1, &json!({"200": 3})));
        client.send("POST", "/reset", "", "").await;
        let cleared = client.receive().await.body.unwrap();
        assert_eq!((&cleared["requests"], &cleared["distinct"]), (&json!(0), &json!(0)));
        assert_eq!(client.ask(1, "hi").await.status, 200);
        assert_eq!(client.stats().await["repeated"], 0);
    });
}

#[test]
fn both_formats_are_served_with_their_headers() {
    let rate_limit = Some("9/s".parse().unwrap());
    let fail_keys = vec!["bad".to_owned()];
    with_server(MockSettings { rate_limit, fail_keys, ..MockSettings::default() }, |port| async move {
        let mut client = Client::connect(port).await;
        let body = r#"{"max_tokens":99,"messages":[{"role":"user","content":"hi"}]}"#;
        client.send("POST", "/v1/messages", "x-api-key: k\r\n", body).await;
        let reply = client.receive().await;
        assert_eq!((reply.status, reply.head.contains("anthropic-ratelimit-requests-limit: 9")), (200, true));
        assert_eq!(reply.body.unwrap()["content"][0]["type"], "text");
        client.send("POST", "/v1/messages", "x-api-key: k\r\n", body).await;
        let reply = client.receive().await;
        assert_eq!((reply.status, reply.head.contains("retry-after-ms: ")), (429, true));
        // The same connection again before the wait is over: early.
        client.send("POST", "/v1/messages", "x-api-key: k\r\n", body).await;
        assert_eq!(client.receive().await.status, 429);
        client.send("POST", "/v1/messages", "authorization: Bearer bad\r\n", body).await;
        assert_eq!(client.receive().await.status, 401);
        let stats = client.stats().await;
        assert_eq!(stats["early"], 2);
        assert_eq!(stats["status"], json!({"200": 1, "401": 1, "429": 2}));
        client.send("GET", "/v1/models", "", "").await;
        assert_eq!(client.receive().await.body.unwrap()["data"][0]["id"], "mock");
        client.send("GET", "/v2", "", "").await;
        assert_eq!(client.receive().await.status, 404);
    });
}

#[test]
fn a_reply_that_is_cut_off_is_no_answer() {
    with_server(MockSettings { error_rate: 1.0, ..MockSettings::default() }, |port| async move {
        let mut cut = 0;
        for turn in 0..40 {
            let reply = Client::connect(port).await.ask(1, &turn.to_string()).await;
            assert_eq!(reply.body.is_none(), reply.status == 200, "{}", reply.head);
            cut += u64::from(reply.body.is_none());
        }
        let stats = Client::connect(port).await.stats().await;
        let errors = stats["status"]["500"].as_u64().unwrap() + stats["status"]["503"].as_u64().unwrap();
        assert_eq!((errors + cut, stats["status"].get("200")), (40, None));
        assert!(cut > 0);
        assert_eq!((&stats["in_flight"], &stats["tokens"]["output"]), (&json!(0), &json!(0)));
    });
}

#[test]
fn a_client_that_goes_away_leaves_its_place_and_its_bill() {
    let latency = Duration::from_hours(1);
    with_server(MockSettings { latency, ..MockSettings::default() }, |port| async move {
        let mut watcher = Client::connect(port).await;
        let mut client = Client::connect(port).await;
        let body = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
        client.send("POST", "/chat/completions", "", body).await;
        while watcher.stats().await["in_flight"] == 0 {}
        drop(client);
        while watcher.stats().await["in_flight"] == 1 {}
        let stats = watcher.stats().await;
        assert_eq!((&stats["status"], &stats["requests"]), (&json!({}), &json!(1)));
        assert!(stats["tokens"]["output"].as_u64().unwrap() > 0);
    });
}
