//! Texts of models, and what is made of them.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::answer::{parse_column, preset_verdict, schema_of_columns};

fn settings() -> AnswerSettings {
    AnswerSettings {
        schema: None,
        verdict: None,
        pass: vec![json!(true), json!("pass")],
        confidence: None,
        agree_on: None,
        repair: 1,
    }
}

fn columns(columns: &[&str]) -> Schema {
    let columns: Vec<_> = columns.iter().map(|text| parse_column(text).unwrap()).collect();
    Schema::compile(&schema_of_columns(&columns)).unwrap()
}

fn reader() -> Reader {
    Reader::new(columns(&["ok=boolean", "n=integer"]), &settings()).unwrap()
}

fn judging() -> Reader {
    let settings = AnswerSettings { verdict: Some("ok".into()), confidence: Some("c".into()), ..settings() };
    let schema = json!({
        "properties": {"ok": {"type": "boolean"}, "c": {}}, "required": ["ok"],
    });
    Reader::new(Schema::compile(&schema).unwrap(), &settings).unwrap()
}

fn text(reader: &Reader, text: &str) -> (String, bool) {
    let (answer, _) = reader.read(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    (answer.text, answer.extracted)
}

fn errors(reader: &Reader, text: &str) -> String {
    match reader.read(text) {
        Err(Unread::Invalid { errors }) => {
            assert!((1..=5).contains(&errors.len()), "{errors:?}");
            errors.join("\n")
        }
        other => panic!("{text}: {other:?}"),
    }
}

const GOOD: &str = r#"{"ok":true,"n":1}"#;

#[test]
fn the_whole_text_is_the_answer() {
    for whole in [GOOD, " {\n \"ok\" : true,\t\"n\": 1 }\r\n"] {
        assert_eq!(text(&reader(), whole), (GOOD.to_owned(), false), "{whole}");
    }
    assert_eq!(text(&reader(), r#"{"n": 1.0, "ok":false}"#), (r#"{"n":1.0,"ok":false}"#.to_owned(), false));
}

#[test]
fn numbers_escapes_and_order_stay_as_written() {
    let open = Reader::new(Schema::compile(&json!({"type": "object"})).unwrap(), &settings()).unwrap();
    let written = r#"{"z":1.10,"a":9007199254740993,"e":1E+2,"s":"\u00e9 \/ é","m":{"b":-0,"a":[]}}"#;
    assert_eq!(text(&open, written), (written.to_owned(), false));
}

#[test]
fn wrappings_are_taken_off() {
    for wrapped in [
        "```json\n{G}\n```",
        "```\n{G}\n```\n",
        "```json {G}```",
        "Here it is:\n\n{G}\n\nI hope it helps {really}.",
        "Here:\n```json\n{G}\n```\nand that is all.",
        "<think>maybe {\"ok\":false,\"n\":0}?</think>\n{G}",
        "<thinking>…</thinking>```json\n{G}\n```",
        "so the answer is clear</think>{G}",
        "<think>a</think> The answer is {G}.",
        "{G}\n{G}",
        "{G} {\"n\":1.0,\"ok\":true,\"x\":1}",
        "Step [1]: see {\"other\":1}. {G}",
        "\u{feff}{G}",
    ] {
        let wrapped = wrapped.replace("{G}", GOOD);
        assert_eq!(text(&reader(), &wrapped), (GOOD.to_owned(), true), "{wrapped}");
    }
}

#[test]
fn fences_and_tags_inside_of_strings_are_unharmed() {
    let reader = Reader::new(columns(&["why=string"]), &settings()).unwrap();
    let inner = r#"{"why":"use ```json {\"why\":\"x\"}``` and </think>"}"#;
    assert_eq!(text(&reader, inner), (inner.to_owned(), false));
    assert_eq!(text(&reader, &format!("```json\n{inner}\n```")), (inner.to_owned(), true));
}

#[test]
fn two_different_answers_are_no_answer() {
    let two = r#"{"ok":true,"n":1} {"ok":false,"n":1}"#;
    assert!(errors(&reader(), two).contains("two different"), "{}", errors(&reader(), two));
}

#[test]
fn what_is_not_strict_json_is_invalid() {
    let reader = reader();
    for (wrong, why) in [
        (r#"{"ok":true,"n":NaN}"#, "NaN"),
        (r#"{"ok":true,"n":-Infinity}"#, "-Infinity"),
        (r#"{"ok":true,"n":1,"n":1}"#, "twice"),
        (r#"[{"ok":true,"n":1}]"#, "at /"),
        (r#""{\"ok\":true,\"n\":1}""#, "at /"),
        (r#"{"ok":true,"n":"42"}"#, r#"at /n: "42" is not of type "integer""#),
        (r#"{"ok":"true","n":1}"#, "at /ok"),
        (r#"{"ok":true}"#, "required"),
        (r#"{"ok":true,"n":1,}"#, "line 1"),
        (r#"{"ok":true,"n":1"#, "EOF"),
        (r#"{"outer":{"ok":true,"n":1}}"#, "at /"),
        (r#"{"outer":{"ok":true,"n":1},"cut":"#, "EOF"),
        ("I cannot tell.", "strict JSON"),
        ("{'ok': true}", "line 1, column 2"),
        ("null", "at /"),
        (r#"{"ok":true,"n":1e400}"#, "number out of range"),
    ] {
        let errors = errors(&reader, wrong);
        assert!(errors.contains(why), "{wrong}: {errors}");
    }
}

#[test]
fn nothing_to_read_and_unclosed_thinking() {
    for empty in ["", " \n", "<think>a</think>", "<think></think>\n "] {
        assert_eq!(reader().read(empty), Err(Unread::Empty), "{empty}");
    }
    for cut in ["<think>let me {\"ok\":true,\"n\":1}", " <thinking>"] {
        assert_eq!(reader().read(cut), Err(Unread::Truncated), "{cut}");
    }
}

#[test]
fn deep_nesting_is_invalid() {
    let open = Reader::new(Schema::compile(&json!({})).unwrap(), &settings()).unwrap();
    for unit in ["[", "{\"a\":"] {
        assert!(errors(&open, &unit.repeat(100_000)).contains("deeply"));
    }
}

#[test]
fn free_text_is_never_invalid() {
    let reader = Reader::new(Schema::free_text(), &settings()).unwrap();
    assert_eq!(text(&reader, " say \"hi\"\n\u{1b} {\n"), (r#""say \"hi\"\n\u001b {""#.to_owned(), false));
    assert_eq!(reader.read(" \n"), Err(Unread::Empty));
    assert_eq!(reader.read("<think>cut"), Err(Unread::Truncated));
    let named = AnswerSettings { verdict: Some("ok".into()), ..settings() };
    assert!(Reader::new(Schema::free_text(), &named).unwrap_err().to_string().contains("answer.verdict"));
}

#[test]
fn the_verdict_and_its_pass_values() {
    let vote = |reader: &Reader, text: &str| reader.read(text).unwrap().1.positive;
    assert_eq!(vote(&judging(), r#"{"ok":true}"#), Some(true));
    assert_eq!(vote(&judging(), r#"{"ok":false}"#), Some(false));
    let numbers = AnswerSettings { verdict: Some("n".into()), pass: vec![json!(1)], ..settings() };
    let numbers = Reader::new(columns(&["n=integer"]), &numbers).unwrap();
    assert_eq!(vote(&numbers, r#"{"n":1.0}"#), Some(true));
    let optional = json!({"properties": {"ok": {"type": "boolean"}}});
    let named = AnswerSettings { verdict: Some("ok".into()), ..settings() };
    let optional = Reader::new(Schema::compile(&optional).unwrap(), &named).unwrap();
    assert_eq!(vote(&optional, "{}"), Some(false));
}

#[test]
fn names_must_be_in_the_schema() {
    let with = |change: fn(&mut AnswerSettings)| {
        let mut settings = settings();
        change(&mut settings);
        Reader::new(columns(&["verdict=boolean", "grade=a|b"]), &settings).unwrap_err().to_string()
    };
    let error = with(|it| it.verdict = Some("verdit".into()));
    assert!(error.contains("did you mean `verdict`"), "{error}");
    assert!(with(|it| it.confidence = Some("zzz".into())).contains("`grade`"));
    assert!(with(|it| it.agree_on = Some(vec!["x".into()])).contains("agree_on"));
    let error = with(|it| it.verdict = Some("grade".into()));
    assert!(error.contains(r#"[true,"pass"]"#) && error.contains("`grade`"), "{error}");
}

#[test]
fn confidence_is_the_exact_number() {
    let reader = judging();
    for (written, expected) in [
        ("0.7", Some("0.7")),
        ("0.10", Some("0.1")),
        ("1", Some("1")),
        ("1.0", Some("1")),
        ("-0", Some("0")),
        ("9e-1", Some("0.9")),
        ("0.9E0", Some("0.9")),
        ("1e-400", Some("0")),
        ("0.12345678901234567890", Some("0.1234567890123456789")),
        ("1.01", None),
        ("-0.1", None),
        ("95", None),
        ("\"0.9\"", None),
        ("null", None),
        ("true", None),
    ] {
        let text = format!(r#"{{"c":{written},"ok":true}}"#);
        match expected {
            Some(expected) => {
                let confidence = reader.read(&text).unwrap().1.confidence.unwrap();
                assert_eq!(confidence.to_string(), expected, "{written}");
            }
            None => assert!(errors(&reader, &text).contains("at /c"), "{written}"),
        }
    }
    assert_eq!(reader.read(r#"{"ok":true}"#).unwrap().1.confidence, None);
}

#[test]
fn values_to_agree_on() {
    let vote = |reader: &Reader, text: &str| reader.read(text).unwrap().1.agree_on;
    let default =
        Reader::new(columns(&["ok=boolean", "n=integer", "grade=a|b", "why=string"]), &settings()).unwrap();
    let one = vote(&default, r#"{"ok":true,"n":1,"grade":"a","why":"x"}"#);
    let other = vote(&default, r#"{"why":"y","grade":"a","n":1.0,"ok":true}"#);
    assert_eq!(one.as_deref(), Some(r#"[true,1,"a"]"#));
    assert_eq!(one, other);
    let none = Reader::new(columns(&["why=string"]), &settings()).unwrap();
    assert_eq!(vote(&none, r#"{"why":"x"}"#), None);
    let named = AnswerSettings { agree_on: Some(vec!["o".into()]), ..settings() };
    let named = Reader::new(Schema::compile(&json!({"properties": {"o": {}}})).unwrap(), &named).unwrap();
    assert_eq!(vote(&named, r#"{"o":{"b":1,"a":2}}"#), vote(&named, r#"{"o":{"a":2,"b":1}}"#));
    assert_ne!(vote(&named, r#"{"o":null}"#), vote(&named, "{}"));
}

#[test]
fn the_preset_reads_its_own_answers() {
    let preset = preset_verdict();
    let bound = AnswerSettings {
        verdict: Some(preset.verdict.into()),
        pass: preset.pass,
        confidence: Some(preset.confidence.into()),
        ..settings()
    };
    let reader = Reader::new(Schema::compile(&preset.schema).unwrap(), &bound).unwrap();
    let answer = r#"{"claim":"a","observed":"b","match":"partial","confidence":0.9,"reasoning":"c"}"#;
    let vote = reader.read(answer).unwrap().1;
    assert_eq!((vote.positive, vote.confidence), (Some(false), Some(Decimal::new(9, 1))));
}

proptest! {
    #[test]
    fn no_text_is_too_strange(text in r#"(<think>|</think>|```|json|[\[\]{}",:\\ \n]|"ok"|true|1|é|NaN){0,60}"#) {
        match reader().read(&text) {
            Ok((answer, _)) => prop_assert!(serde_json::from_str::<Value>(&answer.text).is_ok()),
            Err(Unread::Invalid { errors }) => {
                prop_assert!(!errors.is_empty() && errors.len() <= 5);
                let clean = |error: &String| error.chars().count() <= 301 && !error.contains(char::is_control);
                prop_assert!(errors.iter().all(clean));
            }
            Err(_) => {}
        }
    }

    #[test]
    fn a_valid_answer_survives_any_prose(before in "[a-zA-Z .,é\n]{0,40}", after in "[a-zA-Z .,é\n}]{0,40}") {
        let (answer, _) = reader().read(&format!("{before}{GOOD}{after}")).unwrap();
        prop_assert_eq!(answer.text, GOOD);
    }
}
