//! Text that came from outside, made fit for a terminal.

use std::fmt::Write as _;

/// The text with everything escaped that could move a cursor, change a colour, or reorder what a person reads:
/// control characters (C0, DEL, C1), line separators and bidirectional controls. The result is one line.
pub fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => clean.push_str("\\n"),
            '\r' => clean.push_str("\\r"),
            '\t' => clean.push_str("\\t"),
            _ if is_obeyed(c) => {
                let _ = write!(clean, "\\u{{{:x}}}", u32::from(c));
            }
            _ => clean.push(c),
        }
    }
    clean
}

/// Whether a terminal obeys a character rather than showing it.
pub fn is_obeyed(c: char) -> bool {
    c.is_control() || is_invisible_order(c)
}

/// Separators that some terminals take for a line end, and the controls of the Unicode bidirectional algorithm
/// (UAX 9), which can make a line read as something else.
fn is_invisible_order(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'
            ..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_what_moves_the_cursor_and_keeps_the_rest() {
        assert_eq!(printable("a\u{1b}[31mred\r\n\tb\u{7f}\u{9b}"), r"a\u{1b}[31mred\r\n\tb\u{7f}\u{9b}");
        assert_eq!(printable("x\u{202e}y\u{2028}z\u{2066}"), r"x\u{202e}y\u{2028}z\u{2066}");
        assert_eq!(printable("Grüße, 日本, \\n, 👩‍🚀"), "Grüße, 日本, \\n, 👩‍🚀");
    }

    proptest! {
        #[test]
        fn nothing_of_control_is_left(text in ".*") {
            prop_assert!(!printable(&text).chars().any(char::is_control));
        }
    }
}
