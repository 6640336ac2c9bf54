//! The command line, as `clap` sees it.
//!
//! What it is for: commands, flags, help. The keys of the configuration come from `cli/keys`, so that a key has its
//! flag by being in that table.
//! It uses `clap` and `cli/keys`.
//! What never happens here: a value is interpreted beyond its form.

mod read;
mod review;
mod run;

pub(crate) use read::{ReadArgs, ShowArgs};
pub(crate) use review::{ReviewArgs, ReviewStep};
pub(crate) use run::RunArgs;

use clap::{Args as _, Command};

use crate::cli::commands::mock::MockArgs;

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
        .subcommand(read::status())
        .subcommand(read::show())
        .subcommand(review::review())
        .subcommand(MockArgs::augment_args(Command::new("mock")))
}
