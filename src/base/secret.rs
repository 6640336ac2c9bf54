//! Credentials, and taking them out of what others send back.

use memchr::{memchr2_iter, memchr3, memmem};
use secrecy::{ExposeSecret, SecretString};

/// A credential. It has no text form; [`Secret::expose`] is for the header that carries it and for nothing else.
#[derive(Debug, Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a credential.
    pub fn new(text: String) -> Self {
        Self(SecretString::from(text))
    }

    /// The text, for the request header.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

/// Replaces known credentials in bytes that came from outside, before anything reads them.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    secrets: Vec<Secret>,
}

impl Redactor {
    const MARK: &'static [u8] = b"[redacted]";
    /// Shorter credentials are not looked for: they would be found in ordinary text.
    const SHORTEST: usize = 6;

    /// A redactor of these credentials.
    pub fn new(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let mut secrets: Vec<_> =
            secrets.into_iter().filter(|secret| secret.expose().len() >= Self::SHORTEST).collect();
        // The longest first, so that a credential that contains another goes as a whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self { secrets }
    }

    /// The bytes without the credentials; `None` where there was none, which costs no copy.
    pub fn redact(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut result: Option<Vec<u8>> = None;
        for secret in &self.secrets {
            let needle = secret.expose().as_bytes();
            let haystack = result.as_deref().unwrap_or(bytes);
            if let Some(clean) = replace(haystack, needle) {
                result = Some(clean);
            }
        }
        result
    }

    /// [`Redactor::redact`] for text.
    pub fn redact_text(&self, text: &str) -> String {
        match self.redact(text.as_bytes()) {
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => text.to_owned(),
        }
    }
}

fn replace(haystack: &[u8], needle: &[u8]) -> Option<Vec<u8>> {
    if !may_hold(haystack, needle) {
        return None;
    }
    let mut clean: Option<Vec<u8>> = None;
    let mut rest = haystack;
    let first = *needle.first()?;
    let mut at = 0;
    while let Some(step) = memchr3(first, b'\\', b'%', &rest[at..]) {
        at += step;
        if let Some(length) = occurrence(&rest[at..], needle) {
            let clean = clean.get_or_insert_with(Vec::new);
            clean.extend_from_slice(&rest[..at]);
            clean.extend_from_slice(Redactor::MARK);
            rest = &rest[at + length..];
            at = 0;
        } else if needle.contains(&b'\\') {
            at += 1;
        } else {
            // Within a row of backslashes nothing begins that does not begin with it.
            at += backslashes(&rest[at..]).max(1);
        }
    }
    if let Some(clean) = &mut clean {
        clean.extend_from_slice(rest);
    }
    clean
}

/// Whether a text may hold the needle, which nearly none does: a quick look that errs on the safe side. Escapes only
/// make it longer, and each stands for one of its bytes.
fn may_hold(text: &[u8], needle: &[u8]) -> bool {
    let is_of_needle = |at: usize| {
        let is_backslash = text[at] == b'\\';
        // A row of backslashes is looked at where it begins.
        let is_within_row = is_backslash && text[..at].ends_with(b"\\");
        let is_escape = || unescaped(&text[at..]).is_some_and(|(byte, _)| needle.contains(&byte));
        !is_within_row && (is_escape() || is_backslash && needle.contains(&b'\\'))
    };
    text.len() >= needle.len()
        && (memmem::find(text, needle).is_some() || memchr2_iter(b'\\', b'%', text).any(is_of_needle))
}

/// The length of the needle at the beginning of a text, where each of its bytes may be written as JSON or a URL
/// escapes it: a server echoes a credential inside of JSON, sometimes inside of JSON in JSON.
fn occurrence(text: &[u8], needle: &[u8]) -> Option<usize> {
    if text.starts_with(needle) {
        return Some(needle.len());
    }
    needle.iter().try_fold(0, |length, &wanted| Some(length + written(&text[length..], wanted)?))
}

