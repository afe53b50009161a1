//! The reason why a worker ended.

use std::fmt;

/// The cause of a process exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCause {
    /// The process returned this code.
    Code(i32),
    /// This signal killed the process.
    Signal(i32),
    /// The process could not be started.
    NotStarted,
    /// The kernel ended the process: its output closed, it stopped answering, or it used another protocol.
    Ended(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerExit {
    pub cause: ExitCause,
    /// The tail of standard error, or the reason why the process could not be started.
    pub detail: String,
}

impl WorkerExit {
    /// The exit as part of an error or a notice for the client.
    pub fn to_json(&self) -> serde_json::Value {
        let signal = match self.cause {
            ExitCause::Signal(signal) => Some(signal),
            ExitCause::Code(_) | ExitCause::NotStarted | ExitCause::Ended(_) => None,
        };
        serde_json::json!({
            "reason": self.cause.reason(),
            "exit_code": self.cause.code(),
            "signal": signal,
            "stderr": self.detail,
        })
    }

    /// The same exit, with the reason for which the kernel ended the process, if it did.
    pub fn with_cause(&self, fault: Option<&'static str>) -> Self {
        Self { cause: fault.map_or(self.cause, ExitCause::Ended), detail: self.detail.clone() }
    }
}

impl ExitCause {
    /// The code that the process returned, if it did.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) | Self::NotStarted | Self::Ended(_) => None,
        }
    }

    /// A stable label for metrics.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Code(0) => "exit_0",
            Self::Code(_) => "exit_error",
            Self::Signal(9) => "killed",
            Self::Signal(11) => "segfault",
            Self::Signal(6) => "aborted",
            Self::Signal(_) => "signal",
            Self::NotStarted => "not_started",
            Self::Ended(why) => why,
        }
    }
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it exited with code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal} killed it"),
            Self::NotStarted => f.write_str("it could not be started"),
            Self::Ended("stalled") => f.write_str("it stopped answering heartbeats and was killed"),
            Self::Ended("stdout_closed") => f.write_str("it closed its standard output and was killed"),
            Self::Ended("handshake_timeout") => {
                f.write_str("it wrote no handshake before the deadline and was killed")
            }
            Self::Ended("protocol") => f.write_str("it does not speak this protocol and was killed"),
            Self::Ended(why) => write!(f, "it was ended ({why})"),
        }
    }
}

impl fmt::Display for WorkerExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cause)?;
        let mut lines = self.detail.lines().rev().filter(|line| !line.trim().is_empty());
        let told = lines.clone().find(|line| line.starts_with("qwen: ")).or_else(|| lines.next());
        match told {
            Some(line) => write!(f, ": {}", line.trim().chars().take(400).collect::<String>()),
            None => Ok(()),
        }
    }
}
