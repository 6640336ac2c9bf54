//! What names a job: its input, its configuration, its place. `run` and `check` take all of it alike.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::keys::{KEYS, Key};
use crate::model::OutputOrder;

/// What `verify run` and `verify check` take alike.
#[derive(Debug, Clone)]
pub(crate) struct JobArgs {
    pub(crate) input: PathBuf,
    pub(crate) config: Option<PathBuf>,
    pub(crate) state: Option<PathBuf>,
    /// Flags of configuration keys, by the key's id.
    pub(crate) flags: BTreeMap<&'static str, String>,
    pub(crate) columns: Vec<String>,
    pub(crate) key_env: Vec<String>,
    pub(crate) price: Option<String>,
    pub(crate) result_field: String,
    pub(crate) order: OutputOrder,
    pub(crate) input_format: Option<String>,
    pub(crate) delimiter: Option<String>,
    pub(crate) encoding: Option<String>,
    pub(crate) bad_rows: String,
    pub(crate) ragged: String,
    pub(crate) limit: Option<u64>,
    pub(crate) rows: Option<String>,
    pub(crate) pick: Option<u64>,
    pub(crate) pick_seed: u64,
    pub(crate) max_record: usize,
    pub(crate) allow_empty: bool,
}

/// Adds the input and every flag of a job.
#[expect(clippy::too_many_lines, reason = "a table of flags, one a line")]
pub(super) fn with_job(command: Command) -> Command {
    let mut command = command.arg(
        Arg::new("input")
            .value_name("INPUT")
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help("A .csv, .tsv, .jsonl or .ndjson file, each also .gz or .zst; - for standard input"),
    );
    for key in KEYS {
        command = command.arg(flag(key));
    }
    let input = "Input";
    let answer = "Answer";
    let run = "Run";
    command
        .arg(
            text(
                "column",
                "NAME=TYPE",
                answer,
                "A column of the answer, as in spam=boolean, grade=a|b, score='number 0..1'; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(
            text("key-env", "LABEL=VARIABLE", "Model", "A key by the variable that holds it; repeatable")
                .action(ArgAction::Append),
        )
        .arg(text("price", "PRICES", "Model", "USD per million tokens, as in 'input=1,output=4'"))
        .arg(
            text("input-format", "FORMAT", input, "csv, tsv or jsonl, whatever the name says")
                .value_parser(["csv", "tsv", "jsonl", "ndjson"]),
        )
        .arg(text("delimiter", "CHARACTER", input, "What separates the fields of a CSV; \\t for a tab"))
        .arg(text(
            "encoding",
            "LABEL",
            input,
            "The encoding of the input, as in windows-1252 [default: UTF-8, or UTF-16 with a BOM]",
        ))
        .arg(
            text(
                "bad-rows",
                "WHAT",
                input,
                "What to do with malformed rows: stop, or keep them as error/bad_input",
            )
            .value_parser(["stop", "keep"])
            .default_value("stop"),
        )
        .arg(
            text(
                "ragged",
                "WHAT",
                input,
                "What to do with CSV rows that have too few fields: error, or pad them",
            )
            .value_parser(["error", "pad"])
            .default_value("error"),
        )
        .arg(text("limit", "N", input, "Only the first N rows").value_parser(value_parser!(u64).range(1..)))
        .arg(text("rows", "RANGES", input, "Only these rows, as in 5-20,31").conflicts_with("limit"))
        .arg(
            text("pick", "N", input, "N rows at random, in file order")
                .value_parser(value_parser!(u64).range(1..))
                .conflicts_with_all(["limit", "rows"]),
        )
        .arg(
            text("pick-seed", "N", input, "Seed of --pick")
                .value_parser(value_parser!(u64))
                .default_value("0")
                .requires("pick"),
        )
        .arg(
            text("max-record", "BYTES", input, "The longest record")
                .value_parser(value_parser!(u64).range(1..))
                .default_value("16777216"),
        )
        .arg(switch("allow-empty", input, "An input without rows is fine"))
        .arg(
            text(
                "result-field",
                "NAME",
                "Output",
                "The JSONL member that holds the result, and the stem of the CSV columns",
            )
            .value_parser(clap::builder::NonEmptyStringValueParser::new())
            .default_value("verify"),
        )
        .arg(
            text(
                "order",
                "ORDER",
                "Output",
                "The order of the rows: input, or completion for as they finish",
            )
            .value_parser(["input", "completion"])
            .default_value("input"),
        )
        .arg(
            text(
                "config",
                "FILE",
                run,
                "The configuration [default: verify.toml beside the input, here or above]",
            )
            .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            text(
                "state",
                "DIR",
                run,
                "Where answers are kept [default: .verify beside the configuration, else here]",
            )
            .value_parser(value_parser!(PathBuf)),
        )
}

pub(super) fn text(
    name: &'static str,
    value: &'static str,
    heading: &'static str,
    help: &'static str,
) -> Arg {
    Arg::new(name).long(name).value_name(value).help_heading(heading).help(help)
}

pub(super) fn switch(name: &'static str, heading: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help_heading(heading).help(help).action(ArgAction::SetTrue)
}

fn flag(key: &Key) -> Arg {
    let arg =
        Arg::new(key.id).long(key.flag).help(key.help).help_heading(key.group).allow_negative_numbers(true);
    let arg = if key.is_switch() {
        arg.value_name("BOOL").num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg.value_name(key.value)
            .allow_hyphen_values(key.id.starts_with("prompt.") || key.id == "output.path")
    };
    if key.id == "output.path" { arg.short('o') } else { arg }
}

impl JobArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let word = |name: &str| text(name).unwrap_or_default();
        let number = |name: &str| matches.get_one::<u64>(name).copied();
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        let many = |name: &str| {
            matches.get_many::<String>(name).map(|all| all.cloned().collect()).unwrap_or_default()
        };
        let flags = KEYS.iter().filter_map(|key| Some((key.id, text(key.id)?))).collect();
        Self {
            input: path("input").unwrap_or_default(),
            config: path("config"),
            state: path("state"),
            flags,
            columns: many("column"),
            key_env: many("key-env"),
            price: text("price"),
            result_field: word("result-field"),
            order: if word("order") == "completion" { OutputOrder::Completion } else { OutputOrder::Input },
            input_format: text("input-format"),
            delimiter: text("delimiter"),
            encoding: text("encoding"),
            bad_rows: word("bad-rows"),
            ragged: word("ragged"),
            limit: number("limit"),
            rows: text("rows"),
            pick: number("pick"),
            pick_seed: number("pick-seed").unwrap_or(0),
            max_record: number("max-record")
                .and_then(|bytes| usize::try_from(bytes).ok())
                .unwrap_or(usize::MAX),
            allow_empty: matches.get_flag("allow-empty"),
        }
    }
}