/// How many bytes at the beginning of a text stand for this one.
fn written(text: &[u8], wanted: u8) -> Option<usize> {
    let escapes = backslashes(text);
    match unescaped(text) {
        _ if escapes == 0 && text.first() == Some(&wanted) => Some(1),
        Some((byte, length)) if byte == wanted => Some(length),
        _ if escapes > 0 && wanted == b'\\' => Some(escapes),
        _ => None,
    }
}

/// The byte that the escape at the beginning of a text stands for, and the escape's length. Backslashes without a byte
/// behind them that they escape stand for themselves, which is not said here.
fn unescaped(text: &[u8]) -> Option<(u8, usize)> {
    let escapes = backslashes(text);
    match &text[escapes..] {
        [b'u', digits @ ..] if escapes > 0 => Some((hex(digits.get(..4)?)?, escapes + 5)),
        [b'%', digits @ ..] if escapes == 0 => Some((hex(digits.get(..2)?)?, 3)),
        // A letter after a backslash means something else.
        [byte, ..] if escapes > 0 && !byte.is_ascii_alphanumeric() => Some((*byte, escapes + 1)),
        _ => None,
    }
}

fn backslashes(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| byte == b'\\').count()
}

fn hex(digits: &[u8]) -> Option<u8> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().and_then(|code| u8::try_from(code).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn redacts_every_known_credential() {
        let redactor = Redactor::new(["sk-test-1", "sk-test-1-long"].map(|s| Secret::new(s.to_owned())));
        assert_eq!(redactor.redact_text("a sk-test-1-long b sk-test-1"), "a [redacted] b [redacted]");
        assert_eq!(redactor.redact(b"nothing here s sk"), None);
    }

    #[test]
    fn redacts_credentials_however_they_are_escaped() {
        let redactor = Redactor::new([Secret::new("sk/a+1=\"x\\y".to_owned())]);
        for echo in [
            r#"sk/a+1="x\y"#,
            r#"sk\/a+1=\"x\\y"#,
            r#"sk\/a\u002b1\u003D\"x\\y"#,
            r#"sk/a+1=\\\"x\\\\y"#,
            "sk%2Fa%2b1%3D%22x%5Cy",
        ] {
            assert_eq!(redactor.redact_text(&format!("<{echo}>")), "<[redacted]>", "{echo}");
        }
        assert_eq!(redactor.redact(br"sk\/a sk\\ \u00 %2 % \"), None);
    }

    proptest! {
        #[test]
        fn the_quick_look_misses_nothing(
            needle in "[sk+/\\\\%u\"-]{6,8}",
            escapes in proptest::collection::vec(0_u8..5, 8),
            outer in "[sk+/\\\\%u\"20-]{0,6}",
        ) {
            let mut text = outer.clone();
            for (byte, escape) in needle.bytes().zip(escapes) {
                let written = match escape {
                    0 => format!("\\u{byte:04x}"),
                    1 => format!("%{byte:02X}"),
                    2 if !byte.is_ascii_alphanumeric() => format!("\\{}", char::from(byte)),
                    _ => char::from(byte).to_string(),
                };
                text.push_str(&written);
            }
            text.push_str(&outer);
            let (text, needle) = (text.as_bytes(), needle.as_bytes());
            let holds = (0..text.len()).any(|at| occurrence(&text[at..], needle).is_some());
            prop_assert!(may_hold(text, needle) || !holds);
            prop_assert_eq!(replace(text, needle).is_some(), holds);
        }
    }

    #[test]
    fn rows_of_backslashes_are_gone_through_once() {
        let redactor = Redactor::new([Secret::new("sk-test-1".to_owned())]);
        let row = "\\".repeat(1 << 20);
        assert_eq!(redactor.redact(row.as_bytes()), None);
        assert_eq!(redactor.redact(format!("{row}u0073{row}s{row}").as_bytes()), None);
        assert_eq!(redactor.redact_text(&format!("{row}sk-test-1")), format!("{row}[redacted]"));
    }

    #[test]
    fn a_secret_has_no_debug_text() {
        let secret = Secret::new("sk-test-1".to_owned());
        assert!(!format!("{secret:?}").contains("sk-test"));
    }
}
