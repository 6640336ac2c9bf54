//! CSV files as people really have them: what reaches the prompt, what comes back, and what is refused.

mod support;

use std::time::Duration;

use support::command::{Outcome, Verify};
use support::job::{always, asks, left_behind};
use support::provider::{Provider, Reply};

const HEAD: &str =
    "ok,verify_status,verify_reason,verify_confidence,verify_agreement,verify_error,verify_cost_usd";
const PASS: &str = "true,pass,valid,,1,,";

/// Runs over `in.csv` with this content, and demands an exit code.
#[track_caller]
fn run(provider: &Provider, csv: impl AsRef<[u8]>, prompt: &str, more: &[&str], code: i32) -> Outcome {
    let verify = Verify::new().file("in.csv", csv).args(asks(provider, "in.csv", prompt));
    verify.args(more.iter().copied()).run().expect_code(code)
}

/// Runs over a file that must be refused with 2, and returns what was said.
#[track_caller]
fn refused(csv: impl AsRef<[u8]>, prompt: &str, more: &[&str]) -> String {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, csv, prompt, more, 2);
    assert_eq!((provider.count(), left_behind(&outcome, &[])), (0, vec![]));
    assert!(outcome.stderr.contains("in.csv"), "{}", outcome.stderr);
    outcome.stderr
}

/// The prompts that came, by row.
fn prompts(provider: &Provider) -> Vec<String> {
    let mut calls = provider.calls();
    calls.sort_by_key(|call| call.row);
    calls.iter().map(support::provider::Call::user).collect()
}

#[track_caller]
fn holds(text: &str, all: &[&str]) {
    for wanted in all {
        assert!(text.contains(wanted), "no `{wanted}` in: {text}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_column() {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "\u{feff}input,id\nhello,1\n", "{{input}}", &[], 0);
    assert_eq!(prompts(&provider), ["hello"]);
    assert_eq!(outcome.file("in.verified.csv"), format!("input,id,{HEAD}\nhello,1,{PASS}\n"));
}

#[test]
fn crlf_and_a_last_record_without_line_end() {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "a,b\r\nx,1\r\ny,2", "{{a}}|{{b}}|", &[], 0);
    assert_eq!(prompts(&provider), ["x|1|", "y|2|"]);
    let wanted = format!("a,b,{HEAD}\r\nx,1,{PASS}\r\ny,2,{PASS}\r\n");
    assert_eq!(outcome.file("in.verified.csv"), wanted);
}

#[test]
fn quoted_line_ends_and_quotes_come_back_as_they_were() {
    let provider = always("{\"ok\":true}");
    let outcome = run(
        &provider,
        "id,text\n1,\"a\nb \"\"q\"\", c\"\n2,5\" wide\n3,\"needless\"\n",
        "{{ text }}",
        &[],
        0,
    );
    assert_eq!(prompts(&provider), ["a\nb \"q\", c", "5\" wide", "needless"]);
    let out = outcome.file("in.verified.csv");
    assert!(out.contains(&format!("\n1,\"a\nb \"\"q\"\", c\",{PASS}\n2,")), "{out}");
    // A quote inside makes quotes needed; needless ones are not written.
    assert!(out.ends_with(&format!("\n2,\"5\"\" wide\",{PASS}\n3,needless,{PASS}\n")), "{out}");
}

#[test]
fn errors_name_record_and_line_which_differ_after_quoted_line_ends() {
    let said = refused("id,text\n1,\"a\nb\nc\"\n2,x\n3\n4,y,z\n", "{{ text }}", &[]);
    holds(&said, &["row 3", "line 6", "row 4", "line 7", "--ragged pad"]);
    holds(&said, &["2 fields", "1", "3"]);
}

#[test]
fn duplicate_header_names_are_refused_with_both_places() {
    let said = refused("name,age,name\na,1,b\n", "{{ name }}", &[]);
    holds(&said, &["`name`", "1", "3"]);
}

#[test]
fn short_rows_can_be_padded_and_are_counted_but_long_ones_stay_errors() {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "a,b,c\n1,2,3\n4\n5,6\n", "{{a}}|{{b}}|{{c}}", &["--ragged", "pad"], 0);
    assert_eq!(prompts(&provider), ["1|2|3", "4||", "5|6|"]);
    holds(&outcome.stderr, &["2 rows"]);
    let said = refused("a,b\n1,2\n1,2,3\n", "{{a}}", &["--ragged", "pad"]);
    holds(&said, &["row 2", "line 3"]);
}

