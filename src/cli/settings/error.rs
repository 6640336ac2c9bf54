//! What can be wrong with a configuration.

use std::path::PathBuf;

/// An error of the configuration: what, where, and what to do. All of them end with exit code 2.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{} line {line}: {message}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// What the parser says.
        message: String,
    },
    /// A key that does not exist.
    #[error("{} line {line}: unknown key `{key}`{hint}", path.display())]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// The key.
        key: String,
        /// `; did you mean …?`, or nothing.
        hint: String,
    },
    /// A value that does not fit its key.
    #[error("{origin}: `{key}` {problem}")]
    BadValue {
        /// Where it was given.
        origin: String,
        /// The key.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Something is missing, or two things exclude one another.
    #[error("{0}")]
    Conflict(String),
}
