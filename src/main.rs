//! The binary: parses, runs, and ends with the code that the library decided.

use std::process::ExitCode;

fn main() -> ExitCode {
    verify::transport::install_tls();
    ExitCode::from(verify::cli::main(std::env::args_os().collect()))
}
