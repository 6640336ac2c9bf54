//! `verify init`, `verify completions` and `verify man`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;

use crate::cli::args;
use crate::cli::commands::Context;
use crate::cli::commands::context::quoted;
use crate::cli::failure::Failure;
use crate::report::printable;

/// The files of a first project.
const FILES: [(&str, &str); 3] = [
    ("verify.toml", include_str!("../starter/verify.toml")),
    ("schema.json", include_str!("../starter/schema.json")),
    ("input.csv", include_str!("../starter/input.csv")),
];

/// Writes the files of a first project, all of them or none. Returns the exit code.
pub(super) fn init(folder: &Path, context: &Context) -> Result<u8, Failure> {
    let place = |name: &str| if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
    let taken: Vec<String> = FILES
        .iter()
        .map(|(name, _)| place(name))
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| {
            format!("{} is there already: it is not overwritten; name another folder", path.display())
        })
        .collect();
    if !taken.is_empty() {
        return Err(Failure::problems(taken));
    }
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::unable(format!("cannot write {}: {error}", path.display()))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    for (name, text) in FILES {
        let path = place(name);
        // A file that has come meanwhile is not overwritten either.
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| failed(&path, &error))?;
        context.terminal.say(&printable(&format!("wrote {}", path.display())));
    }
    let next = format!("verify run {}", quoted(place("input.csv")));
    let heard = context.terminal.data(&format!("next: {}\n", printable(&next)));
    Ok(if heard { 0 } else { 141 })
}

/// Prints the completions of a shell. Returns the exit code.
pub(super) fn completions(shell: Shell, context: &Context) -> u8 {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "verify", &mut bytes);
    if context.terminal.data(&String::from_utf8_lossy(&bytes)) { 0 } else { 141 }
}

/// Prints a manual page: the program's, or a command's. Returns the exit code.
pub(super) fn man(name: Option<&str>, context: &Context) -> Result<u8, Failure> {
    let mut command = args::command();
    command.build();
    let page = match name {
        None => command,
        Some(name) => command.find_subcommand(name).map(|found| page_of(found, name)).ok_or_else(|| {
            Failure::usage(format!("no command is called `{name}`: verify --help lists them"))
        })?,
    };
    let mut bytes = Vec::new();
    clap_mangen::Man::new(page)
        .render(&mut bytes)
        .map_err(|error| Failure::unable(format!("cannot make the manual page: {error}")))?;
    Ok(if context.terminal.data(&String::from_utf8_lossy(&bytes)) { 0 } else { 141 })
}

fn page_of(command: &Command, name: &str) -> Command {
    command.clone().name(format!("verify-{name}")).version(env!("CARGO_PKG_VERSION"))
}
