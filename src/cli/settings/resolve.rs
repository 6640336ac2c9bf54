//! From layers to settings.

use std::path::PathBuf;
use std::time::Duration;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value};

use crate::base::Money;
use crate::cli::keys::{KEYS, RESERVED};
use crate::cli::settings::answer::answer;
use crate::cli::settings::error::SettingsError;
use crate::cli::settings::file::closest;
use crate::cli::settings::keys::keys;
use crate::cli::settings::layers::{Layers, Origin, Raw};
use crate::cli::settings::price::price;
use crate::cli::settings::values::{Given, bad, shown};
use crate::model::{
    CallSettings, Ensemble, GateSettings, InputFormat, InputSettings, Limits, OutputFormat, OutputOrder,
    OutputSettings, PromptSettings, ProviderKind, RetrySettings, Rule, Sampling, Settings, Share, Structured,
};
use crate::output::{default_output, output_format_of};
use crate::policy::parse_share;
use crate::provider::{Price, PriceTable, endpoint, infer_provider};

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
/// Every mistake in a name, a value or a combination: all of them end with exit code 2.
pub(crate) fn resolve(layers: &Layers, invocation: &Invocation) -> Result<Resolved, SettingsError> {
    refuse_reserved(layers)?;
    let warnings = unknown_variables(layers);
    let mut input = invocation.input.clone();
    input.id_column = layers.text("input.id")?.map(|given| given.value);
    let call = call(layers)?;
    let keys = keys(layers, invocation, &call)?;
    let prompt = prompt(layers)?;
    let answer = answer(layers, invocation)?;
    let price = price(layers, invocation, &call)?;
    let limits = limits(layers, &call.model)?;
    if limits.max_cost.is_some() && price.is_none() {
        return Err(SettingsError::Conflict(format!(
            "max_cost needs a price, and none is known for {}: give one with --price 'input=1,output=4', in USD per million tokens",
            if call.model.is_empty() {
                "the mock provider".to_owned()
            } else {
                format!("model `{}`", call.model)
            }
        )));
    }
    let output = output(layers, invocation, &input)?;
    let settings = Settings {
        input,
        call,
        keys,
        prompt,
        answer,
        ensemble: ensemble(layers)?,
        limits,
        retry: retry(layers)?,
        gate: GateSettings {
            max_fail: share(layers, "gate.max_fail")?,
            max_review: share(layers, "gate.max_review")?,
            max_error: share(layers, "gate.max_error")?,
        },
        output,
    };
    Ok(Resolved { settings, price, confirm_above: confirm_above(layers)?, warnings })
}

/// A value of a later version is refused rather than ignored.
fn refuse_reserved(layers: &Layers) -> Result<(), SettingsError> {
    for reserved in RESERVED {
        let variable = format!("VERIFY_{}", reserved.id.replace('.', "_").to_ascii_uppercase());
        let in_environment = layers
            .variables()
            .find(|(name, _)| *name == variable)
            .map(|(_, value)| (Origin::Variable(variable.clone()), Raw::Text(value.to_owned())));
        for (origin, raw) in in_environment.into_iter().chain(layers.in_file(reserved.id)) {
            let text = match &raw {
                Raw::Text(text) | Raw::Number(text) => text.clone(),
                Raw::Switch(value) => value.to_string(),
                other @ Raw::Json(_) => shown(other),
            };
            if !reserved.neutral.contains(&text.as_str()) {
                let key = reserved.id.to_owned();
                return Err(SettingsError::Reserved { origin: origin.to_string(), key });
            }
        }
    }
    Ok(())
}

