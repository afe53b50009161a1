//! Errors as readers are told about them.

use std::fmt;
use std::sync::Arc;

/// Which of the separate time-outs passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// The process or server did not come up.
    Start,
    /// The connection to the model was not made.
    Connect,
    /// The model accepted the request and said nothing.
    FirstToken,
    /// The model's stream stood still.
    Stall,
    /// A tool ran too long.
    Tool,
    /// A node of an agent's graph ran too long.
    Node,
    /// A control request was not answered.
    Control,
    /// The turn ran too long.
    Turn,
    /// Work in hand was not finished at shutdown.
    Drain,
}

impl Timeout {
    /// The name that errors and settings use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Connect => "connect",
            Self::FirstToken => "first token",
            Self::Stall => "stream stall",
            Self::Tool => "tool",
            Self::Node => "node",
            Self::Control => "control",
            Self::Turn => "turn",
            Self::Drain => "drain",
        }
    }
}

/// What kind of thing went wrong; decides the exit code and the dialects' own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A line, prompt, file or session id that cannot be used.
    Input,
    /// Flags that make no sense.
    Usage,
    /// The model's server refused our credentials, or there are none.
    Auth,
    /// Settings that cannot be used, or no model configured.
    Settings,
    /// A sandbox was asked for and cannot be had.
    Sandbox,
    /// The model's server answered with an error, or with something that is not an answer.
    Model,
    /// The model's server could not be reached, or the stream broke.
    Network,
    /// One of the named time-outs passed.
    Timeout(Timeout),
    /// A tool that the turn cannot do without failed.
    Tool,
    /// A limit that the user set is reached.
    Limit,
    /// The host speaks another protocol version or wants what we do not have.
    UnsupportedProtocol,
    /// Too much is under way; try again later.
    Overloaded,
    /// Our own fault.
    Internal,
}

/// An error in the words of the person who will read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorInfo {
    /// What kind of thing went wrong.
    pub kind: ErrorKind,
    /// What was asked, what went wrong, what to do.
    pub message: Arc<str>,
    /// A stable word for programs, such as `invalid_json`.
    pub code: &'static str,
    /// The field that was wrong, as a path such as `input.parts[0].type`.
    pub param: Option<Arc<str>>,
    /// The HTTP status, where a server gave one.
    pub status: Option<u16>,
    /// Whether trying again may help.
    pub retryable: bool,
}

impl ErrorInfo {
    /// The code of a turn that waited for its host when the host's input ended.
    pub const INPUT_ENDED: &'static str = "input_ended";

    /// An error of `kind` with a stable `code`.
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), code, param: None, status: None, retryable: false }
    }

    /// Names the field that was wrong.
    pub fn with_param(mut self, param: impl Into<Arc<str>>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// The exit code that an error of this kind ends a one-shot run with.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Usage => 2,
            ErrorKind::Auth => 41,
            ErrorKind::Input => 42,
            ErrorKind::Sandbox => 44,
            ErrorKind::Settings => 52,
            ErrorKind::Tool => 54,
            ErrorKind::Limit => 55,
            _ => 1,
        }
    }
}

impl fmt::Display for ErrorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ErrorInfo {}
