//! From layers to settings.

use std::time::Duration;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value};

use crate::base::Money;
use crate::cli::keys::KEYS;
use crate::cli::settings::answer::answer;
use crate::cli::settings::error::SettingsError;
use crate::cli::settings::file::closest;
use crate::cli::settings::keys::keys;
use crate::cli::settings::layers::{Layers, Raw};
use crate::cli::settings::price::price;
use crate::cli::settings::values::{Given, bad, shown};
use crate::cli::settings::wrong::Wrong;
use crate::model::{
    CallSettings, Ensemble, GateSettings, InputFormat, InputSettings, Limits, OutputFormat, OutputOrder,
    OutputSettings, PromptSettings, ProviderKind, RetrySettings, Rule, Sampling, Settings, Share, Structured,
};
use crate::output::{default_output, output_format_for};
use crate::policy::parse_share;
use crate::provider::{Endpoint, Price, PriceTable, endpoint, infer_provider};

/// What a command was given besides the keys of the configuration.
#[derive(Debug, Clone)]
pub(crate) struct Invocation {
    /// The input, already resolved: file or spooled standard input, format, selection.
    pub(crate) input: InputSettings,
    /// `--column NAME=TYPE`, in order.
    pub(crate) columns: Vec<String>,
    /// `--key-env LABEL=VARIABLE`, in order.
    pub(crate) key_env: Vec<String>,
    /// `--price 'input=1,output=4'`.
    pub(crate) price: Option<String>,
    /// `--result-field NAME`.
    pub(crate) result_field: String,
    /// `--order`.
    pub(crate) order: OutputOrder,
}

/// A resolved configuration, with what is not part of [`Settings`].
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The settings.
    pub(crate) settings: Settings,
    /// The model's price, if it is known.
    pub(crate) price: Option<Price>,
    /// A run that will probably cost more is asked about first.
    pub(crate) confirm_above: Money,
    /// Things that a person should know, one sentence each.
    pub(crate) warnings: Vec<String>,
}

/// Resolves the layers of a command.
///
/// # Errors
/// Every mistake in a name, a value or a combination, listed together: all of them end with exit code 2.
pub(crate) fn resolve(layers: &Layers, invocation: &Invocation) -> Result<Resolved, Vec<SettingsError>> {
    let mut wrong = Wrong(Vec::new());
    let warnings = unknown_variables(layers);
    let mut input = invocation.input.clone();
    input.id_column = wrong.unless(layers.text("input.id")).flatten().map(|given| given.value);
    let call = call(layers, &mut wrong);
    let keys = call.as_ref().and_then(|call| wrong.unless(keys(layers, invocation, call)));
    let prompt = prompt(layers, &mut wrong);
    let answer = answer(layers, invocation, &mut wrong);
    let price = call.as_ref().and_then(|call| wrong.unless(price(layers, invocation, call)).flatten());
    let model = call.as_ref().map_or("", |call| call.model.as_str());
    let limits = limits(layers, model, &mut wrong);
    if limits.max_cost.is_some() && price.is_none() && call.is_some() {
        wrong.0.push(unpriced(model));
    }
    let output = output(layers, invocation, &input, &mut wrong);
    let ensemble = ensemble(layers, &mut wrong);
    let retry = retry(layers, &mut wrong);
    let mut gate = |id| wrong.unless(share(layers, id)).unwrap_or(Share::Count(0));
    let (max_fail, max_review, max_error) =
        (gate("gate.max_fail"), gate("gate.max_review"), gate("gate.max_error"));
    let gate = GateSettings { max_fail, max_review, max_error };
    let confirm_above = wrong.unless(confirm_above(layers)).unwrap_or_default();
    match (call, keys, prompt, answer) {
        (Some(call), Some(keys), Some(prompt), Some(answer)) if wrong.0.is_empty() => {
            let settings =
                Settings { input, call, keys, prompt, answer, ensemble, limits, retry, gate, output };
            Ok(Resolved { settings, price, confirm_above, warnings })
        }
        _ => Err(wrong.0),
    }
}

fn unpriced(model: &str) -> SettingsError {
    let whom = if model.is_empty() { "the mock provider".to_owned() } else { format!("model `{model}`") };
    SettingsError::Conflict(format!(
        "max_cost needs a price, and none is known for {whom}: give one with --price 'input=1,output=4', in USD per million tokens"
    ))
}

