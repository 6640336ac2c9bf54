//! Annotations and the job summary of GitHub Actions.

use std::fmt::Write as _;

use crate::model::{InputRow, RowResult, Status};
use crate::report::{Summary, is_obeyed};

/// The first rows that somebody should look at, as workflow commands.
#[derive(Debug, Default)]
pub struct Annotations {
    lines: Vec<String>,
}

impl Annotations {
    /// The most that are made: GitHub shows ten of a kind for a step.
    pub const MOST: usize = 10;

    /// Takes a row in, in the order of the rows. `file` is the input's path, absent for standard input.
    pub fn add(&mut self, file: Option<&str>, row: &InputRow, result: &RowResult) {
        let level = match result.status {
            Status::Fail | Status::Error => "error",
            Status::Review => "warning",
            Status::Pass | Status::Skipped => return,
        };
        if self.lines.len() >= Self::MOST {
            return;
        }
        let mut line = format!("::{level} ");
        if let Some(file) = file {
            let _ = write!(line, "file={},line={},", property(file), row.line);
        }
        let _ =
            write!(line, "title=row {}: {}/{}::", result.row, result.status.as_str(), result.reason.as_str());
        let detail = match (&result.error, &result.answer) {
            (Some(error), _) => error.as_str(),
            (None, Some(answer)) => answer.text.as_str(),
            (None, None) => result.reason.as_str(),
        };
        line.push_str(&message(detail));
        self.lines.push(line);
    }

    /// The commands, one a line.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// The summary in Markdown.
pub fn markdown(summary: &Summary) -> String {
    let mut text = format!("### verify: {}\n\n", plain(&summary.input.path));
    if let Some(exit) = &summary.exit {
        let _ = writeln!(text, "**exit {}**: {}\n", exit.code, plain(&exit.why));
    }
    text.push_str("| status | rows |\n|---|---:|\n");
    for status in Status::ALL {
        let _ = writeln!(text, "| {} | {} |", status.as_str(), summary.status.get(status));
    }
    if !summary.failures.is_empty() {
        text.push_str("\n| reason | rows |\n|---|---:|\n");
        for (reason, count) in &summary.reason {
            let _ = writeln!(text, "| {} | {count} |", reason.as_str());
        }
    }
    let spent = summary.cost.spent.map_or_else(|| "unknown".to_owned(), |spent| format!("{spent} USD"));
    let _ = writeln!(text, "\n{} requests, cost {spent}, run {}", summary.attempts, summary.run);
    if let Some(resume) = &summary.resume {
        let _ = writeln!(text, "\nTo continue:\n\n```\n{}\n```", resume.replace("```", "` ` `"));
    }
    text
}

/// Text that Markdown and HTML leave alone.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if is_obeyed(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A message of a workflow command, on one line.
fn message(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    text.chars().map(|c| if is_obeyed(c) { '\u{fffd}' } else { c }).collect()
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Reason, RowContent, RowUsage, SampleCounts};

    #[test]
    fn annotations_are_ten_lines_at_most_and_escape_what_would_end_them() {
        let row = InputRow { number: 3, line: 9, content: RowContent::Fields(Vec::new()) };
        let mut result = RowResult {
            row: 3,
            id: None,
            status: Status::Error,
            reason: Reason::Rejected,
            answer: None,
            confidence: None,
            agreement: None,
            samples: SampleCounts::default(),
            model: None,
            error: Some("100% bad\n::error::x".to_owned()),
            usage: RowUsage::default(),
        };
        let mut annotations = Annotations::default();
        for _ in 0..12 {
            annotations.add(Some("a,b:c.csv"), &row, &result);
        }
        assert_eq!(annotations.lines().len(), Annotations::MOST);
        assert_eq!(
            annotations.lines()[0],
            "::error file=a%2Cb%3Ac.csv,line=9,title=row 3: error/rejected::100%25 bad%0A::error::x"
        );
        result.status = Status::Pass;
        let mut none = Annotations::default();
        none.add(None, &row, &result);
        assert!(none.lines().is_empty());
    }

    #[test]
    fn markdown_holds_no_markup_of_others() {
        assert_eq!(plain("<b>*x*_|\n"), "&lt;b>\\*x\\*\\_\\| ");
    }
}
