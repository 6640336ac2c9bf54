//! Records of JSONL: one object a line, kept as written.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::dataset::csv::without_line_end;
use crate::dataset::feed::Feed;
use crate::dataset::records::{Fault, Stopped};

/// The deepest nesting that `serde_json` reads back into a value.
const DEEPEST: usize = 127;

/// Finds the next line that is not blank, which then begins at the feed's first unread byte. Its length with its
/// line end; `None` at the end of the file.
pub(super) fn find(feed: &mut Feed, most: usize) -> Result<Option<usize>, Stopped> {
    let mut scanned = 0;
    loop {
        let unread = feed.unread();
        let line_end = memchr::memchr(b'\n', &unread[scanned..]);
        let length = line_end.map_or(unread.len(), |step| scanned + step + 1);
        if line_end.is_none() {
            scanned = length;
            if scanned > most.saturating_add(2) {
                return Err(Stopped::TooLong);
            }
            if feed.fill()? {
                continue;
            }
            if scanned == 0 {
                return Ok(None);
            }
        }
        let line = &feed.unread()[..length];
        if line.iter().all(u8::is_ascii_whitespace) {
            feed.consume(length);
            scanned = 0;
        } else if without_line_end(line).len() > most {
            return Err(Stopped::TooLong);
        } else {
            return Ok(Some(length));
        }
    }
}

/// The line without outer blanks.
pub(super) fn trim(line: &str) -> &str {
    line.trim_matches([' ', '\t', '\r'])
}

/// Moves a fault's column from a byte of the trimmed `line` to a character of `raw`, the line as it stands.
pub(super) fn place(mut fault: Fault, raw: &str, line: &str) -> Fault {
    fault.column = fault.column.map(|column| {
        let leading = raw.len() - raw.trim_start_matches([' ', '\t', '\r']).len();
        let before = usize::try_from(column).unwrap_or(usize::MAX).saturating_sub(1).min(line.len());
        let text = raw.as_bytes().get(..leading + before).unwrap_or_default();
        String::from_utf8_lossy(text).chars().count() as u64 + 1
    });
    fault
}

/// Whether a trimmed line is one JSON object; if so, whether it repeats a key at its top level.
pub(super) fn inspect(line: &str) -> Result<bool, Fault> {
    let is_surrogate = |at: usize| matches!(line.as_bytes().get(at + 1..at + 3), Some(b"ud" | b"uD"));
    let may_have_surrogate = memchr::memchr_iter(b'\\', line.as_bytes()).any(is_surrogate);
    if may_have_surrogate && serde_json::from_str::<IgnoredAny>(line).is_ok() {
        lone_surrogate(line).map_or(Ok(()), Err)?;
    }
    let mut keys = Vec::with_capacity(16);
    let mut reader = serde_json::Deserializer::from_str(line);
    // A root that is no object is read whole too: if its syntax is wrong, that is said first.
    let is_object = line.starts_with('{');
    let read = if is_object {
        reader.deserialize_map(Keys(&mut keys))
    } else {
        reader.deserialize_ignored_any(IgnoredAny).map(drop)
    };
    read.and_then(|()| reader.end()).map_err(|error| syntax_fault(line, &error))?;
    if !is_object {
        return Err(Fault {
            column: Some(1),
            ..Fault::new(format!("{} where an object belongs", kind(line)))
        });
    }
    if let Some(column) = too_deep(line) {
        return Err(Fault {
            column: Some(column),
            ..Fault::new(format!("nested deeper than {DEEPEST} levels"))
        });
    }
    keys.sort_unstable();
    Ok(keys.windows(2).any(|pair| pair[0] == pair[1]))
}

