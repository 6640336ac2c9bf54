//! The binary, as a sentence: `Verify::new().file("in.jsonl", …).args(["run", "in.jsonl"]).run()`.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::http::PATIENCE;

/// A working directory with files in it, and what the binary is called with there.
///
/// The directory is also its home; no variable of the caller's that the program reads reaches it (`VERIFY_…`,
/// `…_API_KEY`, proxies, colours).
#[derive(Debug)]
#[must_use = "it does nothing until `run` or `spawn`"]
pub(crate) struct Verify {
    directory: Arc<TempDir>,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    stdin: Vec<u8>,
    ignored: Option<&'static str>,
    patience: Duration,
}

impl Verify {
    /// An empty directory.
    pub(crate) fn new() -> Self {
        Self::within(Arc::new(TempDir::new().unwrap()))
    }

    /// A call in the directory of another one, which goes on owning it.
    pub(crate) fn beside(running: &Running) -> Self {
        running.again.again()
    }

    fn within(directory: Arc<TempDir>) -> Self {
        let (arguments, variables, stdin) = (Vec::new(), Vec::new(), Vec::new());
        Self { directory, arguments, variables, stdin, ignored: None, patience: PATIENCE }
    }

    /// Another call in the same directory: no arguments, variables or stdin yet.
    pub(crate) fn again(&self) -> Self {
        Self::within(Arc::clone(&self.directory))
    }

    /// The working directory.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a file, with the folders above it.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Writes `verify.toml`.
    pub(crate) fn config(self, toml: &str) -> Self {
        self.file("verify.toml", toml)
    }

    /// Sets a variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an argument.
    pub(crate) fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<I: IntoIterator<Item = S>, S: Into<String>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Gives it this on stdin; nothing otherwise.
    pub(crate) fn stdin(mut self, content: impl Into<Vec<u8>>) -> Self {
        self.stdin = content.into();
        self
    }

    /// Starts it with this signal ignored, as `nohup` and shells do; its name without `SIG`.
    pub(crate) fn ignoring(mut self, signal: &'static str) -> Self {
        self.ignored = Some(signal);
        self
    }

    /// Waits longer, or less long, than a minute.
    pub(crate) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Runs it to its end.
    pub(crate) fn run(&self) -> Outcome {
        self.spawn().wait()
    }

    /// Starts it.
    pub(crate) fn spawn(&self) -> Running {
        let mut command = match self.ignored {
            None => Command::new(env!("CARGO_BIN_EXE_verify")),
            Some(signal) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", "trap '' \"$1\"; shift; exec \"$@\"", "sh", signal]);
                shell.arg(env!("CARGO_BIN_EXE_verify"));
                shell
            }
        };
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy().to_ascii_uppercase();
            let read = ["VERIFY_", "GITHUB_", "XDG_", "OTEL_"].iter().any(|start| text.starts_with(start))
                || ["_API_KEY", "_PROXY"].iter().any(|end| text.ends_with(end))
                || ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI", "RUST_LOG"].contains(&&*text);
            if read {
                command.env_remove(&name);
            }
        }
        let home = self.directory.path().join(".home");
        fs::create_dir_all(&home).unwrap();
        command
            .current_dir(self.directory.path())
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_DATA_HOME", home.join("data"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let given = self.stdin.clone();
        // A program that does not read its input closes the pipe, which is no fault of the test.
        thread::spawn(move || {
            let _ = stdin.write_all(&given);
        });
        let stdout = Captured::of(child.stdout.take().unwrap());
        let stderr = Captured::of(child.stderr.take().unwrap());
        let said = format!("verify {}", self.arguments.join(" "));
        Running { child: Some(child), stdout, stderr, said, again: self.again(), patience: self.patience }
    }
}

/// What a stream has said so far.
#[derive(Debug, Clone)]
struct Captured(Arc<(Mutex<Stream>, Condvar)>);

#[derive(Debug, Default)]
struct Stream {
    bytes: Vec<u8>,
    ended: bool,
}

impl Captured {
    fn of(mut source: impl Read + Send + 'static) -> Self {
        let captured = Self(Arc::default());
        let shared = captured.clone();
        thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            loop {
                let count = source.read(&mut buffer).unwrap_or(0);
                let (stream, changed) = &*shared.0;
                let mut stream = stream.lock().unwrap();
                stream.bytes.extend_from_slice(&buffer[..count]);
                stream.ended = count == 0;
                changed.notify_all();
                if stream.ended {
                    break;
                }
            }
        });
        captured
    }

    /// Waits until `enough` of the text so far, or its end.
    fn wait(&self, patience: Duration, enough: impl Fn(&str) -> bool) -> Result<String, String> {
        let text = |stream: &Stream| String::from_utf8_lossy(&stream.bytes).into_owned();
        let (stream, changed) = &*self.0;
        let pending = |stream: &mut Stream| !stream.ended && !enough(&text(stream));
        let (stream, _) = changed.wait_timeout_while(stream.lock().unwrap(), patience, pending).unwrap();
        let said = text(&stream);
        if stream.ended || enough(&said) { Ok(said) } else { Err(said) }
    }
}

