//! `verify review` and `verify agreement`: what a person decides, and from which thresholds on.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::args::read::{ReadArgs, run_argument, shared, state_argument};

/// What `verify review` takes.
#[derive(Debug, Clone)]
pub(crate) struct ReviewArgs {
    /// An id, a unique prefix, or `last`.
    pub(crate) run: String,
    pub(crate) state: Option<PathBuf>,
    pub(crate) step: ReviewStep,
}

/// What is to be done with the rows to review.
#[derive(Debug, Clone)]
pub(crate) enum ReviewStep {
    /// Print them, or those that are decided.
    List { decided: bool, json: bool },
    /// Write them to a file.
    Export { file: PathBuf },
    /// Take decisions from a file.
    Import { file: PathBuf },
}

/// What `verify agreement` takes.
#[derive(Debug, Clone)]
pub(crate) struct AgreementArgs {
    pub(crate) read: ReadArgs,
    pub(crate) gold: Option<String>,
}

pub(super) fn review() -> Command {
    let run = || run_argument().required(true);
    let file = |name: &'static str| {
        Arg::new(name).value_name("FILE").required(true).value_parser(value_parser!(PathBuf))
    };
    Command::new("review")
        .about("Rows that a person must decide: list them, write them to a file, take the decisions back")
        .after_help(
            "Example:\n  verify review export last -o decide.csv\n  (write pass or fail into the column `decision`)\n  verify review import last decide.csv\n  (then the same `verify run` again writes the output with them, and asks nothing)",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            shared(
                Command::new("list")
                    .about("Rows that wait for a decision")
                    .after_help("Example:\n  verify review list last")
                    .arg(run()),
            )
            .arg(
                Arg::new("decided")
                    .long("decided")
                    .action(ArgAction::SetTrue)
                    .help("Rows that were decided instead, with every decision"),
            ),
        )
        .subcommand(
            Command::new("export")
                .about("Writes the rows that wait for a decision to a file")
                .arg(run())
                .arg(state_argument())
                .after_help("Example:\n  verify review export last -o decide.csv")
                .arg(file("output").long("output").short('o').help("A .csv, .tsv, .jsonl or .ndjson file")),
        )
        .subcommand(
            Command::new("import")
                .about("Takes decisions from such a file: pass or fail, all of them or none; empty ones are left out")
                .arg(run())
                .arg(state_argument())
                .after_help("Example:\n  verify review import last decide.csv")
            .arg(file("file").help("An exported file with decisions in it")),
        )
}

pub(super) fn agreement() -> Command {
    shared(
        Command::new("agreement")
            .about("What the samples of a run say of its thresholds, without any request")
            .after_help("Example:\n  verify agreement last --gold label")
            .arg(run_argument().required(true)),
    )
    .arg(Arg::new("gold").long("gold").value_name("COLUMN").help(
        "An input column that holds the truth: a value that means pass, or any other. Adds accuracy and calibration",
    ))
}

impl ReviewArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        let (name, matches) = matches.subcommand().unwrap_or(("list", matches));
        let file = |name: &str| matches.get_one::<PathBuf>(name).cloned().unwrap_or_default();
        let step = match name {
            "export" => ReviewStep::Export { file: file("output") },
            "import" => ReviewStep::Import { file: file("file") },
            _ => ReviewStep::List {
                decided: matches.get_flag("decided"),
                json: matches.get_one::<String>("format").is_some_and(|format| format == "json"),
            },
        };
        let run = matches.get_one::<String>("run").cloned().unwrap_or_else(|| "last".to_owned());
        Self { run, state: matches.get_one::<PathBuf>("state").cloned(), step }
    }
}

impl AgreementArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        Self { read: ReadArgs::read(matches), gold: matches.get_one::<String>("gold").cloned() }
    }
}
