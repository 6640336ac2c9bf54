//! Content that means harm: what reaches a screen, a spreadsheet, a template, a schema, a name.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "helpers of tests may panic and write files"
)]

mod support;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::command::{Outcome, Verify};
use support::job::{always, asks, completion, results, statuses};
use support::provider::{Provider, Reply};

const ANSWER: &str = "{\"ok\":true}";

/// What a terminal would obey: a title, a colour, one of the second set of controls, a return, a bell, a backspace, a
/// mark that turns the direction of writing round.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{1b}[31mred\u{9b}2Jx\ry\u{8}\u{7f}\u{202e}z";

/// The characters of [`EVIL`] that must not come raw, where lines end as lines do.
fn raw(text: &str) -> Vec<char> {
    let order = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|&c| (c.is_control() && c != '\n') || order(c)).collect()
}

#[track_caller]
fn clean(what: &str, outcome: &Outcome) {
    assert!(raw(&outcome.stderr).is_empty(), "{what}: {:?}", outcome.stderr);
    assert!(raw(&outcome.stdout).is_empty(), "{what}: {:?}", outcome.stdout);
    assert!(!outcome.stderr.contains("panic"), "{what}: {}", outcome.stderr);
}

/// A row for each way in which content comes to a screen.
fn evil_provider() -> Provider {
    Provider::start(|call| {
        let answer = |ok: bool, sure: &str| {
            Reply::answer(&json!({"ok": ok, "sure": 0.1, "why": EVIL}).to_string().replace("0.1", sure))
        };
        let id = "req \u{9b}2J";
        match call.row {
            1 => answer(true, "0.9"),
            2 => answer(true, "0.1"),
            3 => answer(false, "0.9"),
            4 => Reply::error(400, EVIL, EVIL),
            5 => Reply::status(503).body(EVIL),
            6 => Reply::answer(EVIL),
            7 => completion(&json!({"role": "assistant", "content": null, "refusal": EVIL}), "stop"),
            8 => Reply::status(302).header("location", "http://h/\u{9b}2J%1b%07"),
            9 => Reply::error(400, "unsupported_parameter", &format!("Unsupported parameter: 'seed' {EVIL}")),
            _ => Reply::error(429, "insufficient_quota", EVIL),
        }
        .header("x-request-id", id)
    })
}

fn evil_csv() -> String {
    let rows = (1..=10).map(|n| format!("\"{n}{EVIL}\",\"{EVIL}\"\n"));
    format!("id,\"a{EVIL}\"\n{}", rows.collect::<String>())
}

/// The arguments of a run in which every name that a person can give is one of the evil ones.
fn evil_run(provider: &Provider) -> Vec<String> {
    let url = provider.url();
    let prompt = format!("{{{{ id }}}} {{{{ row[\"a{EVIL}\"] }}}}");
    let label = format!("key{EVIL}=K");
    let (model, version) = (format!("m{EVIL}"), format!("v{EVIL}"));
    let file = format!("in{EVIL}.csv");
    [
        "run",
        &file,
        "--model",
        &model,
        "--base-url",
        &url,
        "--prompt",
        &prompt,
        "--key-env",
        &label,
        "--prompt-version",
        &version,
    ]
    .into_iter()
    .chain([
        "--id-column",
        "id",
        "--column",
        "ok=boolean",
        "--column",
        "sure=number",
        "--column",
        "why=string",
    ])
    .chain(["--verdict", "ok", "--confidence", "sure", "--seed", "1", "--repair", "0", "--attempts", "2"])
    .chain(["--retry-base", "1ms", "--max-backoff", "2ms", "-o", "out\u{1b}[31m.csv", "--concurrency", "1"])
    .map(str::to_owned)
    .collect()
}

