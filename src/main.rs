//! The binary: parses, runs, and ends with the code that the library decided.

use std::process::ExitCode;

/// Rows are many small allocations on three threads, which this one serves with less work than that of the C library.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    verify::transport::install_tls();
    ExitCode::from(verify::cli::main(std::env::args_os().collect()))
}
