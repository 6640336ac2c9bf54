//! `verify status` and `verify show`: commands that only read.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

/// What a command takes that reads a run.
#[derive(Debug, Clone)]
pub(crate) struct ReadArgs {
    /// An id, a unique prefix, or `last`.
    pub(crate) run: String,
    pub(crate) state: Option<PathBuf>,
    pub(crate) json: bool,
}

/// What `verify show` takes.
#[derive(Debug, Clone)]
pub(crate) struct ShowArgs {
    pub(crate) read: ReadArgs,
    pub(crate) row: u64,
}

/// Where the state is.
pub(super) fn state_argument() -> Arg {
    Arg::new("state")
        .long("state")
        .value_name("DIR")
        .value_parser(value_parser!(PathBuf))
        .help("Where answers are kept [default: .verify here, or beside verify.toml here or above]")
}

/// The place of the state, and the format.
pub(super) fn shared(command: Command) -> Command {
    command.arg(state_argument()).arg(
        Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .value_parser(["text", "json"])
            .default_value("text")
            .help("text or json"),
    )
}

pub(super) fn run_argument() -> Arg {
    Arg::new("run").value_name("RUN").help("A run: its id, a unique prefix of 4 or more characters, or last")
}

pub(super) fn status() -> Command {
    shared(
        Command::new("status")
            .about("Counts, spend, rate and keys of a run, also while it goes on")
            .after_help("Example:\n  verify status last")
            .arg(run_argument().default_value("last")),
    )
}

pub(super) fn show() -> Command {
    shared(
        Command::new("show")
            .about("One row: its prompt, every attempt with its raw answer, and why it got its status")
            .after_help("Example:\n  verify show last 17")
            .arg(run_argument().required(true))
            .arg(
                Arg::new("row")
                    .value_name("ROW")
                    .required(true)
                    .value_parser(value_parser!(u64).range(1..))
                    .help("The row's number in the input, from 1"),
            ),
    )
}

impl ReadArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        Self {
            run: matches
                .try_get_one::<String>("run")
                .ok()
                .flatten()
                .cloned()
                .unwrap_or_else(|| "last".to_owned()),
            state: matches.get_one::<PathBuf>("state").cloned(),
            json: matches.get_one::<String>("format").is_some_and(|format| format == "json"),
        }
    }
}

impl ShowArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        Self { read: ReadArgs::read(matches), row: matches.get_one::<u64>("row").copied().unwrap_or(1) }
    }
}
