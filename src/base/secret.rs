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
    while let Some(step) = rest[at..].iter().position(|&byte| byte == first || byte == b'\\' || byte == b'%')
    {
        at += step;
        if let Some(length) = matched(&rest[at..], needle) {
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

/// How many bytes of the beginning say the needle: as it stands, or escaped as JSON does it (`\/`, `\"`, `\u002b`,
/// also JSON within JSON) or a URL (`%2B`), since whatever reads the bytes next takes that away.
fn matched(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    let is_hex = |digits: Option<&[u8]>, byte: u8| {
        let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        text.and_then(|text| u32::from_str_radix(text, 16).ok()) == Some(u32::from(byte))
    };
    let mut at = 0;
    for &byte in needle {
        let slashes = haystack.get(at..)?.iter().take_while(|&&other| other == b'\\').count();
        let after = at + slashes;
        let is_escape = slashes > 0 && haystack.get(after) == Some(&b'u');
        at = if is_escape && is_hex(haystack.get(after + 1..after + 5), byte) {
            after + 5
        } else if haystack.get(at) == Some(&byte) {
            at + 1
        } else {
            match haystack.get(after)? {
                other if *other == byte => after + 1,
                b'%' if is_hex(haystack.get(after + 1..after + 3), byte) => after + 3,
                _ => return None,
            }
        };
    }
    Some(at)
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
    fn redacts_what_an_escape_hides() {
        let redactor = Redactor::new([Secret::new("sk/a+b\"c\\d".to_owned())]);
        for text in [
            r#"sk/a+b"c\d"#,
            r#"sk\/a+b\"c\\d"#,
            r#"sk\\\/a+b\\\"c\\\\d"#,
            r"sk\u002fa\u002Bb\u0022c\u005cd",
            r"sk%2Fa%2bb%22c%5Cd",
            r#"\u0073k/a+b\"c\\d"#,
        ] {
            assert_eq!(redactor.redact_text(&format!("<{text}>")), "<[redacted]>", "{text}");
        }
        for text in ["sk/a+b", r#"sk/a b"c\d"#, r"sk\u00", "sk%2", r"sk\", "%%%\\\\"] {
            assert_eq!(redactor.redact(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_secret_has_no_debug_text() {
        let secret = Secret::new("sk-test-1".to_owned());
        assert!(!format!("{secret:?}").contains("sk-test"));
    }
}
