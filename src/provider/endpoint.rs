//! The normal form of an endpoint.

use url::Url;

use crate::model::ProviderKind;
use crate::provider::ProviderError;

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The full URL of the endpoint, with the query that the base URL had; `mock` for the built-in provider.
    pub url: String,
    /// Whether it is the provider's own host, over HTTPS: only there does a default credential go, and the length
    /// limit has the name that the provider's own API gives it.
    pub own_host: bool,
}

/// The endpoint that a base URL means, or the provider's own without one. People write a host, `/v1`, `/v1/` or the
/// full endpoint; all of them mean the same.
///
/// A path of another kind is taken as the clients of the two formats take it: those of `OpenAI` add the endpoint to
/// `/api`, those of Anthropic add `/v1` too, unless the path ends with a version.
///
/// # Errors
/// A text that is no URL, a scheme other than HTTP, and a URL that holds a user, a password, or in its query what reads
/// like a credential: the URL is stored, shown and printed, and a credential is named, never given as text.
pub fn endpoint(kind: ProviderKind, base_url: Option<&str>) -> Result<Endpoint, ProviderError> {
    let (own, path) = match kind {
        ProviderKind::Mock => return Ok(Endpoint { url: "mock".to_owned(), own_host: false }),
        ProviderKind::Openai => ("api.openai.com", "/chat/completions"),
        ProviderKind::Anthropic => ("api.anthropic.com", "/messages"),
    };
    let Some(base) = base_url.map(str::trim) else {
        return Ok(Endpoint { url: format!("https://{own}/v1{path}"), own_host: true });
    };
    let mut url = Url::parse(base).map_err(|_| ProviderError::NotAUrl(shown(base)))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ProviderError::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ProviderError::CredentialInUrl);
    }
    if let Some((name, _)) = url.query_pairs().find(|(name, value)| reads_like_a_credential(name, value)) {
        let name = name.chars().filter(|c| !c.is_control()).take(100).collect();
        return Err(ProviderError::CredentialInQuery(name));
    }
    url.set_fragment(None);
    let given = url.path().trim_end_matches('/');
    let full = match given {
        "" => format!("/v1{path}"),
        given if given.ends_with(path) => given.to_owned(),
        given if kind == ProviderKind::Anthropic && !ends_with_version(given) => format!("{given}/v1{path}"),
        given => format!("{given}{path}"),
    };
    url.set_path(&full);
    let own_host = url.scheme() == "https" && url.host_str().is_some_and(|host| is_own(host, own));
    Ok(Endpoint { url: url.into(), own_host })
}

/// Whether a part of a query is a credential: by its name, as gateways and signed URLs have it, or by how keys begin.
pub fn reads_like_a_credential(name: &str, value: &str) -> bool {
    const WORDS: [&str; 12] = [
        "key",
        "apikey",
        "token",
        "secret",
        "password",
        "passwd",
        "pwd",
        "auth",
        "authorization",
        "sig",
        "signature",
        "credential",
    ];
    let lower = name.to_ascii_lowercase();
    let named = lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| WORDS.contains(&word));
    let joined = ["apikey", "accesskey", "accesstoken", "subscriptionkey", "authtoken"];
    let joined = joined.iter().any(|word| lower.ends_with(word));
    !value.is_empty() && (named || joined || begins_like_a_key(value))
}

/// Whether a text begins as the keys of providers do.
pub fn begins_like_a_key(text: &str) -> bool {
    const STARTS: [&str; 6] = ["sk-", "sk_", "gsk_", "xai-", "hf_", "AIza"];
    STARTS.iter().any(|start| text.starts_with(start))
}

