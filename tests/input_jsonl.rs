//! JSONL files as people really have them, and the bytes that come back.

mod support;

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::{always, asks, left_behind, results, statuses};
use support::provider::{Call, Provider, Reply};

const RESULT: &str = r#""status":"pass","reason":"valid","answer":{"ok":true},"confidence":null,"agreement":1,"samples":{"planned":1,"made":1,"valid":1},"extracted":false,"model":"m","error":null,"usage":{"attempts":1,"cached":false,"input":100,"cached_input":0,"output":10,"cost_usd":null,"estimated":false}}}"#;

#[track_caller]
fn run(provider: &Provider, jsonl: impl AsRef<[u8]>, prompt: &str, more: &[&str], code: i32) -> Outcome {
    let verify = Verify::new().file("in.jsonl", jsonl).args(asks(provider, "in.jsonl", prompt));
    verify.args(more.iter().copied()).run().expect_code(code)
}

#[track_caller]
fn refused(jsonl: impl AsRef<[u8]>, prompt: &str, more: &[&str]) -> String {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, jsonl, prompt, more, 2);
    assert_eq!((provider.count(), left_behind(&outcome, &[])), (0, vec![]));
    assert!(outcome.stderr.contains("in.jsonl"), "{}", outcome.stderr);
    outcome.stderr
}

/// The prompts that came, by row.
fn prompts(provider: &Provider) -> Vec<String> {
    let mut calls = provider.calls();
    calls.sort_by_key(|call| call.row);
    calls.iter().map(Call::user).collect()
}

#[track_caller]
fn holds(text: &str, all: &[&str]) {
    for wanted in all {
        assert!(text.contains(wanted), "no `{wanted}` in: {text}");
    }
}

#[test]
fn a_row_comes_back_to_the_letter_with_its_result() {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "{\"text\": \"a\"}\n{ }\n", "x{{ row.text | default('') }}", &[], 0);
    let wanted = format!("{{\"text\": \"a\",\"verify\":{{\"row\":1,\"id\":null,{RESULT}\n");
    let wanted = format!("{wanted}{{ \"verify\":{{\"row\":2,\"id\":null,{RESULT}\n");
    assert_eq!(outcome.file("in.verified.jsonl"), wanted);
}

#[test]
fn accounting_can_be_left_out_and_the_result_renamed() {
    let provider = always("{\"ok\":true}");
    let more = ["--accounting=false", "--result-field", "judge"];
    let outcome = run(&provider, "{\"verify\":1}\n", "{{ verify }}", &more, 0);
    let member = RESULT.split_once(",\"usage\"").unwrap().0;
    let wanted = format!("{{\"verify\":1,\"judge\":{{\"row\":1,\"id\":null,{member}}}}}\n");
    assert_eq!(outcome.file("in.verified.jsonl"), wanted);
    let said = refused("{\"a\":1}\n{\"a\":1,\"verify\":1}\n", "{{ a }}", &[]);
    holds(&said, &["row 2", "`verify`", "--result-field"]);
}

#[test]
fn costs_are_exact_and_cut() {
    let provider = always("{\"ok\":true}");
    let more = ["--price", "input=0.15,output=0.6,cached_input=0.075"];
    let outcome = run(&provider, "{\"a\":1}\n", "{{ a }}", &more, 0);
    holds(&outcome.file("in.verified.jsonl"), &["\"cost_usd\":0.000021,"]);
    let more = ["--price", "input=0.15,output=0.6", "-o", "out.csv"];
    let outcome = run(&provider, "{\"a\":1}\n", "{{ a }}", &more, 0);
    assert!(outcome.file("out.csv").ends_with(",0.000021\n"), "{}", outcome.file("out.csv"));
    for wrong in ["input", "input=x,output=1", "input=1", "input=1,output=-1", "inputs=1,output=2"] {
        let outcome = run(&provider, "{\"a\":1}\n", "{{ a }}", &["--price", wrong], 2);
        holds(&outcome.stderr, &["price"]);
    }
}

#[test]
fn blank_lines_and_crlf_are_no_rows_but_count_as_lines() {
    let provider = always("{\"ok\":true}");
    let outcome =
        run(&provider, "\u{feff}{\"a\":1}\r\n\r\n  \t\n{\"a\":2} \r\n\n{\"a\":3}", "{{ a }}", &[], 0);
    assert_eq!(prompts(&provider), ["1", "2", "3"]);
    let out = outcome.file("in.verified.jsonl");
    assert!(
        out.starts_with("{\"a\":1,\"verify\":") && !out.contains('\r') && out.ends_with("}}}\n"),
        "{out}"
    );
    holds(&refused("{\"a\":1}\n\n \n{\"a\":2\n", "{{ a }}", &[]), &["row 2", "line 4", "column"]);
}