fn kind(line: &str) -> &'static str {
    match line.as_bytes().first() {
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Collects a hash of each key of the top level. Keys are compared by hash only: all that hangs on it is a warning.
struct Keys<'k>(&'k mut Vec<u64>);

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(hash) = map.next_key_seed(KeyHash)? {
            self.0.push(hash);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

struct KeyHash;

impl<'de> DeserializeSeed<'de> for KeyHash {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyHash {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<u64, E> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Ok(hasher.finish())
    }
}

fn syntax_fault(line: &str, error: &serde_json::Error) -> Fault {
    let column = error.column().max(1);
    if let Some((at, token)) = number_word(line, column - 1) {
        return Fault { column: Some(at as u64 + 1), ..Fault::new(format!("{token} is no JSON value")) };
    }
    let text = error.to_string();
    // serde_json ends its sentence with the place, which is told apart from it here.
    let what = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    Fault { column: Some(column as u64), ..Fault::new(format!("not valid JSON: {what}")) }
}

/// The word `NaN` or `Infinity`, in any case and with its sign, that stands around byte `at`.
fn number_word(line: &str, at: usize) -> Option<(usize, &str)> {
    let is_part = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'-' || *byte == b'+';
    let bytes = line.as_bytes();
    let at = at.min(bytes.len());
    let start = at - bytes[..at].iter().rev().take_while(|byte| is_part(byte)).count();
    let end = at + bytes[at..].iter().take_while(|byte| is_part(byte)).count();
    let token = line.get(start..end)?;
    let word = token.trim_start_matches(['-', '+']);
    ["nan", "inf", "infinity"].iter().any(|known| word.eq_ignore_ascii_case(known)).then_some((start, token))
}

/// The byte, from 1, of the bracket that opens one level too many. Brackets are counted first, which is quick and
/// settles nearly every line.
fn too_deep(line: &str) -> Option<u64> {
    let opens = |byte: u8| byte == b'{' || byte == b'[';
    memchr::memchr2_iter(b'{', b'[', line.as_bytes()).nth(DEEPEST)?;
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ if opens(byte) && !in_string => {
                depth += 1;
                if depth > DEEPEST {
                    return Some(at as u64 + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The first `\ud800`-like escape without its other half. The line is valid JSON, so a backslash is within a string.
fn lone_surrogate(line: &str) -> Option<Fault> {
    let unit = |at: usize| {
        let escape = line.get(at..at + 6)?;
        u32::from_str_radix(escape.strip_prefix("\\u")?, 16).ok()
    };
    let bytes = line.as_bytes();
    let mut at = 0;
    while let Some(step) = bytes.get(at..)?.iter().position(|&byte| byte == b'\\') {
        at += step;
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                let escape = line.get(at..at + 6).unwrap_or_default();
                let what = format!("the escape {escape} is half a character");
                return Some(Fault { column: Some(at as u64 + 1), what, stops: false });
            }
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: &str) -> (u64, String) {
        let fault = inspect(line).unwrap_err();
        (fault.column.unwrap(), fault.what)
    }

    #[test]
    fn takes_objects_as_written() {
        for line in [
            "{}",
            r#"{"id":9007199254740993,"x":1e400,"y":1.10,"z":-0}"#,
            r#"{"z":1,"a":{"a":1,"a":2},"m":[]}"#,
            "{\"a\":\"\\ud83d\\ude00 \\\\ud83d\"}",
        ] {
            assert_eq!(inspect(line), Ok(false), "{line}");
        }
        assert_eq!(inspect(r#"{"a":1,"b":2,"\u0061":3}"#), Ok(true));
    }

    #[test]
    fn names_what_is_wrong_and_where() {
        assert_eq!(fault(r#"{"x":NaN}"#), (6, "NaN is no JSON value".to_owned()));
        assert_eq!(fault(r#"{"x":[1,-Infinity]}"#), (9, "-Infinity is no JSON value".to_owned()));
        assert_eq!(fault(r#"{"x":nan}"#), (6, "nan is no JSON value".to_owned()));
        assert_eq!(fault(r#"{"a":1},"#), (8, "not valid JSON: trailing characters".to_owned()));
        assert_eq!(fault(r#"{"a":1,}"#).0, 8);
        assert_eq!(fault("[1]"), (1, "an array where an object belongs".to_owned()));
        assert_eq!(fault("nan"), (1, "nan is no JSON value".to_owned()));
        assert!(fault("[1").1.starts_with("not valid JSON: EOF"), "{:?}", fault("[1"));
        assert!(fault("{\"a\":\"\t\"}").1.contains("control character"));
    }

    #[test]
    fn a_lone_surrogate_does_not_stop_a_run() {
        for line in
            [r#"{"a":"a\ud83d"}"#, r#"{"a":"\uDE00"}"#, r#"{"\ud83d":1}"#, r#"{"a":"\ud83d\ud83d\ude00"}"#]
        {
            let fault = inspect(line).unwrap_err();
            assert!(!fault.stops && fault.what.contains("half a character"), "{line} {fault:?}");
        }
        assert!(inspect(r#"{"a":"\ud83d",}"#).unwrap_err().stops);
    }

    #[test]
    fn deep_nesting_is_a_fault_and_no_overflow() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(inspect(&nested(126)), Ok(false));
        assert!(serde_json::from_str::<serde_json::Value>(&nested(126)).is_ok());
        assert!(inspect(&nested(127)).unwrap_err().what.contains("deeper"));
        assert!(serde_json::from_str::<serde_json::Value>(&nested(127)).is_err());
        assert!(inspect(&nested(1_000_000)).unwrap_err().what.contains("deeper"));
        assert_eq!(inspect(&format!("{{\"a\":\"{}\"}}", "[".repeat(1_000))), Ok(false));
    }

    #[test]
    fn columns_count_characters_of_the_line_as_it_stands() {
        let raw = " \t{\"é\":NaN}";
        let line = trim(raw);
        let placed = place(inspect(line).unwrap_err(), raw, line);
        assert_eq!(placed.column, Some(8));
    }
}