/// A started program. It is killed when it is dropped unfinished.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    stdout: Captured,
    stderr: Captured,
    said: String,
    again: Verify,
    patience: Duration,
}

impl Running {
    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Its working directory.
    pub(crate) fn directory(&self) -> &Path {
        self.again.directory()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// Another call in the same directory.
    pub(crate) fn again(&self) -> Verify {
        self.again.again()
    }

    /// Sends a signal by its name without `SIG`, as in `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.id())).status().unwrap();
        assert!(sent.success(), "no process for SIG{name}: {}", self.said);
    }

    /// Ends it as a power cut would, and waits until it is gone.
    pub(crate) fn kill9(mut self) -> Outcome {
        self.child.as_mut().unwrap().kill().unwrap();
        self.wait()
    }

    /// Waits until stderr holds a text, and returns all of it so far.
    #[track_caller]
    pub(crate) fn wait_for_stderr(&self, wanted: &str) -> String {
        self.wait_for(&self.stderr, wanted)
    }

    /// Waits until stdout holds a text, and returns all of it so far.
    #[track_caller]
    pub(crate) fn wait_for_stdout(&self, wanted: &str) -> String {
        self.wait_for(&self.stdout, wanted)
    }

    #[track_caller]
    fn wait_for(&self, stream: &Captured, wanted: &str) -> String {
        match stream.wait(self.patience, |said| said.contains(wanted)) {
            Ok(said) if said.contains(wanted) => said,
            Ok(said) | Err(said) => panic!("`{}` never said `{wanted}`: {said}", self.said),
        }
    }

    /// Waits for its end. Panics with its stderr if that does not come in time.
    pub(crate) fn wait(mut self) -> Outcome {
        let mut child = self.child.take().unwrap();
        let id = child.id();
        let (sender, ended) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let _ = sender.send(child.wait());
        });
        let status = match ended.recv_timeout(self.patience) {
            Ok(status) => status.unwrap(),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let _ = Command::new("sh").arg("-c").arg(format!("kill -KILL {id}")).status();
                let said = self.stderr.wait(Duration::ZERO, |_| true).unwrap_or_default();
                panic!("`{}` did not end in {:?}: {said}", self.said, self.patience);
            }
        };
        // A grandchild could hold the pipes open; what has come by then is taken.
        let text = |stream: &Captured| stream.wait(self.patience, |_| false).unwrap_or_else(|said| said);
        let (stdout, stderr) = (text(&self.stdout), text(&self.stderr));
        Outcome { code: code_of(status), stdout, stderr, again: self.again.again(), said: self.said.clone() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The exit code as a shell shows it: 128 and the signal's number where a signal ended it.
fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
}

/// What a finished call left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The exit code; 137 after `kill9`.
    pub(crate) code: i32,
    /// All of stdout.
    pub(crate) stdout: String,
    /// All of stderr.
    pub(crate) stderr: String,
    again: Verify,
    said: String,
}

impl Outcome {
    /// Demands an exit code, and shows stderr otherwise.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert!(self.code == code, "`{}` ended with {}, not {code}: {}", self.said, self.code, self.stderr);
        self
    }

    /// Another call in the same directory.
    pub(crate) fn again(&self) -> Verify {
        self.again.again()
    }

    /// The path of a file in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.again.path(name)
    }

    /// The text of a file in the directory.
    #[track_caller]
    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path(name))
            .unwrap_or_else(|error| panic!("no file {name} ({error}) after `{}`: {}", self.said, self.stderr))
    }

    /// The lines of a file in the directory.
    #[track_caller]
    pub(crate) fn output_lines(&self, name: &str) -> Vec<String> {
        self.file(name).lines().map(str::to_owned).collect()
    }

    /// The lines of a JSONL file in the directory.
    #[track_caller]
    pub(crate) fn json_lines(&self, name: &str) -> Vec<Value> {
        let read = |line: String| {
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in a line of {name}: {line}"))
        };
        self.output_lines(name).into_iter().map(read).collect()
    }

    /// Stdout as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} on stdout of `{}`: {}", self.said, self.stdout))
    }
}