#[test]
fn malformed_rows_can_be_kept_and_then_count_as_errors() {
    let provider = always("{\"ok\":true}");
    let csv = "a,b\n1,2\n3\n5,6\n";
    let outcome = run(&provider, csv, "{{a}}", &["--bad-rows", "keep"], 4);
    assert_eq!(prompts(&provider), ["1", "5"]);
    let lines = outcome.output_lines("in.verified.csv");
    assert!(lines[2].starts_with("3,,,error,bad_input,,,"), "{}", lines[2]);
    assert_eq!(lines.len(), 4);
    run(&provider, csv, "{{a}}", &["--bad-rows", "keep", "--max-error", "1"], 0);
}

#[test]
fn blank_lines_are_no_rows_and_empty_fields_are() {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "a,b,c\n\n1,2,3\n\n\n,,\n\n", "[{{a}}{{b}}{{c}}]", &[], 0);
    assert_eq!(prompts(&provider), ["[123]", "[]"]);
    assert_eq!(outcome.output_lines("in.verified.csv").len(), 3);
}

#[test]
fn bytes_of_another_encoding_are_found_before_the_first_request() {
    let mut csv = b"id,text\n".to_vec();
    for n in 1..=50 {
        csv.extend(format!("{n},caf").bytes());
        csv.extend(if n == 40 { &b"\xe9\n"[..] } else { b"e\n" });
    }
    let offset = csv.iter().position(|byte| *byte == 0xe9).unwrap();
    let said = refused(&csv, "{{ text }}", &[]);
    holds(&said, &["line 41", &offset.to_string(), "--encoding windows-1252"]);
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, &csv, "{{ text }}", &["--encoding", "windows-1252", "--rows", "40"], 0);
    assert_eq!(prompts(&provider), ["café"]);
    assert_eq!(outcome.file("in.verified.csv"), format!("id,text,{HEAD}\n40,café,{PASS}\n"));
    let outcome = run(&provider, csv, "{{ text }}", &["--encoding", "windos"], 2);
    holds(&outcome.stderr, &["windos", "WHATWG"]);
}

#[test]
fn utf_16_with_a_mark_is_decoded() {
    let text = "\u{feff}name\nZoë 😀\n";
    for bytes in [
        text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
        text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    ] {
        let provider = always("{\"ok\":true}");
        let outcome = run(&provider, bytes, "{{ name }}", &[], 0);
        assert_eq!(prompts(&provider), ["Zoë 😀"]);
        assert_eq!(outcome.file("in.verified.csv"), format!("name,{HEAD}\nZoë 😀,{PASS}\n"));
    }
}

#[test]
fn a_field_of_five_megabytes_goes_out_and_comes_back() {
    let provider = always("{\"ok\":true}");
    let field = "lorem ipsum ".repeat(5_000_000 / 12);
    let outcome = run(&provider, format!("id,text\n1,{field}\n"), "{{ text }}", &[], 0);
    assert!(prompts(&provider) == [field.as_str()]);
    assert!(outcome.file("in.verified.csv") == format!("id,text,{HEAD}\n1,{field},{PASS}\n"));
}

#[test]
fn long_fields_are_held_a_few_at_a_time() {
    // 48 rows of 5 MB each: what has gone out is not kept, and no more is loaded than fits beside it.
    let provider = Provider::start(|call| match call.row {
        48 => Reply::never(),
        _ => Reply::answer("{\"ok\":true}"),
    });
    let mut csv = "id,text\n".to_owned();
    for n in 1..=48 {
        csv.extend([n.to_string().as_str(), ",", &"lorem ipsum ".repeat(5_000_000 / 12), "\n"]);
    }
    let verify =
        Verify::new().file("in.csv", csv).args(asks(&provider, "in.csv", "{{ id }} {{ text[:20] }}"));
    let running = verify.args(["--concurrency", "1"]).spawn();
    provider.wait_for_calls(48);
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 180_000, "the peak was {kilobytes} kB for an input of 240 MB");
    running.kill9();
}

