//! The one file that reads the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The environment of the process, as far as the program looks at it.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    working_directory: PathBuf,
}

impl Environment {
    pub(crate) fn read() -> Self {
        Self { working_directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")) }
    }

    /// A variable, unless it is unset, empty or no text.
    #[expect(clippy::disallowed_methods, reason = "this file is the one that reads the environment")]
    #[expect(clippy::unused_self, reason = "only who has the environment may read it")]
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    /// All variables of the program itself. An empty one counts as unset.
    #[expect(clippy::unused_self, reason = "only who has the environment may read it")]
    pub(crate) fn of_the_program(&self) -> BTreeMap<String, String> {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, value)| name.starts_with("VERIFY_") && !value.is_empty())
            .collect()
    }

    pub(crate) fn working_directory(&self) -> &std::path::Path {
        &self.working_directory
    }

    /// The machine's name, for messages.
    pub(crate) fn host(&self) -> String {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .or_else(|| self.variable("HOSTNAME"))
            .unwrap_or_else(|| "an unnamed host".to_owned())
    }
}
