//! `verify init`, `verify completions` and `verify man`: what helps to begin.

use std::path::PathBuf;

use clap::{Arg, Command, value_parser};
use clap_complete::Shell;

pub(super) fn init() -> Command {
    Command::new("init")
        .about("A small commented verify.toml, schema.json and input.csv, ready for the built-in provider")
        .after_help("Example:\n  verify init demo\n\nNo file is overwritten.")
        .arg(
            Arg::new("dir")
                .value_name("DIR")
                .default_value(".")
                .value_parser(value_parser!(PathBuf))
                .help("Where the files go; it is made if it is missing"),
        )
}

pub(super) fn completions() -> Command {
    Command::new("completions")
        .about("Completions for a shell, on standard output")
        .after_help(
            "Examples:\n  verify completions bash > ~/.local/share/bash-completion/completions/verify\n  \
             verify completions fish > ~/.config/fish/completions/verify.fish",
        )
        .arg(Arg::new("shell").value_name("SHELL").required(true).value_parser(value_parser!(Shell)))
}

pub(super) fn man() -> Command {
    Command::new("man")
        .about("The manual page, on standard output")
        .after_help("Examples:\n  verify man | man -l -\n  verify man run > verify-run.1")
        .arg(Arg::new("command").value_name("COMMAND").help("The page of this command instead"))
}
