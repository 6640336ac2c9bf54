//! The story of a row as people read it.

use std::fmt::Write as _;

use crate::model::{AttemptRecord, Ending, PersonDecision, Reason, RowResult, Status};
use crate::report::layout::Paint;
use crate::report::measure::{counted, grouped, latency_text, money_text};
use crate::report::printable;
use crate::report::show::{ShowRow, ShowSample, outcome_word, raw_text};

/// Characters shown of a prompt or a reply.
const MOST: usize = 4_000;

pub(super) fn text(row: &ShowRow, color: bool) -> String {
    let paint = Paint(color);
    let mut text = String::new();
    let head = match &row.result {
        Some(result) => format!("row {}: {} ({})", row.row, result.status, result.reason),
        None => format!("row {}: not finished", row.row),
    };
    text.push_str(&match &row.result {
        Some(result) => paint.status(result.status, 1, &head),
        None => paint.bold(&head),
    });
    text.push('\n');
    if let Some(id) = row.result.as_ref().and_then(|result| result.id.as_deref()) {
        let _ = writeln!(text, "  id {}", printable(id));
    }
    let _ = writeln!(text, "  {}", why(row));
    if let Some(answer) = row.result.as_ref().and_then(|result| result.answer.as_ref()) {
        let title = if answer.extracted { "answer (extracted from a longer text)" } else { "answer" };
        push_block(&mut text, paint, title, &answer.text, "  ");
    }
    if !row.version.is_empty() {
        let _ = writeln!(text, "\n{} {}", paint.bold("prompt version"), printable(&row.version));
    }
    match &row.prompt {
        Some(prompt) => {
            if let Some(system) = &prompt.system {
                push_block(&mut text, paint, "system prompt", system, "  ");
            }
            push_block(&mut text, paint, "prompt", &prompt.user, "  ");
        }
        None => text.push_str("\nno prompt: it cannot be rendered for this row\n"),
    }
    for decision in &row.decisions {
        push_decision(&mut text, paint, decision);
    }
    for sample in &row.samples {
        push_sample(&mut text, paint, row, sample);
    }
    if row.samples.iter().all(|sample| sample.attempts.is_empty()) {
        text.push_str("\nno attempts\n");
    }
    text
}

fn push_sample(text: &mut String, paint: Paint, row: &ShowRow, sample: &ShowSample) {
    if row.samples.len() > 1 || sample.replayed_from.is_some() {
        let from = sample
            .replayed_from
            .as_deref()
            .map_or(String::new(), |from| format!(", replayed from {}", printable(from)));
        let _ = writeln!(text, "\n{}{from}", paint.bold(&format!("sample {}", sample.n)));
    }
    for attempt in &sample.attempts {
        push_attempt(text, paint, attempt);
    }
}

fn push_decision(text: &mut String, paint: Paint, decision: &PersonDecision) {
    let by = if decision.reviewer.is_empty() {
        String::new()
    } else {
        format!(" by {}", printable(&decision.reviewer))
    };
    let word = paint.verdict(decision.positive, decision.word());
    let at = decision.decided.to_rfc3339();
    let _ =
        writeln!(text, "\n{} {word}{by}, {at}, in run {}", paint.bold("decision"), printable(&decision.run));
    if !decision.note.is_empty() {
        push_lines(text, &decision.note, "  ");
    }
}

fn push_attempt(text: &mut String, paint: Paint, attempt: &AttemptRecord) {
    let word = outcome_word(attempt.ending);
    let word = match attempt.ending {
        Ending::Valid => paint.verdict(true, word),
        Ending::Failed(_) => paint.verdict(false, word),
        Ending::Retried(_) => paint.warning(&format!("{word}, tried again")),
        Ending::Throttled | Ending::Deferred(_) | Ending::Abandoned => paint.warning(word),
    };
    let http = attempt.http_status.map_or("no reply".to_owned(), |status| format!("HTTP {status}"));
    let repair = if attempt.repair { " (repair)" } else { "" };
    let _ = write!(
        text,
        "\n{}{repair}: {word}, {http}, {}\n",
        paint.bold(&format!("attempt {}", attempt.ticket.attempt)),
        latency_text(std::time::Duration::from_millis(attempt.millis))
    );
    let mut facts = vec![attempt.started.to_rfc3339(), format!("key {}", printable(&attempt.key_label))];
    if let Some(usage) = attempt.usage {
        let about = if attempt.estimated { "about " } else { "" };
        facts.push(format!(
            "{about}{} input and {} output tokens",
            grouped(usage.input),
            grouped(usage.output)
        ));
    }
    facts.push(match attempt.cost {
        Some(_) => money_text(attempt.cost),
        None => "cost unknown".to_owned(),
    });
    if let Some(id) = &attempt.request_id {
        facts.push(format!("request {}", printable(id)));
    }
    let _ = writeln!(text, "  {}", facts.join(", "));
    if let Some(error) = &attempt.error {
        let _ = writeln!(text, "  error: {}", cut(&printable(error)));
    }
    if let Some(raw) = raw_text(attempt) {
        if raw.is_empty() {
            text.push_str("  an empty reply\n");
        } else {
            push_lines(text, &raw, "  | ");
        }
    }
}

