//! Every key of the configuration, once: its name in the file, its flag, its variable, and what it is for.

/// A key that is read from flags, environment and file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    /// The name in the file with its section, as in `limits.concurrency`.
    pub(crate) id: &'static str,
    /// The long flag without dashes.
    pub(crate) flag: &'static str,
    /// The placeholder of its value in the help; empty for a switch.
    pub(crate) value: &'static str,
    /// What it is for, in a line.
    pub(crate) help: &'static str,
    /// The heading in the help.
    pub(crate) group: &'static str,
}

impl Key {
    /// The environment variable: `VERIFY_` and the name in the file.
    pub(crate) fn variable(&self) -> String {
        format!("VERIFY_{}", self.id.replace('.', "_").to_ascii_uppercase())
    }

    /// Whether it is on or off.
    pub(crate) const fn is_switch(&self) -> bool {
        self.value.is_empty()
    }
}

const fn key(
    id: &'static str,
    flag: &'static str,
    value: &'static str,
    group: &'static str,
    help: &'static str,
) -> Key {
    Key { id, flag, value, help, group }
}

const MODEL: &str = "Model";
const PROMPT: &str = "Prompt";
const ANSWER: &str = "Answer";
const ENSEMBLE: &str = "Ensemble";
const LIMITS: &str = "Limits";
const RETRY: &str = "Retries and waits";
const GATE: &str = "Gates";
const OUTPUT: &str = "Output";

