//! Flags over environment over file: the highest value of a key, with its origin.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cli::keys::Key;
use crate::cli::settings::file::ConfigFile;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag of the command line.
    Flag(String),
    /// An environment variable.
    Variable(String),
    /// The configuration file.
    File {
        /// Which file.
        path: PathBuf,
        /// Line of the key.
        line: usize,
    },
}

impl Origin {
    /// The higher one wins.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Flag(_) => 3,
            Self::Variable(_) => 2,
            Self::File { .. } => 1,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "--{name}"),
            Self::Variable(name) => f.write_str(name),
            Self::File { path, line } => write!(f, "{} line {line}", path.display()),
        }
    }
}

/// A value before it is read as what its key wants. Flags and variables are text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Raw {
    Text(String),
    /// A number of the file, as written.
    Number(String),
    Switch(bool),
    /// An array or a table of the file.
    Json(Value),
}

/// All layers.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    flags: BTreeMap<&'static str, String>,
    variables: BTreeMap<String, String>,
    file: Option<ConfigFile>,
}

impl Layers {
    /// Layers of a command: flags by key id, `VERIFY_…` variables by name, the file if there is one.
    pub(crate) fn new(
        flags: BTreeMap<&'static str, String>,
        variables: BTreeMap<String, String>,
        file: Option<ConfigFile>,
    ) -> Self {
        Self { flags, variables, file }
    }

    /// The configuration file, if there is one.
    pub(crate) fn file(&self) -> Option<&ConfigFile> {
        self.file.as_ref()
    }

    pub(crate) fn raw(&self, key: &Key) -> Option<(Origin, Raw)> {
        if let Some(text) = self.flags.get(key.id) {
            return Some((Origin::Flag(key.flag.to_owned()), Raw::Text(text.clone())));
        }
        let variable = key.variable();
        if let Some(text) = self.variables.get(&variable) {
            return Some((Origin::Variable(variable), Raw::Text(text.clone())));
        }
        self.in_file(key.id)
    }

    /// A value of the file alone.
    pub(crate) fn in_file(&self, id: &str) -> Option<(Origin, Raw)> {
        self.file.as_ref()?.value(id)
    }

    /// Variables whose names begin with `VERIFY_`.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A path, made absolute against the folder that its origin is relative to.
    pub(crate) fn path(&self, origin: &Origin, text: &str) -> PathBuf {
        let folder = match (origin, &self.file) {
            (Origin::File { .. }, Some(file)) => file.folder(),
            _ => Path::new(""),
        };
        // The working directory stays implicit, so that messages name files as people typed them.
        if folder.as_os_str().is_empty() || folder == Path::new(".") {
            PathBuf::from(text)
        } else {
            folder.join(text)
        }
    }
}
