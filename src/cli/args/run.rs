//! `verify run`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::cli::keys::{KEYS, Key};
use crate::cli::terminal::{Color, Progress};

/// What `verify run` takes.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch of the command line")]
pub(crate) struct RunArgs {
    pub(crate) input: PathBuf,
    pub(crate) config: Option<PathBuf>,
    pub(crate) state: Option<PathBuf>,
    /// Flags of configuration keys, by the key's id.
    pub(crate) flags: BTreeMap<&'static str, String>,
    pub(crate) columns: Vec<String>,
    pub(crate) key_env: Vec<String>,
    pub(crate) price: Option<String>,
    pub(crate) result_field: String,
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
    pub(crate) new: bool,
    pub(crate) run: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) forgive_possible: bool,
    pub(crate) summary: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) progress: Progress,
    pub(crate) color: Color,
    pub(crate) quiet: bool,
}

const EXAMPLES: &str = "\
Examples:
  Rehearse without a provider:
    verify run in.csv --provider mock --prompt 'Is {{ text }} spam?' --column spam=boolean
  A real model, eight requests at once:
    verify run in.jsonl --model gpt-5.4-mini --prompt-file prompt.txt --schema schema.json --concurrency 8
  A server of your own:
    verify run in.jsonl --model qwen --base-url http://127.0.0.1:8000/v1 --prompt 'Translate: {{ text }}'
  Everything in verify.toml, a part of the rows:
    verify run in.csv --rows 5-20,31
The same command again continues a run that was stopped, and pays for nothing twice.

Exit codes: 0 all rows finished and every gate holds; 1 too many `fail` rows; 2 command, configuration or input;
3 too many rows to review; 4 too many `error` or `skipped` rows; 5 stopped by a limit; 6 could not go on;
129, 130, 143, 141 stopped by a signal or a closed output.";

#[expect(clippy::too_many_lines, reason = "a table of flags, one a line")]
pub(super) fn command() -> Command {
    let mut command = Command::new("run")
        .about("Sends what is missing, writes INPUT.verified.<ext>, and exits with the gate's code")
        .after_help(EXAMPLES)
        .arg(
            Arg::new("input")
                .value_name("INPUT")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("A .csv, .tsv, .jsonl or .ndjson file; - for standard input"),
        );
    for key in KEYS {
        command = command.arg(flag(key));
    }
    let input = "Input";
    let answer = "Answer";
    let run = "Run";
    let screen = "Screen";
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
            text("summary", "FILE", "Output", "Write the summary as JSON")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            text("format", "FORMAT", "Output", "text, or json for the summary on standard output")
                .value_parser(["text", "json"])
                .default_value("text"),
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
        .arg(switch(
            "forgive-possible",
            run,
            "Release what requests without a reply may have cost; it is logged",
        ))
        .arg(switch("new", run, "Begin a new run; stored answers are replayed all the same"))
        .arg(
            text("run", "RUN", run, "Continue this run: an id, a prefix of it, or last")
                .conflicts_with("new"),
        )
        .arg(
            text(
                "retry",
                "WHICH",
                run,
                "Ask again: none, operational, final, all, or reasons such as truncated,timeout",
            )
            .conflicts_with("new"),
        )
        .arg(
            text("progress", "HOW", screen, "auto, bar, plain, json or none")
                .value_parser(["auto", "bar", "plain", "json", "none"])
                .default_value("auto"),
        )
        .arg(
            text("color", "WHEN", screen, "auto, always or never")
                .value_parser(["auto", "always", "never"])
                .default_value("auto"),
        )
        .arg(switch("quiet", screen, "Say nothing but errors").short('q'))
}

fn text(name: &'static str, value: &'static str, heading: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help_heading(heading).help(help)
}

fn switch(name: &'static str, heading: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).help_heading(heading).help(help).action(ArgAction::SetTrue)
}

fn flag(key: &Key) -> Arg {
    let arg = Arg::new(key.id).long(key.flag).help(key.help).help_heading(key.group);
    let arg = if key.is_switch() {
        arg.value_name("BOOL").num_args(0..=1).require_equals(true).default_missing_value("true")
    } else {
        arg.value_name(key.value)
            .allow_hyphen_values(key.id.starts_with("prompt.") || key.id == "output.path")
    };
    if key.id == "output.path" { arg.short('o') } else { arg }
}

impl RunArgs {
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
            new: matches.get_flag("new"),
            run: text("run"),
            retry: text("retry"),
            forgive_possible: matches.get_flag("forgive-possible"),
            summary: path("summary"),
            json: word("format") == "json",
            progress: match word("progress").as_str() {
                "bar" => Progress::Bar,
                "plain" => Progress::Plain,
                "json" => Progress::Json,
                "none" => Progress::Nothing,
                _ => Progress::Auto,
            },
            color: match word("color").as_str() {
                "always" => Color::Always,
                "never" => Color::Never,
                _ => Color::Auto,
            },
            quiet: matches.get_flag("quiet"),
        }
    }
}
