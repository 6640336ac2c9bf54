//! Signals that end a run: the first gently, the second at once.

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
                        _ = hangup.recv() => Signal::Hangup,
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