#[test]
fn nothing_that_comes_from_outside_is_raw_on_a_screen() {
    let provider = evil_provider();
    let verify = Verify::new().file(&format!("in{EVIL}.csv"), evil_csv());
    let call = |args: &[&str]| verify.again().args(args.iter().copied()).env("K", "a-key-of-no-value").run();
    let job = |more: &[&str]| {
        let verify = verify.again().args(evil_run(&provider)).args(more.iter().copied());
        verify.env("K", "a-key-of-no-value").run()
    };
    clean("a dry run", &job(&["--dry-run"]).expect_code(0));
    let ran = job(&[
        "-v",
        "--github",
        "--log",
        "run.log",
        "--junit",
        "out.xml",
        "--max-fail",
        "any",
        "--progress",
        "plain",
    ]);
    clean("a run", &ran);
    assert!(ran.stderr.contains("owned") && ran.stderr.contains("\\u{1b}"), "{}", ran.stderr);
    let xml = ran.file("out.xml");
    let allowed = |c: char| !c.is_control() || matches!(c, '\n' | '\t' | '\r' | '\u{7f}'..='\u{9f}');
    assert!(xml.chars().all(allowed) && xml.contains("<testcase"), "{xml:?}");
    for row in 1..=10 {
        clean("show", &call(&["show", "last", &row.to_string()]));
        let shown = call(&["show", "last", &row.to_string(), "--format", "json"]);
        clean("show as JSON", &shown);
        // Escaped, and the same to whoever reads it.
        assert!(shown.json()["prompt"]["user"].as_str().unwrap().contains(EVIL), "{}", shown.stdout);
    }
    for args in [
        &["status"][..],
        &["runs"],
        &["review", "list", "last"],
        &["agreement", "last"],
        &["agreement", "last", "--gold", EVIL],
        &["show", "last", EVIL],
        &["show", EVIL, "1"],
        &["status", EVIL],
        &["models", EVIL],
        &["export", "last", "-o", "again\u{1b}[31m.csv"],
        &["export", "last", "-o", "none\u{1b}/out.csv"],
        &["review", "export", "last", "-o", "rev\u{1b}[31m.csv"],
        &["review", "import", "last", "none\u{1b}[31m.csv"],
        &["init", "new\u{1b}[31m"],
        &["runs", "rm", EVIL],
        &["run", EVIL],
        &["run", "in.csv", EVIL],
        &[EVIL],
        &["run", &format!("--{EVIL}")],
        &["run", "x.jsonl", "--max-rows", EVIL],
        &["run", "x.jsonl", "--config", EVIL],
    ] {
        clean(&args.join(" "), &call(args));
    }
    let mut reader = csv::Reader::from_path(verify.path("rev\u{1b}[31m.csv")).unwrap();
    let at = reader.headers().unwrap().iter().position(|name| name == "decision").unwrap();
    let mut writer = csv::Writer::from_path(verify.path("decided.csv")).unwrap();
    writer.write_record(reader.headers().unwrap()).unwrap();
    for record in reader.records() {
        let record = record.unwrap();
        writer
            .write_record(record.iter().enumerate().map(|(n, cell)| if n == at { EVIL } else { cell }))
            .unwrap();
    }
    drop(writer);
    clean("a wrong decision", &call(&["review", "import", "last", "decided.csv"]).expect_code(2));
}

#[test]
fn check_and_configuration_errors_quote_nothing_raw() {
    let provider = always(ANSWER);
    let verify = Verify::new().file("in.jsonl", format!("{}\n", json!({format!("a{EVIL}"): EVIL})));
    let file = format!("in{EVIL}.jsonl");
    let named = verify.again().file(&file, format!("{}\n{{{EVIL}\n", json!({"a": 1})));
    clean(
        "check",
        &named.args(["check", &file, "--provider", "mock", "--prompt", "{{ b }}"]).run().expect_code(2),
    );
    clean("a field", &verify.again().args(asks(&provider, "in.jsonl", "{{ b }}")).run().expect_code(2));
    let template = format!("{{{{ a|{EVIL} }}}}");
    clean("a template", &verify.again().args(asks(&provider, "in.jsonl", &template)).run().expect_code(2));
    for schema in [
        json!({"type": EVIL}).to_string(),
        json!({"$ref": format!("http://h/{EVIL}")}).to_string(),
        json!({"properties": {EVIL: {"pattern": format!("({EVIL}")}}}).to_string(),
        format!("{{{EVIL}"),
    ] {
        let verify = verify.again().file("s.json", schema);
        let args = ["run", "in.jsonl", "--provider", "mock", "--prompt", "x", "--schema", "s.json"];
        clean("a schema", &verify.args(args).run().expect_code(2));
    }
    for toml in [
        format!(
            "\"{}\" = 1\n",
            EVIL.escape_unicode().to_string().replace("\\u{", "\\U000000").replace('}', "")
        ),
        format!("model = \"a{EVIL}\n"),
        format!("# {EVIL}\nx = [\n"),
    ] {
        let verify = verify.again().file("c.toml", toml);
        clean(
            "a configuration",
            &verify.args(["check", "in.jsonl", "--config", "c.toml"]).run().expect_code(2),
        );
    }
    let variable = verify.again().args(asks(&provider, "in.jsonl", "x")).env(&format!("VERIFY_{EVIL}"), EVIL);
    clean("a variable", &variable.run().expect_code(0));
    let wrong = verify.again().args(["check", "in.jsonl"]).env("VERIFY_PROVIDER", EVIL);
    clean("a value", &wrong.run().expect_code(2));
}

