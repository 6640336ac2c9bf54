//! From arguments to an exit code.

use std::ffi::OsString;

use crate::cli::args;
use crate::cli::commands::{Context, dispatch};
use crate::cli::environment::Environment;
use crate::cli::terminal::Terminal;

/// Runs the program with these arguments, the first of which is its name. Returns the exit code.
pub fn main(arguments: Vec<OsString>) -> u8 {
    let terminal = Terminal::new();
    let environment = Environment::read();
    let matches = match args::command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return terminal.usage(&error, &arguments),
    };
    #[cfg(feature = "crash-points")]
    if let Some(text) = environment.variable("VERIFY_CRASH_AT")
        && !crate::base::CrashPoint::arm(&text)
    {
        terminal.say(&format!("no crash point {text}"));
        return 2;
    }
    let context = Context { arguments, environment, terminal };
    match dispatch(&matches, &context) {
        Ok(code) => code,
        Err(failure) => {
            context.terminal.error(&failure);
            failure.code()
        }
    }
}
