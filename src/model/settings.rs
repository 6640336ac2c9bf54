//! Everything that configures a run, resolved: values only, no origin and no text left to interpret.

use std::path::PathBuf;
use std::time::Duration;

use rust_decimal::Decimal;
use serde_json::Value;

use crate::base::Money;

/// A resolved configuration.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where rows come from and which.
    pub input: InputSettings,
    /// Whom to call and how.
    pub call: CallSettings,
    /// The credentials.
    pub keys: Vec<KeySettings>,
    /// What to say.
    pub prompt: PromptSettings,
    /// What a valid answer is and what it means.
    pub answer: AnswerSettings,
    /// How many answers a row needs.
    pub ensemble: Ensemble,
    /// What the run may do at once and in all.
    pub limits: Limits,
    /// How often to try again.
    pub retry: RetrySettings,
    /// When the exit code is not 0.
    pub gate: GateSettings,
    /// Where results go and how.
    pub output: OutputSettings,
}

/// The input file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSettings {
    /// The file or standard input.
    pub path: InputPath,
    /// Its format.
    pub format: InputFormat,
    /// The label of an encoding other than UTF-8.
    pub encoding: Encoding,
    /// What to do with malformed records.
    pub bad_rows: BadRows,
    /// What to do with short CSV records.
    pub ragged: Ragged,
    /// Which rows to take.
    pub selection: Selection,
    /// The unique column.
    pub id_column: Option<String>,
    /// The longest record in bytes.
    pub max_record: usize,
    /// Whether an input without rows is fine.
    pub allow_empty: bool,
}

/// Where the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputPath {
    /// A file.
    File(PathBuf),
    /// Standard input, spooled to this file before anything else.
    Stdin {
        /// The spooled copy.
        spool: PathBuf,
    },
}

impl InputPath {
    /// The file to read.
    pub fn file(&self) -> &std::path::Path {
        match self {
            Self::File(path) | Self::Stdin { spool: path } => path,
        }
    }

    /// The name for messages: the path as given, or `-`.
    pub fn display(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin { .. } => "-".to_owned(),
        }
    }
}

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Delimited records with a header.
    Csv {
        /// One ASCII byte.
        delimiter: u8,
    },
    /// One JSON object a line.
    Jsonl,
}

/// How the bytes of an input become text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// UTF-8, or UTF-16 where the file begins with its BOM.
    #[default]
    Unicode,
    /// A WHATWG encoding asked for by label.
    Named(&'static encoding_rs::Encoding),
}

/// What becomes of malformed records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BadRows {
    /// The run does not start.
    #[default]
    Stop,
    /// They become `error`/`bad_input` and the others run.
    Keep,
}

/// What becomes of CSV records with too few fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ragged {
    /// They are malformed.
    #[default]
    Error,
    /// They are filled with empty values and counted.
    Pad,
}

/// Which rows take part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Selection {
    /// All.
    #[default]
    All,
    /// The first so many.
    First(u64),
    /// These inclusive ranges, sorted, disjoint.
    Ranges(Vec<(u64, u64)>),
    /// So many at random, in file order.
    Pick {
        /// How many; all if the file has fewer.
        count: u64,
        /// The seed.
        seed: u64,
    },
}

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// `OpenAI` Chat Completions and every server that speaks it.
    Openai,
    /// Anthropic Messages.
    Anthropic,
    /// The built-in provider: in process, no network.
    Mock,
}

impl ProviderKind {
    /// The word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
            Self::Mock => "mock",
        }
    }
}

/// What a call is made of, apart from the row.
#[derive(Debug, Clone)]
pub struct CallSettings {
    /// The provider's wire format.
    pub provider: ProviderKind,
    /// The full URL of the endpoint, normalised; `mock` for the built-in provider.
    pub endpoint: String,
    /// Whether the endpoint is the provider's own host.
    pub own_host: bool,
    /// The model; empty only for the built-in provider.
    pub model: String,
    /// The most output tokens, at least 1.
    pub max_output_tokens: u64,
    /// The form in which the schema is sent.
    pub structured: Structured,
    /// Sampling parameters that were set.
    pub sampling: Sampling,
    /// Whether the system prompt is marked for the provider's prompt cache. It changes no answer.
    pub cache: bool,
    /// Members merged into the request body.
    pub extra: serde_json::Map<String, Value>,
    /// Seed of the built-in provider.
    pub mock_seed: u64,
}

impl CallSettings {
    /// Whether requests carry a mark for the provider's prompt cache. Other providers than Anthropic keep the
    /// beginnings of prompts by themselves.
    pub fn marks_cache(&self) -> bool {
        self.cache && self.provider == ProviderKind::Anthropic
    }
}

/// The form in which a schema is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Structured {
    /// The strongest form that the server takes.
    Auto,
    /// The server's own check of a JSON Schema: `response_format` of type `json_schema`, or `output_config.format`.
    JsonSchema,
    /// A forced tool.
    Tool,
    /// `response_format` of type `json_object`, the schema in the prompt. Anthropic has no such form: there it is the
    /// same as `prompt`.
    JsonObject,
    /// The schema in the prompt only.
    Prompt,
}

