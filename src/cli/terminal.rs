//! The one file that writes to the screen.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use crate::base::Moment;
use crate::cli::failure::Failure;
use crate::model::{Event, EventKind, Status};
use crate::report::{Bar, Snapshot, eta_text, is_obeyed, json_line, plain_line, printable};
use crate::run::Observer;

/// How a run shows its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A bar on a terminal, plain lines elsewhere.
    Auto,
    /// A bar.
    Bar,
    /// A plain line now and then.
    Plain,
    /// A JSON line now and then.
    Json,
    /// Nothing.
    Nothing,
}

/// Whether to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// Standard output and standard error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    stderr_is_terminal: bool,
    stdin_is_terminal: bool,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self {
            stderr_is_terminal: std::io::stderr().is_terminal(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
        }
    }

    /// Writes data to standard output. A closed one is said with `false`.
    #[expect(clippy::unused_self, reason = "only who has the terminal may write")]
    pub(crate) fn data(self, text: &str) -> bool {
        let mut out = std::io::stdout().lock();
        out.write_all(harmless(text).as_bytes()).and_then(|()| out.flush()).is_ok()
    }

    /// Writes lines for a person to standard error. If nobody listens there, nothing can be done.
    #[expect(clippy::unused_self, reason = "only who has the terminal may write")]
    pub(crate) fn say(self, text: &str) {
        let mut text = harmless(text).into_owned();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// Writes a piece of the bar, in one go, so that no half of it is ever seen.
    #[expect(clippy::unused_self, reason = "only who has the terminal may write")]
    fn draw(self, text: &str) {
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }

    /// Columns for text on standard error: neither too narrow to read nor too wide.
    pub(crate) fn width(self) -> usize {
        self.columns().clamp(40, 200)
    }

    /// Columns of the terminal behind standard error; 80 where there is none.
    #[expect(clippy::unused_self, reason = "only who has the terminal may look at it")]
    fn columns(self) -> usize {
        terminal_size::terminal_size_of(std::io::stderr()).map_or(80, |(width, _)| usize::from(width.0))
    }

    /// Whether somebody is there to answer a question.
    pub(crate) fn can_ask(self) -> bool {
        self.stderr_is_terminal && self.stdin_is_terminal
    }

    /// Asks a question on standard error and reads a line. Anything but a yes is a no.
    #[expect(clippy::unused_self, reason = "only who has the terminal may use it")]
    pub(crate) fn ask(self, question: &str) -> bool {
        let mut err = std::io::stderr().lock();
        let _ = err.write_all(format!("{question} [y/N] ").as_bytes()).and_then(|()| err.flush());
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.is_ok() && matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
    }

    pub(crate) fn warn(self, message: &str) {
        self.say(&format!("warning: {}", printable(message)));
    }

    pub(crate) fn error(self, failure: &Failure) {
        for message in failure.messages() {
            self.say(&format!("error: {}", printable(message)));
        }
    }

    /// Shows what the argument parser has to say: help goes to standard output and is a success. It quotes arguments as
    /// they came, and a name that a shell has put there may hold anything: then there are no colours either.
    pub(crate) fn usage(self, error: &clap::Error, arguments: &[OsString]) -> u8 {
        let text = error.render();
        if error.use_stderr() {
            let is_plain = arguments.iter().all(|word| {
                let word = word.to_string_lossy();
                word == printable(&word)
            });
            let shown = if self.stderr_is_terminal && is_plain {
                text.ansi().to_string()
            } else {
                text.to_string().split('\n').map(printable).collect::<Vec<_>>().join("\n")
            };
            self.say(&shown);
            return Failure::USAGE;
        }
        if self.data(&text.to_string()) { 0 } else { 141 }
    }

    pub(crate) fn has_color(self, choice: Color, no_color: bool, dumb: bool) -> bool {
        match choice {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => self.stderr_is_terminal && !no_color && !dumb,
        }
    }

    /// Who watches a run on this terminal.
    pub(crate) fn watcher(self, progress: Progress, color: bool, quiet: bool, dumb: bool) -> Watcher {
        let progress = match progress {
            _ if quiet => Progress::Nothing,
            // A bar is drawn over itself, which only a terminal can do.
            Progress::Auto | Progress::Bar if self.stderr_is_terminal && !dumb => Progress::Bar,
            Progress::Auto | Progress::Bar => Progress::Plain,
            chosen => chosen,
        };
        let bar = (progress == Progress::Bar).then(|| Bar::new(color));
        Watcher { terminal: self, progress, bar, quiet, verbose: false, last_line: None }
    }
}

