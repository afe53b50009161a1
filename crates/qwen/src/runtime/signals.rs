//! Ctrl-C, SIGTERM and SIGHUP end the work in good order; a second one, or a reader that takes no more, ends the process.

use std::time::Duration;

use qwen_engine::{Cancel, Stop};
use qwen_events::EndStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the work may take to end: below the five seconds after which those who start us send SIGKILL.
const DRAIN: Duration = Duration::from_secs(4);

/// Ends the work by `cancel` when a signal comes, for as long as the process lives.
pub fn listen(cancel: &Cancel) -> std::io::Result<()> {
    let mut signals = Signals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        hangup: hangup()?,
    };
    // A limit on the size of files is a write that fails, like a full disk, and not the end. Caught, not ignored: what is
    // ignored stays so in the programs that we start.
    drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
    let cancel = cancel.clone();
    tokio::spawn(async move {
        let first = signals.next().await;
        cancel.stop(Stop { status: first, error: None });
        let last = tokio::time::timeout(DRAIN, signals.next()).await.unwrap_or(first);
        // Nobody takes what is left to say. The guardian ends the tools.
        std::process::exit(last.exit_code().into());
    });
    Ok(())
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None where SIGHUP is ignored, as under `nohup`.
    hangup: Option<Signal>,
}

/// The terminal was closed. A process that was started with SIGHUP ignored goes on, as `nohup` promises.
fn hangup() -> std::io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    if ignored & 1 == 1 { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}

impl Signals {
    /// The next signal, as the end that it brings about.
    async fn next(&mut self) -> EndStatus {
        tokio::select! {
            _ = self.interrupt.recv() => EndStatus::Cancelled,
            _ = self.terminate.recv() => EndStatus::Interrupted,
            () = hung_up(self.hangup.as_mut()) => EndStatus::Interrupted,
        }
    }
}

async fn hung_up(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => drop(hangup.recv().await),
        None => std::future::pending().await,
    }
}
