//! One file a command: what it takes and what it does.
//!
//! What it is for: each command reads its arguments, calls the rooms beneath and says what came of it.
//! It uses every floor beneath `cli`.
//! What never happens here: a command of one file reaches into another file's command.

mod check;
pub(crate) mod mock;
mod record;
mod review;
mod run;
mod show;
mod source;
mod status;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, FromArgMatches as _};

use crate::cli::args::{ReadArgs, ReviewArgs, RunArgs, ShowArgs};
use crate::cli::environment::Environment;
use crate::cli::failure::Failure;
use crate::cli::settings::ConfigFile;
use crate::cli::terminal::Terminal;

/// What every command has.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Environment,
    pub(crate) terminal: Terminal,
}

/// Runs the command that was typed. Returns its exit code.
pub(crate) fn dispatch(matches: &ArgMatches, context: &Context) -> Result<u8, Failure> {
    match matches.subcommand() {
        Some(("run", matches)) => run::run(&RunArgs::read(matches), context),
        Some(("status", matches)) => status::run(&ReadArgs::read(matches), context),
        Some(("show", matches)) => show::run(&ShowArgs::read(matches), context),
        Some(("review", matches)) => review::run(&ReviewArgs::read(matches), context),
        Some(("mock", matches)) => {
            let args = mock::MockArgs::from_arg_matches(matches)
                .map_err(|error| Failure::usage(error.to_string()))?;
            mock::run(args)?;
            Ok(0)
        }
        _ => Err(Failure::usage("no such command: see verify --help")),
    }
}

impl Context {
    /// The state folder: as given, else beside the configuration, else in the working directory.
    fn state_folder(&self, given: Option<&Path>, config: Option<&ConfigFile>) -> PathBuf {
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
    fn state_to_read(&self, given: Option<&Path>) -> PathBuf {
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

    /// The command as it was typed, for people to type again.
    fn command_line(&self) -> String {
        let mut words = vec!["verify".to_owned()];
        let mut skip_next = false;
        for argument in self.arguments.iter().skip(1) {
            let text = argument.to_string_lossy();
            if std::mem::take(&mut skip_next) || text == "--new" || text.starts_with("--retry=") {
                continue;
            }
            if text == "--retry" {
                skip_next = true;
                continue;
            }
            words.push(quoted(&text));
        }
        words.join(" ")
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
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
