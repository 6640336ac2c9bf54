//! The final table that people read.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::base::Money;
use crate::model::{Reason, Status};
use crate::report::layout::{Paint, push_hanging};
use crate::report::measure::{counted, grouped, latency_text, rate_text};
use crate::report::{Cost, FailureGroup, FailureGroups, Summary, hint, printable};

/// Messages shown for one reason.
const MESSAGES: usize = 5;
/// Characters shown of one message.
const MESSAGE: usize = 160;

pub(super) fn text(summary: &Summary, width: usize, color: bool) -> String {
    let table = Table { summary, width: width.clamp(40, 120), paint: Paint(color) };
    let mut text = table.head();
    text.push('\n');
    text.push_str(&table.statuses());
    let attention = table.attention();
    if !attention.is_empty() {
        text.push('\n');
        text.push_str(&attention);
    }
    text.push('\n');
    text.push_str(&table.figures());
    text
}

struct Table<'a> {
    summary: &'a Summary,
    width: usize,
    paint: Paint,
}

impl Table<'_> {
    fn head(&self) -> String {
        let input = &self.summary.input;
        let mut head = format!("{}: {}", printable(&input.path), counted(input.selected, "row"));
        if let Some(rows) = input.rows.filter(|rows| *rows != input.selected) {
            let _ = write!(head, " of {}", grouped(rows));
        }
        let took = latency_text(self.summary.wall);
        let _ = match (self.summary.ended, self.summary.execution) {
            (None, _) => write!(head, ", running for {took}"),
            (Some(_), 0 | 1) => write!(head, " in {took}"),
            // The rows are the run's, the time is not.
            (Some(_), number) => {
                let here = grouped(self.summary.finished_here);
                write!(head, ", {here} of them in execution {number} in {took}")
            }
        };
        self.paint.bold(&head) + "\n"
    }

    fn statuses(&self) -> String {
        let summary = self.summary;
        let waiting = summary.input.selected.saturating_sub(summary.status.total());
        let digits = grouped(summary.input.selected.max(summary.status.total())).len();
        let mut text = String::new();
        for status in Status::ALL {
            let count = summary.status.get(status);
            let cell = format!("  {:<8}  {:>digits$}", status.as_str(), grouped(count));
            let reasons = self.reasons_of(status);
            if reasons.is_empty() {
                text.push_str(&self.paint.status(status, count, &cell));
                text.push('\n');
            } else {
                let mut line = String::new();
                push_hanging(&mut line, &format!("{cell}   "), &reasons, self.width);
                // Colour goes around the cell only after the width was measured.
                text.push_str(&line.replacen(&cell, &self.paint.status(status, count, &cell), 1));
            }
        }
        if waiting > 0 && summary.ended.is_none() {
            let _ = writeln!(text, "  {:<8}  {:>digits$}", "waiting", grouped(waiting));
        }
        text
    }

    /// The reasons of a status with their counts. `agreed` and `reviewed` rows may pass or fail: they are told where
    /// their place is certain.
    fn reasons_of(&self, status: Status) -> String {
        let summary = self.summary;
        let count = |reason: Reason| summary.reason.get(&reason).copied().unwrap_or(0);
        let (pass, fail) = (summary.status.pass, summary.status.fail);
        let reviewed = count(Reason::Reviewed);
        let agreed_here = match status {
            Status::Pass => pass.saturating_sub(count(Reason::Valid)),
            _ => fail,
        };
        let mut parts: Vec<(u64, Reason)> = Vec::new();
        for (&reason, &count) in &summary.reason {
            let here = match reason {
                Reason::Agreed if reviewed > 0 && pass > 0 && fail > 0 => 0,
                Reason::Agreed if matches!(status, Status::Pass | Status::Fail) => count.min(agreed_here),
                Reason::Reviewed
                    if (pass == 0 && status == Status::Fail) || (fail == 0 && status == Status::Pass) =>
                {
                    count
                }
                Reason::Agreed | Reason::Reviewed => 0,
                _ if status_of(reason) == status => count,
                _ => 0,
            };
            if here > 0 {
                parts.push((here, reason));
            }
        }
        parts.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
        let parts: Vec<String> =
            parts.iter().map(|(count, reason)| format!("{} {reason}", grouped(*count))).collect();
        parts.join(", ")
    }

    /// Rows that are not decided, by reason, with equal failures grouped and a hint.
    fn attention(&self) -> String {
        let mut sections: BTreeMap<Reason, (u64, Vec<&FailureGroup>)> = BTreeMap::new();
        for (&reason, &count) in self.summary.reason.iter().filter(|(_, count)| **count > 0) {
            sections.entry(reason).or_default().0 = count;
        }
        for group in &self.summary.failures {
            let section = sections.entry(group.reason).or_default();
            section.1.push(group);
            let listed = section.1.iter().map(|group| group.count).sum();
            section.0 = section.0.max(listed);
        }
        let mut sections: Vec<_> = sections.into_iter().collect();
        sections.retain(|(reason, _)| hint(*reason, None, "").is_some());
        // Skipped rows come last: what stopped the run stands among the others.
        sections.sort_by_key(|(reason, (count, _))| {
            (status_of(*reason) == Status::Skipped, std::cmp::Reverse(*count))
        });
        let digits = sections.iter().map(|(_, (count, _))| grouped(*count).len()).max().unwrap_or(1);
        let mut text = String::new();
        for (reason, (count, groups)) in sections {
            let row = groups.iter().filter_map(|group| group.first_rows.first().copied()).min();
            let Some(advice) = hint(reason, row, &self.summary.place) else { continue };
            let lead = format!("  {:>digits$} ", grouped(count));
            let _ = writeln!(text, "{lead}{}", self.paint.status(status_of(reason), count, reason.as_str()));
            self.push_groups(&mut text, &groups, lead.len());
            push_hanging(&mut text, &format!("{}hint: ", " ".repeat(lead.len() + 2)), &advice, self.width);
        }
        if text.is_empty() { text } else { self.paint.bold("To look at") + "\n" + &text }
    }

    fn push_groups(&self, text: &mut String, groups: &[&FailureGroup], indent: usize) {
        let digits = groups.iter().map(|group| grouped(group.count).len()).max().unwrap_or(1);
        for group in groups.iter().take(MESSAGES) {
            let words = if group.message == FailureGroups::OTHER {
                "other messages".to_owned()
            } else {
                cut(&printable(&group.message))
            };
            let rows = rows_text(group);
            let words = match (words.is_empty(), rows.is_empty()) {
                (true, _) => rows,
                (false, true) => words,
                (false, false) => format!("{words} ({rows})"),
            };
            let lead = format!("{}{:>digits$} x ", " ".repeat(indent + 2), grouped(group.count));
            push_hanging(text, &lead, &words, self.width);
        }
        if groups.len() > MESSAGES {
            let more = u64::try_from(groups.len() - MESSAGES).unwrap_or(u64::MAX);
            let _ = writeln!(text, "{}and {}", " ".repeat(indent + 2), counted(more, "more message"));
        }
    }

    fn figures(&self) -> String {
        let summary = self.summary;
        let mut text = String::new();
        let mut push = |name: &str, value: &str| {
            push_hanging(&mut text, &format!("  {name:<8}  "), value, self.width);
        };
        push("requests", &requests_text(summary));
        push("tokens", &tokens_text(summary));
        push("cost", &cost_text(&summary.cost, summary.status.pass, summary.attempts));
        push("time", &time_text(summary));
        if let (Some(p50), Some(p95)) = (summary.latency.p50, summary.latency.p95) {
            push("latency", &format!("p50 {}, p95 {}", latency_text(p50), latency_text(p95)));
        }
        for (index, file) in summary.files.iter().enumerate() {
            push(if index == 0 { "files" } else { "" }, &printable(file));
        }
        push("run", &run_text(summary));
        if let Some(exit) = &summary.exit {
            let mut lines = String::new();
            let value = format!("{}: {}", exit.code, printable(&exit.why));
            push_hanging(&mut lines, "  exit      ", &value, self.width);
            text.push_str(&self.paint.verdict(exit.code == 0, lines.trim_end_matches('\n')));
            text.push('\n');
        }
        if let Some(command) = &summary.resume {
            // On one line, however long, so that it can be copied.
            let _ = writeln!(text, "  continue  {}", printable(command));
        }
        text
    }
}