fn unknown_variables(layers: &Layers) -> Vec<String> {
    let known: Vec<String> = KEYS
        .iter()
        .map(crate::cli::keys::Key::variable)
        .chain(["VERIFY_CONFIG", "VERIFY_STATE"].map(str::to_owned))
        .collect();
    layers
        .variables()
        .filter(|(name, _)| !known.iter().any(|have| have == name))
        .map(|(name, _)| {
            let hint = closest(name, known.iter().map(String::as_str));
            format!("the variable {name} is not known and does nothing{hint}")
        })
        .collect()
}

fn call(layers: &Layers, wrong: &mut Wrong) -> Option<CallSettings> {
    let mut number = |id| wrong.unless(layers.number(id)).flatten().map(|given| given.value);
    let (temperature, top_p) = (number("answer.temperature"), number("answer.top_p"));
    let seed = wrong.unless(layers.signed("answer.seed")).flatten().map(|given| given.value);
    let effort = wrong.unless(layers.text("answer.reasoning_effort")).flatten().map(|given| given.value);
    let sampling = Sampling { temperature, top_p, seed, reasoning_effort: effort };
    let forms = [
        ("auto", Structured::Auto),
        ("json_schema", Structured::JsonSchema),
        ("tool", Structured::Tool),
        ("json_object", Structured::JsonObject),
        ("prompt", Structured::Prompt),
    ];
    let structured = wrong.given(layers.choice("answer.structured", &forms), Structured::Auto);
    let max_output_tokens = wrong.unless(layers.integer("answer.max_output_tokens", 1, u64::MAX)).flatten();
    let extra = wrong.unless(extra(layers)).unwrap_or_default();
    let cache = wrong.unless(layers.switch("prompt.cache", false)).unwrap_or(false);
    let (provider, model) = wrong.unless(provider(layers))?;
    let place = wrong.unless(place(layers, provider))?;
    let usual = if PriceTable::built_in().reasons(&model) { 16_000 } else { 1_024 };
    Some(CallSettings {
        provider,
        endpoint: place.url,
        own_host: place.own_host,
        model,
        max_output_tokens: max_output_tokens.map_or(usual, |given| given.value),
        structured,
        mock_seed: sampling.seed.filter(|_| provider == ProviderKind::Mock).map_or(0, i64::cast_unsigned),
        sampling,
        cache,
        extra,
    })
}

/// The provider, as chosen or as the model's name tells, and that name.
fn provider(layers: &Layers) -> Result<(ProviderKind, String), SettingsError> {
    let kinds = [
        ("openai", ProviderKind::Openai),
        ("anthropic", ProviderKind::Anthropic),
        ("mock", ProviderKind::Mock),
    ];
    let chosen = layers.choice("provider", &kinds)?;
    let name = layers.text("model")?.map(|given| given.value).unwrap_or_default();
    let has_base_url = layers.text("base_url")?.is_some();
    let provider = match (chosen, infer_provider(&name)) {
        (Some(given), _) => given.value,
        (None, Some(kind)) => kind,
        (None, None) if has_base_url => ProviderKind::Openai,
        (None, None) if name.is_empty() => {
            return Err(SettingsError::Conflict(
                "no model is given: use --model NAME, or --provider mock to rehearse without one".to_owned(),
            ));
        }
        (None, None) => {
            return Err(SettingsError::Conflict(format!(
                "the provider of model `{name}` cannot be told from its name: give --base-url URL or --provider"
            )));
        }
    };
    if name.is_empty() && provider != ProviderKind::Mock {
        return Err(SettingsError::Conflict("no model is given: use --model NAME".to_owned()));
    }
    Ok((provider, name))
}

fn place(layers: &Layers, provider: ProviderKind) -> Result<Endpoint, SettingsError> {
    let base_url = layers.text("base_url")?;
    endpoint(provider, base_url.as_ref().map(|given| given.value.as_str())).map_err(|error| match &base_url {
        Some(given) => SettingsError::Conflict(format!("{}: {error}", given.origin)),
        None => SettingsError::Conflict(error.to_string()),
    })
}

