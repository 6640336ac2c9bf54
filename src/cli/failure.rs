//! Errors become one message and an exit code.

use crate::cli::settings::SettingsError;
use crate::dataset::DatasetError;
use crate::mock::MockError;
use crate::output::OutputError;
use crate::run::{RunError, chain};
use crate::store::StoreError;

/// What ends a command before it has a result.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    messages: Vec<String>,
}

impl Failure {
    /// The code for what a person fixes in command, configuration, schema, template or input.
    pub const USAGE: u8 = 2;
    /// The code for what an operator fixes.
    pub const UNABLE: u8 = 6;

    /// The most problems that are listed together.
    pub(crate) const LISTED: usize = 20;

    /// Something that a person fixes.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: Self::USAGE, messages: vec![message.into()] }
    }

    /// Several such things, listed together.
    pub(crate) fn problems(messages: Vec<String>) -> Self {
        Self { code: Self::USAGE, messages }
    }

    /// Something that an operator fixes.
    pub(crate) fn unable(message: impl Into<String>) -> Self {
        Self { code: Self::UNABLE, messages: vec![message.into()] }
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// What to say, one message each.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::usage(chain(&error))
    }
}

impl From<Vec<SettingsError>> for Failure {
    fn from(errors: Vec<SettingsError>) -> Self {
        let mut messages: Vec<_> = errors.iter().take(Self::LISTED).map(|error| chain(error)).collect();
        if errors.len() > Self::LISTED {
            messages.push(format!("{} more problems are not listed", errors.len() - Self::LISTED));
        }
        Self::problems(messages)
    }
}

impl From<DatasetError> for Failure {
    fn from(error: DatasetError) -> Self {
        RunError::from(error).into()
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        RunError::from(error).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        match error {
            // A command that only reads has nothing to read: the caller named the wrong place.
            StoreError::Missing { .. } => Self::usage(chain(&error)),
            error => RunError::from(error).into(),
        }
    }
}

impl From<MockError> for Failure {
    fn from(error: MockError) -> Self {
        Self::unable(chain(&error))
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        let message = chain(&error);
        if let RunError::Interrupted(signal) = error {
            return Self { code: signal.code(), messages: vec![message] };
        }
        if error.is_usage() { Self::usage(message) } else { Self::unable(message) }
    }
}
