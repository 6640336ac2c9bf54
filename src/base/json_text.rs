//! Where things end in the text of valid JSON, without building values. Where the text is not valid, an end is found
//! early; nothing panics.

/// The place of the first byte from `from` on that is no white space.
pub fn after_space(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count()
}

/// The place behind the string that begins, with its quote, at `at`.
pub fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(step) = bytes.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// The place behind the value that begins at `at`.
pub fn value_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    let mut depth = 0_usize;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = string_end(bytes, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            b'}' | b']' if depth == 1 => return at + 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_behind_strings_and_values() {
        let ends = |text: &str, at| (string_end(text.as_bytes(), at), value_end(text.as_bytes(), at));
        assert_eq!(ends(r#""a" "#, 0), (3, 3));
        assert_eq!(ends(r#""a\"\\", 1"#, 0), (7, 7));
        let value = |text: &str| value_end(text.as_bytes(), 0);
        assert_eq!(value(r#"{"a":"}","b":[1,{}]},"#), 20);
        assert_eq!((value("1.50 ,"), value("true}"), value("[]"), value("-0")), (4, 4, 2, 2));
        assert_eq!(after_space(b" \t\r\n x", 0), 5);
    }

    #[test]
    fn what_is_cut_off_ends_with_the_text() {
        for text in [r#""a"#, r#""a\"#, "{\"a\":[", "", "\"\\"] {
            let bytes = text.as_bytes();
            assert_eq!(value_end(bytes, 0), bytes.len(), "{text}");
            assert!(!text.starts_with('"') || string_end(bytes, 0) == bytes.len(), "{text}");
            assert_eq!(string_end(bytes, 9), bytes.len());
            assert_eq!(value_end(bytes, 9), bytes.len());
        }
    }
}