/// The status that a reason belongs to; `agreed`, `valid` and `reviewed` to a pass, although some of them may fail.
fn status_of(reason: Reason) -> Status {
    match reason {
        Reason::Agreed | Reason::Valid | Reason::Reviewed => Status::Pass,
        Reason::Split | Reason::SampleFailed | Reason::LowConfidence => Status::Review,
        Reason::Budget | Reason::Deadline | Reason::Interrupted | Reason::Stopped => Status::Skipped,
        _ => Status::Error,
    }
}

fn cut(message: &str) -> String {
    if message.chars().count() <= MESSAGE {
        return message.to_owned();
    }
    message.chars().take(MESSAGE).collect::<String>() + " ..."
}

fn rows_text(group: &FailureGroup) -> String {
    let rows: Vec<String> = group.first_rows.iter().map(u64::to_string).collect();
    if rows.is_empty() {
        return String::new();
    }
    let word = if rows.len() == 1 && group.count == 1 { "row" } else { "rows" };
    let more = if u64::try_from(rows.len()).is_ok_and(|listed| listed < group.count) { ", ..." } else { "" };
    format!("{word} {}{more}", rows.join(", "))
}

fn requests_text(summary: &Summary) -> String {
    let counted_as = |count: u64, one: &str, many: &str| {
        format!("{} {}", grouped(count), if count == 1 { one } else { many })
    };
    let mut text =
        format!("{} sent, {}, ", grouped(summary.attempts), counted_as(summary.retries, "retry", "retries"));
    if summary.repairs > 0 {
        let _ = write!(text, "{}, ", counted_as(summary.repairs, "repair", "repairs"));
    }
    let _ = write!(text, "{} throttled", grouped(summary.throttled));
    if summary.replayed > 0 {
        let _ = write!(text, "; {} replayed", counted(summary.replayed, "answer"));
    }
    text
}

