//! `verify check`.

use clap::{ArgMatches, Command};

use crate::cli::args::JobArgs;
use crate::cli::args::job::{text, with_job};

/// What `verify check` takes.
#[derive(Debug, Clone)]
pub(crate) struct CheckArgs {
    pub(crate) job: JobArgs,
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Example:
  verify check in.csv --provider mock --prompt 'Is {{ text }} spam?' --column spam=boolean

It takes every flag of a job that `verify run` takes. The values that count go to standard output, each with the flag,
the variable or the line of the file that it came from; problems and warnings go to standard error.

Exit codes: 0 a run could begin; 2 something is to be mended.";

pub(super) fn command() -> Command {
    let command = Command::new("check")
        .about(
            "Checks configuration, schema, template and every row, offline, and shows the values that count",
        )
        .after_help(EXAMPLES);
    with_job(command).arg(
        text("format", "FORMAT", "Output", "text, or json for one object with values, problems and warnings")
            .value_parser(["text", "json"])
            .default_value("text"),
    )
}

impl CheckArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        let json = matches.get_one::<String>("format").is_some_and(|format| format == "json");
        Self { job: JobArgs::read(matches), json }
    }
}