fn unknown_variables(layers: &Layers) -> Vec<String> {
    let known: Vec<String> = KEYS
        .iter()
        .map(crate::cli::keys::Key::variable)
        .chain(RESERVED.iter().map(|key| format!("VERIFY_{}", key.id.replace('.', "_").to_ascii_uppercase())))
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

fn call(layers: &Layers) -> Result<CallSettings, SettingsError> {
    let model = layers.text("model")?;
    let base_url = layers.text("base_url")?;
    let chosen = layers.choice(
        "provider",
        &[
            ("openai", ProviderKind::Openai),
            ("anthropic", ProviderKind::Anthropic),
            ("mock", ProviderKind::Mock),
        ],
    )?;
    let name = model.as_ref().map(|given| given.value.clone()).unwrap_or_default();
    let provider = match (chosen, infer_provider(&name)) {
        (Some(given), _) => given.value,
        (None, Some(kind)) => kind,
        (None, None) if base_url.is_some() => ProviderKind::Openai,
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
    let base = base_url.as_ref().map(|given| given.value.as_str());
    let place = endpoint(provider, base).map_err(|error| match &base_url {
        Some(given) => SettingsError::Conflict(format!("{}: {error}", given.origin)),
        None => SettingsError::Conflict(error.to_string()),
    })?;
    let reasons = PriceTable::built_in().reasons(&name);
    let usual = if reasons { 16_000 } else { 1_024 };
    let sampling = Sampling {
        temperature: layers.number("answer.temperature")?.map(|given| given.value),
        top_p: layers.number("answer.top_p")?.map(|given| given.value),
        seed: layers.signed("answer.seed")?.map(|given| given.value),
        reasoning_effort: layers.text("answer.reasoning_effort")?.map(|given| given.value),
    };
    let structured = layers.choice(
        "answer.structured",
        &[
            ("auto", Structured::Auto),
            ("json_schema", Structured::JsonSchema),
            ("tool", Structured::Tool),
            ("json_object", Structured::JsonObject),
            ("prompt", Structured::Prompt),
        ],
    )?;
    Ok(CallSettings {
        provider,
        endpoint: place.url,
        own_host: place.own_host,
        model: name,
        max_output_tokens: layers
            .integer("answer.max_output_tokens", 1, u64::MAX)?
            .map_or(usual, |given| given.value),
        structured: structured.map_or(Structured::Auto, |given| given.value),
        mock_seed: sampling.seed.filter(|_| provider == ProviderKind::Mock).map_or(0, i64::cast_unsigned),
        sampling,
        extra: extra(layers)?,
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

fn prompt(layers: &Layers) -> Result<PromptSettings, SettingsError> {
    let Some(user) = text_or_file(layers, "prompt.user", "prompt.user_file")? else {
        return Err(SettingsError::Conflict(
            "no prompt is given: use --prompt 'Is {{ text }} spam?', --prompt-file FILE, or [prompt] user in verify.toml"
                .to_owned(),
        ));
    };
    Ok(PromptSettings {
        system: text_or_file(layers, "prompt.system", "prompt.system_file")?,
        user,
        version: layers.text("prompt.version")?.map(|given| given.value).unwrap_or_default(),
    })
}

fn ensemble(layers: &Layers) -> Result<Ensemble, SettingsError> {
    let threshold = Decimal::from_str_exact("0.8").unwrap_or_default();
    let samples = layers.integer("ensemble.samples", 1, 100)?.map_or(1, |given| given.value);
    let rule =
        layers.choice("ensemble.rule", &[("unanimous", Rule::Unanimous), ("majority", Rule::Majority)])?;
    Ok(Ensemble {
        samples: u16::try_from(samples).unwrap_or(1),
        rule: rule.map_or(Rule::Unanimous, |given| given.value),
        auto_pass: layers.decimal("ensemble.auto_pass", Decimal::ONE)?.map_or(threshold, |given| given.value),
        auto_fail: layers.decimal("ensemble.auto_fail", Decimal::ONE)?.map_or(threshold, |given| given.value),
        early_stop: layers.switch("ensemble.early_stop", true)?,
        concurrent_samples: layers.switch("ensemble.concurrent_samples", false)?,
    })
}

fn limits(layers: &Layers, model: &str) -> Result<Limits, SettingsError> {
    let is_auto = layers
        .raw(crate::cli::keys::find("limits.concurrency").unwrap_or(&KEYS[0]))
        .is_some_and(|(_, raw)| raw == Raw::Text("auto".to_owned()));
    let concurrency = if is_auto {
        usual_concurrency(model)
    } else {
        layers.integer("limits.concurrency", 1, 100_000)?.map_or(16, |given| given.value)
    };
    let deadline = layers.duration("limits.deadline", "0s")?;
    let timeout = layers.duration("limits.timeout", "300s")?;
    if timeout.is_zero() {
        return Err(SettingsError::Conflict("`limits.timeout` must be longer than nothing".to_owned()));
    }
    Ok(Limits {
        concurrency: u32::try_from(concurrency).unwrap_or(16),
        adaptive: layers.switch("limits.adaptive", true)?,
        rpm: layers.integer("limits.rpm", 0, 10_000_000)?.map_or(0, |given| given.value),
        tpm: layers.integer("limits.tpm", 0, u64::MAX / 2)?.map_or(0, |given| given.value),
        timeout,
        deadline: (deadline > Duration::ZERO).then_some(deadline),
        max_rows: layers.integer("limits.max_rows", 0, u64::MAX)?.map_or(0, |given| given.value),
        max_cost: layers
            .decimal("limits.max_cost", Decimal::from(9_000_000))?
            .map(|given| dollars(given.value)),
        max_calls: layers.integer("limits.max_calls", 0, u64::MAX / 4)?.map(|given| given.value),
    })
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

fn retry(layers: &Layers) -> Result<RetrySettings, SettingsError> {
    let attempts = layers.integer("retry.attempts", 1, 1_000)?.map_or(5, |given| given.value);
    Ok(RetrySettings {
        attempts: u32::try_from(attempts).unwrap_or(5),
        base: layers.duration("retry.base", "1s")?,
        max_backoff: layers.duration("retry.max_backoff", "60s")?,
        max_wait: layers.duration("retry.max_wait", "120s")?,
        outage_patience: layers.duration("retry.outage_patience", "30m")?,
        throttle_patience: layers.duration("retry.throttle_patience", "30m")?,
    })
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
) -> Result<OutputSettings, SettingsError> {
    let same = match input.format {
        InputFormat::Csv { delimiter } => OutputFormat::Csv { delimiter },
        InputFormat::Jsonl => OutputFormat::Jsonl,
    };
    let path = match layers.text("output.path")? {
        Some(given) if given.value == "-" => None,
        Some(given) => Some(layers.path(&given.origin, &given.value)),
        None => match &input.path {
            crate::model::InputPath::File(path) => Some(default_output(path)),
            crate::model::InputPath::Stdin { .. } => None,
        },
    };
    let format = path.as_deref().and_then(output_format_of).map_or(same, |format| match (format, same) {
        // The output of a CSV keeps its delimiter, unless the name says tabs.
        (OutputFormat::Csv { delimiter: b',' }, OutputFormat::Csv { .. }) if is_csv(path.as_ref()) => same,
        (format, _) => format,
    });
    Ok(OutputSettings {
        path,
        format,
        prefix: layers.text("output.prefix")?.map(|given| given.value).unwrap_or_default(),
        result_field: invocation.result_field.clone(),
        csv_safe: layers.switch("output.csv_safe", false)?,
        accounting: layers.switch("output.accounting", true)?,
        order: OutputOrder::Input,
    })
}

fn is_csv(path: Option<&PathBuf>) -> bool {
    path.and_then(|path| path.extension()).is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}
