//! What a run will take: `--dry-run`, `--probe`, and the question before a dear one.

use crate::base::Money;
use crate::cli::args::RunArgs;
use crate::cli::commands::Context;
use crate::cli::failure::Failure;
use crate::report::Estimate;
use crate::run::{Counting, Ended, Plan, forecast, quick_likely};

/// Prints what a run would take. Whatever keeps it from knowing is the caller's to mend.
pub(super) fn dry_run(plan: &Plan, args: &RunArgs, context: &Context) -> Result<u8, Failure> {
    let estimate = forecast(plan, Counting::Exact)
        .map_err(|error| Failure::problems(Failure::from(error).messages().to_vec()))?;
    Ok(print(&estimate, args, context))
}

/// Prints the estimate of the whole run that the rows of a probe allow.
pub(super) fn after_probe(
    plan: &mut Plan,
    ended: &Ended,
    args: &RunArgs,
    context: &Context,
) -> Result<u8, Failure> {
    // What is left is what continuing this very run would send.
    plan.choice.new = false;
    plan.choice.run = Some(ended.run.to_string());
    let estimate = forecast(plan, Counting::Exact)?.with_spent(&ended.totals, ended.wall);
    if !args.quiet {
        let spent = if ended.totals.unpriced {
            "an unknown sum".to_owned()
        } else {
            format!("${}", ended.totals.spent)
        };
        let rows = match ended.finished_here {
            1 => "1 row".to_owned(),
            rows => format!("{rows} rows"),
        };
        let left = if ended.open > 0 { "; the same command without --probe goes on" } else { "" };
        context.terminal.say(&format!("{rows} asked, {spent} spent in this run so far{left}; as a whole:"));
    }
    Ok(print(&estimate, args, context))
}

fn print(estimate: &Estimate, args: &RunArgs, context: &Context) -> u8 {
    let text = if args.json { format!("{}\n", estimate.to_json()) } else { estimate.to_text() };
    if args.json && !args.quiet {
        for note in &estimate.notes {
            context.terminal.say(note);
        }
    }
    if context.terminal.data(&text) { 0 } else { 141 }
}

/// Asks whether a run that will probably cost more than `limit` is to begin, or says so where nobody can be asked.
///
/// The check has seen how long prompts are, which is enough for most runs. Only where that is dear, the rows are read
/// once more, because what is stored may make it cheap.
pub(super) fn confirm(
    plan: &Plan,
    prompt_tokens: u64,
    limit: Money,
    args: &RunArgs,
    context: &Context,
) -> Result<(), Failure> {
    let rows = plan.checked.selected.min(plan.probe.unwrap_or(u64::MAX));
    let quick = quick_likely(&plan.settings, plan.price.as_ref(), rows, prompt_tokens);
    let Some(quick) = quick.filter(|quick| *quick > limit) else { return Ok(()) };
    let what = if plan.probe.is_some() {
        format!("{rows} rows, about ${quick}")
    } else {
        let estimate = forecast(plan, Counting::Ratio)?;
        if estimate.cost.is_none_or(|cost| cost.likely <= limit) {
            return Ok(());
        }
        estimate.to_line()
    };
    if context.terminal.can_ask() {
        let question = format!("this run: {what}. Go on?");
        return if context.terminal.ask(&question) {
            Ok(())
        } else {
            Err(Failure::usage("not confirmed: nothing was sent"))
        };
    }
    if !args.quiet {
        context.terminal.say(&format!("this run: {what}; that is above confirm_above = {limit} USD"));
    }
    Ok(())
}
