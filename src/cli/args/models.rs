//! `verify models`.

use clap::{Arg, ArgMatches, Command};

/// What `verify models` takes.
#[derive(Debug, Clone)]
pub(crate) struct ModelsArgs {
    /// One model; all without.
    pub(crate) name: Option<String>,
    pub(crate) json: bool,
}

pub(super) fn command() -> Command {
    Command::new("models")
        .about("The price table; with a model's name all that the table says of it")
        .after_help("Example:\n  verify models gpt-5.4-mini\n\nPrices are in USD per million tokens.")
        .arg(Arg::new("name").value_name("NAME").help("A model, by the name that --model takes"))
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["text", "json"])
                .default_value("text")
                .help("text or json"),
        )
}

impl ModelsArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        Self {
            name: matches.get_one::<String>("name").cloned(),
            json: matches.get_one::<String>("format").is_some_and(|format| format == "json"),
        }
    }
}
