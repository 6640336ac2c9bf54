//! Compressed inputs and outputs.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod support;

use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use support::command::{Outcome, Verify};

const MOCK: [&str; 6] = ["--provider", "mock", "--prompt", "Is {{ text }} spam?", "--column", "spam=boolean"];

fn rows(count: usize) -> String {
    (1..=count).map(|n| format!("{{\"text\":\"row {n}\"}}\n")).collect::<Vec<_>>().concat()
}

fn gz(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn run(directory: Verify, input: &str, more: &[&str]) -> Verify {
    directory.args(["run", input]).args(MOCK).args(more.iter().copied())
}

fn bytes(outcome: &Outcome, name: &str) -> Vec<u8> {
    std::fs::read(outcome.path(name)).unwrap()
}

#[test]
fn an_archive_is_the_same_input_as_its_content() {
    let text = rows(600);
    let plain = run(Verify::new().file("a.jsonl", &text), "a.jsonl", &[]).run().expect_code(0);
    let wanted = plain.file("a.verified.jsonl");
    // Two members, as `cat a.gz b.gz` makes them.
    let (one, two) = text.split_at(1_000);
    let archives = [
        ("a.jsonl.gz", [gz(one), gz(two)].concat()),
        ("a.jsonl.zst", zstd::encode_all(text.as_bytes(), 3).unwrap()),
    ];
    for (name, archive) in archives {
        let outcome = run(Verify::new().file(name, archive), name, &[]).run().expect_code(0);
        assert_eq!(outcome.file("a.verified.jsonl"), wanted, "{name}");
        let export = outcome.again().args(["export", "last", "-o", "b.jsonl"]).run().expect_code(0);
        assert_eq!(export.file("b.jsonl"), wanted, "{name}");
        let shown = outcome.again().args(["show", "last", "590", "--format", "json"]).run().expect_code(0);
        assert_eq!(shown.json()["prompt"]["user"], "Is row 590 spam?");
    }
    let csv = run(Verify::new().file("in.csv.gz", gz("text\none\n")), "in.csv.gz", &["--limit", "1"]);
    let csv = csv.run().expect_code(0).file("in.verified.csv");
    assert!(csv.starts_with("text,spam,verify_status"), "{csv}");
}

#[test]
fn an_output_is_compressed_where_its_name_says_so() {
    let first = run(Verify::new().file("in.jsonl", rows(50)), "in.jsonl", &[]).run().expect_code(0);
    let wanted = first.file("in.verified.jsonl");
    let again = run(first.again(), "in.jsonl", &["--new", "-o", "out.jsonl.gz", "--accounting=false"]);
    let again = again.run().expect_code(0);
    let mut text = String::new();
    MultiGzDecoder::new(bytes(&again, "out.jsonl.gz").as_slice()).read_to_string(&mut text).unwrap();
    assert_eq!(text.lines().count(), 50);
    let export = first.again().args(["export", "last", "-o", "out.csv.zst"]).run().expect_code(0);
    let unpacked = zstd::decode_all(bytes(&export, "out.csv.zst").as_slice()).unwrap();
    assert!(String::from_utf8(unpacked).unwrap().starts_with("text,spam,verify_status"));
    assert_eq!(wanted.lines().count(), 50);
    // The same answers give the same bytes.
    let third = run(first.again(), "in.jsonl", &["--new", "-o", "b.jsonl.gz", "--accounting=false"]);
    let third = third.run().expect_code(0);
    assert_eq!(bytes(&third, "out.jsonl.gz"), bytes(&third, "b.jsonl.gz"));
}

#[test]
fn a_cut_or_damaged_archive_is_named_and_nothing_is_sent() {
    let whole = gz(&rows(5_000));
    let mut flipped = whole.clone();
    let checksum = whole.len() - 7;
    flipped[checksum] ^= 0x40;
    let zst = zstd::encode_all(rows(5_000).as_bytes(), 3).unwrap();
    let cases = [
        ("cut.jsonl.gz", whole[..whole.len() / 2].to_vec(), "is cut off (gzip)"),
        ("tail.jsonl.gz", whole[..whole.len() - 1].to_vec(), "is cut off (gzip)"),
        ("empty.jsonl.gz", Vec::new(), "is cut off (gzip)"),
        ("bits.jsonl.gz", flipped, "is damaged (gzip)"),
        ("plain.jsonl.gz", rows(3).into_bytes(), "is damaged (gzip)"),
        ("cut.jsonl.zst", zst[..zst.len() / 2].to_vec(), "is cut off (zstd)"),
        ("plain.jsonl.zst", rows(3).into_bytes(), "is damaged (zstd)"),
    ];
    for (name, archive, what) in cases {
        let outcome = run(Verify::new().file(name, archive), name, &[]).run().expect_code(2);
        assert!(outcome.stderr.contains(&format!("the archive {name} {what}")), "{}", outcome.stderr);
        assert!(!outcome.path(".verify").exists());
    }
}

#[test]
fn what_does_not_say_that_it_is_compressed_is_refused_with_the_way_out() {
    let outcome = run(Verify::new().file("in.jsonl", gz(&rows(2))), "in.jsonl", &[]).run().expect_code(2);
    assert!(outcome.stderr.contains("let it end in .gz or .zst"), "{}", outcome.stderr);
    let outcome = run(Verify::new().stdin(gz(&rows(2))), "-", &[]).run().expect_code(2);
    assert!(outcome.stderr.contains("gzip -dc"), "{}", outcome.stderr);
}
