//! `verify runs` and `verify runs rm`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgGroup, ArgMatches, Command};

use crate::base::parse_duration;
use crate::cli::args::read::{self, ReadArgs};

/// What `verify runs` takes.
#[derive(Debug, Clone)]
pub(crate) enum RunsArgs {
    /// List them.
    List { state: Option<PathBuf>, json: bool },
    /// Remove some.
    Remove { state: Option<PathBuf>, which: Which },
}

/// Which runs to remove.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    /// These.
    Named(Vec<String>),
    /// Those that ended longer ago than this.
    Older(Duration),
}

const REMOVE_EXAMPLES: &str = "\
Examples:
  verify runs rm 0198f2a1
  verify runs rm --older 30d

Answers that other runs replay stay. A run on which a process works is not removed.";

pub(super) fn command() -> Command {
    let remove = Command::new("rm")
        .about("Removes runs with all that only they need")
        .after_help(REMOVE_EXAMPLES)
        .arg(read::state_argument())
        .arg(Arg::new("run").value_name("RUN").num_args(1..).help("Runs: ids, unique prefixes, or last"))
        .arg(
            Arg::new("older")
                .long("older")
                .value_name("AGE")
                .value_parser(age)
                .help("All runs that ended longer ago than this, as in 30d or 12h"),
        )
        .group(ArgGroup::new("which").args(["run", "older"]).required(true));
    read::shared(
        Command::new("runs").about("The runs, the newest first").after_help(
            "Examples:\n  verify runs\n  verify runs --format json\n  verify runs rm --older 30d",
        ),
    )
    .subcommand(remove)
    .args_conflicts_with_subcommands(true)
}

/// A duration that may begin with days, as in `30d` or `1d12h`.
fn age(text: &str) -> Result<Duration, String> {
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) => {
            (days.parse::<u32>().map_err(|_| format!("`{text}` is no age: write it as in 30d or 12h"))?, rest)
        }
        None => (0, text),
    };
    let days = Duration::from_secs(u64::from(days) * 86_400);
    if rest.is_empty() && text.contains('d') {
        return Ok(days);
    }
    parse_duration(rest).map(|rest| days + rest).map_err(|error| error.to_string())
}

impl RunsArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        let Some(("rm", matches)) = matches.subcommand() else {
            let ReadArgs { state, json, .. } = ReadArgs::read(matches);
            return Self::List { state, json };
        };
        let which = match matches.get_one::<Duration>("older") {
            Some(age) => Which::Older(*age),
            None => Which::Named(
                matches.get_many::<String>("run").map(|all| all.cloned().collect()).unwrap_or_default(),
            ),
        };
        Self::Remove { state: matches.get_one::<PathBuf>("state").cloned(), which }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_may_have_days() {
        let hours = |count: u64| Ok(Duration::from_secs(count * 3_600));
        assert_eq!(age("30d"), hours(720));
        assert_eq!(age("1d12h"), hours(36));
        assert_eq!(age("2h"), hours(2));
        assert!(age("30").is_err() && age("d").is_err() && age("-1d").is_err() && age("1d2").is_err());
    }
}