#[test]
fn a_bar_draws_nothing_but_itself() {
    let provider = evil_provider();
    let verify = Verify::new().file(&format!("in{EVIL}.csv"), evil_csv());
    let words: Vec<String> =
        evil_run(&provider).iter().map(|word| format!("'{}'", word.replace('\'', "'\\''"))).collect();
    let line = format!("{} {} -v --progress bar --yes", env!("CARGO_BIN_EXE_verify"), words.join(" "));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(verify.directory()).env("K", "a-key-of-no-value");
    // Without that program there is no terminal to try.
    let Ok(output) = script.env("TERM", "xterm").stdin(Stdio::null()).output() else { return };
    let screen = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(screen.contains("invalid_answer") && screen.contains("\\u{1b}"), "{screen:?}");
    for evil in ["\u{1b}]", "\u{1b}[31mred", "\u{9b}", "\u{7}", "\u{8}", "\u{7f}", "\u{202e}", "x\ry"] {
        assert!(!screen.contains(evil), "{evil:?} in {screen:?}");
    }
}

#[test]
fn no_cell_is_a_formula_where_that_is_asked_for() {
    let starts = ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"];
    let provider =
        Provider::start(|call| Reply::answer(&json!({"=why": call.user(), "n": -1.5}).to_string()));
    let row: serde_json::Map<String, Value> = starts
        .iter()
        .map(|start| (format!("{start}name"), json!(format!("{start}1+cmd|' /C calc'!A0"))))
        .collect();
    let lines: Vec<String> = starts
        .iter()
        .map(|start| {
            let mut row = row.clone();
            row.insert("p".to_owned(), json!(format!("{start}SUM(1)")));
            format!("{}\n", Value::Object(row))
        })
        .collect();
    let schema =
        json!({"type": "object", "properties": {"=why": {"type": "string"}, "n": {"type": "number"}}});
    let url = provider.url();
    let args =
        ["run", "in.jsonl", "--model", "m", "--base-url", &url, "--prompt", "{{ p }}", "--schema", "s.json"];
    let verify = Verify::new().file("in.jsonl", lines.concat()).file("s.json", schema.to_string()).args(args);
    let outcome = verify.args(["--csv-safe", "-o", "out.csv"]).run().expect_code(0);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(outcome.path("out.csv")).unwrap();
    let records: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), starts.len() + 1);
    for cell in records.iter().flatten() {
        assert!(!starts.iter().any(|start| cell.starts_with(start)) || cell == "-1.5", "{cell:?}");
    }
    assert!(
        records[0].iter().any(|cell| cell == "'=why") && records[1].iter().any(|cell| cell == "'=SUM(1)")
    );
}

#[test]
fn template_text_in_data_stays_text_wherever_it_stands() {
    let provider = Provider::start(|call| match call.attempt {
        1 => Reply::answer("{{ 7*7 }}{% for a in b %}"),
        _ => Reply::answer(ANSWER),
    });
    let csv = "\"{{ x }}\",b\n{{ 7*7 }},{% raw %}{# gone #}\n";
    let prompt = "{{ row[\"{{ x }}\"] }} {{ b }} {{ row }}";
    let verify = Verify::new().file("in.csv", csv).args(asks(&provider, "in.csv", prompt));
    verify.args(["--system", "S {{ b }}"]).run().expect_code(0);
    let calls = provider.calls();
    assert_eq!(calls[0].system(), "S {% raw %}{# gone #}");
    assert!(
        calls[0].texts(&["user"])[0].starts_with("{{ 7*7 }} {% raw %}{# gone #} "),
        "{}",
        calls[0].user()
    );
    // A repair carries the answer as it came.
    assert_eq!(
        (calls.len(), calls[1].texts(&["assistant"])),
        (2, vec!["{{ 7*7 }}{% for a in b %}".to_owned()])
    );
}