impl Structured {
    /// The word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::JsonSchema => "json_schema",
            Self::Tool => "tool",
            Self::JsonObject => "json_object",
            Self::Prompt => "prompt",
        }
    }
}

/// Sampling parameters, sent only when set; numbers as written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    /// `temperature`.
    pub temperature: Option<serde_json::Number>,
    /// `top_p`.
    pub top_p: Option<serde_json::Number>,
    /// `seed`.
    pub seed: Option<i64>,
    /// `reasoning_effort`.
    pub reasoning_effort: Option<String>,
}

/// A provider credential by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySettings {
    /// The label by which people know it.
    pub label: String,
    /// Where its text is.
    pub source: KeySource,
    /// Its own concurrency, 0 for none.
    pub concurrency: u32,
    /// Requests a minute with it; 0 for no limit.
    pub rpm: u64,
    /// Tokens a minute with it; 0 for no limit.
    pub tpm: u64,
}

/// Where the text of a credential is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// A variable that somebody named: unset is an error.
    Variable(String),
    /// The provider's usual variable: unset means that no credential is sent.
    DefaultVariable(String),
    /// A file that holds it.
    File(PathBuf),
    /// None is sent.
    Nothing,
}

/// What to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSettings {
    /// Template of the system prompt.
    pub system: Option<String>,
    /// Template of the user prompt.
    pub user: String,
    /// Free text that is shown and not hashed.
    pub version: String,
}

/// What a valid answer is and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct AnswerSettings {
    /// The JSON Schema; `None` for free text.
    pub schema: Option<Value>,
    /// The property that decides.
    pub verdict: Option<String>,
    /// Its values that mean pass.
    pub pass: Vec<Value>,
    /// The property that holds the confidence.
    pub confidence: Option<String>,
    /// What must agree without a verdict; `None` for the default.
    pub agree_on: Option<Vec<String>>,
    /// Re-asks after an invalid answer.
    pub repair: u32,
}

/// How many answers a row needs and how they decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensemble {
    /// Samples a row, 1..=100.
    pub samples: u16,
    /// The rule.
    pub rule: Rule,
    /// Least mean confidence of an automatic pass.
    pub auto_pass: Decimal,
    /// Least mean confidence of an automatic fail.
    pub auto_fail: Decimal,
    /// Whether samples that cannot change the outcome are left out.
    pub early_stop: bool,
    /// Whether a row's samples may be under way at once.
    pub concurrent_samples: bool,
}

/// A rule of decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rule {
    /// All samples must agree.
    Unanimous,
    /// More than half of the planned samples must agree.
    Majority,
}

/// Limits of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Requests in flight at once, at least 1.
    pub concurrency: u32,
    /// Whether the concurrency follows what the servers bear; else it is a fixed pool.
    pub adaptive: bool,
    /// Requests a minute over all keys; 0 for no limit.
    pub rpm: u64,
    /// Tokens a minute over all keys; 0 for no limit.
    pub tpm: u64,
    /// The time of one attempt.
    pub timeout: Duration,
    /// The time of one execution; `None` for no limit.
    pub deadline: Option<Duration>,
    /// The most selected rows; 0 for no limit.
    pub max_rows: u64,
    /// The hard ceiling of money, if one is set.
    pub max_cost: Option<Money>,
    /// The hard ceiling of requests, if one is set.
    pub max_calls: Option<u64>,
}

/// Retrying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrySettings {
    /// Requests for one sample, throttled ones and repairs not counted; at least 1.
    pub attempts: u32,
    /// The first backoff.
    pub base: Duration,
    /// The longest backoff.
    pub max_backoff: Duration,
    /// A longer wait parks the key.
    pub max_wait: Duration,
    /// How long an outage may last.
    pub outage_patience: Duration,
    /// How long throttling without any answer may last.
    pub throttle_patience: Duration,
}

/// A bound on a count of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// At most so many rows.
    Count(u64),
    /// At most so many per cent, exact.
    Percent(Decimal),
    /// Any number.
    Any,
}

/// When the exit code is not 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateSettings {
    /// Rows that may fail.
    pub max_fail: Share,
    /// Rows that may need a person.
    pub max_review: Share,
    /// Rows that may be `error` or `skipped`.
    pub max_error: Share,
}

/// Where results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputSettings {
    /// The file, or standard output.
    pub path: Option<PathBuf>,
    /// The format.
    pub format: OutputFormat,
    /// Before every answer column of a CSV.
    pub prefix: String,
    /// The JSONL member that holds the result, and the stem of the CSV columns.
    pub result_field: String,
    /// Whether values that a spreadsheet would run are neutralised.
    pub csv_safe: bool,
    /// Whether usage and cost are written.
    pub accounting: bool,
    /// The order of rows.
    pub order: OutputOrder,
}

/// The format of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Delimited records.
    Csv {
        /// One ASCII byte.
        delimiter: u8,
    },
    /// One JSON object a line.
    Jsonl,
}

/// The order of output rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputOrder {
    /// As in the input.
    #[default]
    Input,
    /// As they finish.
    Completion,
}
