//! A server's words, made fit for an output file.

/// The most characters of a message.
const LONGEST: usize = 300;
/// The most bytes of a server's text that are looked at.
const READ: usize = 4_096;
/// What stands where a credential stood.
const REDACTED: &str = "[redacted]";
/// What stands where an id stood.
const ID: &str = "…";

/// The text on one line, without ids and credentials, at most 300 characters. The same failure reads the same for
/// every row, so that equal rejections are seen to be equal.
pub(super) fn clean(text: &str) -> String {
    cut(&scrub(text), LONGEST)
}

/// [`clean`] with a sentence of ours behind it, which is kept whole.
pub(super) fn clean_with_advice(text: &str, advice: &str) -> String {
    let room = LONGEST.saturating_sub(advice.chars().count() + 2);
    format!("{}: {advice}", cut(&scrub(text), room).trim_end_matches(['.', ':', ' ']))
}

/// The first `most` characters, the last of them an ellipsis where something is missing.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn scrub(text: &str) -> String {
    mask(&without_id_notes(fold(head(text))))
}

fn head(text: &str) -> &str {
    let mut end = text.len().min(READ);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Runs of white space and control characters become one blank. Marks that change the direction of writing count as
/// such: they would make a line on a terminal read as something else.
fn fold(text: &str) -> String {
    let blank = |c: char| {
        c.is_whitespace()
            || c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let mut folded = String::with_capacity(text.len());
    for part in text.split(blank).filter(|part| !part.is_empty()) {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(part);
    }
    folded
}

/// Takes out notes such as `(request id: 2026…)`, which relays append.
fn without_id_notes(mut text: String) -> String {
    for opening in ["(request id", "(request_id", "(requestid", "(trace id", "(trace_id", "(traceid"] {
        while let Some(start) = text.to_ascii_lowercase().find(opening) {
            let Some(length) = text[start..].find(')') else { break };
            text.replace_range(start..=start + length, "");
            text.truncate(text.trim_end().len());
        }
    }
    text
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '•')
}

fn mask(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut previous = "";
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !is_word(first) {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let word = &rest[..end];
        let token = longest_token(rest);
        if previous.eq_ignore_ascii_case("bearer") && looks_secret(token) || is_credential(word, token) {
            out.push_str(REDACTED);
            rest = &rest[token.len()..];
        } else {
            out.push_str(if is_id(word, previous) { ID } else { word });
            rest = &rest[end..];
        }
        previous = word;
    }
    out
}

/// The word with what a credential may hold besides: dots inside, the ends of base64.
fn longest_token(text: &str) -> &str {
    let inside = |c: char| is_word(c) || matches!(c, '.' | '…' | '+' | '/' | '=' | '~');
    let end = text.find(|c| !inside(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('.')
}

/// Whether a token after `Bearer` is more than the next word of a sentence.
fn looks_secret(token: &str) -> bool {
    let marked = token.bytes().any(|b| b.is_ascii_digit() || matches!(b, b'*' | b'.' | b'=' | b'_'));
    token.len() >= 6 && marked || token.len() >= 20
}

fn is_credential(word: &str, token: &str) -> bool {
    const STARTS: [&str; 9] = ["sk-", "sk_", "pk-", "rk-", "gsk_", "xai-", "hf_", "ghp_", "AIza"];
    let known = STARTS.iter().any(|start| word.starts_with(start) && token.len() >= start.len() + 3);
    let masked = word.len() > 3 && (word.contains("***") || word.contains("••"));
    known || masked
}

fn is_id(word: &str, previous: &str) -> bool {
    const STARTS: [&str; 10] =
        ["req_", "req-", "org-", "org_", "proj_", "chatcmpl-", "resp_", "msg_", "gen-", "file-"];
    const OWNERS: [&str; 6] = ["organization", "organisation", "project", "id", "request_id", "requestid"];
    let owned = OWNERS.iter().any(|owner| previous.eq_ignore_ascii_case(owner));
    if let Some(rest) = STARTS.iter().find_map(|start| word.strip_prefix(start)) {
        return !rest.is_empty() && (owned || looks_random(rest));
    }
    let digits = word.bytes().any(|b| b.is_ascii_digit());
    let letters = word.bytes().any(|b| b.is_ascii_alphabetic());
    let plain = word.bytes().all(|b| b.is_ascii_alphanumeric());
    let labelled = previous.to_ascii_lowercase().ends_with("id") && word.len() >= 8 && digits;
    labelled || begins_with_uuid(word) || (plain && digits && letters && word.len() >= 24)
}

fn looks_random(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.as_bytes().iter().any(test);
    text.len() >= 8
        && (has(u8::is_ascii_digit) || (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)))
}

/// A UUID, alone or with numbers behind it, as in the id that each request of this program carries.
fn begins_with_uuid(word: &str) -> bool {
    let is_place = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 | 36 => byte == b'-',
        0..36 => byte.is_ascii_hexdigit(),
        _ => byte == b'-' || byte.is_ascii_digit(),
    };
    word.len() >= 36 && word.bytes().enumerate().all(is_place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn credentials_are_masked() {
        for (text, clear) in [
            ("Incorrect API key provided: sk-ab***yz. You", "Incorrect API key provided: [redacted]. You"),
            ("key=sk-proj-aB3_x.y, next", "key=[redacted], next"),
            (r#"{"Authorization":"Bearer eyJh.eyJz.x-y=="}"#, r#"{"Authorization":"Bearer [redacted]"}"#),
            ("Missing bearer authentication", "Missing bearer authentication"),
            ("provided: abcd****wxyz!", "provided: [redacted]!"),
            ("a sk-…abcd b", "a [redacted] b"),
            ("task-force and disk-full", "task-force and disk-full"),
        ] {
            assert_eq!(clean(text), clear);
        }
    }

    #[test]
    fn ids_are_taken_out() {
        for (text, clear) in [
            ("for gpt-4o in organization org-x on tokens", "for gpt-4o in organization … on tokens"),
            ("no model (request id: 20260901aBc) ", "no model"),
            (
                "include the request ID req_0123456789abcdef in your message",
                "include the request ID … in your message",
            ),
            ("trace 123e4567-e89b-12d3-a456-426614174000 failed", "trace … failed"),
            ("bad 123e4567-e89b-12d3-a456-426614174000-4-1-12, sorry", "bad …, sorry"),
            (
                "model mistral-small-24b-instruct-2501 is busy",
                "model mistral-small-24b-instruct-2501 is busy",
            ),
            ("org-level limits", "org-level limits"),
            ("request_id=0af7651916cd43dd", "request_id=…"),
        ] {
            assert_eq!(clean(text), clear);
        }
    }

    #[test]
    fn one_line_and_not_too_long() {
        assert_eq!(clean("a\r\n\tb\u{1b}[31m\u{202e}c "), "a b [31m c");
        let long = clean(&"é".repeat(10_000));
        assert_eq!(long.chars().count(), 300);
        assert!(long.ends_with('…'));
        let advised = clean_with_advice(&"x ".repeat(400), "do that");
        assert!(advised.ends_with(": do that") && advised.chars().count() <= 300);
        assert_eq!(clean_with_advice("Not Found.", "do that"), "Not Found: do that");
    }

    proptest! {
        #[test]
        fn any_text_gives_one_short_line(text in "\\PC{0,400}|(?s).{0,400}") {
            let clear = clean(&text);
            prop_assert!(clear.chars().count() <= LONGEST);
            prop_assert!(!clear.chars().any(char::is_control));
            let echoed = clean(&format!("x sk-{}9abc", "a".repeat(text.len() % 20)));
            prop_assert!(!echoed.contains("9abc"), "{}", echoed);
        }
    }
}
