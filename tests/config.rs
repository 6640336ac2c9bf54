//! Flags, variables, file and defaults: which one wins, what is refused, and that every key is read in every layer.

mod support;

use support::command::{Outcome, Verify};
use support::job::{always, left_behind, rows};
use support::provider::Provider;

const ANSWER: &str = "{\"ok\":true}";

/// Every key with a value that it takes, one that it refuses (if there is one), and its flag.
const KEYS: &[(&str, &str, Option<&str>, &str)] = &[
    ("model", "\"m2\"", Some("1"), "model"),
    ("provider", "\"openai\"", Some("\"nonsense\""), "provider"),
    ("base_url", "URL", Some("\"nonsense\""), "base-url"),
    ("input.id", "\"text\"", Some("1"), "id-column"),
    ("prompt.system", "\"S\"", Some("true"), "system"),
    ("prompt.user", "\"{{ text }}\"", Some("1"), "prompt"),
    ("prompt.cache", "true", Some("\"x\""), "prompt-cache"),
    ("prompt.version", "\"v1\"", Some("1"), "prompt-version"),
    ("answer.preset", "\"verdict\"", Some("\"nonsense\""), "preset"),
    ("answer.verdict", "\"ok\"", Some("1"), "verdict"),
    ("answer.pass", "[true]", Some("{ a = 1 }"), "pass"),
    ("answer.confidence", "\"sure\"", Some("1"), "confidence"),
    ("answer.agree_on", "[\"ok\"]", Some("{ a = 1 }"), "agree-on"),
    ("answer.max_output_tokens", "5", Some("0"), "max-output-tokens"),
    ("answer.structured", "\"prompt\"", Some("\"nonsense\""), "structured"),
    ("answer.repair", "0", Some("-1"), "repair"),
    ("answer.temperature", "0.5", Some("\"warm\""), "temperature"),
    ("answer.top_p", "0.5", Some("\"x\""), "top-p"),
    ("answer.seed", "-3", Some("1.5"), "seed"),
    ("answer.reasoning_effort", "\"low\"", Some("1"), "reasoning-effort"),
    ("ensemble.samples", "2", Some("101"), "samples"),
    ("ensemble.rule", "\"majority\"", Some("\"most\""), "rule"),
    ("ensemble.auto_pass", "0.75", Some("1.1"), "auto-pass"),
    ("ensemble.auto_fail", "0.75", Some("-0.1"), "auto-fail"),
    ("ensemble.early_stop", "false", Some("\"maybe\""), "early-stop"),
    ("ensemble.concurrent_samples", "true", Some("2"), "concurrent-samples"),
    ("limits.concurrency", "2", Some("0"), "concurrency"),
    ("limits.adaptive", "false", Some("\"x\""), "adaptive"),
    ("limits.rpm", "600000", Some("-1"), "rpm"),
    ("limits.tpm", "100000000", Some("-1"), "tpm"),
    ("limits.timeout", "\"20s\"", Some("\"20\""), "timeout"),
    ("limits.deadline", "\"1h\"", Some("5"), "deadline"),
    ("limits.max_rows", "2", Some("-1"), "max-rows"),
    ("limits.max_cost", "5.5", Some("-1"), "max-cost"),
    ("limits.max_calls", "50", Some("-1"), "max-calls"),
    ("limits.confirm_above", "2.5", Some("-1"), "confirm-above"),
    ("retry.attempts", "1", Some("0"), "attempts"),
    ("retry.base", "\"5ms\"", Some("\"fast\""), "retry-base"),
    ("retry.max_backoff", "\"5ms\"", Some("1"), "max-backoff"),
    ("retry.max_wait", "\"1m30s\"", Some("\"1 minute\""), "max-wait"),
    ("retry.outage_patience", "\"1m\"", Some("\"-1s\""), "outage-patience"),
    ("retry.throttle_patience", "\"0s\"", Some("\"x\""), "throttle-patience"),
    ("gate.max_fail", "\"5%\"", Some("\"x\""), "max-fail"),
    ("gate.max_review", "1", Some("-1"), "max-review"),
    ("gate.max_error", "\"any\"", Some("\"101%\""), "max-error"),
    ("output.path", "\"o.jsonl\"", Some("1"), "output"),
    ("output.prefix", "\"p_\"", Some("1"), "prefix"),
    ("output.csv_safe", "true", Some("\"x\""), "csv-safe"),
    ("output.accounting", "false", Some("\"x\""), "accounting"),
];