fn extra(layers: &Layers) -> Result<Map<String, Value>, SettingsError> {
    match layers.in_file("request.extra") {
        None => Ok(Map::new()),
        Some((_, Raw::Json(Value::Object(members)))) => Ok(members),
        Some((origin, raw)) => {
            Err(bad(&origin, "request.extra", format!("must be a table, not {}", shown(&raw))))
        }
    }
}

/// A text that may stand in a file of its own.
fn text_or_file(layers: &Layers, id: &str, file_id: &str) -> Result<Option<String>, SettingsError> {
    let (text, file) = (layers.text(id)?, layers.text(file_id)?);
    match (text, file) {
        (None, None) => Ok(None),
        (Some(given), None) => Ok(Some(given.value)),
        (None, Some(given)) => read_text(layers, &given, file_id).map(Some),
        // The one from the higher layer counts; two of one layer contradict each other.
        (Some(text), Some(file)) => match text.origin.rank().cmp(&file.origin.rank()) {
            std::cmp::Ordering::Greater => Ok(Some(text.value)),
            std::cmp::Ordering::Less => read_text(layers, &file, file_id).map(Some),
            std::cmp::Ordering::Equal => {
                Err(bad(&text.origin, id, format!("and `{file_id}` are both given: leave one out")))
            }
        },
    }
}

