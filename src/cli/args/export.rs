//! `verify export`.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use crate::cli::args::read::{run_argument, state_argument};

/// What `verify export` takes.
#[derive(Debug, Clone)]
pub(crate) struct ExportArgs {
    /// An id, a unique prefix, or `last`.
    pub(crate) run: String,
    pub(crate) state: Option<PathBuf>,
    /// The file; `-` for standard output. Without one, nothing is written over by surprise: the command says so.
    pub(crate) output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  verify export last -o out.jsonl
  verify export last -o - | jq .verify.status

Nothing is asked and nothing is paid: rows that the run has not finished are
`skipped`. The input must be the one that the run has read. A name that ends in
.gz or .zst is written compressed.";

pub(super) fn command() -> Command {
    Command::new("export")
        .about("The output again, from the store and the input")
        .override_usage("verify export <RUN> -o <FILE> [--state <DIR>]")
        .after_help(EXAMPLES)
        .arg(run_argument().required(true))
        .arg(
            Arg::new("output")
                .long("output")
                .short('o')
                .value_name("FILE")
                .allow_hyphen_values(true)
                .value_parser(value_parser!(PathBuf))
                .help("Where the rows go; - for standard output"),
        )
        .arg(state_argument())
}

impl ExportArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        Self {
            run: matches.get_one::<String>("run").cloned().unwrap_or_default(),
            state: path("state"),
            output: path("output"),
        }
    }
}
