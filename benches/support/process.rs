//! Processes, and what they cost by the kernel's own account.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::Broken;

/// Ticks a second of the times in `/proc`, the same on every machine that Linux supports today.
const TICKS: u64 = 100;
/// How often the peak is read. The kernel keeps it, so that only a rise in the last moment can be missed.
const POLL: Duration = Duration::from_millis(5);

/// `verify run` over `input` as both benches call it, with state and output in `folder`. `more` names the provider.
pub(crate) fn verify_run(input: &Path, folder: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verify"));
    command
        .arg("run")
        .arg(input)
        .arg("--state")
        .arg(folder.join(".verify"))
        .arg("--output")
        .arg(folder.join("out.jsonl"))
        .args(["--prompt", "Is this review positive? {{ text }}"])
        .args([
            "--column",
            "positive=boolean",
            "--column",
            "confidence=number 0..1",
            "--column",
            "why=string",
        ])
        .args(more)
        .env("OPENAI_API_KEY", KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// The credential that all requests carry.
pub(crate) const KEY: &str = "bench-key-0123456789abcdef";

/// What a process cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    /// Time on processors, in the program and in the kernel for it.
    pub(crate) cpu: Duration,
    /// From start to end.
    pub(crate) wall: Duration,
    /// The most memory that it held at once, in KiB.
    pub(crate) peak: u64,
}

/// Runs a process to its end. Errors: it ends with another code than 0.
pub(crate) fn measure(mut command: Command) -> Result<Cost, Broken> {
    let before = cpu_of_ended_children()?;
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let mut peak = 0;
    let mut words = child.stderr.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        if let Some(words) = &mut words {
            // What cannot be read is no part of the measurement.
            let _ = std::io::Read::read_to_string(words, &mut text);
        }
        text
    });
    let status = loop {
        if let Some(high) = high_water(&child) {
            peak = high.max(peak);
        }
        // Only `wait` moves the times of the child to those of its parent.
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(POLL);
    };
    let wall = begun.elapsed();
    let cpu = cpu_of_ended_children()?.saturating_sub(before);
    let text = reader.join().unwrap_or_default();
    if !status.success() {
        return Err(format!("{command:?} ended with {status}:\n{text}").into());
    }
    Ok(Cost { cpu, wall, peak })
}

/// The time on processors of this process, its children left out.
pub(crate) fn own_cpu() -> Result<Duration, Broken> {
    stat(11)
}

/// The time on processors of all children that have ended and were waited for.
fn cpu_of_ended_children() -> Result<Duration, Broken> {
    stat(13)
}

/// Two neighbours of `/proc/self/stat`, added: the time in the program and the time in the kernel. `at` counts from
/// the field after the name, which may hold blanks.
fn stat(at: usize) -> Result<Duration, Broken> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after = text.rsplit_once(')').map_or("", |(_, after)| after);
    let mut fields = after.split_whitespace().skip(at);
    let mut next = || -> Result<u64, Broken> { Ok(fields.next().unwrap_or_default().parse()?) };
    Ok(Duration::from_millis((next()? + next()?) * 1_000 / TICKS))
}

/// The most memory of a process so far, in KiB.
fn high_water(child: &Child) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
