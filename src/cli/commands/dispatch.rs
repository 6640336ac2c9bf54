//! From the word that was typed to the command.

use clap::{ArgMatches, FromArgMatches as _};

use crate::cli::args::{ModelsArgs, ReadArgs, RunArgs, ShowArgs};
use crate::cli::commands::{Context, mock, models, run, show, status};
use crate::cli::failure::Failure;

/// Runs the command that was typed. Returns its exit code.
pub(crate) fn dispatch(matches: &ArgMatches, context: &Context) -> Result<u8, Failure> {
    match matches.subcommand() {
        Some(("run", matches)) => run::run(&RunArgs::read(matches), context),
        Some(("status", matches)) => status::run(&ReadArgs::read(matches), context),
        Some(("show", matches)) => show::run(&ShowArgs::read(matches), context),
        Some(("models", matches)) => models::run(&ModelsArgs::read(matches), context),
        Some(("mock", matches)) => {
            let args = mock::MockArgs::from_arg_matches(matches)
                .map_err(|error| Failure::usage(error.to_string()))?;
            mock::run(args)?;
            Ok(0)
        }
        _ => Err(Failure::usage("no such command: see verify --help")),
    }
}
