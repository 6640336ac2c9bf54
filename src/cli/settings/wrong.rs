//! Problems gathered on the way.

use crate::cli::settings::error::SettingsError;
use crate::cli::settings::values::Given;

/// What is wrong so far. A value that cannot be used is noted, and its place taken by any other, so that the rest is
/// looked at too.
pub(super) struct Wrong(pub(super) Vec<SettingsError>);

impl Wrong {
    pub(super) fn unless<T>(&mut self, result: Result<T, SettingsError>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    /// The value that somebody gave, or the usual one.
    pub(super) fn given<T>(&mut self, result: Result<Option<Given<T>>, SettingsError>, usual: T) -> T {
        self.unless(result).flatten().map_or(usual, |given| given.value)
    }
}
