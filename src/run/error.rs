//! Why a run could not begin or go on.

use std::path::PathBuf;
use std::sync::Arc;

use crate::dataset::DatasetError;
use crate::output::OutputError;
use crate::policy::Signal;
use crate::store::StoreError;

/// An error of a run. [`RunError::is_usage`] tells what a person fixes in command, configuration or input (exit
/// code 2) from what an operator does (6).
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The input.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// The output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store, from its own thread.
    #[error("{0}")]
    Writer(Arc<StoreError>),
    /// Another process works on this job.
    #[error("another process works on this job ({owner}): wait for it to end, or stop it")]
    Locked {
        /// What it wrote about itself.
        owner: String,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}: {source}; a file system without locks cannot hold the state: choose another folder with --state", path.display())]
    Lock {
        /// The lock file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The note of what is being spent cannot be written or read.
    #[error("cannot keep the note of what is being spent in {}: {source}; nothing more is sent", path.display())]
    Draws {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something that a person named does not fit.
    #[error("{0}")]
    Usage(String),
    /// A thread or the runtime could not be started.
    #[error("cannot start {what}: {source}")]
    Start {
        /// What.
        what: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// A signal came while the output was made, which then was given up.
    #[error("{} came while the output was made: every answer is kept, and the same command writes the output without a new request", .0.name())]
    Interrupted(Signal),
    /// The HTTP client could not be made.
    #[error("cannot make the HTTP client: {0}")]
    Transport(String),
}

impl RunError {
    /// Whether a person fixes it in command, configuration, schema, template or input.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Dataset(error) => !matches!(error, DatasetError::Changed { .. }),
            Self::Usage(_) => true,
            Self::Output(error) => error.is_usage(),
            Self::Store(error) => matches!(
                error,
                StoreError::UnknownRun { .. }
                    | StoreError::NoRuns
                    | StoreError::AmbiguousRun { .. }
                    | StoreError::ShortRun { .. }
            ),
            Self::Draws { .. }
            | Self::Writer(_)
            | Self::Locked { .. }
            | Self::Lock { .. }
            | Self::Start { .. }
            | Self::Interrupted(_)
            | Self::Transport(_) => false,
        }
    }
}

/// An error with its causes, as one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some messages already quote their cause.
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
