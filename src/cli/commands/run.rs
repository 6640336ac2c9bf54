//! `verify run`.

use std::cell::RefCell;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::base::{Clock as _, Secret, SystemClock, WallTime};
use crate::cli::args::RunArgs;
use crate::cli::commands::Context;
use crate::cli::commands::check::{Good, check};
use crate::cli::commands::estimate;
use crate::cli::commands::log::{Log, Logged};
use crate::cli::commands::pipeline::Pipeline;
use crate::cli::commands::record::Record;
use crate::cli::commands::source::{invocation, layers, read_config};
use crate::cli::environment::Environment;
use crate::cli::failure::Failure;
use crate::cli::settings::{ConfigFile, Resolved, resolve};
use crate::cli::signals::Watch;
use crate::model::{CallSettings, InputRow, KeySettings, KeySource, RowResult, Settings};
use crate::output::Target;
use crate::report::{Cost, Exit, Input, Latency, Summary, printable};
use crate::run::{
    Choice, Credential, Credentials, EachRow, Ended, Hooks, Plan, Retry, RunError, execute, stops,
};
use crate::store::RunRecord;

/// Runs the command. Returns the gate's exit code.
pub(super) fn run(args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    let clock = Arc::new(SystemClock::new());
    let terminal = context.terminal;
    let config = read_config(&args.job, context)?;
    name_the_config(config.as_ref(), args, context);
    let state = context.state_folder(args.job.state.as_deref(), config.as_ref());
    let choice = choice(args)?;
    let scratch = scratch(args)?;
    let spool = scratch.as_ref().map_or(state.as_path(), |scratch| scratch.path());
    let Resolved { settings, price, confirm_above, warnings } =
        resolved(args, context, spool, config, clock.wall())?;
    let writes_rows = !args.dry_run && args.probe.is_none();
    if args.json && settings.output.path.is_none() && writes_rows {
        return Err(Failure::usage(
            "--format json prints the summary on standard output, which -o - needs for the rows",
        ));
    }
    let good = check(&settings)?;
    if !args.quiet {
        for warning in warnings.iter().chain(&good.warnings) {
            terminal.warn(warning);
        }
    }
    let Good { source, checked, template, answers, codec, columns, prompt_tokens, .. } = good;
    let (command, place) = (context.command_line(), context.place_of(&state));
    let total = checked.selected;
    let rows = checked.rows;
    let mut plan = Plan {
        credentials: credentials(&settings, &context.environment),
        choice,
        probe: args.probe,
        record: Record::new(&settings, command.clone()).to_json(),
        settings: settings.clone(),
        source,
        checked,
        columns,
        template: Arc::new(template),
        answers,
        codec: Arc::new(codec),
        price,
        state,
        pid: std::process::id(),
        host: context.environment.host(),
    };
    if args.dry_run {
        return estimate::dry_run(&plan, args, context);
    }
    // Whether the output can be written is known before anything is sent; it is begun when there is something.
    Target::prepare(settings.output.path.as_deref(), settings.input.path.file())?.abandon();
    for path in args.summary.iter().chain(&args.log) {
        Target::prepare(Some(path), settings.input.path.file())?.abandon();
    }
    each_has_its_own_file(args, settings.output.path.as_deref())?;
    let mut pipeline = Pipeline::new(args, &settings.input)?;
    if !args.yes {
        estimate::confirm(&plan, prompt_tokens, confirm_above, args, context)?;
    }
    let log = args.log.as_deref().map(|path| Log::open(path, &clock)).transpose()?.map(RefCell::new);
    raise_file_limit(&settings);
    let (sender, receiver) = stops();
    let watch = Watch::start(sender.clone())
        .map_err(|error| Failure::unable(format!("cannot listen for signals: {error}")))?;
    let (color, dumb) = looks(args, context);
    let mut watcher = terminal.watcher(args.progress, color, args.quiet, dumb).verbose(args.verbose);
    let mut summarize = |ended: &Ended| summary(ended, &settings, (rows, total), &command, &place).to_json();
    let mut opened = |record: &RunRecord, continued: bool, replaced: Option<&RunRecord>| {
        if let Some(log) = &log {
            log.borrow_mut().begin(record, continued);
        }
        if !args.quiet {
            greet(context, &settings, record, continued, replaced);
        }
    };
    let sees_rows = pipeline.sees_rows();
    let mut row = |row: &InputRow, result: &RowResult| pipeline.see(row, result);
    let row: Option<EachRow<'_>> = if sees_rows { Some(&mut row) } else { None };
    let mut hooks = Hooks { opened: &mut opened, summarize: &mut summarize, row };
    let mut observer = Logged { watcher: &mut watcher, log: log.as_ref() };
    let ended = execute(&plan, (sender, receiver), &clock, &mut observer, &mut hooks);
    watcher.finish();
    drop(watch);
    let ended = ended.inspect_err(|error| say_how_to_go_on(error, context, &command))?;
    if let Some(amount) = ended.forgiven {
        terminal.say(&format!("forgave ${amount} that requests without a reply may have cost"));
    }
    let summary = summary(&ended, &settings, (rows, total), &command, &place);
    if let Some(log) = &log
        && let Some(problem) = log.borrow_mut().end(&summary, ended.ended)
    {
        terminal.warn(&problem);
    }
    if args.probe.is_some() && ended.exit.code == 0 {
        write_summary(args, &summary)?;
        return estimate::after_probe(&mut plan, &ended, args, context);
    }
    let code = tell(args, context, &summary, color)?;
    if code != 141 {
        pipeline.finish(&summary, context)?;
    }
    Ok(code)
}