#[test]
fn a_reference_out_of_a_schema_is_refused_and_nothing_is_fetched() {
    let server = always("{}");
    let target = format!("http://127.0.0.1:{}/s.json", server.port());
    let provider = always(ANSWER);
    for schema in [
        json!({"$ref": target}),
        json!({"properties": {"ok": {"anyOf": [{"$ref": format!("{target}#/a")}]}}}),
        json!({"$id": target, "properties": {"ok": {"$ref": "other.json"}}}),
        json!({"$dynamicRef": format!("{target}#a")}),
        json!({"$schema": target, "type": "object"}),
        json!({"$ref": "file:///etc/passwd"}),
        json!({"$ref": "/etc/passwd"}),
        json!({"allOf": [{"$ref": "json-schema:///x"}]}),
    ] {
        let args = ["run", "in.jsonl", "--model", "m", "--prompt", "x", "--schema", "s.json", "--base-url"];
        let verify = Verify::new().file("in.jsonl", "{}\n").file("s.json", schema.to_string());
        let outcome = verify.args(args).arg(provider.url()).run().expect_code(2);
        assert!(outcome.stderr.contains("schema"), "{schema}: {}", outcome.stderr);
        assert_eq!((server.connections(), provider.connections()), (0, 0), "{schema}");
    }
}

#[test]
fn patterns_that_explode_are_bounded() {
    let bombs =
        ["^(a+)+$", "^(a|a)*$", "^(?=(a+)+$)(a+)+b$", "^(a*)*\\1b$", "(.*)*(.*)*(.*)*=", "^(?!(a+)+b)x$"];
    for pattern in bombs {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}},
            "patternProperties": {pattern: {"type": "string"}}});
        let text = json!({"a": "a".repeat(30_000) + "!"}).to_string();
        let provider = Provider::start(move |_| Reply::answer(&text));
        let args =
            ["run", "in.jsonl", "--model", "m", "--prompt", "x", "--schema", "s.json", "--repair", "0"];
        let verify = Verify::new().file("in.jsonl", "{}\n").file("s.json", schema.to_string());
        let outcome = verify.args(args).args(["--base-url", &provider.url(), "--max-error", "any"]).run();
        let outcome = outcome.expect_code(0);
        assert!(
            ["pass/valid", "error/invalid_answer"].contains(&statuses(&outcome)[0].as_str()),
            "{pattern}"
        );
    }
    for pattern in [
        "((((a{100}){100}){100}){100}){100}".to_owned(),
        format!("{}a{}", "(".repeat(50_000), ")".repeat(50_000)),
    ] {
        let schema = json!({"properties": {"a": {"pattern": pattern}}}).to_string();
        let args = ["run", "in.jsonl", "--provider", "mock", "--prompt", "x", "--schema", "s.json"];
        let outcome =
            Verify::new().file("in.jsonl", "{}\n").file("s.json", schema).args(args).run().expect_code(2);
        assert!(outcome.stderr.contains("/properties/a/pattern"), "{}", outcome.stderr);
    }
}

#[test]
fn schemas_that_refer_to_themselves_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}], "type": "object"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
        json!({"not": {"$ref": "#"}}),
    ] {
        let provider = Provider::start(|_| Reply::answer("{\"a\":{\"a\":{}}}"));
        for kind in ["openai", "anthropic"] {
            let args =
                ["run", "in.jsonl", "--model", "m", "--prompt", "x", "--schema", "s.json", "--repair", "0"];
            let verify = Verify::new().file("in.jsonl", "{}\n").file("s.json", schema.to_string()).args(args);
            let verify = verify.args(["--base-url", &provider.url(), "--provider", kind, "--attempts", "1"]);
            let outcome = verify.args(["--max-error", "any"]).run();
            assert!([0, 2].contains(&outcome.code), "{schema}: {} {}", outcome.code, outcome.stderr);
        }
    }
}