fn read_text(layers: &Layers, given: &Given<String>, id: &str) -> Result<String, SettingsError> {
    let path = layers.path(&given.origin, &given.value);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        bad(&given.origin, id, format!("names {}, which cannot be read: {error}", path.display()))
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

fn prompt(layers: &Layers, wrong: &mut Wrong) -> Option<PromptSettings> {
    let version = wrong.given(layers.text("prompt.version"), String::new());
    let system = wrong.unless(text_or_file(layers, "prompt.system", "prompt.system_file")).flatten();
    let user = text_or_file(layers, "prompt.user", "prompt.user_file").and_then(|user| {
        user.ok_or_else(|| {
            SettingsError::Conflict(
                "no prompt is given: use --prompt 'Is {{ text }} spam?', --prompt-file FILE, or [prompt] user in verify.toml"
                    .to_owned(),
            )
        })
    });
    Some(PromptSettings { system, user: wrong.unless(user)?, version })
}

fn ensemble(layers: &Layers, wrong: &mut Wrong) -> Ensemble {
    let usual = Decimal::from_str_exact("0.8").unwrap_or_default();
    let rules = [("unanimous", Rule::Unanimous), ("majority", Rule::Majority)];
    Ensemble {
        samples: u16::try_from(wrong.given(layers.integer("ensemble.samples", 1, 100), 1)).unwrap_or(1),
        rule: wrong.given(layers.choice("ensemble.rule", &rules), Rule::Unanimous),
        auto_pass: wrong.given(layers.decimal("ensemble.auto_pass", Decimal::ONE), usual),
        auto_fail: wrong.given(layers.decimal("ensemble.auto_fail", Decimal::ONE), usual),
        early_stop: wrong.unless(layers.switch("ensemble.early_stop", true)).unwrap_or(true),
        concurrent_samples: wrong
            .unless(layers.switch("ensemble.concurrent_samples", false))
            .unwrap_or(false),
    }
}

fn limits(layers: &Layers, model: &str, wrong: &mut Wrong) -> Limits {
    let is_auto = layers
        .raw(crate::cli::keys::find("limits.concurrency").unwrap_or(&KEYS[0]))
        .is_some_and(|(_, raw)| raw == Raw::Text("auto".to_owned()));
    let concurrency = if is_auto {
        usual_concurrency(model)
    } else {
        wrong.given(layers.integer("limits.concurrency", 1, 100_000), 16)
    };
    let deadline = wrong.unless(layers.duration("limits.deadline", "0s")).unwrap_or_default();
    Limits {
        concurrency: u32::try_from(concurrency).unwrap_or(16),
        adaptive: wrong.unless(layers.switch("limits.adaptive", true)).unwrap_or(true),
        rpm: wrong.given(layers.integer("limits.rpm", 0, 10_000_000), 0),
        tpm: wrong.given(layers.integer("limits.tpm", 0, u64::MAX / 2), 0),
        timeout: wrong.unless(timeout(layers)).unwrap_or_default(),
        deadline: (deadline > Duration::ZERO).then_some(deadline),
        max_rows: wrong.given(layers.integer("limits.max_rows", 0, u64::MAX), 0),
        max_cost: wrong
            .unless(layers.decimal("limits.max_cost", Decimal::from(9_000_000)))
            .flatten()
            .map(|given| dollars(given.value)),
        max_calls: wrong
            .unless(layers.integer("limits.max_calls", 0, u64::MAX / 4))
            .flatten()
            .map(|given| given.value),
    }
}

fn timeout(layers: &Layers) -> Result<Duration, SettingsError> {
    let timeout = layers.duration("limits.timeout", "300s")?;
    if timeout.is_zero() {
        let origin = crate::cli::keys::find("limits.timeout").and_then(|key| layers.raw(key));
        let origin = origin.map(|(origin, _)| format!("{origin}: ")).unwrap_or_default();
        return Err(SettingsError::Conflict(format!("{origin}`limits.timeout` must be longer than nothing")));
    }
    Ok(timeout)
}

/// The cost above which a run is asked about.
fn confirm_above(layers: &Layers) -> Result<Money, SettingsError> {
    let given = layers.decimal("limits.confirm_above", Decimal::from(1_000_000))?.map(|given| given.value);
    Ok(dollars(given.unwrap_or(Decimal::TEN)))
}

/// USD as an exact amount, cut below 10^-12.
fn dollars(value: Decimal) -> Money {
    let pico = value * Decimal::from(1_000_000_000_000_i64);
    Money::from_pico(pico.trunc().to_i64().unwrap_or(i64::MAX))
}

/// Requests in flight that shared keys bear, by the size of the model's family.
fn usual_concurrency(model: &str) -> u64 {
    if !model.contains("claude") {
        return 16;
    }
    match model {
        name if name.contains("haiku") => 120,
        name if name.contains("sonnet") => 100,
        _ => 40,
    }
}

fn retry(layers: &Layers, wrong: &mut Wrong) -> RetrySettings {
    let attempts = wrong.given(layers.integer("retry.attempts", 1, 1_000), 5);
    let mut duration = |id, usual| wrong.unless(layers.duration(id, usual)).unwrap_or_default();
    RetrySettings {
        attempts: u32::try_from(attempts).unwrap_or(5),
        base: duration("retry.base", "1s"),
        max_backoff: duration("retry.max_backoff", "60s"),
        max_wait: duration("retry.max_wait", "120s"),
        outage_patience: duration("retry.outage_patience", "30m"),
        throttle_patience: duration("retry.throttle_patience", "30m"),
    }
}

fn share(layers: &Layers, id: &str) -> Result<Share, SettingsError> {
    let Some(key) = crate::cli::keys::find(id) else { return Ok(Share::Count(0)) };
    match layers.raw(key) {
        None => Ok(Share::Count(0)),
        Some((origin, Raw::Text(text) | Raw::Number(text))) => {
            parse_share(&text).map_err(|error| bad(&origin, id, format!("cannot be read: {error}")))
        }
        Some((origin, raw)) => {
            Err(bad(&origin, id, format!("must be a count, a share or any, not {}", shown(&raw))))
        }
    }
}

fn output(
    layers: &Layers,
    invocation: &Invocation,
    input: &InputSettings,
    wrong: &mut Wrong,
) -> OutputSettings {
    let same = match input.format {
        InputFormat::Csv { delimiter } => OutputFormat::Csv { delimiter },
        InputFormat::Jsonl => OutputFormat::Jsonl,
    };
    let path = match wrong.unless(layers.text("output.path")).flatten() {
        Some(given) if given.value == "-" => None,
        Some(given) => Some(layers.path(&given.origin, &given.value)),
        None => match &input.path {
            crate::model::InputPath::File(path) => Some(default_output(path)),
            crate::model::InputPath::Stdin { .. } => None,
        },
    };
    let format = output_format_for(path.as_deref(), same);
    OutputSettings {
        path,
        format,
        prefix: wrong.given(layers.text("output.prefix"), String::new()),
        result_field: invocation.result_field.clone(),
        csv_safe: wrong.unless(layers.switch("output.csv_safe", false)).unwrap_or(false),
        accounting: wrong.unless(layers.switch("output.accounting", true)).unwrap_or(true),
        order: invocation.order,
    }
}
