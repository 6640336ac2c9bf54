use bytes::Bytes;
use rust_decimal::Decimal;

use super::*;
use crate::base::{Money, Ticket, WallTime};
use crate::model::{Answer, Reason, RowUsage, SampleCounts, Status};

fn attempt(n: u32, ending: Ending, status: Option<u16>, raw: &'static str) -> AttemptRecord {
    AttemptRecord {
        possible: None,
        ticket: Ticket { row: 7, sample: 1, attempt: n },
        ending,
        hash: [0; 16],
        key_label: "default".into(),
        http_status: status,
        started: WallTime(1_790_000_000_250),
        millis: 812,
        usage: status.filter(|status| *status == 200).map(|_| Usage {
            input: 1_900,
            output: 60,
            ..Usage::default()
        }),
        estimated: false,
        cost: (status == Some(200)).then_some(Money::from_pico(1_200_000_000)),
        repair: false,
        request_id: (status == Some(200)).then(|| format!("req-{n}")),
        answer: None,
        extracted: false,
        error: None,
        raw: Bytes::from_static(raw.as_bytes()),
    }
}

fn result(status: Status, reason: Reason) -> RowResult {
    RowResult {
        row: 7,
        id: None,
        status,
        reason,
        answer: None,
        confidence: None,
        agreement: None,
        samples: SampleCounts { planned: 1, made: 1, valid: 1 },
        model: Some("m".into()),
        error: None,
        usage: RowUsage::default(),
    }
}

fn row(result: Option<RowResult>, attempts: Vec<AttemptRecord>) -> ShowRow {
    ShowRow {
        row: 7,
        result,
        version: String::new(),
        prompt: Some(Prompt { system: Some("Be strict.".into()), user: "Is\n\u{1b}[2Jthis ok?".into() }),
        decisions: Vec::new(),
        samples: vec![ShowSample { n: 1, replayed_from: None, attempts }],
    }
}

