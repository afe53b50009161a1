//! Errors as readers see them.

use std::fmt;
use std::sync::Arc;

use crate::{PromptId, SessionId};

/// The time-out that expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    /// The process or server did not start.
    Start,
    /// The connection to the model was not established.
    Connect,
    /// The model accepted the request but sent no token.
    FirstToken,
    /// The model's stream stalled.
    Stall,
    /// A tool ran too long.
    Tool,
    /// A node of an agent's graph ran too long.
    Node,
    /// A control request was not answered.
    Control,
    /// The turn ran too long.
    Turn,
    /// In-flight work was not finished at shutdown.
    Drain,
}

impl Timeout {
    /// The name in errors and settings.
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

/// The category of an error; it determines the exit code and the dialects' error codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// An unusable line, prompt, file or session id.
    Input,
    /// Invalid or contradictory flags.
    Usage,
    /// The model's server rejected the credentials, or there are none.
    Auth,
    /// Unusable settings, or no model configured.
    Settings,
    /// A sandbox was requested but is unavailable.
    Sandbox,
    /// The model's server answered with an error, or with something that is not an answer.
    Model,
    /// The model's server could not be reached, or the stream broke.
    Network,
    /// A named time-out expired.
    Timeout(Timeout),
    /// A tool that the turn requires failed.
    Tool,
    /// A limit that the user set was reached.
    Limit,
    /// The host uses an unsupported protocol version or requires an unsupported capability.
    UnsupportedProtocol,
    /// Too much work is in flight; the client should retry later.
    Overloaded,
    /// A defect of this program.
    Internal,
}

/// An error, worded for the person who reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorInfo {
    pub kind: ErrorKind,
    /// What was attempted, what went wrong, what to do next.
    pub message: Arc<str>,
    /// A stable identifier for programs, such as `invalid_json`.
    pub code: &'static str,
    /// The path of the invalid field, such as `input.parts[0].type`.
    pub param: Option<Arc<str>>,
    /// The HTTP status, if a server sent one.
    pub status: Option<u16>,
    /// True if a retry may succeed.
    pub retryable: bool,
    /// The prompt that the error refuses before it became a turn.
    pub refused: Option<Box<RefusedPrompt>>,
    /// The number of the refused line of input, if a line was refused. No dialect shows it.
    pub input: Option<u64>,
}

/// A prompt that became no turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedPrompt {
    /// The session that the prompt named; the current one if absent.
    pub session_id: Option<SessionId>,
    pub prompt_id: PromptId,
}

impl ErrorInfo {
    /// The code of a turn that was waiting for its host when the host's input ended.
    pub const INPUT_ENDED: &'static str = "input_ended";

    /// An error of `kind` with a stable `code`.
    pub fn new(kind: ErrorKind, code: &'static str, message: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            code,
            param: None,
            status: None,
            retryable: false,
            refused: None,
            input: None,
        }
    }

    /// Sets the path of the invalid field.
    pub fn with_param(mut self, param: impl Into<Arc<str>>) -> Self {
        self.param = Some(param.into());
        self
    }

    /// Sets the prompt that the error refuses, and the session that the prompt names.
    pub fn for_prompt(mut self, session_id: Option<&str>, prompt_id: Option<PromptId>) -> Self {
        let session_id = session_id.and_then(|id| SessionId::parse(id).ok());
        self.refused = prompt_id.map(|prompt_id| Box::new(RefusedPrompt { session_id, prompt_id }));
        self
    }

    /// Sets the number of the line of input that the error refuses.
    pub fn for_input(mut self, input: Option<u64>) -> Self {
        self.input = input;
        self
    }

    /// The exit code of a one-shot run that ends with this error.
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
