//! The template: what it finds, what it refuses, and what it cannot be made to do.

mod support;

use std::time::Duration;

use support::command::{Outcome, Verify};
use support::job::{always, asks, left_behind, results, statuses};
use support::provider::Provider;

const ROWS: &str = "{\"review\":\"good\",\"odd name\":\"o\",\"n\":5,\"tags\":[\"a\",\"b\"]}\n";

#[track_caller]
fn run(provider: &Provider, rows: &str, prompt: &str, more: &[&str], code: i32) -> Outcome {
    let verify = Verify::new().file("in.jsonl", rows).args(asks(provider, "in.jsonl", prompt));
    verify.args(more.iter().copied()).run().expect_code(code)
}

#[track_caller]
fn refused(prompt: &str, more: &[&str]) -> String {
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, ROWS, prompt, more, 2);
    assert_eq!((provider.count(), left_behind(&outcome, &[])), (0, vec![]));
    outcome.stderr
}

#[track_caller]
fn prompt_of(template: &str) -> String {
    let provider = always("{\"ok\":true}");
    run(&provider, ROWS, template, &[], 0);
    provider.calls()[0].user()
}

#[test]
fn a_typo_is_found_before_the_first_request_with_a_suggestion() {
    let said = refused("Classify {{revieww}}", &[]);
    assert!(said.contains("`revieww`") && said.contains("did you mean `review`"), "{said}");
    let said = refused("x", &["--system", "{{ reviiew }}"]);
    assert!(said.contains("reviiew") && said.contains("`review`"), "{said}");
}

#[test]
fn several_problems_are_listed_together() {
    let provider = always("{\"ok\":true}");
    let schema = ("schema.json", "{\"type\":\"objekt\"}");
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ revieww }}", "--schema", "schema.json"];
    let verify = Verify::new().file("in.jsonl", format!("{ROWS}{{\n")).file(schema.0, schema.1).args(args);
    let outcome = verify.args(["--base-url", &provider.url()]).run().expect_code(2);
    for said in ["revieww", "objekt", "row 2, line 2"] {
        assert!(outcome.stderr.contains(said), "no `{said}` in: {}", outcome.stderr);
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn broken_syntax_is_told_with_its_line() {
    let said = refused("first\nsecond {{ review", &[]);
    assert!(said.contains("prompt.user") && said.contains("line 2"), "{said}");
    let said = refused("{% if review %}x", &[]);
    assert!(said.contains("prompt.user") && said.contains("line 1"), "{said}");
}

#[test]
fn names_that_may_be_missing_are_not_required() {
    assert_eq!(prompt_of("{% if extra is defined %}{{ extra }}{% else %}none{% endif %}"), "none");
    assert_eq!(prompt_of("{{ extra | default('d') }}"), "d");
    assert_eq!(prompt_of("{{ row[\"odd name\"] }} {{ row.review }}"), "o good");
    assert_eq!(prompt_of("{% for tag in tags %}{{ loop.index }}{{ tag }}{% endfor %}"), "1a2b");
    assert_eq!(prompt_of("{% if n|int > 4 %}big{% endif %}"), "big");
    assert_eq!(prompt_of("{{ row }}"), ROWS.trim_end());
}

#[test]
fn a_number_must_be_made_one_before_it_is_compared() {
    let said = refused("{% if n > 4 %}big{% endif %}", &[]);
    assert!(said.contains("`n`") && said.contains("|int"), "{said}");
    // Where only some rows hold a number there, only these fail.
    let provider = always("{\"ok\":true}");
    let outcome = run(&provider, "{\"n\":5}\n{\"n\":\"5\"}\n", "{% if n == '5' %}5{% endif %}!", &[], 4);
    assert_eq!(
        (provider.count(), statuses(&outcome)),
        (1, vec!["error/bad_input".into(), "pass/valid".into()])
    );
    assert!(results(&outcome)[0]["error"].as_str().unwrap().contains("|int"));
}

#[test]
fn values_are_never_expanded_again() {
    let provider = always("{\"ok\":true}");
    run(&provider, "{\"a\":\"{{ b }}{% for x in y %}\",\"b\":\"secret\"}\n", "{{ a }}", &[], 0);
    assert_eq!(provider.calls()[0].user(), "{{ b }}{% for x in y %}");
}

#[test]
fn a_template_that_does_too_much_ends_its_row_and_not_the_machine() {
    let bombs = [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}x{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ ('x' * 100000) * 100000 }}",
        "{{ range(999999999999) | list }}",
    ];
    for bomb in bombs {
        let provider = always("{\"ok\":true}");
        let verify = Verify::new().file("in.jsonl", ROWS).args(asks(&provider, "in.jsonl", bomb));
        let outcome = verify.patience(Duration::from_secs(30)).run();
        assert!([2, 4].contains(&outcome.code), "{bomb}: {} {}", outcome.code, outcome.stderr);
        assert!(provider.count() == 0 && !outcome.stderr.contains("panic"), "{bomb}: {}", outcome.stderr);
        if outcome.code == 4 {
            assert_eq!(statuses(&outcome), ["error/bad_input"], "{bomb}");
        }
    }
}

#[test]
fn templates_read_no_files() {
    for template in ["{% include '/etc/passwd' %}", "{% extends 'x' %}", "{% import 'x' as y %}"] {
        let said = refused(template, &[]);
        assert!(said.contains("prompt.user"), "{template}: {said}");
    }
}

#[test]
fn prompts_may_stand_in_files() {
    let provider = always("{\"ok\":true}");
    let args = ["run", "in.jsonl", "--model", "m", "--column", "ok=boolean", "--prompt-file", "p/user.txt"];
    let verify = Verify::new().file("in.jsonl", ROWS).file("p/user.txt", "\u{feff}U {{ review }}\n");
    let verify = verify.file("system.txt", "S {{ n }}").args(args).args(["--system-file", "system.txt"]);
    verify.args(["--base-url", &provider.url()]).run().expect_code(0);
    let call = &provider.calls()[0];
    // The last line end of a file is kept or cut, as the template engine does; all else is as written.
    assert_eq!((call.system(), call.user().trim_end().to_owned()), ("S 5".to_owned(), "U good".to_owned()));
    let said = refused("x", &["--system-file", "none.txt"]);
    assert!(said.contains("none.txt") && said.contains("--system-file"), "{said}");
}