/// How long it took. Of a run that was continued, it is told what was done in that time: all else counts the whole
/// run.
fn time_text(summary: &Summary) -> String {
    let mut text = latency_text(summary.wall);
    let is_continued = summary.execution > 1 && summary.ended.is_some();
    if is_continued {
        let (rows, requests) = (counted(summary.finished_here, "row"), counted(summary.sent_here, "request"));
        let _ = write!(text, " for {rows} and {requests} of execution {}", summary.execution);
    }
    for (rate, noun) in [(summary.rows_per_minute, "rows"), (summary.requests_per_minute, "requests")] {
        if let Some(rate) = rate {
            let _ = write!(text, ", {} {noun}/min", rate_text(rate));
        }
    }
    text
}

fn run_text(summary: &Summary) -> String {
    let mut text = format!("{}, execution {}", summary.run, summary.execution);
    if !summary.version.is_empty() {
        let _ = write!(text, ", prompt version {}", printable(&summary.version));
    }
    if summary.execution > 1 {
        let _ = write!(
            text,
            "; counts, tokens and cost are of all {} executions, time and latency of this one",
            summary.execution
        );
    }
    text
}

fn tokens_text(summary: &Summary) -> String {
    let tokens = &summary.tokens;
    let mut text = format!("{} input", grouped(tokens.input));
    if tokens.cached_input > 0 {
        let _ = write!(text, " ({} of it cached)", grouped(tokens.cached_input));
    }
    let _ = write!(text, ", {} output", grouped(tokens.output));
    let asked = summary.status.total() - summary.status.skipped;
    if let Some(mean) = tokens.input.saturating_add(tokens.output).checked_div(asked).filter(|mean| *mean > 0)
    {
        let _ = write!(text, "; {} a row", grouped(mean));
    }
    text
}

/// What was spent: the exact part, the estimated part, what is possible besides, and the share of a pass.
fn cost_text(cost: &Cost, passes: u64, attempts: u64) -> String {
    let Some(spent) = cost.spent else {
        let mut text = "unknown: the model has no price; set one with --price 'input=1,output=4'".to_owned();
        if let Some(ceiling) = cost.ceiling {
            let _ = write!(text, "; ceiling ${ceiling}");
        }
        return text;
    };
    let mut text = String::new();
    if attempts == 0 && spent == Money::ZERO {
        text.push_str("$0");
    } else {
        text.push_str(&cost.parts_text());
        if let Some(share) = cost.per_pass(passes) {
            let _ = write!(text, "; ${share}/pass");
        }
    }
    if let Some(ceiling) = cost.ceiling {
        let _ = write!(text, "; ceiling ${ceiling}");
    }
    text
}
