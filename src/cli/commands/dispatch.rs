//! From the word that was typed to the command.

use std::path::PathBuf;

use clap::{ArgMatches, FromArgMatches as _};

use crate::cli::args::{
    AgreementArgs, CheckArgs, ExportArgs, ModelsArgs, ReadArgs, ReviewArgs, RunArgs, RunsArgs, ShowArgs,
};
use crate::cli::commands::{
    Context, agreement, assets, check_command, export, mock, models, review, run, runs, show, status,
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
        Some(("models", matches)) => models::run(&ModelsArgs::read(matches), context),
        Some(("init", matches)) => {
            let folder = matches.get_one::<PathBuf>("dir").cloned().unwrap_or_default();
            assets::init(&folder, context)
        }
        Some(("completions", matches)) => {
            let shell = matches.get_one::<clap_complete::Shell>("shell").copied();
            Ok(assets::completions(shell.unwrap_or(clap_complete::Shell::Bash), context))
        }
        Some(("man", matches)) => {
            assets::man(matches.get_one::<String>("command").map(String::as_str), context)
        }
        Some(("mock", matches)) => {
            let args = mock::MockArgs::from_arg_matches(matches)
                .map_err(|error| Failure::usage(error.to_string()))?;
            mock::run(args)?;
            Ok(0)
        }
        _ => Err(Failure::usage("no such command: see verify --help")),
    }
}
