//! One process a job, any number of jobs a store; and what the state folder holds and never holds.
#![expect(
    clippy::disallowed_methods,
    reason = "a failed expectation is the failure of the test, which prepares files"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;
use support::command::{Outcome, Verify};
use support::job::{files, numbered};
use support::mock::Mock;
use support::provider::{Call, Provider, Reply};

fn echo(call: &Call) -> Reply {
    Reply::answer(&json!({ "echo": call.user() }).to_string())
}

fn ask(verify: Verify, url: &str, prompt: &str) -> Verify {
    verify.args(["run", "in.jsonl", "--model", "m", "--base-url", url, "--prompt", prompt]).args([
        "--column",
        "echo=string",
        "--adaptive=false",
        "--concurrency",
        "8",
    ])
}

#[test]
fn of_two_processes_with_one_job_one_runs_and_the_other_names_it() {
    let provider = Provider::start(|call| echo(call).after(Duration::from_millis(20)));
    let verify = Verify::new().file("in.jsonl", numbered(100));
    for round in 1..=3 {
        let prompt = format!("{round} {{{{ id }}}}");
        let both = [0; 2].map(|_| ask(verify.again(), &provider.url(), &prompt).spawn());
        let ids = [both[0].id(), both[1].id()];
        let ended = both.map(support::command::Running::wait);
        let codes = [ended[0].code, ended[1].code];
        assert!(codes == [0, 6] || codes == [6, 0], "{codes:?}: {}{}", ended[0].stderr, ended[1].stderr);
        let (first, second) = if codes[0] == 0 { (0, 1) } else { (1, 0) };
        let said = &ended[second].stderr;
        assert!(said.contains(&format!("pid {}", ids[first])) && said.contains("host "), "{said}");
        assert_eq!(provider.count(), 100 * round, "a row was paid twice");
        assert_eq!(ended[first].json_lines("in.verified.jsonl").len(), 100);
    }
}

#[test]
fn the_lock_holds_for_every_way_of_asking_and_ends_with_its_process() {
    let provider = Provider::start(|call| if call.n == 1 { echo(call) } else { Reply::never() });
    let verify = Verify::new().file("in.jsonl", numbered(10));
    let first = ask(verify.again(), &provider.url(), "{{ id }}").spawn();
    provider.wait_for_calls(9);
    for more in [
        &[][..],
        &["--new"],
        &["--run", "last"],
        &["--retry", "all"],
        &["-o", "other.jsonl", "--max-fail", "3"],
    ] {
        let refused =
            ask(verify.again(), &provider.url(), "{{ id }}").args(more.iter().copied()).run().expect_code(6);
        assert!(refused.stderr.contains(&format!("pid {}", first.id())), "{more:?}: {}", refused.stderr);
        assert!(!refused.path("in.verified.jsonl").exists() && !refused.path("other.jsonl").exists());
    }
    assert_eq!(provider.count(), 9);
    first.kill9();
    let next = ask(verify.again(), &provider.url(), "{{ id }}").spawn();
    // Taken over: it goes on with what the dead process had not finished.
    let calls = provider.wait_for_calls(17);
    assert!(calls[9..].iter().all(|call| call.row > 1));
    drop(next);
}

#[test]
fn other_jobs_share_the_store_at_the_same_time() {
    let mock = Mock::start(["--latency", "5ms", "--jitter", "10ms"]);
    let verify = Verify::new().file("in.jsonl", numbered(300));
    // The fourth asks the same as the first, for a part of the rows.
    let jobs = [("a {{ id }}", "300"), ("b {{ id }}", "300"), ("c {{ id }}", "300"), ("a {{ id }}", "299")];
    let running = jobs.map(|(prompt, limit)| {
        let output = format!("{}{limit}.jsonl", &prompt[..1]);
        let running =
            ask(verify.again(), &mock.openai(), prompt).args(["--limit", limit, "-o", &output]).spawn();
        (running, output)
    });
    let lines = running.map(|(running, output)| running.wait().expect_code(0).json_lines(&output));
    assert_eq!(lines.each_ref().map(Vec::len), [300, 300, 300, 299]);
    for (one, other) in lines[0].iter().zip(&lines[3]) {
        assert_eq!(one["verify"]["answer"], other["verify"]["answer"]);
    }
    assert_eq!(mock.count("distinct"), 900);
    // All of it is there for the next: nothing is asked.
    let requests = mock.count("requests");
    for (prompt, _) in &jobs[..3] {
        ask(verify.again(), &mock.openai(), prompt).args(["--limit", "300", "--new"]).run().expect_code(0);
    }
    assert_eq!(mock.count("requests"), requests);
}

