//! What a person has to mend before a provider can be called.

/// A configuration that names no provider this program can speak to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The base URL cannot be read. The text is shown without credentials and query.
    #[error("base_url `{0}` is no URL: write it as in https://host/v1 or http://127.0.0.1:8000/v1")]
    NotAUrl(String),
    /// The base URL has a scheme that is not HTTP.
    #[error(
        "base_url has the scheme `{0}`: only http and https can be called, as in http://127.0.0.1:8000/v1"
    )]
    Scheme(String),
    /// The base URL holds a user or a password.
    #[error(
        "base_url holds a credential before `@`: take it out and name the variable that holds it under [[keys]]"
    )]
    CredentialInUrl,
    /// The base URL holds a credential in its query.
    #[error(
        "base_url holds a credential in its query (`{0}`): take it out and name the variable that holds it under [[keys]]"
    )]
    CredentialInQuery(String),
    /// A tool takes an object, and the schema is no plain one.
    #[error(
        "structured `tool` needs a schema whose root says `\"type\": \"object\"` without anyOf, oneOf, allOf, not or \
         enum beside it: use auto, json_schema or prompt"
    )]
    ToolNeedsObject,
    /// `extra` would replace the rendered prompt.
    #[error("request.extra holds `{0}`, which would replace what the prompt templates say: remove it")]
    ReservedExtra(&'static str),
    /// A price that cannot be one.
    #[error("price `{name}` is {value}: it must be between 0 and 1000000 USD per million tokens")]
    Price {
        /// Which price.
        name: &'static str,
        /// The number as given.
        value: String,
    },
}
