//! Ctrl-C, SIGTERM and SIGHUP end the work in an orderly manner; a second signal, or a reader that reads no
//! more, ends the process.

use std::time::Duration;

use qwen_engine::{Cancel, Stop};
use qwen_events::EndStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the work may take to end. It is less than the five seconds after which hosts send SIGKILL.
const DRAIN: Duration = Duration::from_secs(4);

/// Ends the work through `cancel` when a signal arrives, as long as the process lives.
pub fn listen(cancel: &Cancel) -> std::io::Result<()> {
    let mut signals = Signals {
        interrupt: signal(SignalKind::interrupt())?,
        terminate: signal(SignalKind::terminate())?,
        hangup: hangup()?,
    };
    // Exceeding the file size limit must be a failed write, like a full disk, and not end the process. The
    // signal is caught and not ignored, because the programs that we start would inherit an ignored signal.
    drop(signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?);
    let cancel = cancel.clone();
    tokio::spawn(async move {
        let first = signals.next().await;
        cancel.stop(Stop { status: first, error: None });
        let last = tokio::time::timeout(DRAIN, signals.next()).await.unwrap_or(first);
        // The remaining output has no reader. The guardian ends the tools.
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

/// SIGHUP: the terminal was closed. A process that was started with SIGHUP ignored continues, as `nohup`
/// promises.
fn hangup() -> std::io::Result<Option<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    if ignored & 1 == 1 { Ok(None) } else { signal(SignalKind::hangup()).map(Some) }
}

impl Signals {
    /// The next signal, as the end status that it causes.
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