#[test]
fn templates_that_chain_without_end_are_refused_and_long_ones_are_not() {
    let provider = always(ANSWER);
    let refused = [
        format!("{{{{ {}1 }}}}", "-".repeat(50_000)),
        format!("{{{{ {}1 }}}}", "not ".repeat(50_000)),
        format!("{{{{ {}1{} }}}}", "(".repeat(30_000), ")".repeat(30_000)),
        format!("{{{{ {}1{} }}}}", "[".repeat(30_000), "]".repeat(30_000)),
        format!("{{{{ 1{} }}}}", "+1".repeat(50_000)),
        format!("{{{{ a{} }}}}", "|upper".repeat(50_000)),
        format!("{{{{ a{} }}}}", ".a".repeat(50_000)),
        format!("{{{{ a{} }}}}", "[0]".repeat(50_000)),
        format!("{{{{ a{} }}}}", "(0)".repeat(50_000)),
        format!("{{{{ 1{} }}}}", " if 1 else 1".repeat(50_000)),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}x".repeat(50_000)),
        format!("{}x{}", "{% if a %}".repeat(20_000), "{% endif %}".repeat(20_000)),
        format!("{}x{}", "{% for b in a %}".repeat(20_000), "{% endfor %}".repeat(20_000)),
        format!("{}x{}", "{% set b %}".repeat(20_000), "{% endset %}".repeat(20_000)),
        format!("{}x{}", "{% filter upper %}".repeat(20_000), "{% endfilter %}".repeat(20_000)),
    ];
    let run = |template: &str| {
        let args = ["run", "in.jsonl", "--model", "m", "--column", "ok=boolean", "--prompt-file", "p.txt"];
        let verify = Verify::new().file("in.jsonl", "{\"a\":\"b\"}\n").file("p.txt", template).args(args);
        verify.args(["--base-url", &provider.url()]).run()
    };
    for template in &refused {
        let outcome = run(template).expect_code(2);
        assert!(outcome.stderr.contains("prompt.user"), "{}", outcome.stderr);
    }
    assert_eq!(provider.count(), 0);
    run(&"{{ a }} and {% if a == 'b' and not (a is none) %}{{ a|upper|trim }}{% endif %}\n".repeat(5_000))
        .expect_code(0);
    run(&format!("{{% set words = [{}] %}}{{{{ words|length }}}}", "'w', ".repeat(5_000))).expect_code(0);
}

#[test]
fn files_that_nest_without_end_are_told_and_not_followed() {
    let provider = always(ANSWER);
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    let verify = Verify::new().file("in.jsonl", "{\"a\":1}\n");
    let run = |more: &[&str]| {
        let args = ["run", "in.jsonl", "--model", "m", "--prompt", "x", "--base-url", &provider.url()];
        verify.again().args(args).args(more.iter().copied()).run().expect_code(2)
    };
    drop(
        verify
            .again()
            .file("s.json", deep("{\"properties\":{\"a\":", "}}"))
            .file("t.json", deep("{\"not\":", "}")),
    );
    for schema in ["s.json", "t.json"] {
        clean(schema, &run(&["--schema", schema]));
    }
    drop(verify.again().file("c.toml", format!("[request]\nextra = {{ a = {} }}\n", deep("[", "]"))));
    clean("an array", &run(&["--config", "c.toml"]));
    drop(verify.again().file("c.toml", format!("{}b = 1\n", "a.".repeat(100_000))));
    clean("a name", &run(&["--config", "c.toml"]));
    run(&["--column", "ok=boolean", "--verdict", "ok", "--pass", &deep("[", "]")[..60_000]]);
    assert_eq!(provider.count(), 0);
    // A file of decisions is no safer than an answer.
    verify.again().args(asks(&provider, "in.jsonl", "x")).run().expect_code(0);
    drop(verify.again().file("d.jsonl", format!("{{\"row\":1,\"decision\":{}}}\n", deep("[", "]"))));
    verify.again().args(["review", "import", "last", "d.jsonl"]).run().expect_code(2);
}

