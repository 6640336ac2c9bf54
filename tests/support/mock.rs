//! The mock provider as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;

use super::http::{self, PATIENCE};

/// A running `verify mock`; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Mock {
    child: Child,
    port: u16,
}

impl Mock {
    /// Starts `verify mock --port 0` with these arguments and waits for its first line.
    pub(crate) fn start<const N: usize>(arguments: [&str; N]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
            .args(["mock", "--port", "0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, first_line) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
        });
        let line = first_line.recv_timeout(PATIENCE);
        let port = line.ok().and_then(Result::ok).and_then(|line| {
            let addresses: Value = serde_json::from_str(&line).ok()?;
            addresses["url"].as_str()?.rsplit_once(':')?.1.parse().ok()
        });
        let Some(port) = port else {
            let _ = child.kill();
            let mut stderr = String::new();
            let _ = child.stderr.take().unwrap().read_to_string(&mut stderr);
            let _ = child.wait();
            panic!("`verify mock` gave no address: {stderr}");
        };
        Self { child, port }
    }

    /// Its port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The `base_url` of its `OpenAI` side, with `/v1`.
    pub(crate) fn openai(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The `base_url` of its `Anthropic` side.
    pub(crate) fn anthropic(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// `GET /stats`.
    pub(crate) fn stats(&self) -> Value {
        let reply = http::request(self.port, "GET", "/stats", &[], "").unwrap();
        serde_json::from_slice(&reply.body).unwrap()
    }

    /// A number of `GET /stats` by its path, as in `"status/200"`; 0 where it is missing.
    pub(crate) fn count(&self, path: &str) -> u64 {
        self.stats().pointer(&format!("/{path}")).and_then(Value::as_u64).unwrap_or(0)
    }

    /// `POST /reset`.
    pub(crate) fn reset(&self) {
        http::request(self.port, "POST", "/reset", &[], "").unwrap();
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
