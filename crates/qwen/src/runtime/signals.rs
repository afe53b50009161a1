//! Ctrl-C and SIGTERM end the work in good order; a second one, or a reader that takes no more, ends the process.

use std::time::Duration;

use qwen_engine::{Cancel, Stop};
use qwen_events::EndStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the work may take to end: below the five seconds after which those who start us send SIGKILL.
const DRAIN: Duration = Duration::from_secs(4);

/// Ends the work by `cancel` when a signal comes, for as long as the process lives.
pub fn listen(cancel: &Cancel) -> std::io::Result<()> {
    let mut signals =
        Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? };
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
}

impl Signals {
    /// The next signal, as the end that it brings about.
    async fn next(&mut self) -> EndStatus {
        tokio::select! {
            _ = self.interrupt.recv() => EndStatus::Cancelled,
            _ = self.terminate.recv() => EndStatus::Interrupted,
        }
    }
}
