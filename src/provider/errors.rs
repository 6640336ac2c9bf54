//! Classes of failure: the body's code first, then the status.

use serde_json::Value;

use crate::model::{FailureClass, KeyFault};
use crate::provider::message;

/// An error reply, whatever its shape: `error` may be an object, a text, missing, or stand in an array; `code` may be
/// a text or a number; the body may be HTML, plain text or empty.
#[derive(Debug, Default)]
pub(super) struct ServerError {
    /// The status that decides: a code of the body that is an HTTP status, else the reply's status.
    status: u16,
    /// The status of the reply.
    http: u16,
    /// The server's own word for it, for people.
    code: Option<String>,
    /// Codes in lower case.
    codes: Vec<String>,
    /// Types in lower case: vaguer than codes, and often the same for every error of a server.
    types: Vec<String>,
    /// The parameter that is at fault.
    param: Option<String>,
    /// The server's text.
    text: String,
    /// The same in lower case.
    lower: String,
    /// Whether the body was JSON.
    json: bool,
    /// Gemini's `RetryInfo`.
    retry_delay: Option<String>,
    /// Headers that a relay passes on inside the body, names in lower case.
    headers: Vec<(String, String)>,
    /// Whether a moderation found the prompt at fault.
    moderated: bool,
}

/// The most bytes of a text that are searched for phrases.
const SEARCHED: usize = 8_192;

impl ServerError {
    /// The error in a JSON body.
    pub(super) fn from_json(http: u16, body: &Value) -> Self {
        let body = unwrapped(body);
        let inner = match body.get("error") {
            Some(inner @ (Value::Object(_) | Value::Array(_))) => unwrapped(inner),
            _ => body,
        };
        let mut error = Self { http, status: http, json: true, ..Self::default() };
        error.read_codes(inner);
        if !std::ptr::eq(inner, body) {
            for name in ["type", "code", "statusCode"] {
                error.read_code(name, body.get(name));
            }
        }
        error.read_details(inner);
        error.set_text(match (body.get("error"), body.get("message")) {
            (Some(Value::String(error)), Some(Value::String(message))) => format!("{error}: {message}"),
            (Some(Value::String(error)), _) => error.clone(),
            _ => text_of(inner),
        });
        error
    }

    /// An error whose body is no JSON.
    pub(super) fn from_text(http: u16, body: &str) -> Self {
        let mut error = Self { http, status: http, ..Self::default() };
        error.set_text(body.to_owned());
        error
    }

    fn read_codes(&mut self, inner: &Value) {
        for name in ["code", "status", "statusCode", "type"] {
            self.read_code(name, inner.get(name));
        }
        let nested = inner.get("innererror").and_then(|nested| nested.get("code"));
        let detail = inner.get("details").and_then(|details| details.get("error_code"));
        for code in [nested, detail] {
            self.read_code("code", code);
        }
        if let Some(Value::String(param)) = inner.get("param") {
            self.param = Some(param.clone()).filter(|param| !param.is_empty());
        }
        self.code = self.original_code(inner);
    }

    /// The code as the server writes it: the word rather than the number, the code rather than the type.
    fn original_code(&self, inner: &Value) -> Option<String> {
        let texts = ["code", "status", "type"].iter().filter_map(|name| inner.get(name)?.as_str());
        let word =
            texts.filter(|text| !text.is_empty() && text.parse::<f64>().is_err()).map(str::to_owned).next();
        let number = || self.codes.first().cloned();
        word.or_else(number).map(|code| message::clean(&code).chars().take(64).collect())
    }

    fn read_code(&mut self, name: &str, value: Option<&Value>) {
        let text = match value {
            Some(Value::String(text)) if !text.is_empty() => text.to_ascii_lowercase(),
            Some(Value::Number(number)) => number.to_string(),
            _ => return,
        };
        let number = text.parse::<f64>().ok().filter(|number| (400.0..600.0).contains(number));
        if let Some(status) = number.and_then(|number| format!("{number:.0}").parse().ok()) {
            self.status = status;
        }
        if name == "type" { self.types.push(text) } else { self.codes.push(text) }
    }

