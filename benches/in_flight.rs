//! Whether many requests in flight cost more than few: `cargo bench --bench in_flight`, with `-- --smoke` in seconds.
//!
//! By Little's law so many workers, each waiting 200 ms for a reply, are through with fifty rows each in ten seconds. A
//! runner that is in its own way falls behind the bare loop, and the more so the more are in flight.

mod support;

use std::process::ExitCode;

use support::Broken;
use support::arguments::Size;
use support::compare::{self, Shape, compare, median};
use support::verdict::{self, Target};

/// Rows for each worker.
const TURNS: u64 = 50;

fn main() -> ExitCode {
    compare::main(bench)
}

fn bench(size: Size) -> Result<ExitCode, Broken> {
    let folder = tempfile::tempdir()?;
    let (turns, rounds) = match size {
        Size::Full => (TURNS, 3),
        Size::Smoke => (2, 1),
    };
    let mut targets = Vec::new();
    let mut rows = Vec::new();
    for (workers, name) in [
        (100, "wall time over wall time, 100 in flight, 200 ms"),
        (500, "wall time over wall time, 500 in flight, 200 ms"),
        (1_000, "wall time over wall time, 1,000 in flight, 200 ms"),
        (2_000, "wall time over wall time, 2,000 in flight, 200 ms"),
    ] {
        let count = u64::from(workers) * turns;
        let shape = Shape { rows: count, workers, latency: "200ms", rounds, fixed: true };
        let figures = compare(folder.path(), &workers.to_string(), shape)?;
        targets.push(Target { name, figure: median(figures.wall), most: 1.03 });
        rows.push(median(figures.row));
    }
    if let [few, .., many] = rows[..] {
        let name = "CPU per row at 2,000 in flight over that at 100";
        targets.push(Target { name, figure: many / few, most: 1.25 });
    }
    Ok(verdict::judge("in_flight", size, &targets))
}
