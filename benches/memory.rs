//! The most memory of a run with the built-in provider: `cargo bench --bench memory`, with `-- --smoke` in seconds.
//!
//! It must not grow with the number of rows, so the same is run with a tenth of the rows.

mod support;

use std::path::Path;
use std::process::ExitCode;

use support::arguments::{self, Size};
use support::process::{self, Cost};
use support::verdict::{self, Target};
use support::{Broken, input};

fn main() -> ExitCode {
    let Some(size) = arguments::size() else { return ExitCode::SUCCESS };
    bench(size).unwrap_or_else(|error| verdict::broken(&error))
}

#[expect(clippy::print_stdout, reason = "a bench speaks to whoever runs it")]
fn bench(size: Size) -> Result<ExitCode, Broken> {
    let folder = tempfile::tempdir()?;
    let rows = match size {
        Size::Full => 1_000_000,
        Size::Smoke => 20_000,
    };
    println!("{:<10} {:>10} {:>10} {:>10}", "rows", "peak MiB", "wall s", "CPU s");
    let few = run(folder.path(), rows / 10)?;
    let many = run(folder.path(), rows)?;
    let targets = [
        Target { name: "peak memory in MiB", figure: mebibytes(&many), most: 64.0 },
        Target {
            name: "peak memory over that of a tenth of the rows",
            figure: mebibytes(&many) / mebibytes(&few),
            most: 1.1,
        },
    ];
    Ok(verdict::judge("memory", size, &targets))
}

#[expect(clippy::print_stdout, reason = "a bench speaks to whoever runs it")]
fn run(folder: &Path, rows: u64) -> Result<Cost, Broken> {
    let path = folder.join(format!("{rows}.jsonl"));
    input::write(&path, rows)?;
    let own = folder.join(rows.to_string());
    std::fs::create_dir(&own)?;
    let cost = process::measure(process::verify_run(&path, &own, &["--provider", "mock"]))?;
    let (wall, cpu) = (cost.wall.as_secs_f64(), cost.cpu.as_secs_f64());
    println!("{rows:<10} {:>10.1} {wall:>10.1} {cpu:>10.1}", mebibytes(&cost));
    // The next run shall not find the disk full.
    std::fs::remove_dir_all(own)?;
    std::fs::remove_file(path)?;
    Ok(cost)
}

#[expect(clippy::cast_precision_loss, reason = "a peak has far less than 2^52 KiB")]
fn mebibytes(cost: &Cost) -> f64 {
    cost.peak as f64 / 1_024.0
}
