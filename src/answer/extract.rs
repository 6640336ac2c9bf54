//! Where in a text the answer may be.

use crate::answer::json::{Parsed, read_prefix};

/// What comes before an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Thinking<'a> {
    /// No leading think block.
    None,
    /// A leading one, and what follows it.
    Opened(&'a str),
    /// The end of one whose beginning is not there, and what follows it.
    ClosedOnly(&'a str),
    /// A leading one that never ends.
    Unclosed,
}

const TAGS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// Looks for a leading think block.
pub(super) fn thinking(text: &str) -> Thinking<'_> {
    let start = text.trim_start();
    for (open, close) in TAGS {
        if let Some(inside) = start.strip_prefix(open) {
            return inside
                .find(close)
                .and_then(|at| inside.get(at + close.len()..))
                .map_or(Thinking::Unclosed, Thinking::Opened);
        }
    }
    TAGS.iter()
        .filter_map(|(_, close)| text.find(close).map(|at| (at, at + close.len())))
        .min()
        .and_then(|(_, end)| text.get(end..))
        .map_or(Thinking::None, Thinking::ClosedOnly)
}

/// What is inside of the one code fence that encloses the whole text.
pub(super) fn fenced(text: &str) -> Option<&str> {
    let text = text.trim();
    let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark))?;
    let inside = text.strip_prefix(mark)?.strip_suffix(mark)?;
    // The word behind the opening marks names a language.
    Some(inside.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric() || "_-+.".contains(letter)))
}

/// The complete JSON objects and arrays that stand in a text, one after the other.
///
/// Each is read by the parser from its first bracket. Where that fails, the search goes on at the place of the
/// failure: what the parser had taken in belongs to a broken value, and an object inside of it is not an answer. When
/// the text ends inside of a value, the search ends too. So every byte is read once.
pub(super) struct Values<'a> {
    text: &'a str,
    at: usize,
    /// Offsets at which lines begin, to find the place of a failure.
    lines: Vec<usize>,
}

impl<'a> Values<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let breaks = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n').map(|(at, _)| at + 1);
        Self { text, at: 0, lines: std::iter::once(0).chain(breaks).collect() }
    }

    /// The offset of a line and column that count from `start`.
    fn offset(&self, start: usize, line: usize, column: usize) -> usize {
        if line <= 1 {
            return start + column.saturating_sub(1);
        }
        let first = self.lines.partition_point(|&begin| begin <= start);
        self.lines.get(first + line - 2).map_or(self.text.len(), |begin| begin + column.saturating_sub(1))
    }
}

impl<'a> Iterator for Values<'a> {
    /// The value and its text.
    type Item = (Parsed, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let found = self.text.as_bytes().get(self.at..)?.iter().position(|byte| b"{[".contains(byte))?;
            let start = self.at + found;
            let rest = self.text.get(start..)?;
            match read_prefix(rest) {
                Ok(parsed) => {
                    self.at = start + parsed.end.max(1);
                    let text = rest.get(..parsed.end)?;
                    return Some((parsed, text));
                }
                Err(broken) if broken.cut || broken.deep => {
                    self.at = self.text.len();
                    return None;
                }
                Err(broken) => self.at = self.offset(start, broken.line, broken.column).max(start + 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        Values::new(text).map(|(_, text)| text).collect()
    }

    #[test]
    fn think_blocks_lead() {
        assert_eq!(thinking("  <think>a</think> {}"), Thinking::Opened(" {}"));
        assert_eq!(thinking("<thinking>a</think></thinking>{}"), Thinking::Opened("{}"));
        assert_eq!(thinking("a</think>{}"), Thinking::ClosedOnly("{}"));
        assert_eq!(thinking("<think>a {}"), Thinking::Unclosed);
        assert_eq!(thinking("<thinker>"), Thinking::None);
    }

    #[test]
    fn a_fence_encloses_everything() {
        assert_eq!(fenced("```json\n{}\n```\n"), Some("\n{}\n"));
        assert_eq!(fenced("```{}```"), Some("{}"));
        assert_eq!(fenced("~~~\n{}\n~~~"), Some("\n{}\n"));
        assert_eq!(fenced("see ```{}```"), None);
        assert_eq!(fenced("```"), None);
    }

    #[test]
    fn values_stand_one_after_the_other() {
        assert_eq!(found(r#"a {"a":"}"} b [1] {"b":{}} {"#), [r#"{"a":"}"}"#, "[1]", r#"{"b":{}}"#]);
        assert_eq!(found("use {braces} and {\"a\":1}"), [r#"{"a":1}"#]);
        assert_eq!(found("é {\"a\":\n x}\n\n{\"é\":1}"), ["{\"é\":1}"]);
        assert_eq!(found(r#"{ {"a":1} }"#), [r#"{"a":1}"#]);
        assert_eq!(found("{\n\n{\"a\":1}\n}"), [r#"{"a":1}"#]);
    }

    #[test]
    fn a_part_of_a_broken_value_is_no_value() {
        assert!(found(r#"{"a":{"b":1},"c":NaN}"#).is_empty());
        assert!(found(r#"{"a":{"b":1},"c":"cut"#).is_empty());
        assert!(found(r#"[{"b":1},]"#).is_empty());
    }

    #[test]
    fn hostile_texts_end_soon() {
        for unit in ["{", "[", "{\"a\":", "[1,", "{\"a\":[", "{x", "[[[]x", "\"{", "{\n"] {
            assert!(found(&unit.repeat(200_000 / unit.len())).len() < 200_000, "{unit}");
        }
        assert_eq!(found(&"{}".repeat(1000)).len(), 1000);
    }
}