/// Two rows with what every job needs, but for what these keys give.
fn without(provider: &Provider, ids: &[&str]) -> Verify {
    let url = provider.url();
    let mut verify = Verify::new().file("in.jsonl", rows(2)).args(["run", "in.jsonl"]);
    let usual =
        [("model", "model", "m"), ("base_url", "base-url", &url), ("prompt.user", "prompt", "{{ text }}")];
    for (id, name, value) in usual.iter().filter(|(id, ..)| !ids.contains(id)) {
        verify = verify.arg(format!("--{name}={value}"));
        assert!(!id.is_empty());
    }
    if ids.contains(&"answer.preset") { verify } else { verify.args(["--column", "ok=boolean"]) }
}

/// The same with a file, a flag and a variable besides.
fn with(provider: &Provider, file: &str, flag: Option<&str>, variable: Option<(&str, &str)>) -> Outcome {
    let mut verify = without(provider, &[]);
    if !file.is_empty() {
        verify = verify.config(file);
    }
    if let Some((name, value)) = variable {
        verify = verify.env(name, value);
    }
    verify.args(flag).run()
}

/// A value of the file as the text of a flag or a variable.
fn plain(toml: &str) -> String {
    toml.trim_matches('"').to_owned()
}

fn variable_of(id: &str) -> String {
    format!("VERIFY_{}", id.replace('.', "_").to_uppercase())
}

/// A file of many keys.
fn file_of(keys: &[(&str, &str)]) -> String {
    let mut sections: std::collections::BTreeMap<&str, String> = std::collections::BTreeMap::new();
    for (id, toml) in keys {
        let (section, name) = id.split_once('.').unwrap_or(("", id));
        sections.entry(section).or_default().extend([name, " = ", toml, "\n"]);
    }
    let part = |(section, lines): (&&str, &String)| match *section {
        "" => lines.clone(),
        section => format!("[{section}]\n{lines}"),
    };
    sections.iter().map(part).collect()
}

#[test]
fn every_key_is_taken_in_every_layer() {
    let answer = "{\"ok\":true,\"sure\":0.9}";
    let provider = always(answer);
    let url = format!("\"{}\"", provider.url());
    let good = |(id, good, ..): &(&'static str, &'static str, Option<&str>, &'static str)| match *id {
        // The rows need no preset where they have columns.
        "answer.preset" => None,
        "base_url" => Some((*id, url.clone())),
        id => Some((id, (*good).to_owned())),
    };
    let goods: Vec<_> = KEYS.iter().filter_map(good).collect();
    let pairs: Vec<_> = goods.iter().map(|(id, toml)| (*id, toml.as_str())).collect();
    let ids: Vec<_> = pairs.iter().map(|(id, _)| *id).collect();
    let columns = ["--column", "sure=number", "--price", "input=1,output=1"];
    let by_file = without(&provider, &ids).args(columns).config(&file_of(&pairs)).run().expect_code(0);
    let flags = pairs.iter().map(|(id, toml)| {
        let (.., flag) = KEYS.iter().find(|(have, ..)| have == id).unwrap();
        format!("--{flag}={}", plain(toml))
    });
    let by_flag = without(&provider, &ids).args(columns).args(flags).run().expect_code(0);
    let variables = without(&provider, &ids).args(columns);
    let variables =
        pairs.iter().fold(variables, |verify, (id, toml)| verify.env(&variable_of(id), &plain(toml)));
    let by_variable = variables.run().expect_code(0);
    for outcome in [&by_file, &by_flag, &by_variable] {
        assert!(!outcome.stderr.contains("warning"), "{}", outcome.stderr);
        // All of them had an effect where one can be seen.
        let lines = outcome.json_lines("o.jsonl");
        assert_eq!(
            (lines[0]["verify"]["id"].as_str(), lines[0]["verify"]["model"].as_str()),
            (Some("row 1"), Some("m2"))
        );
        assert_eq!(
            (&lines[0]["verify"]["samples"]["planned"], lines[0]["verify"].get("usage")),
            (&2.into(), None)
        );
    }
    let bodies: Vec<_> =
        provider.calls().into_iter().map(|call| (call.row, call.sample, call.body)).collect();
    assert_eq!(bodies.len(), 12);
    for (row, sample, body) in &bodies {
        let first = bodies.iter().find(|(r, s, _)| (r, s) == (row, sample)).unwrap();
        assert_eq!(*body, first.2, "the layers differ");
    }
    let body = &bodies[0].2;
    assert_eq!(
        (body["max_tokens"].as_u64(), body["seed"].as_i64(), body["top_p"].as_f64()),
        (Some(5), Some(-3), Some(0.5))
    );
}

