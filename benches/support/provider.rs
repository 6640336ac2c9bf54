//! `verify mock` in a process of its own, and the body of a request as `verify run` sends it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use super::{Broken, input, process};

/// A running `verify mock`; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Mock {
    child: Child,
    /// Its address without a path.
    pub(crate) url: String,
}

impl Mock {
    /// Starts it on a free port.
    pub(crate) fn start(latency: &str) -> Result<Self, Broken> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
            .args(["mock", "--port", "0", "--latency", latency])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().ok_or("the mock has no output")?;
        let mut mock = Self { child, url: String::new() };
        BufReader::new(stdout).read_line(&mut line)?;
        let addresses: serde_json::Value = serde_json::from_str(&line)?;
        addresses["url"].as_str().ok_or("the mock told no address")?.clone_into(&mut mock.url);
        Ok(mock)
    }

    /// Its `base_url`.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.url)
    }

    /// How many different requests it has answered, and how many it was sent in all.
    pub(crate) fn requests(&self) -> Result<(u64, u64), Broken> {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://"))?;
        stream.write_all(b"GET /stats HTTP/1.1\r\nhost: mock\r\nconnection: close\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let stats: serde_json::Value = serde_json::from_str(body)?;
        let count = |name: &str| stats[name].as_u64().ok_or("a count is missing in /stats");
        Ok((count("distinct")?, count("requests")?))
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // A mock that has ended by itself needs neither.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What stands around the text of a row in the body of its request, as `verify run` sends it with these arguments:
/// one row is run against a server that keeps the body and refuses it.
pub(crate) fn around_the_text(folder: &Path, more: &[&str]) -> Result<(String, String), Broken> {
    const MARK: &str = "HERE-STANDS-THE-TEXT";
    let path = folder.join("one.jsonl");
    input::write_one(&path, MARK)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base_url = format!("http://{}/v1", listener.local_addr()?);
    let server = thread::spawn(move || refuse_one(&listener).map_err(|error| error.to_string()));
    let one = folder.join("one");
    std::fs::create_dir(&one)?;
    let mut command = process::verify_run(&path, &one, more);
    command.args(["--base-url", &base_url]).stderr(Stdio::null()).status()?;
    let body = server.join().map_err(|_| "the server for the first body broke")??;
    let (before, after) = body.split_once(MARK).ok_or("the first body does not hold the row's text")?;
    Ok((before.to_owned(), after.to_owned()))
}

fn refuse_one(listener: &TcpListener) -> Result<String, Broken> {
    let (stream, _) = listener.accept()?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let refusal = r#"{"error":{"message":"no","type":"invalid_request_error","code":"no"}}"#;
    let reply = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{refusal}",
        refusal.len()
    );
    reader.get_mut().write_all(reply.as_bytes())?;
    Ok(String::from_utf8(body)?)
}
