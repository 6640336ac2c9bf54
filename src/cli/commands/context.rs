//! What every command has, and what commands ask of it alike.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::cli::environment::Environment;
use crate::cli::settings::ConfigFile;
use crate::cli::terminal::Terminal;
use crate::report::printable;

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
        format!(" --state {}", quoted(state.display().to_string()))
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
            words.push(quoted(argument));
        }
        words.join(" ")
    }
}

/// A word for a shell, on one line and without anything that a terminal would obey: what is more than plain text stands
/// in `$'…'` byte by byte, which bash, zsh, ksh and POSIX of 2024 read back to the same word.
pub(super) fn quoted(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(plain) => text.to_owned(),
        Some(text) if printable(text) == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => escaped(word),
    }
}

fn escaped(word: &OsStr) -> String {
    let mut out = "$'".to_owned();
    for chunk in word.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str(r"\n"),
                '\t' => out.push_str(r"\t"),
                '\'' => out.push_str(r"\'"),
                '\\' => out.push_str(r"\\"),
                c if printable(c.encode_utf8(&mut [0; 4])).starts_with('\\') => {
                    push_bytes(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                c => out.push(c),
            }
        }
        push_bytes(&mut out, chunk.invalid());
    }
    out.push('\'');
    out
}

/// Three octal digits are read to their end in every shell, while hexadecimal ones may take in what follows.
fn push_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(out, "\\{byte:03o}");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("in.jsonl"), "in.jsonl");
        assert_eq!(quoted("Is {{ t }} it's?"), r"'Is {{ t }} it'\''s?'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("a\nb's \\ \u{1b}1\u{202e}ü"), r"$'a\nb\'s \\ \0331\342\200\256ü'");
        assert_eq!(quoted(OsStr::from_bytes(b"\xff in")), r"$'\377 in'");
    }
}