#[test]
fn a_wrong_value_of_every_key_is_refused_with_its_origin() {
    let provider = always(ANSWER);
    for part in 0..4 {
        // What model, provider and address are would hide what is wrong with another of them.
        let keys = KEYS.iter().enumerate().filter(|(at, _)| at % 4 == part);
        let keys: Vec<_> =
            keys.filter_map(|(_, (id, _, wrong, flag))| Some((*id, (*wrong)?, *flag))).collect();
        let ids: Vec<_> = keys.iter().map(|(id, ..)| *id).collect();
        let pairs: Vec<_> = keys.iter().map(|(id, wrong, _)| (*id, *wrong)).collect();
        let text = file_of(&pairs);
        let file = without(&provider, &ids).config(&text).run().expect_code(2);
        for (id, wrong) in &pairs {
            let name = id.rsplit('.').next().unwrap();
            let line = text.lines().position(|line| line == format!("{name} = {wrong}")).unwrap() + 1;
            let told = file.stderr.lines().any(|said| said.contains(&format!("verify.toml line {line}: ")));
            assert!(told || *id == "base_url", "nothing of {id} in line {line}: {}", file.stderr);
        }
        // Flags and variables are text, so that what is only no text is wrong in the file alone.
        let is_text = |wrong: &str| !wrong.starts_with('"') && ["1", "true", "{ a = 1 }"].contains(&wrong);
        let keys: Vec<_> =
            keys.into_iter().filter(|(id, wrong, _)| !is_text(wrong) || *id == "retry.max_backoff").collect();
        let ids: Vec<_> = keys.iter().map(|(id, ..)| *id).collect();
        let flags = keys.iter().map(|(_, wrong, flag)| format!("--{flag}={}", plain(wrong)));
        let by_flag = without(&provider, &ids).args(flags).run().expect_code(2);
        let verify = without(&provider, &ids);
        let verify =
            keys.iter().fold(verify, |verify, (id, wrong, _)| verify.env(&variable_of(id), &plain(wrong)));
        let by_variable = verify.run().expect_code(2);
        for (id, _, flag) in &keys {
            assert!(by_flag.stderr.contains(&format!("error: --{flag}: ")), "{id}: {}", by_flag.stderr);
            let name = variable_of(id);
            assert!(by_variable.stderr.contains(&format!("error: {name}: ")), "{id}: {}", by_variable.stderr);
        }
        assert_eq!(left_behind(&by_variable, &[]), Vec::<String>::new());
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn the_table_above_lists_every_key_of_the_help() {
    let help = Verify::new().args(["run", "--help"]).run().expect_code(0).stdout;
    let besides = [
        "column",
        "key-env",
        "price",
        "input-format",
        "delimiter",
        "encoding",
        "bad-rows",
        "ragged",
        "limit",
        "rows",
        "pick",
        "pick-seed",
        "max-record",
        "allow-empty",
        "result-field",
        "summary",
        "format",
        "config",
        "state",
        "forgive-possible",
        "order",
        "junit",
        "github",
        "log",
        "verbose",
        "yes",
        "probe",
        "dry-run",
        "new",
        "run",
        "retry",
        "progress",
        "color",
        "quiet",
        "help",
        "schema",
        "system-file",
        "prompt-file",
    ];
    let flags = help.lines().filter_map(|line| {
        let rest = line.trim_start();
        let rest = rest.strip_prefix("-").map_or(rest, |_| rest);
        let at = rest.find("--").filter(|at| *at <= 4)?;
        let name: String =
            rest[at + 2..].chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        rest.starts_with('-').then_some(name)
    });
    let flags: Vec<String> = flags.filter(|name| !name.is_empty()).collect();
    assert!(flags.len() > KEYS.len(), "{flags:?}");
    for flag in flags {
        let listed = KEYS.iter().any(|(.., name)| *name == flag) || besides.contains(&&*flag);
        assert!(listed, "--{flag} is in the help and in no test");
    }
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let sent = |file: &str, variable: Option<&str>, flag: Option<&str>| {
        let provider = always(ANSWER);
        let flag = flag.map(|value| format!("--max-output-tokens={value}"));
        with(
            &provider,
            file,
            flag.as_deref(),
            variable.map(|value| ("VERIFY_ANSWER_MAX_OUTPUT_TOKENS", value)),
        );
        provider.calls()[0].body["max_tokens"].as_u64().unwrap()
    };
    let file = "[answer]\nmax_output_tokens = 11\n";
    assert_eq!(sent("", None, None), 1024);
    assert_eq!(sent(file, None, None), 11);
    assert_eq!(sent(file, Some("12"), None), 12);
    assert_eq!(sent(file, Some("12"), Some("13")), 13);
    // An empty variable is no value.
    assert_eq!(sent(file, Some(""), None), 11);
}

#[test]
fn a_higher_layer_replaces_a_prompt_or_a_schema_whatever_its_form() {
    let provider = always(ANSWER);
    let file = "[prompt]\nuser_file = \"p.txt\"\n[answer]\nschema = \"s.json\"\n";
    let args =
        ["run", "in.jsonl", "--model", "m", "--base-url", &provider.url(), "--prompt", "flag {{ text }}"];
    let verify =
        Verify::new().file("in.jsonl", rows(1)).config(file).args(args).args(["--column", "ok=boolean"]);
    verify.run().expect_code(0);
    assert_eq!(provider.calls()[0].user(), "flag row 1");
    let both = "[prompt]\nuser = \"a\"\nuser_file = \"p.txt\"\n[answer]\npreset = \"verdict\"\ncolumns = { a = \"string\" }\n";
    let outcome =
        Verify::new().file("in.jsonl", rows(1)).config(both).args(["run", "in.jsonl", "--provider", "mock"]);
    let outcome = outcome.run().expect_code(2);
    for said in ["prompt.user", "user_file", "answer.preset", "answer.columns"] {
        assert!(outcome.stderr.contains(said), "no `{said}` in: {}", outcome.stderr);
    }
}

#[test]
fn unknown_keys_are_told_with_file_line_and_suggestion_all_together() {
    let provider = always(ANSWER);
    let file = "modle = \"m\"\n[limits]\nconcurency = 4\ntimeout = \"5 s\"\n[outptu]\npath = \"x\"\n[retry]\nattempts = 0\n";
    let outcome =
        with(&provider, file, Some("--max-fail=x"), Some(("VERIFY_RETRY_BASE", "1"))).expect_code(2);
    for said in [
        "verify.toml line 1: unknown key `modle`; did you mean `model`?",
        "verify.toml line 3: unknown key `limits.concurency`; did you mean `limits.concurrency`?",
        "verify.toml line 4: `limits.timeout`",
        "verify.toml line 5: unknown key `outptu`",
        "verify.toml line 8: `retry.attempts`",
        "--max-fail: `gate.max_fail`",
        "VERIFY_RETRY_BASE: `retry.base`",
    ] {
        assert!(outcome.stderr.contains(said), "no `{said}` in: {}", outcome.stderr);
    }
    let broken = with(&provider, "model = \"m\"\n\n[limits\n", None, None).expect_code(2);
    assert!(broken.stderr.contains("verify.toml line 3"), "{}", broken.stderr);
    assert_eq!(provider.count(), 0);
}

#[test]
fn an_unknown_variable_is_a_warning() {
    let provider = always(ANSWER);
    let outcome = with(&provider, "", None, Some(("VERIFY_LIMITS_CONCURENCY", "4"))).expect_code(0);
    let said = "VERIFY_LIMITS_CONCURENCY";
    assert!(outcome.stderr.contains("warning") && outcome.stderr.contains(said), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("did you mean `VERIFY_LIMITS_CONCURRENCY`?"), "{}", outcome.stderr);
}

#[test]
fn the_file_is_found_beside_the_input_above_the_working_directory_or_by_name() {
    let provider = always(ANSWER);
    let toml = |label: &str| {
        format!("model = \"{label}\"\nbase_url = \"{}\"\n[prompt]\nuser_file = \"p.txt\"\n", provider.url())
    };
    let verify = Verify::new()
        .file("data/in.jsonl", rows(1))
        .file("data/verify.toml", toml("beside"))
        .file("data/p.txt", "beside {{ text }}")
        .file("verify.toml", toml("above"))
        .file("p.txt", "above {{ text }}")
        .file("other/named.toml", toml("named"))
        .file("other/p.txt", "named {{ text }}")
        .file("free/in.jsonl", rows(1));
    let run = |verify: Verify, label: &str| {
        let outcome = verify.run().expect_code(0);
        let call = provider.calls().pop().unwrap();
        assert_eq!((call.body["model"].as_str(), call.user()), (Some(label), format!("{label} row 1")));
        outcome
    };
    let outcome = run(verify.again().args(["run", "data/in.jsonl"]), "beside");
    assert!(outcome.stderr.contains("data/verify.toml"), "{}", outcome.stderr);
    assert!(outcome.path("data/.verify").exists() && outcome.path("data/in.verified.jsonl").exists());
    run(verify.again().args(["run", "free/in.jsonl"]), "above");
    run(verify.again().args(["run", "data/in.jsonl", "--config", "other/named.toml"]), "named");
    let outcome =
        run(verify.again().args(["run", "free/in.jsonl"]).env("VERIFY_CONFIG", "other/named.toml"), "named");
    assert!(outcome.path("other/.verify").exists());
    let state = verify.again().args(["run", "free/in.jsonl"]).env("VERIFY_STATE", "elsewhere");
    assert!(run(state, "above").path("elsewhere/store.db").exists());
    let missing = verify.again().args(["run", "data/in.jsonl", "--config", "none.toml"]).run().expect_code(2);
    assert!(missing.stderr.contains("none.toml"), "{}", missing.stderr);
}

#[test]
fn a_larger_token_limit_asks_only_what_has_no_answer_and_any_other_change_asks_all() {
    let provider = Provider::start(|call| {
        let is_small = call.body["max_tokens"].as_u64() < Some(100);
        if call.row == 2 && is_small {
            return support::provider::Reply::completion("{\"ok\":", "length", 100, 50);
        }
        support::provider::Reply::answer(ANSWER)
    });
    let verify = Verify::new().file("in.jsonl", rows(3));
    let run = |more: &[&str]| {
        let before = provider.count();
        let args = support::job::asks(&provider, "in.jsonl", "{{ text }}");
        verify
            .again()
            .args(args)
            .args(more.iter().copied())
            .args(["--max-error", "any"])
            .run()
            .expect_code(0);
        provider.count() - before
    };
    assert_eq!(run(&["--max-output-tokens", "50"]), 3);
    assert_eq!(run(&["--max-output-tokens", "50"]), 0);
    assert_eq!(run(&["--max-output-tokens", "500"]), 1);
    assert_eq!(run(&["--max-output-tokens", "500", "--temperature", "0.5"]), 3);
    assert_eq!(run(&["--max-output-tokens", "500", "--system", "Be strict."]), 3);
    assert_eq!(run(&["--max-output-tokens", "500", "--column", "why=string?", "--repair", "0"]), 3);
    // Back at the first settings, everything is known.
    assert_eq!(run(&["--max-output-tokens", "500"]), 0);
}