#[test]
fn an_unclosed_quote_ends_at_the_longest_record_and_is_told_where_it_opened() {
    let mut csv = "id,text\n1,a\n2,b\n3,\"open\n".to_owned();
    for n in 4..200_000 {
        csv.extend([n.to_string().as_str(), ",some text\n"]);
    }
    let said = refused(&csv, "{{ text }}", &["--max-record", "65536"]);
    holds(&said, &["line 4", "65536"]);
    holds(&refused("id,text\n1,\"open\n2,b\n", "{{ text }}", &[]), &["line 2"]);
    // The usual bound ends a million rows that one quote would make a single field of.
    for n in 200_000..1_000_000 {
        csv.extend([n.to_string().as_str(), ",some more text\n"]);
    }
    holds(&refused(&csv, "{{ text }}", &[]), &["line 4", "16777216"]);
}

#[test]
fn another_delimiter_is_suggested_and_then_kept() {
    let csv = "id;text\n1;a,b\n";
    let said = refused("id;text\n1;a\n", "{{ text }}", &[]);
    holds(&said, &["id;text", "--delimiter"]);
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, csv, "{{ text }}", &["--delimiter", ";"], 0);
    assert_eq!(prompts(&provider), ["a,b"]);
    let out = outcome.file("in.verified.csv");
    assert!(out.starts_with("id;text;ok;verify_status;") && out.contains("\n1;a,b;true;pass;"), "{out}");
}

#[test]
fn an_input_without_rows_is_refused_unless_that_is_allowed() {
    for csv in ["", "id,text\n"] {
        let provider = always("{\"ok\":true}");
        let outcome = run(&provider, csv, "{{ text }}", &[], 2);
        holds(&outcome.stderr, &["in.csv", "--allow-empty"]);
        let outcome = run(&provider, csv, "{{ text }}", &["--allow-empty"], 0);
        let wanted = if csv.is_empty() { String::new() } else { format!("id,text,{HEAD}\n") };
        assert!(outcome.file("in.verified.csv").ends_with(&wanted), "{}", outcome.file("in.verified.csv"));
        assert_eq!(provider.count(), 0);
    }
}

#[test]
fn formulas_are_written_as_they_are_unless_neutralised() {
    let provider = always("{\"why\":\"=HYPERLINK(1)\"}");
    let job = |more: &[&str]| {
        let args = ["run", "in.csv", "--model", "m", "--prompt", "{{ row['=a'] }}", "--column", "why=string"];
        let verify = Verify::new().file("in.csv", "=a,b\n@x,-1\n").args(args);
        let verify = verify.args(["--base-url", &provider.url()]).args(more.iter().copied());
        verify.run().expect_code(0).file("in.verified.csv")
    };
    let plain = job(&[]);
    assert!(plain.starts_with("=a,b,why,") && plain.contains("\n@x,-1,=HYPERLINK(1),pass,"), "{plain}");
    let safe = job(&["--csv-safe"]);
    assert!(safe.starts_with("'=a,b,why,") && safe.contains("\n'@x,"), "{safe}");
    assert!(safe.contains(",'=HYPERLINK(1),pass,"), "{safe}");
}

#[test]
fn a_column_that_the_file_lacks_is_told_with_the_closest_one() {
    let said = refused("proposed,reference\na,b\n", "{{ propsed }} {{ nothing_like_it }}", &[]);
    holds(&said, &["propsed", "did you mean `proposed`", "nothing_like_it"]);
}

#[test]
fn columns_that_collide_are_refused_with_the_prefix() {
    let said = refused("ok,text\na,b\n", "{{ text }}", &[]);
    holds(&said, &["`ok`", "prefix"]);
    let said = refused("verify_status,text\na,b\n", "{{ text }}", &[]);
    holds(&said, &["`verify_status`", "--result-field"]);
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "ok,text\na,b\n", "{{ text }}", &["--prefix", "ai_"], 0);
    let out = outcome.file("in.verified.csv");
    assert!(out.starts_with("ok,text,ai_ok,verify_status,") && out.contains("\na,b,true,pass,"), "{out}");
    let outcome = run(&provider, "verify_status,text\na,b\n", "{{ text }}", &["--result-field", "judge"], 0);
    holds(&outcome.file("in.verified.csv"), &["verify_status,text,ok,judge_status,judge_reason,"]);
}