#[test]
fn a_malformed_line_is_told_with_line_and_column_or_kept() {
    let jsonl = "{\"a\":1}\n{\"a\":2},\n{\"a\":3}\n";
    holds(&refused(jsonl, "{{ a }}", &[]), &["row 2, line 2, column 8", "--bad-rows keep"]);
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, jsonl, "{{ a }}", &["--bad-rows", "keep"], 4);
    assert_eq!(prompts(&provider), ["1", "3"]);
    assert_eq!(statuses(&outcome), ["pass/valid", "error/bad_input", "pass/valid"]);
    let lines = outcome.json_lines("in.verified.jsonl");
    assert_eq!(lines[1]["raw"], "{\"a\":2},");
    assert_eq!((&lines[1]["verify"]["answer"], &lines[1]["verify"]["row"]), (&Value::Null, &json!(2)));
    let error = lines[1]["verify"]["error"].as_str().unwrap();
    assert!(error.contains("column 8"), "{error}");
    assert_eq!(lines[1]["verify"]["samples"], json!({"planned": 1, "made": 0, "valid": 0}));
}

#[test]
fn what_is_no_object_or_no_json_is_named() {
    for (line, said) in [
        ("{\"a\":NaN}", "NaN"),
        ("{\"a\":-Infinity}", "Infinity"),
        ("[1,2]", "object"),
        ("\"text\"", "object"),
        ("null", "object"),
        ("{\"a\":01}", "column"),
        ("{'a':1}", "column"),
        ("{\"a\":1}{\"a\":2}", "column 8"),
        ("{\"a\":\"\u{1}\"}", "column"),
    ] {
        let said_all = refused(format!("{{\"a\":0}}\n{line}\n"), "{{ a }}", &[]);
        holds(&said_all, &["row 2", "line 2", said]);
    }
}

#[test]
fn lone_surrogates_make_their_row_an_error_only() {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "{\"t\":\"a\\ud83d\"}\n{\"t\":\"\\ud83d\\ude00\"}\n", "{{ t }}", &[], 4);
    assert_eq!(statuses(&outcome), ["error/bad_input", "pass/valid"]);
    assert_eq!(prompts(&provider), ["😀"]);
    // The line goes into a text, as half a character would make the output no JSON for most readers.
    assert_eq!(outcome.json_lines("in.verified.jsonl")[0]["raw"], "{\"t\":\"a\\ud83d\"}");
}

#[test]
fn number_texts_key_order_and_repeated_keys_come_back_unchanged() {
    let provider = always("{\"ok\":true}");
    let line = r#"{"z":9007199254740993,"a":1e400,"m":[1.10,-0, 1E5],"z":"last","u":"\u00e9\/"#;
    let outcome = run(&provider, format!("{line}\"}}\n"), "{{ z }} {{ a }} {{ m }} {{ u }}", &[], 0);
    assert_eq!(prompts(&provider), ["last 1e400 [1.10,-0, 1E5] é/"]);
    assert!(outcome.file("in.verified.jsonl").starts_with(&format!("{line}\",\"verify\":")));
    holds(&outcome.stderr, &["warning", "line 1 repeats a key"]);
}

#[test]
fn a_row_that_lacks_a_nested_field_fails_alone_before_any_request() {
    let provider = always("{\"ok\":true}");
    let rows: String = (1..=10)
        .map(|n| match n {
            7 => "{\"user\":{\"name\":\"x\"}}\n".to_owned(),
            n => format!("{{\"user\":{{\"address\":{{\"street\":\"s{n}\"}}}}}}\n"),
        })
        .collect();
    let outcome = run(&provider, rows, "{{user.address.street}}", &[], 4);
    assert_eq!((provider.count(), statuses(&outcome)[6].as_str()), (9, "error/bad_input"));
    let error = results(&outcome)[6]["error"].as_str().unwrap().to_owned();
    holds(&error, &["user.address.street", "user.address"]);
    holds(&outcome.stderr, &["user.address.street", "7"]);
}

#[test]
fn the_values_of_one_field_may_have_different_types() {
    let provider = always("{\"ok\":true}");
    let rows = "{\"p\":\"t\"}\n{\"p\":1.50}\n{\"p\":null}\n{\"p\":true}\n{\"p\":[1, {\"b\":2}]}\n{\"p\":\"{{ p }}\"}\n";
    run(&provider, rows, "<{{ p }}>", &[], 0);
    assert_eq!(prompts(&provider), ["<t>", "<1.50>", "<null>", "<true>", "<[1, {\"b\":2}]>", "<{{ p }}>"]);
}

#[test]
fn rows_come_back_in_order_whatever_the_order_of_answers() {
    let provider = Provider::start(|call| {
        let late = std::time::Duration::from_millis(if call.row % 3 == 1 { 60 } else { 1 });
        Reply::answer(&json!({"echo": call.user()}).to_string()).after(late)
    });
    let rows = (1..=40).fold(String::new(), |all, n| format!("{all}{{\"n\":\"r{n}\"}}\n"));
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ n }}", "--column", "echo=string"];
    let verify = Verify::new().file("in.jsonl", rows).args(args).args(["--base-url", &provider.url()]);
    let lines = verify.run().expect_code(0).json_lines("in.verified.jsonl");
    for (at, line) in lines.iter().enumerate() {
        assert_eq!((&line["n"], &line["verify"]["row"]), (&json!(format!("r{}", at + 1)), &json!(at + 1)));
        assert_eq!(line["verify"]["answer"]["echo"], line["n"]);
    }
    assert_eq!((lines.len(), provider.count()), (40, 40));
}

