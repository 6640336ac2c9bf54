//! The keys' texts, looked up when the first request is about to go.

use std::fmt;
use std::sync::Arc;

use crate::base::{Redactor, Secret};

/// A key with its text. `None`: no credential is sent.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The label by which people know it.
    pub label: String,
    /// Its text.
    pub secret: Option<Secret>,
}

/// How keys are looked up, and under which labels.
#[derive(Clone)]
pub struct Credentials {
    labels: Vec<String>,
    look_up: Arc<dyn Fn() -> Result<Vec<Credential>, String> + Send + Sync>,
}

impl Credentials {
    /// `look_up` returns one credential a label, in the same order, or says which one is missing and where from.
    pub fn new(
        labels: Vec<String>,
        look_up: impl Fn() -> Result<Vec<Credential>, String> + Send + Sync + 'static,
    ) -> Self {
        Self { labels, look_up: Arc::new(look_up) }
    }

    /// The labels, known without any look-up.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The keys with their texts.
    pub(super) fn resolve(&self) -> Result<Vec<Credential>, String> {
        (self.look_up)()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("labels", &self.labels).finish_non_exhaustive()
    }
}

/// What takes these keys out of replies.
pub(super) fn redactor(credentials: &[Credential]) -> Redactor {
    Redactor::new(credentials.iter().filter_map(|credential| credential.secret.clone()))
}
