//! Figures against their targets.

use std::process::ExitCode;

use super::Broken;
use super::arguments::Size;

/// A figure with the most that it may be.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) figure: f64,
    pub(crate) most: f64,
}

/// Prints the figures and the command that made them. The code is 1 where a target is missed.
#[expect(clippy::print_stdout, reason = "a bench speaks to whoever runs it")]
pub(crate) fn judge(bench: &str, size: Size, targets: &[Target]) -> ExitCode {
    println!("\n{:<58} {:>8} {:>8}", "figure", "is", "at most");
    let mut missed = false;
    for Target { name, figure, most } in targets {
        let is_missed = figure > most;
        missed |= is_missed;
        println!("{name:<58} {figure:>8.3} {most:>8.3}{}", if is_missed { "  missed" } else { "" });
    }
    let smoke = if size == Size::Smoke { " -- --smoke" } else { "" };
    println!("\nmade by: cargo bench --bench {bench}{smoke}");
    if size == Size::Smoke {
        println!("a smoke run judges nothing: its sizes are too small");
    }
    if missed && size == Size::Full { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Says why there are no figures.
#[expect(clippy::print_stderr, reason = "a bench speaks to whoever runs it")]
pub(crate) fn broken(error: &Broken) -> ExitCode {
    eprintln!("the bench could not be made: {error}");
    ExitCode::from(2)
}