/// Whether the last segment is `v1` or the like.
fn ends_with_version(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Regional hosts such as `eu.api.openai.com` are the provider's own too.
fn is_own(host: &str, own: &str) -> bool {
    host == own || host.strip_suffix(own).is_some_and(|front| front.ends_with('.'))
}

/// A text that might be a URL, without what could be a credential in it.
fn shown(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let text = text.rsplit('@').next().unwrap_or_default();
    text.chars().filter(|c| !c.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(base: &str) -> String {
        endpoint(ProviderKind::Openai, Some(base)).unwrap().url
    }

    #[test]
    fn every_form_means_the_same() {
        for base in
            ["", "/", "/v1", "/v1/", "/v1//", "/v1/chat/completions", "/v1/chat/completions/", "/v1#x"]
        {
            let base = format!("http://127.0.0.1:8000{base}");
            assert_eq!(url(&base), "http://127.0.0.1:8000/v1/chat/completions", "{base}");
        }
        assert_eq!(url(" https://openrouter.ai/api/v1 "), "https://openrouter.ai/api/v1/chat/completions");
        assert_eq!(url("http://h/chat/completions"), "http://h/chat/completions");
        assert_eq!(url("http://h/api"), "http://h/api/chat/completions");
        assert_eq!(url("http://[::1]:8000"), "http://[::1]:8000/v1/chat/completions");
    }

    #[test]
    fn messages_stand_below_a_version() {
        let url = |base: &str| endpoint(ProviderKind::Anthropic, Some(base)).unwrap().url;
        for base in ["", "/", "/v1", "/v1/", "/v1/messages", "/v1/messages/"] {
            assert_eq!(url(&format!("http://h{base}")), "http://h/v1/messages", "{base}");
        }
        assert_eq!(url("http://h/anthropic/"), "http://h/anthropic/v1/messages");
        assert_eq!(url("http://h/anthropic/v1?a=b"), "http://h/anthropic/v1/messages?a=b");
        assert_eq!(url("http://h/anthropic/messages"), "http://h/anthropic/messages");
    }

    #[test]
    fn the_query_is_kept() {
        assert_eq!(url("http://h?a=b"), "http://h/v1/chat/completions?a=b");
        assert_eq!(
            url("https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21"),
            "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"
        );
    }

    #[test]
    fn a_credential_in_the_query_is_refused_by_its_name_or_its_look() {
        let refused = |query: &str| endpoint(ProviderKind::Openai, Some(&format!("http://h/v1?{query}")));
        for query in [
            "key=abc",
            "a=b&api-key=1",
            "X-Api_Key=1",
            "accessToken=1",
            "Subscription-Key=x",
            "sig=1",
            "q=sk-abc",
        ] {
            let error = refused(query).unwrap_err();
            assert!(matches!(error, ProviderError::CredentialInQuery(_)), "{query}");
        }
        for query in
            ["api-version=2024-10-21", "beta=true", "a=b", "key=", "monkey=1", "keyboard=de", "tokens=3"]
        {
            assert!(refused(query).is_ok(), "{query}");
        }
        assert!(!refused("a=1&key=hunter2").unwrap_err().to_string().contains("hunter2"));
    }

    #[test]
    fn defaults_and_own_hosts() {
        let default = endpoint(ProviderKind::Openai, None).unwrap();
        assert_eq!(default.url, "https://api.openai.com/v1/chat/completions");
        assert!(default.own_host);
        let own = |base| endpoint(ProviderKind::Openai, Some(base)).unwrap().own_host;
        assert!(own("https://api.openai.com") && own("https://eu.api.openai.com/v1"));
        assert!(!own("http://api.openai.com"), "a key does not travel in the clear");
        assert!(!own("https://evilapi.openai.com.example") && !own("https://xapi.openai.com"));
        assert!(!own("http://127.0.0.1:8000"));
        let claude = endpoint(ProviderKind::Anthropic, None).unwrap();
        assert_eq!(claude.url, "https://api.anthropic.com/v1/messages");
        let mock = endpoint(ProviderKind::Mock, Some("ignored")).unwrap();
        assert_eq!((mock.url.as_str(), mock.own_host), ("mock", false));
    }

    #[test]
    fn refusals_never_show_a_credential() {
        let refused = |base: &str| endpoint(ProviderKind::Openai, Some(base)).unwrap_err();
        for base in ["http://me:hunter2@h/v1", "http://hunter2@h", "http://:hunter2@h/v1?key=hunter2"] {
            assert_eq!(refused(base), ProviderError::CredentialInUrl);
        }
        assert_eq!(refused("ftp://h/v1"), ProviderError::Scheme("ftp".to_owned()));
        assert_eq!(refused("localhost:8000/v1"), ProviderError::Scheme("localhost".to_owned()));
        for base in
            ["", "127.0.0.1:8000", "http://", "//me:hunter2@h?hunter2", "http://a b:hunter2@/?hunter2"]
        {
            let error = refused(base);
            assert!(matches!(error, ProviderError::NotAUrl(_)), "{base}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
