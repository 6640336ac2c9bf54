//! `verify mock`.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::base::{SystemClock, parse_duration};
use crate::mock::{self, MockError, MockPrice, MockSettings, RateLimit};

const ABOUT: &str =
    "A local provider to rehearse against: OpenAI Chat Completions and Anthropic Messages over HTTP";

const LONG_ABOUT: &str = "\
A local provider to rehearse against: OpenAI Chat Completions and Anthropic Messages over HTTP.

It answers every prompt with made-up JSON for the schema of the request; the same seed, prompt, schema and sample give \
the same answer. The first line on stdout is a JSON object with its addresses. GET /stats shows what it was asked, \
POST /reset clears that. It runs until it is interrupted.";

const EXAMPLE: &str = "\
Examples:
  A provider that takes 200 ms, 50 requests a second and 5 at once, and fails
  now and then, and a run against it:
    verify mock --port 8000 --latency 200ms --jitter 50ms --rate-limit 50/s \\
      --concurrency-limit 5 --error-rate 0.05
    verify run in.jsonl --model m --base-url http://127.0.0.1:8000/v1 \\
      --prompt 'Is {{ text }} spam?' --column spam=boolean";

/// What `verify mock` takes.
#[derive(Debug, Clone, clap::Args)]
#[command(about = ABOUT, long_about = LONG_ABOUT, after_help = EXAMPLE)]
pub(crate) struct MockArgs {
    /// Port on 127.0.0.1; 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// How long an answer takes, as in 200ms or 1.5s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s")]
    pub(crate) latency: Duration,

    /// By how much the latency varies in both directions, as in 50ms
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "0s")]
    pub(crate) jitter: Duration,

    /// Requests that each key may send, as in 50/s, 600/m or 1000/h; over it: 429 with the time to wait
    #[arg(long, value_name = "N/UNIT")]
    pub(crate) rate_limit: Option<RateLimit>,

    /// Requests in flight at once, over all keys; over it: 429
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) concurrency_limit: Option<u32>,

    /// Share of requests, 0 to 1, that end in a 500, a 503 or a reply cut off in the middle, as in 0.05
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) error_rate: f64,

    /// Share of answers, 0 to 1, that break their schema, stop in the middle or are prose, as in 0.05
    #[arg(long, value_name = "SHARE", value_parser = share, default_value = "0")]
    pub(crate) bad_answer_rate: f64,

    /// Keys that get 401, separated by commas, as in 'test-key-1,test-key-2'
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    pub(crate) fail_keys: Vec<String>,

    /// USD per million tokens, for the `usd` of GET /stats, as in 'input=1,output=4'
    #[arg(long, value_name = "PRICE")]
    pub(crate) price: Option<MockPrice>,

    /// Seed of answers, errors and jitter
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
}

impl From<MockArgs> for MockSettings {
    fn from(args: MockArgs) -> Self {
        Self {
            port: args.port,
            latency: args.latency,
            jitter: args.jitter,
            rate_limit: args.rate_limit,
            concurrency_limit: args.concurrency_limit,
            error_rate: args.error_rate,
            bad_answer_rate: args.bad_answer_rate,
            fail_keys: args.fail_keys,
            price: args.price,
            seed: args.seed,
        }
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("`{text}` is no share: write a number from 0 to 1, as in 0.05")),
    }
}

/// Serves until SIGINT or SIGTERM, which end it well. Errors: the port is taken, or the machine gives no sockets.
pub(crate) fn run(args: MockArgs) -> Result<(), MockError> {
    // Each connection is a file; where the limit cannot be raised, fewer connections fit.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let settings = MockSettings::from(args);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let port = settings.port;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|source| MockError::Port { port, source })?;
        mock::load_tokenizer();
        announce(listener.local_addr()?.port())?;
        tokio::select! {
            () = mock::serve(listener, settings, Arc::new(SystemClock::new())) => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}

/// The first line on stdout, for programs that start the server and for people. The socket listens already, so a
/// request that follows at once finds it.
fn announce(port: u16) -> io::Result<()> {
    let url = format!("http://127.0.0.1:{port}");
    let mut stdout = io::stdout().lock();
    writeln!(stdout, r#"{{"url":"{url}","openai":"{url}/v1","anthropic":"{url}"}}"#)?;
    stdout.flush()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: MockArgs,
    }

    fn read(words: &[&str]) -> Result<MockSettings, String> {
        Line::try_parse_from([&["mock"], words].concat())
            .map(|line| line.args.into())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn every_flag_is_read() {
        let settings = read(&[
            "--port",
            "8000",
            "--latency",
            "200ms",
            "--jitter",
            "50ms",
            "--rate-limit",
            "600/m",
            "--concurrency-limit",
            "5",
            "--error-rate",
            "0.05",
            "--bad-answer-rate",
            "1",
            "--fail-keys",
            "a,b",
            "--price",
            "input=1,output=4",
            "--seed",
            "9",
        ])
        .unwrap();
        assert_eq!((settings.port, settings.seed), (8_000, 9));
        assert_eq!((settings.latency.as_millis(), settings.jitter.as_millis()), (200, 50));
        assert_eq!(settings.rate_limit.map(|limit| limit.requests), Some(600));
        assert_eq!(settings.fail_keys, ["a", "b"]);
        assert_eq!(settings.price.map(|price| price.output.pico()), Some(4_000_000));
        assert!(settings.error_rate > 0.04 && settings.bad_answer_rate > 0.99);
    }

    #[test]
    fn wrong_values_are_named() {
        for (flag, value) in [
            ("--error-rate", "1.5"),
            ("--bad-answer-rate", "NaN"),
            ("--latency", "200"),
            ("--rate-limit", "50"),
            ("--concurrency-limit", "0"),
            ("--price", "4"),
            ("--port", "70000"),
        ] {
            let error = read(&[flag, value]).unwrap_err();
            assert!(error.contains(flag) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn a_taken_port_is_named() {
        let taken = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let line = Line::try_parse_from(["mock", "--port", &port.to_string()]).unwrap();
        let error = run(line.args).unwrap_err().to_string();
        assert!(error.contains(&port.to_string()), "{error}");
    }
}
