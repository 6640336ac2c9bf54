//! What a row costs beside a bare HTTP loop: `cargo bench --bench throughput`, with `-- --smoke` in seconds.

mod support;

use std::process::ExitCode;

use support::Broken;
use support::arguments::Size;
use support::compare::{self, Shape, compare, median};
use support::verdict::{self, Target};

fn main() -> ExitCode {
    compare::main(bench)
}

fn bench(size: Size) -> Result<ExitCode, Broken> {
    let folder = tempfile::tempdir()?;
    let (fast_rows, rounds, slow_rows) = match size {
        Size::Full => (40_000, 3, 25_000),
        Size::Smoke => (2_000, 1, 1_000),
    };
    let fast = Shape { rows: fast_rows, workers: 64, latency: "0s", rounds, fixed: false };
    let slow = Shape { rows: slow_rows, workers: 500, latency: "200ms", rounds: 1, fixed: true };
    let fast = compare(folder.path(), "fast", fast)?;
    let slow = compare(folder.path(), "slow", slow)?;
    let targets = [
        Target {
            name: "CPU per row over CPU per request, 64 workers, no latency",
            figure: median(fast.cpu),
            most: 4.0,
        },
        Target {
            name: "wall time over wall time, 500 workers, 200 ms",
            figure: median(slow.wall),
            most: 1.05,
        },
    ];
    Ok(verdict::judge("throughput", size, &targets))
}
