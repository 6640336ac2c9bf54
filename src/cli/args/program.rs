//! The commands, and what the program says of itself.

use clap::{Args as _, Command};

use crate::cli::args::{assets, check, export, models, read, review, run, runs};
use crate::cli::commands::MockArgs;

/// Examples first: they answer most questions. Options come after them, in groups.
const TEMPLATE: &str = "\
{about}{after-help}

{usage-heading} {usage}

{all-args}";

/// Columns of the help on any wider terminal: longer lines are hard to read.
const WIDTH: usize = 80;

/// The whole command line.
pub(crate) fn command() -> Command {
    laid_out(commands())
}

fn laid_out(command: Command) -> Command {
    command.help_template(TEMPLATE).max_term_width(WIDTH).mut_subcommands(laid_out)
}

fn commands() -> Command {
    Command::new("verify")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Sends an LLM prompt for every row of a file, checks every answer, and writes the rows back")
        .after_help(
            "Start here:\n  verify init demo\n  verify run demo/input.csv\n  verify show last 1 --state demo/.verify\n\n\
             verify COMMAND --help begins with examples.",
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