fn passing() -> ShowRow {
    let mut result = result(Status::Pass, Reason::Agreed);
    result.answer = Some(Answer { text: r#"{"ok":true}"#.into(), extracted: true });
    result.confidence = Some(Decimal::new(930, 3));
    let mut first = attempt(1, Ending::Retried(Reason::Timeout), None, "");
    first.error = Some("no complete reply within 300s".into());
    row(Some(result), vec![first, attempt(2, Ending::Valid, Some(200), "{\"text\":\n\"\u{1b}[2J\"}")])
}

#[test]
fn json_is_the_object_to_the_letter() {
    assert_eq!(
        passing().to_json(),
        concat!(
            r#"{"row":7,"status":"pass","prompt":{"system":"Be strict.","user":"Is\n\u001b[2Jthis ok?"},"#,
            r#""samples":[{"n":1,"attempts":["#,
            r#"{"n":1,"key":"default","http_status":null,"outcome":"timeout","ms":812,"raw":null,"usage":null,"#,
            r#""cost_usd":null,"request_id":null,"started":"2026-09-21T14:13:20.250Z"},"#,
            r#"{"n":2,"key":"default","http_status":200,"outcome":"valid","ms":812,"#,
            r#""raw":"{\"text\":\n\"\u001b[2J\"}","#,
            r#""usage":{"input":1900,"cached_input":0,"cache_write":0,"output":60,"reasoning":0,"estimated":false},"#,
            r#""cost_usd":0.0012,"request_id":"req-2","started":"2026-09-21T14:13:20.250Z"}]}]}"#
        )
    );
}

#[test]
fn objects_satisfy_the_schema_in_docs() {
    let schema = serde_json::from_str(include_str!("../../../docs/show.schema.json")).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut unknown = passing();
    unknown.result = None;
    unknown.prompt = None;
    let mut every = vec![Ending::Valid, Ending::Throttled, Ending::Abandoned];
    for reason in Ending::REASONS {
        every.extend([Ending::Failed(reason), Ending::Retried(reason), Ending::Deferred(reason)]);
    }
    let attempts = every.iter().map(|ending| attempt(1, *ending, Some(500), "x")).collect();
    let mut rows = vec![passing(), unknown, row(None, attempts)];
    rows.extend(Status::ALL.map(|status| row(Some(result(status, Reason::Agreed)), Vec::new())));
    for row in rows {
        let object = serde_json::from_str(&row.to_json()).unwrap();
        let errors: Vec<_> = validator.iter_errors(&object).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?} in {object}");
    }
    assert!(!validator.is_valid(&serde_json::json!({"row": 7, "status": "pass"})));
}

#[test]
fn the_story_of_a_row_is_readable_and_harmless() {
    assert_eq!(
        passing().to_text(false),
        r#"row 7: pass (agreed)
  The answer is valid and its verdict is a pass (confidence 0.93).

answer (extracted from a longer text)
  {"ok":true}

system prompt
  Be strict.

prompt
  Is
  \u{1b}[2Jthis ok?

attempt 1: timeout, tried again, no reply, 812ms
  2026-09-21T14:13:20.250Z, key default, cost unknown
  error: no complete reply within 300s

attempt 2: valid, HTTP 200, 812ms
  2026-09-21T14:13:20.250Z, key default, 1,900 input and 60 output tokens, $0.0012, request req-2
  | {"text":
  | "\u{1b}[2J"}
"#
    );
}

#[test]
fn long_replies_are_cut_with_a_note() {
    let mut long = attempt(1, Ending::Failed(Reason::InvalidAnswer), Some(200), "");
    long.raw = Bytes::from("é".repeat(5_234));
    let text = row(None, vec![long]).to_text(false);
    assert!(text.starts_with("row 7: not finished\n"), "{text}");
    assert!(text.ends_with("  | [1,234 more characters; --format json has all]\n"), "{text}");
}

#[test]
fn samples_are_told_apart_and_replays_named() {
    let mut both = row(Some(result(Status::Pass, Reason::Agreed)), Vec::new());
    both.samples[0].replayed_from = Some("row 3".into());
    both.samples.push(ShowSample { n: 2, replayed_from: None, attempts: Vec::new() });
    both.prompt = None;
    both.version = "v7".into();
    let text = both.to_text(false);
    assert!(text.contains("\nprompt version v7\n"), "{text}");
    assert!(text.contains("\nno prompt: it cannot be rendered for this row\n"), "{text}");
    assert!(text.ends_with("\nsample 1, replayed from row 3\n\nsample 2\n\nno attempts\n"), "{text}");
}

#[test]
fn one_sentence_says_why() {
    let why = |change: &dyn Fn(&mut RowResult), status, reason| {
        let mut result = result(status, reason);
        change(&mut result);
        row(Some(result), Vec::new()).why()
    };
    let two_of_three = |result: &mut RowResult| {
        result.samples = SampleCounts { planned: 3, made: 3, valid: 2 };
        result.agreement = Some(Decimal::new(2, 0) / Decimal::new(3, 0));
        result.confidence = Some(Decimal::new(95, 2));
    };
    assert_eq!(
        why(&two_of_three, Status::Review, Reason::Split),
        "The samples contradict each other (confidence 0.95, agreement 0.6667 over 3 of 3 samples), \
         so a person must decide."
    );
    assert_eq!(
        why(&|_| {}, Status::Fail, Reason::Agreed),
        "The answer is valid and its verdict is not a pass."
    );
    assert_eq!(
        why(&|r| r.error = Some("\"n\" is missing\u{7}".into()), Status::Error, Reason::InvalidAnswer),
        "No answer satisfies the schema: \"n\" is missing\\u{7}."
    );
    assert_eq!(
        why(&|_| {}, Status::Error, Reason::Truncated),
        "The answer stops at the length limit. A larger --max-output-tokens asks again."
    );
    assert!(why(&|_| {}, Status::Skipped, Reason::Budget).contains("--max-cost"));
    for &reason in Reason::ALL {
        for status in Status::ALL {
            let sentence = why(&two_of_three, status, reason);
            assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
        }
    }
}
