//! Rows out are rows in, in their order, each with its own answer, however late or early the answers come.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, whose size a variable sets"
)]

mod support;

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::mock::Mock;
use support::provider::{Call, Provider, Reply};

/// Rows of the large tests: `VERIFY_TEST_ROWS` sets it, as to 10000.
fn rows() -> u64 {
    std::env::var("VERIFY_TEST_ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

fn numbered(rows: u64) -> String {
    (1..=rows).fold(String::new(), |mut text, row| {
        writeln!(text, "{{\"id\":{row},\"text\":\"record {row}\"}}").unwrap();
        text
    })
}

/// A pause from 0 to 40 ms that a row's number decides, so that neighbours come back in any order.
fn pause(row: u64) -> Duration {
    Duration::from_millis(row * 7_919 % 41)
}

fn echo(call: &Call) -> Reply {
    Reply::answer(&json!({ "echo": call.user() }).to_string()).after(pause(call.row))
}

fn assert_rows_in_order(outcome: &Outcome, name: &str, rows: u64) -> Vec<Value> {
    let lines = outcome.json_lines(name);
    assert_eq!(lines.len() as u64, rows);
    for (line, row) in lines.iter().zip(1_u64..) {
        assert_eq!((&line["id"], &line["verify"]["row"]), (&json!(row), &json!(row)));
        assert_eq!(line["verify"]["status"], "pass", "{line}");
    }
    lines
}

#[test]
fn rows_of_a_jsonl_file_come_back_in_order_from_the_mock_provider() {
    let rows = rows();
    let mock = Mock::start(["--latency", "20ms", "--jitter", "20ms"]);
    let ask = [
        "run",
        "in.jsonl",
        "--prompt",
        "About {{ text }}",
        "--column",
        "good=boolean",
        "--column",
        "why=string",
    ];
    let verify = Verify::new().file("in.jsonl", numbered(rows));
    let over_http = verify
        .args(ask)
        .args(["--model", "m", "--base-url", &mock.openai(), "--adaptive=false", "--concurrency", "64"])
        .run()
        .expect_code(0);
    let lines = assert_rows_in_order(&over_http, "in.verified.jsonl", rows);
    let stats = mock.stats();
    assert_eq!((stats["distinct"].as_u64(), stats["repeated"].as_u64()), (Some(rows), Some(0)), "{stats}");
    assert!(stats["max_in_flight"].as_u64().is_some_and(|most| (32..=64).contains(&most)), "{stats}");

    // The built-in provider answers the same prompts with the same answers, one at a time.
    let alone =
        over_http.again().args(ask).args(["--provider", "mock", "--concurrency", "1", "-o", "alone.jsonl"]);
    let alone = assert_rows_in_order(&alone.run().expect_code(0), "alone.jsonl", rows);
    for (line, other) in lines.iter().zip(&alone) {
        assert_eq!(line["verify"]["answer"], other["verify"]["answer"]);
    }
}

#[test]
fn every_answer_stands_at_the_row_that_asked() {
    let rows = rows();
    let provider = Provider::start(echo);
    let outcome = Verify::new()
        .file("in.jsonl", numbered(rows))
        .args([
            "run",
            "in.jsonl",
            "--model",
            "m",
            "--base-url",
            &provider.url(),
            "--adaptive=false",
            "--concurrency",
            "64",
        ])
        .args(["--prompt", "{{ id }}/{{ text }}", "--column", "echo=string"])
        .run()
        .expect_code(0);
    for (line, row) in assert_rows_in_order(&outcome, "in.verified.jsonl", rows).iter().zip(1..) {
        assert_eq!(line["verify"]["answer"]["echo"], format!("{row}/record {row}"));
    }
    assert_eq!(provider.count() as u64, rows);
    assert!(provider.max_in_flight() > 32 && provider.max_in_flight() <= 64);
}

/// Texts that a CSV can only hold in quotes, and some that need none.
fn difficult(row: u64) -> String {
    let pieces = [
        "a \"quoted\" word",
        "first\nsecond",
        "first\r\nsecond",
        ",",
        "\"\"",
        " spaces ",
        "",
        "\r",
        "ü‑😀",
        "plain",
    ];
    let pick = |n: u64| pieces[usize::try_from(n % 10).unwrap()];
    format!("{}{}{}", pick(row), pick(row / 10), pick(row / 100))
}

fn csv_of(rows: u64) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .quote_style(csv::QuoteStyle::Necessary)
        .from_writer(Vec::new());
    writer.write_record(["id", "a \"difficult\", field", "last"]).unwrap();
    for row in 1..=rows {
        writer.write_record([&row.to_string(), &difficult(row), &difficult(row * 7)]).unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn a_csv_of_quoted_line_ends_comes_back_unchanged_and_in_order() {
    let rows = rows();
    let provider = Provider::start(echo);
    let outcome = Verify::new()
        .file("in.csv", csv_of(rows))
        .args(["run", "in.csv", "--model", "m", "--base-url", &provider.url(), "--concurrency", "64"])
        .args([
            "--prompt",
            "{{ id }}|{{ row['a \"difficult\", field'] }}|{{ last }}",
            "--column",
            "echo=string",
        ])
        .run()
        .expect_code(0);
    let mut reader =
        csv::ReaderBuilder::new().from_reader(std::io::Cursor::new(outcome.file("in.verified.csv")));
    let header: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(header[..5], ["id", "a \"difficult\", field", "last", "echo", "verify_status"]);
    let records: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len() as u64, rows);
    for (record, row) in records.iter().zip(1_u64..) {
        let (one, two) = (difficult(row), difficult(row * 7));
        assert_eq!((&record[0], &record[1], &record[2]), (&*row.to_string(), &*one, &*two));
        assert_eq!((&record[3], &record[4]), (&*format!("{row}|{one}|{two}"), "pass"));
    }
    assert_eq!(provider.count() as u64, rows);
}

#[test]
fn a_row_that_is_never_answered_holds_up_no_other() {
    let rows = 400;
    let provider = Provider::start(|call| if call.row == 2 { Reply::never() } else { echo(call) });
    let running = Verify::new()
        .file("in.jsonl", numbered(rows))
        .args([
            "run",
            "in.jsonl",
            "--model",
            "m",
            "--base-url",
            &provider.url(),
            "--adaptive=false",
            "--concurrency",
            "8",
        ])
        .args(["--prompt", "{{ text }}", "--column", "echo=string"])
        .spawn();
    // Far more rows than fit into the window of 4 × 8 + 64 that are loaded at once.
    provider.wait_for_calls(400);
    running.signal("INT");
    running.signal("INT");
    let outcome = running.wait().expect_code(130);
    let lines = outcome.json_lines("in.verified.jsonl.partial");
    assert_eq!(lines.len(), 400);
    assert_eq!(lines[1]["verify"]["status"], "skipped");
}

#[test]
fn no_more_rows_are_loaded_than_the_window_holds() {
    // Every row waits for the first, since all ask the same: what is loaded then is the window, and the last rows
    // are not reached. The row behind the window differs.
    let window = 4 * 2 + 64;
    let mut input = String::new();
    for row in 1..=window {
        writeln!(input, "{{\"id\":{row},\"text\":\"same\"}}").unwrap();
    }
    writeln!(input, "{{\"id\":0,\"text\":\"beyond\"}}").unwrap();
    let provider = Provider::start(|call| {
        let pause = if call.user() == "same" { 400 } else { 0 };
        echo(call).after(Duration::from_millis(pause))
    });
    let outcome = Verify::new()
        .file("in.jsonl", "{\"id\":0,\"text\":\"canary\"}\n".to_owned() + &input)
        .args([
            "run",
            "in.jsonl",
            "--model",
            "m",
            "--base-url",
            &provider.url(),
            "--adaptive=false",
            "--concurrency",
            "2",
        ])
        .args(["--prompt", "{{ text }}", "--column", "echo=string"])
        .run()
        .expect_code(0);
    let calls = provider.calls();
    assert_eq!(calls.iter().map(Call::user).collect::<Vec<_>>(), ["canary", "same", "beyond"]);
    assert!(
        calls[2].at >= calls[1].at + Duration::from_millis(400),
        "a row beyond the window was sent while the window was full"
    );
    assert_eq!(outcome.json_lines("in.verified.jsonl").len(), window + 2);
}