#[test]
fn jsonl_becomes_csv_with_columns_in_order_of_first_appearance_and_back_as_text() {
    let provider = always("{\"ok\":false}");
    let rows = "{\"b\":1.50,\"a\":\"x,\\\"y\"}\n{\"c\":[1, 2],\"a\":null,\"b\":true}\n";
    let outcome = run(&provider, rows, "x{{ row }}", &["-o", "out.csv"], 0);
    let wanted = "b,a,c,ok,verify_status,verify_reason,verify_confidence,verify_agreement,verify_error,verify_cost_usd\n\
                  1.50,\"x,\"\"y\",,false,pass,valid,,1,,\n\
                  true,,\"[1, 2]\",false,pass,valid,,1,,\n";
    assert_eq!(outcome.file("out.csv"), wanted);
    let args = asks(&provider, "out.csv", "{{ b }}");
    let verify =
        outcome.again().args(args).args(["-o", "back.jsonl", "--result-field", "v", "--prefix", "p"]);
    let back = verify.run().expect_code(0).json_lines("back.jsonl");
    assert_eq!(
        (&back[0]["b"], &back[0]["c"], &back[1]["ok"], &back[0]["v"]["status"]),
        (&json!("1.50"), &json!(""), &json!("false"), &json!("pass"))
    );
}

#[test]
fn dash_reads_standard_input_and_writes_standard_output() {
    let provider = always("{\"ok\":true}");
    let verify = Verify::new().args(asks(&provider, "-", "{{ a }}")).stdin("{\"a\":1}\n{\"a\":2}\n");
    let outcome = verify.run().expect_code(0);
    assert_eq!(outcome.stdout.lines().count(), 2);
    assert!(outcome.stdout.starts_with("{\"a\":1,\"verify\":{\"row\":1,"), "{}", outcome.stdout);
    let csv = ["--input-format", "csv"];
    let verify = outcome.again().args(asks(&provider, "-", "{{ a }}")).args(csv).stdin("a\n1\n");
    assert!(verify.run().expect_code(0).stdout.starts_with("a,ok,verify_status,"));
    let both = outcome.again().args(asks(&provider, "-", "{{ a }}")).args(["--format", "json"]).stdin("{}");
    holds(&both.run().expect_code(2).stderr, &["--format json", "-o -"]);
}

#[test]
fn a_reader_that_closes_standard_output_ends_the_run_quietly() {
    let provider = always("{\"ok\":true}");
    let verify = Verify::new().file("in.jsonl", support::job::rows(300));
    let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(asks(&provider, "in.jsonl", "{{ text }}"))
        .args(["-o", "-", "--concurrency", "4"])
        .current_dir(verify.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    provider.wait_for_calls(1);
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(141), "{said}");
    assert!(!said.contains("panic") && !said.contains("error"), "{said}");
}

#[test]
fn nobody_needs_to_listen_on_standard_error() {
    let provider = always("{\"ok\":true}");
    let verify = Verify::new().file("in.jsonl", support::job::rows(3));
    let mut command = Command::new("sh");
    command.arg("-c").arg("exec \"$@\" 2>&-").arg("sh").arg(env!("CARGO_BIN_EXE_verify"));
    let command = command.args(asks(&provider, "in.jsonl", "{{ text }}")).current_dir(verify.directory());
    assert_eq!(command.stdout(Stdio::null()).stdin(Stdio::null()).status().unwrap().code(), Some(0));
    let lines = std::fs::read_to_string(verify.path("in.verified.jsonl")).unwrap();
    assert_eq!((lines.lines().count(), provider.count()), (3, 3));
}

#[test]
fn deep_nesting_and_long_records_are_refused_or_carried_but_never_a_crash() {
    let deep = format!("{{\"a\":{}1{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    let provider = always("{\"ok\":true}");
    let more = ["--bad-rows", "keep", "--max-error", "any"];
    let outcome = run(&provider, &deep, "x{{ row.b | default('') }}", &more, 0);
    assert_eq!(outcome.output_lines("in.verified.jsonl").len(), 1);
    let long = format!("{{\"a\":1}}\n{{\"a\":\"{}\"}}\n", "x".repeat(70_000));
    holds(
        &refused(&long, "{{ a }}", &["--max-record", "65536"]),
        &["row 2", "line 2", "65536", "--max-record"],
    );
    run(&provider, &long, "{{ a }}", &[], 0);
}

#[test]
fn a_file_as_large_as_can_be_piped_is_read_once() {
    // A pipe of more than its buffer, so that it is really drained before the first request.
    let provider = always("{\"ok\":true}");
    let verify = Verify::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_verify"))
        .args(asks(&provider, "-", "{{ text }}"))
        .args(["--limit", "2"])
        .current_dir(verify.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(support::job::rows(50_000).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((provider.count(), String::from_utf8_lossy(&output.stdout).lines().count()), (2, 2));
}