    fn read_details(&mut self, inner: &Value) {
        for detail in inner.get("details").and_then(Value::as_array).into_iter().flatten() {
            self.read_code("code", detail.get("reason"));
            if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
                self.retry_delay = Some(delay.to_owned());
            }
            let violations = detail.get("violations").and_then(Value::as_array).into_iter().flatten();
            if violations
                .filter_map(|violation| violation.get("quotaId")?.as_str())
                .any(|id| id.contains("PerDay"))
            {
                self.codes.push("quota_per_day".to_owned());
            }
        }
        for detail in inner.get("detail").and_then(Value::as_array).into_iter().flatten() {
            self.read_code("type", detail.get("type"));
        }
        if let Some(metadata) = inner.get("metadata") {
            self.moderated = metadata.get("flagged_input").is_some() || metadata.get("reasons").is_some();
            for (name, value) in metadata.get("headers").and_then(Value::as_object).into_iter().flatten() {
                if let Some(value) = value.as_str() {
                    self.headers.push((name.to_ascii_lowercase(), value.to_owned()));
                }
            }
        }
    }

    fn set_text(&mut self, text: String) {
        let mut end = text.len().min(SEARCHED);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.lower = text[..end].to_ascii_lowercase();
        self.text = text;
    }

    /// The status that decides.
    pub(super) fn status(&self) -> u16 {
        self.status
    }

    /// The server's own code.
    pub(super) fn code(&self) -> Option<String> {
        self.code.clone()
    }

    /// The parameter at fault.
    pub(super) fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// The server's text as it came.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The server's text in lower case.
    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    /// Gemini's `RetryInfo`.
    pub(super) fn retry_delay(&self) -> Option<&str> {
        self.retry_delay.as_deref()
    }

    /// Headers inside the body.
    pub(super) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Whether one of the codes or types is this word.
    pub(super) fn has_word(&self, word: &str) -> bool {
        self.codes.iter().chain(&self.types).any(|have| have == word)
    }

    fn has_any(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.has_word(word))
    }

    fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.lower.contains(phrase))
    }

    /// What a person reads.
    pub(super) fn message(&self) -> String {
        let text = self.text.trim();
        let said = match (self.json, text.is_empty()) {
            (true, false) => text.to_owned(),
            (true, true) => format!("server answered {} with an empty message", self.http),
            (false, false) => format!("server answered {} with text: {text}", self.http),
            (false, true) => format!("server answered {} with an empty body", self.http),
        };
        if matches!(self.http, 404 | 405) && !self.is_unknown_model() {
            return message::clean_with_advice(
                &said,
                "check base_url, its path may need /v1 added or removed",
            );
        }
        message::clean(&said)
    }

    /// The class. `waits`: whether the server says how long to wait.
    pub(super) fn class(&self, waits: bool) -> FailureClass {
        if self.status == 402 || self.has_any(&QUOTA) || self.says(&QUOTA_PHRASES) || self.is_day_over(waits)
        {
            return FailureClass::Key(KeyFault::Quota);
        }
        if self.status == 401 || self.has_any(&UNAUTHORIZED) {
            return FailureClass::Key(KeyFault::Unauthorized);
        }
        if self.moderated || self.has_any(&POLICY) || self.says(&POLICY_PHRASES) || self.is_moderation() {
            return FailureClass::Policy;
        }
        if self.status == 413 || self.has_any(&TOO_LONG) || self.says(&TOO_LONG_PHRASES) {
            return FailureClass::TooLong;
        }
        if self.is_unknown_model() {
            return FailureClass::UnknownModel;
        }
        if self.is_forbidden() {
            return FailureClass::Key(KeyFault::Forbidden);
        }
        if self.has_word("json_validate_failed") {
            return FailureClass::InvalidAnswer;
        }
        if self.status == 429 || self.has_any(&THROTTLED) {
            return FailureClass::Throttled;
        }
        let client = (400..500).contains(&self.status);
        let failing = |words: &[&str]| words.iter().any(|word| self.codes.iter().any(|code| code == word));
        if failing(&SERVER_CODES) || (!client && self.has_any(&SERVER_TYPES)) {
            return FailureClass::Server;
        }
        match self.status {
            408 | 409 | 425 | 498 | 500.. => FailureClass::Server,
            200..300 if !self.has_any(&REJECTED) => FailureClass::Server,
            _ => FailureClass::Rejected,
        }
    }

    /// A quota of the day: Gemini names it; others say so in words, and mostly also how long it lasts, which is then
    /// an ordinary wait.
    fn is_day_over(&self, waits: bool) -> bool {
        let said = self.status == 429 && !waits && self.says(&["per day", "per-day"]);
        self.has_word("quota_per_day") || said
    }

    fn is_moderation(&self) -> bool {
        self.status == 403 && self.json && self.says(&["moderation", "flagged"])
    }

    fn is_unknown_model(&self) -> bool {
        if self.has_any(&UNKNOWN_MODEL) || self.says(&["is not a valid model id"]) {
            return true;
        }
        // A wrong path is 404 as well; only the text tells them apart.
        self.status == 404
            && self.json
            && self.says(&["model", "deployment"])
            && !self.says(&["invalid url", "unknown request url"])
    }

    /// A page of a firewall may speak of permission as well; only what is JSON comes from the provider.
    fn is_forbidden(&self) -> bool {
        let words = self.has_any(&FORBIDDEN) || (self.json && self.says(&FORBIDDEN_PHRASES));
        (self.status == 403 && words) || self.says(&["user location is not supported"])
    }
}

