//! Credentials, and taking them out of what others send back.

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
    let mut clean: Option<Vec<u8>> = None;
    let mut rest = haystack;
    let first = *needle.first()?;
    let mut at = 0;
    while let Some(step) = rest[at..].iter().position(|&byte| byte == first || matches!(byte, b'\\' | b'%')) {
        at += step;
        if let Some(length) = occurrence(&rest[at..], needle) {
            let clean = clean.get_or_insert_with(Vec::new);
            clean.extend_from_slice(&rest[..at]);
            clean.extend_from_slice(Redactor::MARK);
            rest = &rest[at + length..];
            at = 0;
        } else {
            at += 1;
        }
    }
    if let Some(clean) = &mut clean {
        clean.extend_from_slice(rest);
    }
    clean
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
    let escapes = text.iter().take_while(|&&byte| byte == b'\\').count();
    match &text[escapes..] {
        [byte, ..] if escapes == 0 && *byte == wanted => Some(1),
        // A letter after a backslash means something else.
        [byte, ..] if *byte == wanted && !wanted.is_ascii_alphanumeric() => Some(escapes + 1),
        [b'u', digits @ ..] if escapes > 0 && hex(digits.get(..4)?) == Some(wanted) => Some(escapes + 5),
        [b'%', digits @ ..] if escapes == 0 && hex(digits.get(..2)?) == Some(wanted) => Some(3),
        _ if escapes > 0 && wanted == b'\\' => Some(escapes),
        _ => None,
    }
}

fn hex(digits: &[u8]) -> Option<u8> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().and_then(|code| u8::try_from(code).ok())
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_secret_has_no_debug_text() {
        let secret = Secret::new("sk-test-1".to_owned());
        assert!(!format!("{secret:?}").contains("sk-test"));
    }
}