fn name_the_config(config: Option<&ConfigFile>, args: &RunArgs, context: &Context) {
    if let Some(config) = config.filter(|_| !args.quiet) {
        context.terminal.say(&format!("configuration: {}", printable(&config.path().display().to_string())));
    }
}

/// Two outputs in one file would be one, and the other lost without a word.
fn each_has_its_own_file(args: &RunArgs, output: Option<&Path>) -> Result<(), Failure> {
    let named = [("--output", output), ("--summary", args.summary.as_deref())];
    let more = [("--junit", args.junit.as_deref()), ("--log", args.log.as_deref())];
    let mut seen: Vec<(&str, std::path::PathBuf)> = Vec::new();
    for (flag, path) in named.into_iter().chain(more) {
        let Some(path) = path.filter(|path| path.metadata().map_or(true, |data| data.is_file())) else {
            continue;
        };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let real = path.canonicalize().or_else(|_| {
            folder.canonicalize().map(|folder| folder.join(path.file_name().unwrap_or_default()))
        });
        let real = real.unwrap_or_else(|_| path.to_owned());
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == real) {
            let name = printable(&path.display().to_string());
            return Err(Failure::usage(format!(
                "{other} and {flag} both name {name}: give each its own file"
            )));
        }
        seen.push((flag, real));
    }
    Ok(())
}

/// What a summary would say, of a run that was stopped too late to have one.
fn say_how_to_go_on(error: &RunError, context: &Context, command: &str) {
    if matches!(error, RunError::Interrupted(_)) {
        context.terminal.say(&format!("continue  {}", printable(command)));
    }
}

/// Says which run this is, and whose output it replaces.
fn greet(
    context: &Context,
    settings: &Settings,
    record: &RunRecord,
    continued: bool,
    replaced: Option<&RunRecord>,
) {
    if continued {
        let execution = record.executions + 1;
        context.terminal.say(&format!("continuing run {} (execution {execution})", record.id));
    }
    if let Some(run) = replaced {
        let file = settings.output.path.as_deref().unwrap_or(Path::new("the output"));
        context.terminal.warn(&format!(
            "{} is the output of another job (run {}) and will be replaced: -o FILE keeps both",
            printable(&file.display().to_string()),
            run.id
        ));
    }
}

/// A folder for what a dry run reads: it leaves nothing behind.
fn scratch(args: &RunArgs) -> Result<Option<tempfile::TempDir>, Failure> {
    let made = args.dry_run.then(tempfile::tempdir).transpose();
    made.map_err(|error| Failure::unable(format!("cannot make a temporary folder: {error}")))
}