/// The text with what a terminal would obey beyond ASCII as JSON escapes it: JSON may hold such characters in its strings,
/// and means the same with them escaped. Text for people has none, and colours are ASCII.
fn harmless(text: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| c >= '\u{7f}' && is_obeyed(c);
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) {
            let _ = write!(clean, "\\u{:04x}", u32::from(c));
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

/// Shows a run while it goes on.
#[derive(Debug)]
pub(crate) struct Watcher {
    terminal: Terminal,
    progress: Progress,
    bar: Option<Bar>,
    quiet: bool,
    verbose: bool,
    last_line: Option<Moment>,
}

impl Watcher {
    const PERIOD: Duration = Duration::from_secs(10);

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => self.terminal.draw(&bar.above(text, self.terminal.columns())),
            None => self.terminal.say(text),
        }
    }

    /// With `verbose`, rows that do not pass and waits are said too.
    pub(crate) fn verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// Takes the bar off the screen.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = &mut self.bar {
            self.terminal.draw(&bar.finish(self.terminal.columns()));
        }
    }
}

impl Observer for Watcher {
    fn event(&mut self, event: &Event) {
        if self.quiet {
            return;
        }
        let text = match &event.kind {
            EventKind::KeyCools { key, message } => {
                format!("key {key} was refused ({message}): it rests and is tried once more")
            }
            EventKind::KeyOut { key, fault, message } => {
                format!("key {key} is out ({fault}: {message}): its rows go to other keys")
            }
            EventKind::OutageBegins { message } => {
                format!("the service fails ({message}): the run pauses and probes it")
            }
            EventKind::OutageEnds => "the service answers again: the run goes on".to_owned(),
            EventKind::Learned { message } => message.clone(),
            EventKind::Stopping { message, in_flight } if *in_flight > 0 => {
                let requests = if *in_flight == 1 { "request" } else { "requests" };
                format!("stopping: {message}; {in_flight} {requests} in flight")
            }
            EventKind::Stopping { message, .. } => format!("stopping: {message}"),
            EventKind::RowFinished { row, status, reason } if self.verbose && *status != Status::Pass => {
                format!("row {row}: {}/{}", status.as_str(), reason.as_str())
            }
            EventKind::KeyWaits { key, wait } if self.verbose => {
                format!("key {key} waits {}, as the server asks", eta_text(*wait))
            }
            EventKind::RowsPassed { count } if self.verbose => format!("{count} rows have ended before"),
            EventKind::RowsPassed { .. }
            | EventKind::AttemptFinished(_)
            | EventKind::Failed { .. }
            | EventKind::SampleReplayed { .. }
            | EventKind::RowFinished { .. }
            | EventKind::KeyWaits { .. } => return,
        };
        self.say(&printable(&text));
    }

    fn tick(&mut self, now: Moment, snapshot: &Snapshot) {
        if let Some(bar) = &mut self.bar {
            self.terminal.draw(&bar.update(snapshot, self.terminal.columns()));
            return;
        }
        let due = *self.last_line.get_or_insert(now);
        if now.since(due) < Self::PERIOD {
            return;
        }
        match self.progress {
            Progress::Plain => self.say(&plain_line(snapshot)),
            Progress::Json => self.say(&json_line(snapshot)),
            _ => return,
        }
        self.last_line = Some(now);
    }
}