/// Runs the program with arguments that may be no text.
fn program(directory: &Verify, arguments: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
    command.args(arguments).current_dir(directory.directory()).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_file_may_have_any_name() {
    let provider = always(ANSWER);
    let names: [&[u8]; 5] = [
        b"a b.jsonl",
        b"two\nlines.jsonl",
        b"\xff\xfe raw.jsonl",
        b"-o.jsonl",
        "日本 'q\" $x`.jsonl".as_bytes(),
    ];
    for name in names {
        let verify = Verify::new();
        let path = OsString::from("./").to_str().map(|dot| [dot.as_bytes(), name].concat()).unwrap();
        let path = OsStr::from_bytes(&path);
        std::fs::write(verify.directory().join(path), "{\"text\":\"a\"}\n{\"text\":\"b\"}\n").unwrap();
        let rest = asks(&provider, "", "{{ text }}").split_off(2);
        let run = |more: &[&str]| {
            let mut all = vec![OsStr::new("run"), path];
            all.extend(rest.iter().map(OsStr::new).chain(more.iter().map(OsStr::new)));
            program(&verify, &all)
        };
        let first = run(&["--max-calls", "1", "--summary", "s.json"]);
        assert_eq!(first.status.code(), Some(5), "{}", String::from_utf8_lossy(&first.stderr));
        // The command that is printed is one for a shell, and means this run.
        let summary: Value = serde_json::from_slice(&std::fs::read(verify.path("s.json")).unwrap()).unwrap();
        let command =
            summary["continue"].as_str().unwrap().replacen("verify", env!("CARGO_BIN_EXE_verify"), 1);
        assert!(raw(&command).is_empty());
        let command = command.replace("--max-calls 1", "--max-calls 2");
        let shell =
            Command::new("bash").args(["-c", &command]).current_dir(verify.directory()).output().unwrap();
        let said = String::from_utf8_lossy(&shell.stderr).into_owned();
        assert!(shell.status.success() && said.contains("continuing run"), "{command}: {said}");
        let stem = name.strip_suffix(b".jsonl").unwrap();
        let output = verify.directory().join(OsStr::from_bytes(&[stem, b".verified.jsonl"].concat()));
        assert_eq!(std::fs::read_to_string(output).unwrap().lines().count(), 2);
        for args in
            [&["show", "last", "1"][..], &["status"], &["runs"], &["export", "last", "-o", "again.jsonl"]]
        {
            let outcome = verify.again().args(args.iter().copied()).run().expect_code(0);
            clean(&args.join(" "), &outcome);
            assert!(args[0] != "show" || outcome.stdout.contains("pass (valid)"), "{}", outcome.stdout);
        }
        assert_eq!(std::fs::read_to_string(verify.path("again.jsonl")).unwrap().lines().count(), 2);
    }
}

#[test]
fn a_prompt_of_several_lines_is_continued_as_it_stands() {
    let provider = always(ANSWER);
    let prompt = "It's\n\t{{ text }}\\n \u{1b} \u{202e}done";
    let verify = Verify::new().file("in.jsonl", support::job::rows(3));
    let first = verify.again().args(asks(&provider, "in.jsonl", prompt)).args([
        "--max-calls",
        "1",
        "--format",
        "json",
    ]);
    let first = first.run().expect_code(5);
    assert!(raw(&first.stderr).is_empty(), "{:?}", first.stderr);
    let status = verify.again().args(["status", "--format", "json"]).run().expect_code(0).json();
    let command = status["continue"].as_str().unwrap().replacen("verify", env!("CARGO_BIN_EXE_verify"), 1);
    let command = command.replace("--max-calls 1", "--max-calls 3");
    let shell = Command::new("bash").args(["-c", &command]).current_dir(verify.directory()).output().unwrap();
    let said = String::from_utf8_lossy(&shell.stderr).into_owned();
    assert!(shell.status.success() && said.contains("continuing run"), "{command}: {said}");
    let mut prompts: Vec<String> = provider.calls().iter().map(support::provider::Call::user).collect();
    prompts.sort_unstable();
    assert_eq!(prompts, ["row 1", "row 2", "row 3"].map(|text| prompt.replace("{{ text }}", text)));
}

#[test]
fn nul_bytes_travel_like_any_other() {
    let provider = Provider::start(|call| Reply::answer(&json!({"echo": call.user()}).to_string()));
    let url = provider.url();
    let args = ["--model", "m", "--base-url", &url, "--column", "echo=string"];
    let csv = "\u{0}a,b\n1\u{0},\"x\u{0}\ny\"\n";
    let verify =
        Verify::new().file("in.csv", csv).args(["run", "in.csv", "--prompt", "{{ row|string }}"]).args(args);
    let out = verify.run().expect_code(0).file("in.verified.csv");
    assert!(out.starts_with("\u{0}a,b,echo,") && out.contains("\n1\u{0},\"x\u{0}\ny\",\"{"), "{out:?}");
    let jsonl = "{\"a\":\"\\u0000b\"}\n";
    let verify =
        Verify::new().file("in.jsonl", jsonl).args(["run", "in.jsonl", "--prompt", "<{{ a }}>"]).args(args);
    let outcome = verify.run().expect_code(0);
    assert!(outcome.file("in.verified.jsonl").starts_with("{\"a\":\"\\u0000b\",\"verify\""));
    assert_eq!(results(&outcome)[0]["answer"]["echo"], "<\u{0}b>");
    assert_eq!(provider.calls()[1].user(), "<\u{0}b>");
    // A raw one is no JSON, and is told as such.
    let verify = Verify::new()
        .file("in.jsonl", "{\"a\":1}\n{\"a\":\u{0}}\n")
        .args(["run", "in.jsonl", "--prompt", "{{ a }}"]);
    let outcome = verify.args(args).run().expect_code(2);
    assert!(outcome.stderr.contains("row 2, line 2, column"), "{}", outcome.stderr);
}