/// The settings, or all that is wrong with them.
fn resolved(
    args: &RunArgs,
    context: &Context,
    spool: &Path,
    mut config: Option<ConfigFile>,
    now: WallTime,
) -> Result<Resolved, Failure> {
    let mut wrong = config.as_mut().map(ConfigFile::take_unknown).unwrap_or_default();
    let layers = layers(&args.job, context, config);
    let invocation = invocation(&args.job, spool, now)?;
    match resolve(&layers, &invocation) {
        Ok(resolved) if wrong.is_empty() => Ok(resolved),
        Ok(_) => Err(wrong.into()),
        Err(more) => {
            wrong.extend(more);
            Err(wrong.into())
        }
    }
}

/// Which run the arguments name, and which rows of it.
fn choice(args: &RunArgs) -> Result<Choice, Failure> {
    let retry = args.retry.as_deref().map(Retry::parse).transpose();
    let retry = retry.map_err(|error| Failure::usage(format!("--retry: {error}")))?;
    Ok(Choice { new: args.new, run: args.run.clone(), retry, forgive_possible: args.forgive_possible })
}

/// Whether there are colours, and whether the terminal can do nothing but print.
fn looks(args: &RunArgs, context: &Context) -> (bool, bool) {
    let no_color = context.environment.variable("NO_COLOR").is_some();
    let dumb = context.environment.variable("TERM").is_some_and(|term| term == "dumb");
    (context.terminal.has_color(args.color, no_color, dumb), dumb)
}

/// Prints and writes the summary.
fn tell(args: &RunArgs, context: &Context, summary: &Summary, color: bool) -> Result<u8, Failure> {
    let code = summary.exit.as_ref().map_or(Failure::UNABLE, |exit| exit.code);
    write_summary(args, summary)?;
    // Whoever closed the output does not want to be told about it.
    if code == 141 {
        return Ok(code);
    }
    if !args.quiet {
        context.terminal.say(&summary.to_text(context.terminal.width(), color));
    } else if code == Failure::USAGE || code == Failure::UNABLE {
        let why = summary.exit.as_ref().map(|exit| exit.why.clone()).unwrap_or_default();
        context.terminal.error(&Failure::unable(why));
    }
    if args.json && !context.terminal.data(&format!("{}\n", summary.to_json().trim_end())) {
        return Ok(141);
    }
    Ok(code)
}

fn write_summary(args: &RunArgs, summary: &Summary) -> Result<(), Failure> {
    if let Some(path) = &args.summary {
        crate::output::write_whole(path, format!("{}\n", summary.to_json().trim_end()).as_bytes())?;
    }
    Ok(())
}

/// The most files for which room is made ahead.
const MOST_FILES: usize = 16_384;

/// Connections are files: more of them need a higher limit.
fn raise_file_limit(settings: &Settings) {
    let wanted = u64::from(settings.limits.concurrency) + 256;
    if rlimit::getrlimit(rlimit::Resource::NOFILE).is_ok_and(|(soft, _)| soft < wanted) {
        // Where it cannot be raised, connections fail and are tried again.
        let _ = rlimit::increase_nofile_limit(wanted);
    }
    make_room_for_files(usize::try_from(wanted).unwrap_or(0).min(MOST_FILES));
}

/// Has the kernel make its table of open files as large as it will be, which has to happen before there are threads:
/// while several threads share the table, each doubling waits for all processors, some ten milliseconds.
fn make_room_for_files(count: usize) {
    // It is a matter of speed alone: where there is no such file, or no room, the table grows later.
    let Ok(file) = File::open("/dev/null") else { return };
    let copies: Vec<File> = (0..count).map_while(|_| file.try_clone().ok()).collect();
    drop(copies);
}

