//! `verify run`.

use std::path::PathBuf;

use clap::{ArgMatches, Command, value_parser};

use crate::cli::args::JobArgs;
use crate::cli::args::job::{switch, text, with_job};
use crate::cli::terminal::{Color, Progress};

/// What `verify run` takes.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch of the command line")]
pub(crate) struct RunArgs {
    pub(crate) job: JobArgs,
    pub(crate) dry_run: bool,
    pub(crate) probe: Option<u64>,
    pub(crate) yes: bool,
    pub(crate) new: bool,
    pub(crate) run: Option<String>,
    pub(crate) retry: Option<String>,
    pub(crate) forgive_possible: bool,
    pub(crate) summary: Option<PathBuf>,
    pub(crate) junit: Option<PathBuf>,
    pub(crate) github: bool,
    pub(crate) log: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) progress: Progress,
    pub(crate) color: Color,
    pub(crate) quiet: bool,
    pub(crate) verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  Rehearse without a provider:
    verify run in.csv --provider mock --prompt 'Is {{ text }} spam?' \\
      --column spam=boolean
  A real model, eight requests at once:
    verify run in.jsonl --model gpt-5.4-mini --prompt-file prompt.txt \\
      --schema schema.json --concurrency 8
  A server of your own:
    verify run in.jsonl --model qwen --base-url http://127.0.0.1:8000/v1 \\
      --prompt 'Translate: {{ text }}'
  What it will take, without and with a look at 20 rows:
    verify run in.csv --dry-run
    verify run in.csv --probe 20
  Everything in verify.toml, a part of the rows:
    verify run in.csv --rows 5-20,31
The same command again continues a run that was stopped, and pays for nothing
twice.

Exit codes: 0 all rows finished and every gate holds; 1 too many `fail` rows;
2 command, configuration or input; 3 too many rows to review; 4 too many
`error` or `skipped` rows; 5 stopped by a limit; 6 could not go on;
129, 130, 143, 141 stopped by a signal or a closed output.";

pub(super) fn command() -> Command {
    let run = "Run";
    let screen = "Screen";
    let command = Command::new("run")
        .about("Sends what is missing, writes INPUT.verified.<ext>, and exits with the gate's code")
        .after_help(EXAMPLES);
    with_job(command)
        .arg(
            text("summary", "FILE", "Output", "Write the summary as JSON")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            text("junit", "FILE", "Output", "Write the rows as test cases, as JUnit's XML")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(switch(
            "github",
            "Output",
            "Annotate the first 10 bad rows and write the job summary, for GitHub Actions",
        ))
        .arg(
            text("log", "FILE", "Output", "Add every event to this file, as lines of JSON")
                .value_parser(value_parser!(PathBuf)),
        )
        .arg(
            text(
                "format",
                "FORMAT",
                "Output",
                "text, or json for the summary, or the estimate, on standard output",
            )
            .value_parser(["text", "json"])
            .default_value("text"),
        )
        .arg(switch(
            "dry-run",
            run,
            "Send nothing: print rows, calls, tokens, cost and time, and whether something is to be mended",
        ))
        .arg(
            text("probe", "N", run, "Ask N rows, write no output, and print the estimate made from them")
                .value_parser(value_parser!(u64).range(1..))
                .conflicts_with("dry-run"),
        )
        .arg(switch("yes", run, "Do not ask about the cost").short('y'))
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
        .arg(
            switch(
                "verbose",
                screen,
                "Also name each row that does not pass, and each wait that a server asks for",
            )
            .short('v')
            .conflicts_with("quiet"),
        )
}

impl RunArgs {
    pub(crate) fn read(matches: &ArgMatches) -> Self {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let word = |name: &str| text(name).unwrap_or_default();
        let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
        Self {
            job: JobArgs::read(matches),
            dry_run: matches.get_flag("dry-run"),
            probe: matches.get_one::<u64>("probe").copied(),
            yes: matches.get_flag("yes"),
            new: matches.get_flag("new"),
            run: text("run"),
            retry: text("retry"),
            forgive_possible: matches.get_flag("forgive-possible"),
            summary: path("summary"),
            junit: path("junit"),
            github: matches.get_flag("github"),
            log: path("log"),
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
            verbose: matches.get_flag("verbose"),
        }
    }
}
