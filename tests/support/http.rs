//! One HTTP/1.1 request or message at a time, by hand.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// No read or write waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// The head and body of a request or a reply.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The first line, as in `HTTP/1.1 200 OK`.
    pub(crate) start: String,
    /// Names in lower case with their values, in order.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Vec<u8>,
}

impl Message {
    /// Reads one; `None` where the other side has closed before its first byte.
    pub(crate) fn read(from: &mut BufReader<TcpStream>) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let start = line.trim_end().to_owned();
        let mut headers = Vec::new();
        loop {
            line.clear();
            if from.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut message = Self { start, headers, body: Vec::new() };
        if message.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            message.body = read_chunks(from)?;
        } else if let Some(length) = message.header("content-length").and_then(|text| text.parse().ok()) {
            message.body = vec![0; length];
            from.read_exact(&mut message.body)?;
        }
        Ok(Some(message))
    }

    /// The first value of a header; `name` in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

fn read_chunks(from: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let size = line.trim().split(';').next().and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.ok_or(io::ErrorKind::InvalidData)?;
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

/// Sends one request to `127.0.0.1:port` and reads the reply.
pub(crate) fn request(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> io::Result<Message> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n")?;
    for (name, value) in headers {
        write!(stream, "{name}: {value}\r\n")?;
    }
    write!(stream, "content-length: {}\r\n\r\n{body}", body.len())?;
    Message::read(&mut BufReader::new(stream))?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
