//! Lines: width, wrapping, colour.

use crate::model::Status;

/// ANSI colours, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    const GREEN: &'static str = "32";
    const RED: &'static str = "31";
    const YELLOW: &'static str = "33";
    const BOLD: &'static str = "1";
    const DIM: &'static str = "2";

    fn with(self, code: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    /// What stands out.
    pub(super) fn bold(self, text: &str) -> String {
        self.with(Self::BOLD, text)
    }

    /// What stands back.
    pub(super) fn dim(self, text: &str) -> String {
        self.with(Self::DIM, text)
    }

    /// What went well or did not.
    pub(super) fn verdict(self, good: bool, text: &str) -> String {
        self.with(if good { Self::GREEN } else { Self::RED }, text)
    }

    /// What waits for somebody.
    pub(super) fn warning(self, text: &str) -> String {
        self.with(Self::YELLOW, text)
    }

    /// A text in the colour of a status; statuses without rows stand back.
    pub(super) fn status(self, status: Status, count: u64, text: &str) -> String {
        match status {
            _ if count == 0 => self.dim(text),
            Status::Pass => self.verdict(true, text),
            Status::Fail | Status::Error => self.verdict(false, text),
            Status::Review | Status::Skipped => self.warning(text),
        }
    }
}

/// The columns that a text takes on a terminal: two for East Asian wide characters and emoji, none for combining
/// marks, one for the rest.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x200b..=0x200d | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// The text in lines of at most `width` columns, broken at spaces. A longer word (a path) and what stands between
/// two backticks (a command) stay whole, so that they can be copied.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words(text) {
        let size = columns(word);
        if used > 0 && used + 1 + size > width {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += size;
        }
    }
    lines
}

/// The parts of a text between its spaces, spaces within paired backticks apart.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let paired = text.matches('`').count() / 2 * 2;
    let mut ticks = 0;
    text.split(move |c: char| {
        ticks += usize::from(c == '`');
        c == ' ' && (ticks % 2 == 0 || ticks > paired)
    })
    .filter(|word| !word.is_empty())
}

/// Adds `text` under a lead, wrapped, its further lines indented to where the first one begins.
pub(super) fn push_hanging(into: &mut String, lead: &str, text: &str, width: usize) {
    let indent = columns(lead);
    for (index, line) in wrap(text, width.saturating_sub(indent).max(20)).iter().enumerate() {
        if index == 0 {
            into.push_str(format!("{lead}{line}").trim_end());
        } else {
            into.push_str(&" ".repeat(indent));
            into.push_str(line);
        }
        into.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_keeps_long_words() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("a longlonglong b", 5), ["a", "longlonglong", "b"]);
        assert_eq!(wrap("日本 日本", 8), ["日本", "日本"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("a `b c d` e `f g", 5), ["a", "`b c d`", "e `f", "g"]);
        let mut text = String::new();
        push_hanging(&mut text, "  hint: ", "one two three four five six seven", 28);
        assert_eq!(text, "  hint: one two three four\n        five six seven\n");
    }

    #[test]
    fn colour_is_there_or_not_at_all() {
        assert_eq!(Paint(false).status(Status::Fail, 1, "x"), "x");
        assert_eq!(Paint(true).status(Status::Fail, 1, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Paint(true).status(Status::Fail, 0, "x"), "\u{1b}[2mx\u{1b}[0m");
    }
}