/// All keys, in the order of the help.
pub(crate) const KEYS: &[Key] = &[
    key("model", "model", "NAME", MODEL, "The model to ask; not needed for the mock provider"),
    key(
        "provider",
        "provider",
        "openai|anthropic|mock",
        MODEL,
        "The wire format: openai (and all compatible servers), anthropic or mock; by default told from the model's name",
    ),
    key("base_url", "base-url", "URL", MODEL, "The server; a host alone, /v1, or the full endpoint all work"),
    key("input.id", "id-column", "NAME", "Input", "A column whose values are unique; shown in messages"),
    key("prompt.system", "system", "TEMPLATE", PROMPT, "The system prompt, a Jinja template"),
    key("prompt.system_file", "system-file", "FILE", PROMPT, "A file that holds the system prompt"),
    key("prompt.user", "prompt", "TEMPLATE", PROMPT, "The prompt, a Jinja template: 'Is {{ text }} spam?'"),
    key("prompt.user_file", "prompt-file", "FILE", PROMPT, "A file that holds the prompt"),
    key(
        "prompt.cache",
        "prompt-cache",
        "",
        PROMPT,
        "Mark the system prompt for the provider's prompt cache [default: false]",
    ),
    key(
        "prompt.version",
        "prompt-version",
        "TEXT",
        PROMPT,
        "Free text shown with the run; it changes no request",
    ),
    key("answer.schema", "schema", "FILE", ANSWER, "A JSON Schema that every answer must satisfy"),
    key("answer.preset", "preset", "verdict", ANSWER, "A ready-made schema: verdict"),
    key("answer.verdict", "verdict", "PROPERTY", ANSWER, "The property that decides between pass and fail"),
    key(
        "answer.pass",
        "pass",
        "VALUES",
        ANSWER,
        "Values of the verdict that mean pass [default: true,\"pass\"]",
    ),
    key(
        "answer.confidence",
        "confidence",
        "PROPERTY",
        ANSWER,
        "The property that holds the confidence, 0 to 1",
    ),
    key("answer.agree_on", "agree-on", "PROPERTIES", ANSWER, "Without a verdict: what samples must agree on"),
    key(
        "answer.max_output_tokens",
        "max-output-tokens",
        "N",
        ANSWER,
        "The most tokens of an answer [default: 1024, or 16000 for a model that reasons]",
    ),
    key(
        "answer.structured",
        "structured",
        "FORM",
        ANSWER,
        "How the schema is sent: auto, json_schema, tool, json_object or prompt [default: auto]",
    ),
    key("answer.repair", "repair", "N", ANSWER, "Re-asks after an invalid answer [default: 1]"),
    key("answer.temperature", "temperature", "X", ANSWER, "Sampling temperature; sent only when set"),
    key("answer.top_p", "top-p", "X", ANSWER, "Nucleus sampling; sent only when set"),
    key("answer.seed", "seed", "N", ANSWER, "Sampling seed; sent only when set"),
    key(
        "answer.reasoning_effort",
        "reasoning-effort",
        "WORD",
        ANSWER,
        "How hard a reasoning model thinks; sent only when set",
    ),
    key("ensemble.samples", "samples", "N", ENSEMBLE, "Independent answers a row, 1 to 100 [default: 1]"),
    key("ensemble.rule", "rule", "unanimous|majority", ENSEMBLE, "How samples decide [default: unanimous]"),
    key(
        "ensemble.auto_pass",
        "auto-pass",
        "X",
        ENSEMBLE,
        "Least mean confidence of an automatic pass [default: 0.8]",
    ),
    key(
        "ensemble.auto_fail",
        "auto-fail",
        "X",
        ENSEMBLE,
        "Least mean confidence of an automatic fail [default: 0.8]",
    ),
    key(
        "ensemble.early_stop",
        "early-stop",
        "",
        ENSEMBLE,
        "Leave out samples that cannot change the outcome [default: true]",
    ),
    key(
        "ensemble.concurrent_samples",
        "concurrent-samples",
        "",
        ENSEMBLE,
        "Ask for a row's samples at once [default: false]",
    ),
    key("limits.concurrency", "concurrency", "N|auto", LIMITS, "Requests in flight at once [default: 16]"),
    key(
        "limits.adaptive",
        "adaptive",
        "",
        LIMITS,
        "Let concurrency follow what the server bears; false for a fixed pool [default: true]",
    ),
    key("limits.rpm", "rpm", "N", LIMITS, "Requests a minute over all keys; 0 for no limit [default: 0]"),
    key("limits.tpm", "tpm", "N", LIMITS, "Tokens a minute over all keys; 0 for no limit [default: 0]"),
    key(
        "limits.max_cost",
        "max-cost",
        "USD",
        LIMITS,
        "A hard ceiling on what the run may cost, over all its executions",
    ),
    key(
        "limits.max_calls",
        "max-calls",
        "N",
        LIMITS,
        "A hard ceiling on requests, over all executions of the run",
    ),
    key("limits.timeout", "timeout", "DURATION", LIMITS, "Time for one request in all [default: 300s]"),
    key(
        "limits.deadline",
        "deadline",
        "DURATION",
        LIMITS,
        "Time for this execution; 0s for none [default: 0s]",
    ),
    key(
        "limits.max_rows",
        "max-rows",
        "N",
        LIMITS,
        "Refuse an input with more selected rows; 0 for any [default: 0]",
    ),
    key(
        "limits.confirm_above",
        "confirm-above",
        "USD",
        LIMITS,
        "Ask before a run that will probably cost more; --yes answers [default: 10]",
    ),
    key(
        "retry.attempts",
        "attempts",
        "N",
        RETRY,
        "Requests for one sample, throttled ones not counted [default: 5]",
    ),
    key(
        "retry.base",
        "retry-base",
        "DURATION",
        RETRY,
        "First backoff, doubled each time, with jitter [default: 1s]",
    ),
    key("retry.max_backoff", "max-backoff", "DURATION", RETRY, "Longest backoff [default: 60s]"),
    key(
        "retry.max_wait",
        "max-wait",
        "DURATION",
        RETRY,
        "A longer wait asked for by the server parks the key [default: 120s]",
    ),
    key(
        "retry.outage_patience",
        "outage-patience",
        "DURATION",
        RETRY,
        "How long to sit out an outage [default: 30m]",
    ),
    key(
        "retry.throttle_patience",
        "throttle-patience",
        "DURATION",
        RETRY,
        "How long to be throttled without any answer; 0s ends a row at its first 429 [default: 30m]",
    ),
    key("gate.max_fail", "max-fail", "N|N%|any", GATE, "Fail rows allowed before exit 1 [default: 0]"),
    key("gate.max_review", "max-review", "N|N%|any", GATE, "Review rows allowed before exit 3 [default: 0]"),
    key(
        "gate.max_error",
        "max-error",
        "N|N%|any",
        GATE,
        "Error and skipped rows allowed before exit 4 [default: 0]",
    ),
    key(
        "output.path",
        "output",
        "FILE",
        OUTPUT,
        "Where the rows go; - for standard output [default: INPUT.verified.<ext>]",
    ),
    key("output.prefix", "prefix", "TEXT", OUTPUT, "Before every answer column of a CSV"),
    key(
        "output.csv_safe",
        "csv-safe",
        "",
        OUTPUT,
        "Neutralise CSV cells that a spreadsheet would run [default: false]",
    ),
    key("output.accounting", "accounting", "", OUTPUT, "Write usage and cost [default: true]"),
];

/// The key with this name in the file.
pub(crate) fn find(id: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.id == id)
}
