//! Ctrl-C and SIGTERM end the turn in good order; a second Ctrl-C ends the process at once.

use qwen_engine::{Cancel, Stop};
use qwen_events::EndStatus;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that end us.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

/// A signal that ends us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Ctrl-C
    Interrupt,
    /// SIGTERM
    Terminate,
}

impl Ending {
    /// The exit code that tells the shell.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// How a turn that it ends is reported.
    pub fn stop(self) -> Stop {
        match self {
            Self::Interrupt => Stop::cancelled(),
            Self::Terminate => Stop { status: EndStatus::Interrupted, error: None },
        }
    }
}

impl Signals {
    /// Starts listening.
    pub fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// The next signal.
    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupt,
            _ = self.terminate.recv() => Ending::Terminate,
        }
    }

    /// Ends turns as signals come: the first one ends the turn, a second one the process.
    pub async fn end_turn(&mut self, cancel: &Cancel) -> std::convert::Infallible {
        cancel.stop(self.next().await.stop());
        let second = self.next().await;
        std::process::exit(i32::from(second.exit_code()));
    }
}