#[test]
fn the_state_is_private_and_one_file_at_the_end() {
    let provider = Provider::start(echo);
    let verify = Verify::new().file("in.jsonl", numbered(200));
    let outcome = ask(verify, &provider.url(), "{{ id }}").run().expect_code(0);
    let state = outcome.path(".verify");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    assert_eq!(fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");
    assert_eq!(mode(&state.join("jobs")), 0o700);
    for file in files(&state) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        let name = file.file_name().unwrap().to_str().unwrap();
        let size = fs::metadata(&file).unwrap().len();
        assert!(!name.ends_with("-wal") || size == 0, "{name} holds {size} bytes");
    }
    // The one file is enough: a copy of it replays everything.
    let copy = outcome.path("copy");
    fs::create_dir(&copy).unwrap();
    fs::copy(state.join("store.db"), copy.join("store.db")).unwrap();
    ask(outcome.again(), &provider.url(), "{{ id }}").args(["--state", "copy"]).run().expect_code(0);
    assert_eq!(provider.count(), 200);
}

#[test]
fn no_credential_is_left_anywhere() {
    const KEY: &str = "sk-Very/Secret+0123456789\"quoted\"";
    let escaped = json!(KEY).to_string();
    let escaped = escaped.trim_matches('"').to_owned();
    let provider = Provider::start(move |call| {
        let echoes = format!("Bearer {KEY}");
        let reply = match call.row % 6 {
            1 => Reply::answer(&json!({ "echo": format!("the key is {KEY}, yes") }).to_string()),
            2 => Reply::error(
                400,
                "invalid_request_error",
                &format!("no such thing for Authorization: {echoes}"),
            ),
            3 => Reply::status(500).body(format!("<html>{KEY}</html>")),
            4 => Reply::status(302).header("location", &format!("http://127.0.0.1/{KEY}")),
            5 => Reply::answer(&format!("{{\"echo\": 7, \"{escaped}\": 1}}")),
            _ => Reply::raw(format!("HTTP/1.1 {KEY}\r\n\r\n")),
        };
        let reply = reply.header("x-request-id", &format!("req {KEY}")).header("x-echo", &echoes);
        if call.n == 1 { Reply::answer("{\"echo\":\"first\"}").header("x-request-id", KEY) } else { reply }
    });
    let verify = Verify::new().file("in.jsonl", numbered(13)).file("key.txt", format!("{KEY}\n"));
    let config = format!(
        "model = \"m\"\nbase_url = \"{}\"\n[[keys]]\nlabel = \"file\"\nfile = \"key.txt\"\n[[keys]]\nlabel = \"env\"\n\
         env = \"THE_KEY\"\n[prompt]\nuser = \"{{{{ id }}}}\"\n[answer]\ncolumns = {{ echo = \"string\" }}\n\
         [retry]\nattempts = 2\nbase = \"1ms\"\nmax_backoff = \"2ms\"\n",
        provider.url()
    );
    let verify = verify.config(&config).env("THE_KEY", KEY);
    let outcome = verify
        .args(["run", "in.jsonl", "--summary", "summary.json", "--progress", "json", "-o", "out.csv"])
        .run();
    assert_eq!(outcome.code, 4, "{}", outcome.stderr);
    assert!(provider.calls().iter().all(|call| call.key == KEY));
    let shown: Vec<Outcome> = (1..=13)
        .map(|row| {
            outcome.again().args(["show", "last", &row.to_string(), "--format", "json"]).run().expect_code(0)
        })
        .collect();
    let mut texts =
        vec![("stdout".to_owned(), outcome.stdout.clone()), ("stderr".to_owned(), outcome.stderr.clone())];
    texts.extend(shown.iter().map(|shown| ("show".to_owned(), shown.stdout.clone() + &shown.stderr)));
    for file in files(outcome.path(".").as_path()) {
        if !file.ends_with("key.txt") {
            texts.push((
                file.display().to_string(),
                String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned(),
            ));
        }
    }
    assert!(texts.len() > 18);
    for (name, text) in texts {
        for secret in ["Very/Secret", "Very\\/Secret", "Secret+0123456789", "Secret%2B0123456789"] {
            assert!(!text.contains(secret), "{name} holds {secret}");
        }
    }
}

