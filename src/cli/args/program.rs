//! The commands, and what the program says of itself.

use clap::{Args as _, Command};

use crate::cli::args::{assets, check, export, models, read, review, run, runs};
use crate::cli::commands::MockArgs;

/// The whole command line.
pub(crate) fn command() -> Command {
    Command::new("verify")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Sends an LLM prompt for every row of a file, checks every answer, and writes the rows back")
        .after_help(
            "Start here:\n  verify run in.csv --provider mock --prompt 'Is {{ text }} spam?' --column spam=boolean\n  verify show last 1",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(run::command())
        .subcommand(check::command())
        .subcommand(read::status())
        .subcommand(read::show())
        .subcommand(runs::command())
        .subcommand(export::command())
        .subcommand(review::review())
        .subcommand(review::agreement())
        .subcommand(models::command())
        .subcommand(assets::init())
        .subcommand(assets::completions())
        .subcommand(assets::man())
        .subcommand(MockArgs::augment_args(Command::new("mock")))
}