/// Billing and quota. Sources: `OpenAI` error codes, Anthropic errors, `new-api` relays.
const QUOTA: [&str; 12] = [
    "insufficient_quota",
    "insufficient_user_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
    "enforced_spend_limit_reached",
    "contract_spend_limit_reached",
    "insufficient_balance",
];
const QUOTA_PHRASES: [&str; 4] = [
    "credit balance is too low",
    "reached your specified api usage limits",
    "workspace api usage limits",
    "insufficient balance",
];
const UNAUTHORIZED: [&str; 5] = [
    "invalid_api_key",
    "authentication_error",
    "api_key_invalid",
    "unauthenticated",
    "invalid_authentication",
];
const POLICY: [&str; 8] = [
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "cyber_policy",
    "bio_policy",
    "misalignment_policy_violation",
    "invalid_prompt",
    "moderation_blocked",
];
const POLICY_PHRASES: [&str; 2] = ["your prompt was flagged", "content management policy"];
const TOO_LONG: [&str; 4] = [
    "context_length_exceeded",
    "request_too_large",
    "model_context_window_exceeded",
    "exceed_context_size_error",
];
const TOO_LONG_PHRASES: [&str; 14] = [
    "context_length_exceeded",
    "maximum context length",
    "prompt is too long",
    "exceed context limit",
    "exceeds the maximum number of tokens allowed",
    "input tokens exceed the configured limit",
    "exceeds the available context size",
    "input is too long",
    "maximum input length is",
    "max_tokens must be at least 1, got -",
    "model_context_window_exceeded",
    "the input is longer than the model's context length",
    "request too large",
    "tokens + `max_new_tokens` must be",
];
const UNKNOWN_MODEL: [&str; 5] =
    ["model_not_found", "deploymentnotfound", "model_decommissioned", "invalid_model", "unknown_model"];
const FORBIDDEN: [&str; 8] = [
    "permission_error",
    "permissions_error",
    "permission_denied",
    "permissiondenied",
    "insufficient_permissions",
    "access_denied",
    "forbidden",
    "unsupported_country_region_territory",
];
const FORBIDDEN_PHRASES: [&str; 4] =
    ["permission", "country, region", "access is disabled", "temporarily blocked"];
const THROTTLED: [&str; 6] = [
    "rate_limit_exceeded",
    "rate_limit_error",
    "resource_exhausted",
    "ramp_limit_exceeded",
    "too_many_requests",
    "rate_limited",
];
const SERVER_CODES: [&str; 8] = [
    "server_is_overloaded",
    "slow_down",
    "overloaded_error",
    "unavailable",
    "server_error",
    "internal_error",
    "internal",
    "deadline_exceeded",
];
const SERVER_TYPES: [&str; 6] = [
    "overloaded_error",
    "service_unavailable_error",
    "unavailable_error",
    "server_error",
    "api_error",
    "timeout_error",
];
/// Words that make an error under a status of success a rejection: no further try can help.
const REJECTED: [&str; 8] = [
    "invalid_request_error",
    "unsupported_parameter",
    "unsupported_value",
    "unknown_parameter",
    "invalid_value",
    "invalid_argument",
    "badrequesterror",
    "bad request",
];

/// The element of an array of one, as Gemini's compatible layer sends errors; any other value itself.
pub(super) fn unwrapped(value: &Value) -> &Value {
    match value {
        Value::Array(items) if items.len() == 1 => &items[0],
        other => other,
    }
}

/// The words of an error, wherever they stand; the JSON text where no word is found.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join("; "),
        Value::Object(members) => {
            if let Some(text) = members.get("msg").and_then(Value::as_str) {
                return match members.get("loc").and_then(Value::as_array) {
                    Some(path) => format!("{}: {text}", dotted(path)),
                    None => text.to_owned(),
                };
            }
            let found = ["message", "detail", "error_description", "error", "errors"]
                .iter()
                .find_map(|name| members.get(*name).filter(|inner| !inner.is_null()));
            let own = found.map_or_else(|| value.to_string(), text_of);
            match members.get("metadata").and_then(|metadata| metadata.get("raw")) {
                Some(raw) if !raw.is_null() => format!("{own}: {}", raw_text(raw)),
                _ => own,
            }
        }
        other => other.to_string(),
    }
}

/// What the server behind a relay said: often the text of a JSON body.
fn raw_text(raw: &Value) -> String {
    let parsed = raw.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match parsed {
        Some(inner @ (Value::Object(_) | Value::Array(_))) => text_of(&inner),
        _ => text_of(raw),
    }
}

fn dotted(path: &[Value]) -> String {
    path.iter().map(text_of).collect::<Vec<_>>().join(".")
}
