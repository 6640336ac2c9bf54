//! Credentials: where they come from, where they go, and what happens when they fail.

mod support;

use serde_json::json;
use support::command::{Outcome, Verify};
use support::job::{always, asks, files_with, job, left_behind, rows, statuses};
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";

fn unauthorized() -> Reply {
    Reply::error(401, "invalid_api_key", "Incorrect API key provided.")
}

/// A configuration with these `[[keys]]`, by label and variable.
fn config_of(keys: &[(&str, &str)]) -> String {
    let tables =
        keys.iter().map(|(label, name)| format!("[[keys]]\nlabel = \"{label}\"\nenv = \"{name}\"\n"));
    tables.collect::<Vec<_>>().concat()
}

fn passes(outcome: &Outcome) -> usize {
    statuses(outcome).iter().filter(|status| *status == "pass/valid").count()
}

#[test]
fn a_key_comes_from_a_named_variable_a_file_or_the_usual_variable() {
    let provider = always(ANSWER);
    job(&provider, 1).env("OPENAI_API_KEY", "usual").run().expect_code(0);
    job(&provider, 1).args(["--key-env", "a=MY_KEY"]).env("MY_KEY", " named \n").run().expect_code(0);
    let by_file = "[[keys]]\nlabel = \"f\"\nfile = \"secrets/key.txt\"\n";
    job(&provider, 1).config(by_file).file("secrets/key.txt", "from-file\r\n").run().expect_code(0);
    job(&provider, 1).run().expect_code(0);
    let over = job(&provider, 1).config(by_file).args(["--key-env", "a=MY_KEY"]).env("MY_KEY", "flag wins");
    over.run().expect_code(0);
    let keys: Vec<_> = provider.calls().into_iter().map(|call| call.key).collect();
    assert_eq!(keys, ["usual", "named", "from-file", "", "flag wins"]);
    assert!(provider.calls()[3].header("authorization").is_none());
}

#[test]
fn a_named_source_that_is_not_there_is_an_error_and_nothing_is_sent() {
    let provider = always(ANSWER);
    let unset = job(&provider, 2).args(["--key-env", "org=NOT_SET_ANYWHERE"]).run().expect_code(2);
    assert!(unset.stderr.contains("org") && unset.stderr.contains("NOT_SET_ANYWHERE"), "{}", unset.stderr);
    assert_eq!(left_behind(&unset, &[]), Vec::<String>::new());
    let no_file =
        job(&provider, 1).config("[[keys]]\nlabel = \"f\"\nfile = \"none.txt\"\n").run().expect_code(2);
    assert!(no_file.stderr.contains("none.txt"), "{}", no_file.stderr);
    let empty = job(&provider, 1).config("[[keys]]\nfile = \"k\"\n").file("k", " \n").run().expect_code(2);
    assert!(empty.stderr.contains("empty"), "{}", empty.stderr);
    let own = ["run", "in.jsonl", "--model", "gpt-5.4-mini", "--prompt", "{{ text }}"];
    let own = Verify::new().file("in.jsonl", rows(1)).args(own).run().expect_code(2);
    assert!(own.stderr.contains("OPENAI_API_KEY") && own.stderr.contains("--key-env"), "{}", own.stderr);
    assert_eq!(provider.count(), 0);
}

#[test]
fn a_key_in_the_place_of_a_variable_is_refused_and_shown_to_nobody() {
    let provider = always(ANSWER);
    let secret = "sk-proj-AbCdEf0123456789";
    for flags in [&["--key-env", "a=sk-proj-AbCdEf0123456789"][..], &["--key-env", secret]] {
        let outcome = job(&provider, 1).args(flags.iter().copied()).args(["--summary", "s.json"]).run();
        let outcome = outcome.expect_code(2);
        assert!(
            outcome.stderr.contains("--key-env") && !outcome.stderr.contains("AbCdEf"),
            "{}",
            outcome.stderr
        );
        assert!(!outcome.path("s.json").exists() && !outcome.path(".verify/store.db").exists());
    }
    let config = config_of(&[("a", secret)]);
    let outcome = job(&provider, 1).config(&config).run().expect_code(2);
    assert!(
        outcome.stderr.contains("verify.toml") && !outcome.stderr.contains("AbCdEf"),
        "{}",
        outcome.stderr
    );
    assert_eq!(provider.count(), 0);
}

#[test]
fn a_run_that_needs_no_call_needs_no_key() {
    let provider = always(ANSWER);
    let first = job(&provider, 2).args(["--key-env", "org=K"]).env("K", "key-text").run().expect_code(0);
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    let again = first.again().args(args).args(["--key-env", "org=K", "--new"]).run().expect_code(0);
    assert_eq!((provider.count(), again.output_lines("in.verified.jsonl").len()), (2, 2));
}

