//! From the word that was typed to the command.

use clap::{ArgMatches, FromArgMatches as _};

use crate::cli::args::{
    AgreementArgs, CheckArgs, ExportArgs, ReadArgs, ReviewArgs, RunArgs, RunsArgs, ShowArgs,
};
use crate::cli::commands::{
    Context, agreement, check_command, export, mock, review, run, runs, show, status,
};
use crate::cli::failure::Failure;

/// Runs the command that was typed. Returns its exit code.
pub(crate) fn dispatch(matches: &ArgMatches, context: &Context) -> Result<u8, Failure> {
    match matches.subcommand() {
        Some(("run", matches)) => run::run(&RunArgs::read(matches), context),
        Some(("check", matches)) => check_command::run(&CheckArgs::read(matches), context),
        Some(("status", matches)) => status::run(&ReadArgs::read(matches), context),
        Some(("show", matches)) => show::run(&ShowArgs::read(matches), context),
        Some(("runs", matches)) => runs::run(&RunsArgs::read(matches), context),
        Some(("export", matches)) => export::run(&ExportArgs::read(matches), context),
        Some(("review", matches)) => review::run(&ReviewArgs::read(matches), context),
        Some(("agreement", matches)) => agreement::run(&AgreementArgs::read(matches), context),
        Some(("mock", matches)) => {
            let args = mock::MockArgs::from_arg_matches(matches)
                .map_err(|error| Failure::usage(error.to_string()))?;
            mock::run(args)?;
            Ok(0)
        }
        _ => Err(Failure::usage("no such command: see verify --help")),
    }
}
