//! Signals that end a run: the first gently, the second at once. A hangup that was ignored from the start, as by
//! `nohup`, stays ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::policy::Signal;
use crate::run::{StopSender, StopSignal};

/// Watches signals until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    done: Arc<AtomicBool>,
}

/// How long a run that was told twice may take before the process ends anyway.
const LAST_GRACE: std::time::Duration = std::time::Duration::from_millis(700);

impl Watch {
    /// Starts a thread that listens. Without signals the run goes on and cannot be stopped gently.
    pub(crate) fn start(stops: StopSender) -> std::io::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        // Read before a handler replaces what the parent has left behind.
        let outlives_hangup = is_ignored(SignalKind::hangup());
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            runtime.block_on(async move {
                let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (
                    signal(SignalKind::interrupt()),
                    signal(SignalKind::terminate()),
                    signal(SignalKind::hangup()),
                ) else {
                    return;
                };
                let mut seen = 0;
                loop {
                    let which = tokio::select! {
                        _ = interrupt.recv() => Signal::Interrupt,
                        _ = terminate.recv() => Signal::Terminate,
                        _ = hangup.recv() => {
                            if outlives_hangup {
                                continue;
                            }
                            Signal::Hangup
                        }
                    };
                    seen += 1;
                    let stop = if seen == 1 { StopSignal::Gentle(which) } else { StopSignal::Now(which) };
                    let _ = stops.try_send(stop);
                    if seen > 1 && !is_done.load(Ordering::SeqCst) {
                        leave_soon(which);
                    }
                }
            });
        })?;
        Ok(Self { done })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.done.store(true, Ordering::SeqCst);
    }
}

/// Whether the process ignores a signal, which it has inherited if nothing was set yet. Only Linux tells that without
/// a call into C; elsewhere a signal counts as not ignored.
fn is_ignored(kind: SignalKind) -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores(&status, kind.as_raw_value()))
}

/// Whether the mask of ignored signals in the text of `/proc/PID/status` holds this number.
fn ignores(status: &str, number: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let bit = u32::try_from(number - 1).ok().and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0);
    mask & bit != 0
}

/// Ends the process if it has not ended by itself. What is committed is safe at any moment.
#[expect(clippy::exit, reason = "a run that was told twice to stop must not hang")]
fn leave_soon(which: Signal) {
    thread::sleep(LAST_GRACE);
    let code = match which {
        Signal::Hangup => 129,
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
    };
    std::process::exit(code);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        let status = "Name:\tverify\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\tffff\n";
        assert!(ignores(status, 1) && ignores(status, 13));
        assert!(!ignores(status, 2) && !ignores(status, 12) && !ignores(status, 0) && !ignores(status, 65));
        for none in ["", "SigIgn:\tx", "SigIgn:"] {
            assert!(!ignores(none, 1), "{none}");
        }
    }
}