fn push_block(text: &mut String, paint: Paint, title: &str, block: &str, lead: &str) {
    let _ = writeln!(text, "\n{}", paint.bold(title));
    push_lines(text, block, lead);
}

/// The lines of a text, each behind a lead, cut after [`MOST`] characters.
fn push_lines(text: &mut String, block: &str, lead: &str) {
    let shown = block.char_indices().nth(MOST).map_or(block, |(end, _)| &block[..end]);
    for line in shown.lines() {
        text.push_str(format!("{lead}{}", printable(line)).trim_end());
        text.push('\n');
    }
    let hidden = block[shown.len()..].chars().count();
    if hidden > 0 {
        let more = counted(u64::try_from(hidden).unwrap_or(u64::MAX), "more character");
        let _ = writeln!(text, "{lead}[{more}; --format json has all]");
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line.to_owned(),
    }
}

pub(super) fn why(row: &ShowRow) -> String {
    let Some(result) = &row.result else {
        return "It is not finished: it waits, or a request for it is under way.".to_owned();
    };
    let numbers = numbers_text(result);
    let valid = result.samples.valid;
    let samples = format!("{valid} of {}", counted(u64::from(result.samples.planned), "sample"));
    match (result.status, result.reason) {
        (_, Reason::Reviewed) => "A person decided so.".to_owned(),
        (Status::Fail, _) => format!("The answer is valid and its verdict is not a pass{numbers}."),
        (Status::Pass, Reason::Valid) => {
            format!("The answer is valid and no verdict is configured, so it passes{numbers}.")
        }
        (Status::Pass, _) => format!("The answer is valid and its verdict is a pass{numbers}."),
        (_, Reason::Split) => format!("The samples contradict each other{numbers}, so a person must decide."),
        (_, Reason::SampleFailed) => {
            format!("Only {samples} brought a valid answer{numbers}, so a person must decide.")
        }
        (Status::Review, _) => {
            format!("The confidence is below the threshold{numbers}, so a person must decide.")
        }
        (Status::Error, reason) => {
            let what = match &result.error {
                Some(error) => format!(": {}", cut(&printable(error))),
                None => String::new(),
            };
            let words = error_words(reason);
            let advice = match reason {
                Reason::Truncated => " A larger --max-output-tokens asks again.",
                _ if reason.is_operational() => " Continuing the run asks again.",
                _ => "",
            };
            let stop = if what.ends_with(['.', '!', '?']) { "" } else { "." };
            format!("{words}{what}{stop}{advice}")
        }
        (Status::Skipped, reason) => skipped_words(reason).to_owned(),
    }
}

/// Confidence, agreement and samples, as far as there are any.
fn numbers_text(result: &RowResult) -> String {
    let mut parts = Vec::new();
    if let Some(confidence) = result.confidence {
        parts.push(format!("confidence {}", confidence.normalize()));
    }
    if let Some(agreement) = result.agreement.filter(|_| result.samples.planned > 1) {
        let made = result.samples.made;
        parts.push(format!(
            "agreement {} over {made} of {}",
            four_places(agreement),
            counted(u64::from(result.samples.planned), "sample")
        ));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn four_places(value: rust_decimal::Decimal) -> rust_decimal::Decimal {
    value.round_dp_with_strategy(4, rust_decimal::RoundingStrategy::MidpointAwayFromZero).normalize()
}

fn error_words(reason: Reason) -> &'static str {
    match reason {
        Reason::RateLimited => "The provider throttled it until patience ended",
        Reason::Timeout => "No complete reply came in time",
        Reason::Connection => "The connection failed",
        Reason::ServerError => "The provider failed",
        Reason::Rejected => "The server rejected the request",
        Reason::TooLong => "The prompt does not fit the model",
        Reason::Refused => "The model or the provider's policy declined",
        Reason::Filtered => "A content filter cut the answer",
        Reason::Truncated => "The answer stops at the length limit",
        Reason::Empty => "The model gave no text",
        Reason::InvalidAnswer => "No answer satisfies the schema",
        Reason::BadInput => "The input record cannot be used",
        _ => "There is no usable answer",
    }
}

fn skipped_words(reason: Reason) -> &'static str {
    match reason {
        Reason::Budget => {
            "The ceiling left nothing for it; raise --max-cost or --max-calls and continue the run."
        }
        Reason::Deadline => "The time ran out before it was finished; continue the run.",
        Reason::Interrupted => "The run was interrupted before it was finished; continue the run.",
        _ => "The run could not go on before it was finished; continue the run.",
    }
}