#[test]
fn rows_are_selected_by_their_number_in_the_file() {
    let csv = "n\n1\n2\n3\n4\n5\n";
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, csv, "{{ n }}", &["--rows", "4-5,2"], 0);
    assert_eq!(prompts(&provider), ["2", "4", "5"]);
    assert_eq!(provider.calls().iter().map(|call| call.row).max(), Some(5));
    assert_eq!(outcome.output_lines("in.verified.csv").len(), 4);
    let outcome = run(&provider, csv, "{{ n }}", &["--limit", "2"], 0);
    assert_eq!(outcome.output_lines("in.verified.csv").len(), 3);
    let picked = run(&provider, csv, "{{ n }}", &["--pick", "3"], 0).output_lines("in.verified.csv");
    let again = run(&provider, csv, "{{ n }}", &["--pick", "3", "--pick-seed", "0"], 0);
    assert_eq!(picked, again.output_lines("in.verified.csv"));
    assert!(picked.len() == 4 && picked[1..].is_sorted(), "{picked:?}");
    for beyond in ["6", "2,5-9"] {
        holds(&refused(csv, "{{ n }}", &["--rows", beyond]), &["--rows", "5"]);
    }
    for wrong in ["0", "5-2", "x", "1-", ""] {
        let outcome = run(&provider, csv, "{{ n }}", &["--rows", wrong], 2);
        holds(&outcome.stderr, &["--rows"]);
    }
    for both in
        [["--limit", "1", "--rows", "1"], ["--limit", "1", "--pick", "1"], ["--rows", "1", "--pick", "1"]]
    {
        run(&provider, csv, "{{ n }}", &both, 2);
    }
}

#[test]
fn an_id_column_must_be_there_and_unique() {
    let provider = always("{\"ok\":true}");
    let csv = "sku,text\na,1\nb,2\na,3\n";
    let outcome = run(&provider, csv, "{{ text }}", &["--id-column", "sku"], 2);
    holds(&outcome.stderr, &["sku", "\"a\"", "1", "3"]);
    let outcome = run(&provider, csv, "{{ text }}", &["--id-column", "skuu"], 2);
    holds(&outcome.stderr, &["skuu", "sku"]);
    assert_eq!(provider.count(), 0);
    let out = ["--id-column", "sku", "-o", "out.jsonl", "--limit", "2"];
    let outcome = run(&provider, csv, "{{ text }}", &out, 0);
    let line = &outcome.json_lines("out.jsonl")[1];
    assert_eq!((&line["sku"], &line["text"], &line["verify"]["id"]), (&"b".into(), &"2".into(), &"b".into()));
}

#[test]
fn many_malformed_rows_are_listed_together_to_the_twentieth() {
    let csv = format!("a,b\n{}", "x\n".repeat(30));
    let said = refused(csv, "{{ a }}", &[]);
    holds(&said, &["row 1", "row 20", "10 more"]);
    assert!(!said.contains("row 21"), "{said}");
}

#[test]
fn a_folder_a_missing_file_and_an_unknown_extension_are_no_input() {
    let provider = always("{\"ok\":true}");
    let verify =
        Verify::new().file("folder.csv/x", "").file("in.dat", "a\n1\n").patience(Duration::from_secs(20));
    for (input, said) in
        [("missing.csv", "missing.csv"), ("folder.csv", "folder.csv"), ("in.dat", "--input-format")]
    {
        let outcome = verify.again().args(asks(&provider, input, "{{ a }}")).run().expect_code(2);
        holds(&outcome.stderr, &[said]);
    }
    let args = asks(&provider, "in.dat", "{{ a }}");
    let outcome = verify.again().args(args).args(["--input-format", "csv"]).run().expect_code(0);
    assert!(outcome.path("in.verified.dat").exists(), "{}", outcome.stderr);
}