#[test]
fn wrong_key_tables_are_told_with_their_line() {
    let provider = always(ANSWER);
    for (toml, said) in [
        ("[[keys]]\nlabel = \"a\"\n", "env"),
        ("[[keys]]\nenv = \"A\"\nfile = \"b\"\n", "env"),
        ("[[keys]]\nenv = \"A\"\nkey = \"sk-1\"\n", "keys.key"),
        ("[[keys]]\nenv = 1\n", "keys.env"),
        ("[[keys]]\nenv = \"A\"\nconcurrency = \"x\"\n", "keys.concurrency"),
        ("[[keys]]\nenv = \"A\"\nconcurrency = -1\n", "keys.concurrency"),
        ("keys = \"A\"\n", "keys"),
    ] {
        let outcome = job(&provider, 1).config(toml).env("A", "aaaaaaaa").run().expect_code(2);
        assert!(
            outcome.stderr.contains("verify.toml line") && outcome.stderr.contains(said),
            "{toml}{}",
            outcome.stderr
        );
    }
    let twice = job(&provider, 1).config(&config_of(&[("a", "A"), ("a", "B")])).run().expect_code(2);
    assert!(twice.stderr.contains("`a`"), "{}", twice.stderr);
    for wrong in ["A", "=A", "a="] {
        let outcome = job(&provider, 1).args(["--key-env", wrong]).run().expect_code(2);
        assert!(outcome.stderr.contains("LABEL=VARIABLE"), "{}", outcome.stderr);
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn the_usual_key_goes_to_the_provider_and_this_machine_only() {
    // The name resolves to nothing here; what counts is that the request is made without a credential, which a proxy
    // in front of it sees.
    let proxy = always(ANSWER);
    let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ text }}", "--column", "ok=boolean"];
    let verify = Verify::new().file("in.jsonl", rows(1)).args(args).env("OPENAI_API_KEY", "sk-usual-key");
    let verify = verify.args(["--base-url", "http://llm.example.test/v1"]);
    verify.env("http_proxy", &format!("http://127.0.0.1:{}", proxy.port())).run().expect_code(0);
    let call = &proxy.calls()[0];
    assert!(call.path.contains("llm.example.test"), "{}", call.path);
    assert_eq!((call.key.as_str(), call.header("authorization")), ("", None));
    // A named one was meant for it.
    let verify = Verify::new().file("in.jsonl", rows(1)).args(args).env("OTHER", "sk-other-key");
    let verify = verify.args(["--base-url", "http://llm.example.test/v1", "--key-env", "o=OTHER"]);
    verify.env("http_proxy", &format!("http://127.0.0.1:{}", proxy.port())).run().expect_code(0);
    assert_eq!(proxy.calls()[1].key, "sk-other-key");
    for url in
        ["http://127.0.0.1:1@llm.example.test/v1", "http://user:secret@127.0.0.1/v1", "ftp://h/v1", "h:80"]
    {
        let args = ["run", "in.jsonl", "--model", "m", "--prompt", "{{ text }}", "--base-url", url];
        let outcome = Verify::new().file("in.jsonl", rows(1)).args(args).run().expect_code(2);
        assert!(
            outcome.stderr.contains("--base-url") && !outcome.stderr.contains("secret"),
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn three_keys_of_which_one_is_dead() {
    let provider =
        Provider::start(|call| if call.key == "key-two" { unauthorized() } else { Reply::answer(ANSWER) });
    let config = config_of(&[("one", "K1"), ("two", "K2"), ("three", "K3")]);
    let verify = job(&provider, 60).config(&config).args(["--concurrency", "12"]);
    let verify = verify.env("K1", "key-one").env("K2", "key-two").env("K3", "key-three");
    let outcome = verify.run().expect_code(0);
    assert_eq!(passes(&outcome), 60);
    let count = |key: &str| provider.calls().iter().filter(|call| call.key == key).count();
    assert_eq!((count("key-two"), provider.count()), (1, 61));
    assert!(count("key-one") > 5 && count("key-three") > 5, "{} {}", count("key-one"), count("key-three"));
    assert!(outcome.stderr.contains("two") && !outcome.stderr.contains("key-two"), "{}", outcome.stderr);
    for key in ["key-one", "key-two", "key-three"] {
        assert_eq!(files_with(&outcome, key), Vec::<String>::new());
    }
}

#[test]
fn all_keys_unauthorized_stop_after_one_request_a_key() {
    let provider = Provider::start(|_| unauthorized());
    let config = config_of(&[("one", "K1"), ("two", "K2"), ("three", "K3")]);
    let verify = job(&provider, 2_000).config(&config).args(["--concurrency", "64"]);
    let outcome =
        verify.env("K1", "aaaaaaaa").env("K2", "bbbbbbbb").env("K3", "cccccccc").run().expect_code(6);
    assert_eq!(provider.count(), 3);
    assert!(outcome.stderr.contains("Incorrect API key provided."), "{}", outcome.stderr);
    assert!(!outcome.path("in.verified.jsonl").exists());
    let one = job(&provider, 50).run().expect_code(6);
    assert_eq!(provider.count(), 4, "{}", one.stderr);
}

#[test]
fn a_quota_that_is_used_up_stops_a_single_key_and_can_be_continued() {
    let mut left = 3;
    let provider = Provider::start(move |call| {
        if call.key == "paid-up" {
            return Reply::answer(ANSWER);
        }
        left -= 1;
        match left {
            0.. => Reply::answer(ANSWER),
            _ => Reply::error(429, "insufficient_quota", "You exceeded your current quota."),
        }
    });
    let more = ["--concurrency", "1"];
    let outcome = job(&provider, 10).args(more).env("OPENAI_API_KEY", "used-up").run().expect_code(6);
    assert_eq!(provider.count(), 4);
    assert!(outcome.stderr.contains("exceeded your current quota"), "{}", outcome.stderr);
    let partial = outcome.json_lines("in.verified.jsonl.partial");
    assert_eq!(partial.len(), 10);
    assert_eq!(partial[9]["verify"]["status"], "skipped");
    let args = asks(&provider, "in.jsonl", "{{ text }}");
    let again = outcome.again().args(args).args(more).env("OPENAI_API_KEY", "paid-up").run().expect_code(0);
    assert_eq!((provider.count(), passes(&again)), (11, 10));
    assert!(!again.path("in.verified.jsonl.partial").exists());
}

#[test]
fn a_quota_from_the_start_is_one_request() {
    let provider =
        Provider::start(|_| Reply::error(429, "insufficient_quota", "You exceeded your current quota."));
    let outcome = job(&provider, 20).run().expect_code(6);
    assert_eq!(provider.count(), 1, "{}", outcome.stderr);
    assert!(!outcome.stderr.contains("retry in"), "{}", outcome.stderr);
}

#[test]
fn codes_of_permission_and_region_are_the_keys_fault_and_moderation_is_the_rows() {
    for code in ["unsupported_country_region_territory", "permission_denied"] {
        let provider = Provider::start(move |_| Reply::error(403, code, "not from here"));
        job(&provider, 20).run().expect_code(6);
        assert_eq!(provider.count(), 1, "{code}");
    }
    let provider = Provider::start(|call| match call.row {
        3 => Reply::error(403, "content_policy_violation", "flagged by moderation"),
        _ => Reply::answer(ANSWER),
    });
    let outcome = job(&provider, 20).run().expect_code(4);
    assert_eq!((provider.count(), statuses(&outcome)[2].as_str()), (20, "error/refused"));
}

#[test]
fn a_key_with_a_limit_of_its_own_is_never_used_more_at_once() {
    let provider = Provider::start(|_| Reply::answer(ANSWER).after(std::time::Duration::from_millis(15)));
    let config = "[[keys]]\nlabel = \"a\"\nenv = \"K1\"\nconcurrency = 2\n";
    let verify = job(&provider, 30).config(config).args(["--concurrency", "20"]).env("K1", "aaaaaaaa");
    verify.run().expect_code(0);
    assert_eq!(provider.max_in_flight(), 2);
}

#[test]
fn the_first_request_goes_alone_until_an_answer_has_come() {
    let provider = Provider::start(|call| match call.n {
        1 | 2 => Reply::status(503),
        _ => Reply::answer(ANSWER),
    });
    job(&provider, 20).args(["--concurrency", "10"]).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!(
        calls[..3].iter().map(|call| (call.row, call.attempt)).collect::<Vec<_>>(),
        [(1, 1), (1, 2), (1, 3)]
    );
    assert_eq!(calls.len(), 22);
    let ids: std::collections::HashSet<_> = calls.iter().map(|call| call.client_request_id.clone()).collect();
    assert_eq!(ids.len(), 22);
}

#[test]
fn what_is_sent_is_what_was_configured() {
    let provider = always(ANSWER);
    let config = "[answer]\nseed = 7\n[request]\nextra = { service_tier = \"flex\", metadata = { a = 1 } }\n";
    let more =
        ["--system", "Be brief.", "--temperature", "0.20", "--top-p", "0.9", "--max-output-tokens", "77"];
    let outcome = job(&provider, 1).config(config).args(more).args(["--reasoning-effort", "low"]).run();
    outcome.expect_code(0);
    let call = &provider.calls()[0];
    let body = &call.body;
    assert_eq!((&body["model"], &body["max_tokens"], &body["seed"]), (&json!("m"), &json!(77), &json!(7)));
    assert_eq!(
        (&body["temperature"], &body["top_p"], &body["reasoning_effort"]),
        (&json!(0.2), &json!(0.9), &json!("low"))
    );
    assert_eq!((&body["service_tier"], &body["metadata"]["a"]), (&json!("flex"), &json!(1)));
    assert_eq!((call.system(), call.path.as_str()), ("Be brief.".to_owned(), "/v1/chat/completions"));
    assert_eq!(body["response_format"]["json_schema"]["schema"]["required"], json!(["ok"]));
    let plain = always(ANSWER);
    job(&plain, 1).run().expect_code(0);
    for name in ["temperature", "top_p", "seed", "reasoning_effort", "service_tier"] {
        assert!(plain.calls()[0].body.get(name).is_none(), "{name} was sent though nobody set it");
    }
}