/// How the keys of these settings are looked up, once the first request is about to go.
fn credentials(settings: &Settings, environment: &Environment) -> Credentials {
    let keys = settings.keys.clone();
    let call = settings.call.clone();
    let environment = environment.clone();
    let labels = keys.iter().map(|key| key.label.clone()).collect();
    Credentials::new(labels, move || {
        keys.iter().map(|key| credential(key, &call, &environment)).collect::<Result<Vec<_>, _>>()
    })
}

fn credential(
    key: &KeySettings,
    call: &CallSettings,
    environment: &Environment,
) -> Result<Credential, String> {
    let label = key.label.clone();
    let secret = match &key.source {
        KeySource::Nothing => None,
        KeySource::Variable(name) => Some(environment.variable(name).ok_or_else(|| {
            format!("key {label}: the variable {name} is not set: set it, or name another one")
        })?),
        KeySource::DefaultVariable(name) => {
            let value = environment.variable(name);
            if value.is_none() && call.own_host {
                return Err(format!(
                    "the variable {name} is not set: set it to your key, or name another one with --key-env"
                ));
            }
            // A default credential goes to the provider itself and to this machine, nowhere else.
            value.filter(|_| call.own_host || is_loopback(&call.endpoint))
        }
        KeySource::File(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("key {label}: {} cannot be read: {error}", path.display()))?;
            let text = text.trim().to_owned();
            if text.is_empty() {
                return Err(format!("key {label}: {} is empty", path.display()));
            }
            Some(text)
        }
    };
    Ok(Credential { label, secret: secret.map(|text| Secret::new(text.trim().to_owned())) })
}

fn is_loopback(endpoint: &str) -> bool {
    let rest = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or(rest);
    let host = authority.strip_prefix('[').and_then(|host| host.split(']').next());
    let host = host.unwrap_or_else(|| authority.split(':').next().unwrap_or(authority));
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Why the execution ended, with what a ceiling left undone.
fn why(ended: &Ended) -> String {
    match &ended.needed {
        Some(needed) => format!("{}: {needed}", ended.exit.why),
        None => ended.exit.why.clone(),
    }
}

/// The summary of an execution.
fn summary(
    ended: &Ended,
    settings: &Settings,
    (rows, selected): (u64, u64),
    command: &str,
    place: &str,
) -> Summary {
    let totals = &ended.totals;
    let minutes = ended.wall.as_secs_f64() / 60.0;
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; counts are far below 2^53")]
    let rate = |count: u64| (minutes > 0.0 && count > 0).then(|| count as f64 / minutes);
    // Where the output is not in its place, the same command puts it there, whether or not rows are left.
    let asks = ended.open > 0 || matches!(ended.exit.code, Failure::UNABLE | 129 | 130 | 143);
    Summary {
        run: ended.run,
        execution: ended.execution.into(),
        version: settings.prompt.version.clone(),
        input: Input {
            path: settings.input.path.display(),
            digest: ended.input_digest.to_hex(),
            rows: (settings.input.selection == crate::model::Selection::All).then_some(rows),
            selected,
        },
        status: totals.status,
        reason: totals.reason.clone(),
        exit: Some(Exit { code: ended.exit.code, why: why(ended) }),
        attempts: totals.attempts,
        retries: totals.retries,
        repairs: totals.repairs,
        throttled: totals.throttled,
        replayed: totals.replayed,
        tokens: totals.tokens,
        cost: Cost::of(totals, ended.possible, settings.limits.max_cost),
        wall: ended.wall,
        finished_here: ended.finished_here,
        sent_here: ended.sent_here,
        rows_per_minute: rate(ended.finished_here),
        requests_per_minute: rate(ended.sent_here),
        latency: Latency { p50: ended.latencies.p50(), p95: ended.latencies.p95() },
        started: ended.started,
        ended: Some(ended.ended),
        files: ended.files.iter().map(|path| path.display().to_string()).collect(),
        resume: asks.then(|| command.to_owned()),
        place: place.to_owned(),
        failures: ended.failures.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_by_address() {
        for url in ["http://localhost:1/v1", "http://127.0.0.9/v1", "http://[::1]:8000/v1?x"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["https://api.example.com/v1", "http://localhost.evil.example/v1", "http://10.0.0.1/v1"] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
