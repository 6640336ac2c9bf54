//! What every command has, and what commands ask of it alike.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::cli::environment::Environment;
use crate::cli::settings::ConfigFile;
use crate::cli::terminal::Terminal;

/// What every command has.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Environment,
    pub(crate) terminal: Terminal,
}

impl Context {
    /// The state folder: as given, else beside the configuration, else in the working directory.
    pub(super) fn state_folder(&self, given: Option<&Path>, config: Option<&ConfigFile>) -> PathBuf {
        let given = given
            .map(Path::to_owned)
            .or_else(|| self.environment.variable("VERIFY_STATE").map(PathBuf::from));
        match (given, config) {
            (Some(dir), _) => dir,
            (None, Some(config)) => config.folder().join(".verify"),
            (None, None) => PathBuf::from(".verify"),
        }
    }

    /// The configuration of a command that only reads: for the place of the state folder.
    pub(super) fn state_to_read(&self, given: Option<&Path>) -> PathBuf {
        let folder = self.environment.working_directory();
        let config = self
            .environment
            .variable("VERIFY_CONFIG")
            .map(PathBuf::from)
            .or_else(|| ConfigFile::discover(None, folder));
        if given.is_none()
            && let Some(beside) = config.as_deref().and_then(Path::parent)
            && self.environment.variable("VERIFY_STATE").is_none()
        {
            return beside.join(".verify");
        }
        self.state_folder(given, None)
    }

    /// What a command that reads needs to find this state folder from here, with a blank before; nothing where it
    /// finds it by itself.
    pub(super) fn place_of(&self, state: &Path) -> String {
        let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if real(&self.state_to_read(None)) == real(state) {
            return String::new();
        }
        format!(" --state {}", quoted(&state.display().to_string()))
    }

    /// The command as it was typed, for people to type again.
    pub(super) fn command_line(&self) -> String {
        let mut words = vec!["verify".to_owned()];
        let mut skip_next = false;
        for argument in self.arguments.iter().skip(1) {
            let text = argument.to_string_lossy();
            if std::mem::take(&mut skip_next)
                || text == "--new"
                || text == "--forgive-possible"
                || text.starts_with("--retry=")
                || text.starts_with("--probe=")
            {
                continue;
            }
            if text == "--retry" || text == "--probe" {
                skip_next = true;
                continue;
            }
            words.push(quoted(&text));
        }
        words.join(" ")
    }
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("in.jsonl"), "in.jsonl");
        assert_eq!(quoted("Is {{ t }} it's?"), r"'Is {{ t }} it'\''s?'");
        assert_eq!(quoted(""), "''");
    }
}
