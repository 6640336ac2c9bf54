//! What a person types and what a person reads.
//!
//! What it is for: arguments, environment and configuration file become [`crate::model::Settings`]; a command calls
//! [`crate::run`] or reads the store; errors become one message and an exit code in [`failure`].
//! It uses every floor beneath. `environment` is the one file that reads variables, `terminal` the one that writes
//! to the screen.
//! What never happens here: a rule of the product. What a row becomes, when a request goes and what an exit code
//! means is decided beneath.

mod args;
mod commands;
mod environment;
mod failure;
mod keys;
mod settings;
mod signals;
mod terminal;

use std::ffi::OsString;

pub use failure::Failure;

/// Runs the program with these arguments, the first of which is its name. Returns the exit code.
pub fn main(arguments: Vec<OsString>) -> u8 {
    let terminal = terminal::Terminal::new();
    let matches = match args::command().try_get_matches_from(&arguments) {
        Ok(matches) => matches,
        Err(error) => return terminal.usage(&error),
    };
    let context = commands::Context { arguments, environment: environment::Environment::read(), terminal };
    match commands::dispatch(&matches, &context) {
        Ok(code) => code,
        Err(failure) => {
            context.terminal.error(&failure);
            failure.code()
        }
    }
}