#[test]
fn a_state_folder_that_cannot_be_used_is_found_before_anything_is_sent() {
    let provider = Provider::start(echo);
    let verify = Verify::new().file("in.jsonl", numbered(3)).file("taken", "a file");
    for state in ["taken", "taken/below", "/proc/nothing/here"] {
        let refused =
            ask(verify.again(), &provider.url(), "{{ id }}").args(["--state", state]).run().expect_code(6);
        assert!(
            refused.stderr.contains("state folder") && refused.stderr.contains(state),
            "{}",
            refused.stderr
        );
        assert!(!refused.path("in.verified.jsonl").exists());
    }
    assert_eq!(provider.count(), 0);
}

#[test]
fn a_store_that_is_none_is_refused_and_left_alone() {
    let provider = Provider::start(echo);
    let newer = {
        let made = ask(Verify::new().file("in.jsonl", numbered(1)), &provider.url(), "{{ id }}")
            .run()
            .expect_code(0);
        let path = made.path(".verify/store.db");
        let store = rusqlite::Connection::open(&path).unwrap();
        store.pragma_update(None, "user_version", 4_711).unwrap();
        store.close().unwrap();
        fs::read(path).unwrap()
    };
    let foreign = {
        let verify = Verify::new();
        let path = verify.path("theirs.db");
        let store = rusqlite::Connection::open(&path).unwrap();
        store.execute_batch("CREATE TABLE theirs (id)").unwrap();
        store.close().unwrap();
        fs::read(path).unwrap()
    };
    let asked = provider.count();
    for (content, words) in [(vec![7; 9_000], "damaged"), (newer, "4711"), (foreign, "no store of verify")] {
        let verify = Verify::new().file("in.jsonl", numbered(3)).file(".verify/store.db", &content);
        let refused = ask(verify, &provider.url(), "{{ id }}").run().expect_code(6);
        assert!(refused.stderr.contains("store.db") && refused.stderr.contains(words), "{}", refused.stderr);
        assert_eq!(fs::read(refused.path(".verify/store.db")).unwrap(), content, "it was written to");
        assert!(!refused.path("in.verified.jsonl").exists());
    }
    assert_eq!(provider.count(), asked);
}

#[test]
fn a_store_whose_middle_is_garbage_stops_the_run() {
    let provider = Provider::start(echo);
    let verify = Verify::new().file("in.jsonl", numbered(400));
    let first = ask(verify, &provider.url(), "{{ id }}").run().expect_code(0);
    let path = first.path(".verify/store.db");
    let mut content = fs::read(&path).unwrap();
    assert!(content.len() > 200_000);
    for page in content.chunks_mut(4_096).skip(20) {
        page.fill(0xa5);
    }
    fs::write(&path, &content).unwrap();
    let refused = ask(first.again(), &provider.url(), "{{ id }}").arg("--new").run().expect_code(6);
    assert!(refused.stderr.contains("damaged") && refused.stderr.contains("store.db"), "{}", refused.stderr);
    assert_eq!(provider.count(), 400);
    // What could be saved from it is still there, and so is the output.
    let after = fs::read(&path).unwrap();
    assert!(after.len() >= content.len() && after[20 * 4_096..content.len()] == content[20 * 4_096..]);
    assert_eq!(refused.json_lines("in.verified.jsonl").len(), 400);
}
