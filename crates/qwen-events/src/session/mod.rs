//! Notices about a session, and answers to requests outside the conversation.

pub mod control;

use std::sync::Arc;

use crate::{CommandCall, HintTrigger, Json, PromptId, SessionId};

#[derive(Debug, Clone, PartialEq)]
pub enum SessionEvent {
    /// The turn's work is done; its terminal record follows.
    Finished,
    /// The history was replaced by a summary.
    Compressed {
        /// The tokens before the compaction.
        original_tokens: u64,
        /// The tokens after the compaction.
        new_tokens: u64,
        /// True if the user asked for it.
        manual: bool,
    },
    /// The model's output limit, or the token limit, cut the answer off.
    MaxTokens { message: Arc<str> },
    /// The limit on model calls was reached.
    MaxTurns { limit: u64 },
    /// The turn was cancelled.
    Cancelled,
    /// A model call failed and will be retried.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The maximum number of retries.
        max_retries: u32,
        /// The delay before the next attempt.
        delay_ms: u64,
        /// The HTTP status, if there was one.
        status: Option<u16>,
        error: Arc<str>,
    },
    /// The limit of the model's server is reached, and the turn waits until it is reset.
    Waiting {
        /// The limit, as the server describes it.
        reason: Arc<str>,
        /// The time until the next attempt.
        delay_ms: u64,
        /// The moment of the next attempt, in seconds since 1970.
        until: u64,
        /// The HTTP status of the refusal.
        status: Option<u16>,
    },
    /// Another model takes over.
    ModelFallback {
        /// The model that failed.
        from: Arc<str>,
        /// The model that takes over.
        to: Arc<str>,
        reason: Arc<str>,
    },
    /// The agent repeats itself.
    LoopDetected {
        /// What the agent repeats.
        message: Arc<str>,
    },
    /// The approval mode changed.
    ModeChanged {
        /// The mode from now on.
        mode: Arc<str>,
    },
    /// A prompt joined the running turn before its next model call ([`Delivery::Steer`](crate::Delivery)).
    /// It gets no terminal record.
    Steered {
        /// The prompt's id, not the turn's.
        prompt_id: PromptId,
        /// The client's id of the message, if it sent one.
        message_uuid: Option<Arc<str>>,
    },
}

/// The severity of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Info,
    Warning,
    Error,
}

/// The severity of a console line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleLevel {
    Debug,
    Info,
    Warn,
    Error,
}

/// The part of the program that logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogScope {
    /// A message of the program itself.
    System,
    Tool,
    /// A message for debugging only.
    Debug,
}

/// The end of a slash or at command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandResult {
    pub session_id: SessionId,
    /// The prompt that held the command.
    pub prompt_id: PromptId,
    /// The command as parsed.
    pub command: CommandCall,
    pub body: CommandResultBody,
    /// The client's id of the message that held the command, if it sent one.
    pub message_uuid: Option<Arc<str>>,
    /// The author of that message, as the client described it.
    pub message_origin: Option<Json>,
    /// The previous session: the conversation starts over in `session_id`.
    pub cleared_session: Option<SessionId>,
}

impl CommandResult {
    /// The result of a command in a message without an id.
    pub fn new(
        session_id: SessionId,
        prompt_id: PromptId,
        command: CommandCall,
        body: CommandResultBody,
    ) -> Self {
        Self {
            session_id,
            prompt_id,
            command,
            body,
            message_uuid: None,
            message_origin: None,
            cleared_session: None,
        }
    }
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandResultBody {
    /// Text for the user.
    Message { level: Level, content: Arc<str> },
    /// The host should show a dialog.
    Dialog {
        /// Its name, such as `settings`.
        name: Arc<str>,
        /// The content of the dialog.
        data: Json,
    },
    /// The command ran a tool.
    Tool { name: Arc<str>, arguments: Json },
    /// A prompt is sent to the model; its turn follows.
    SubmitPrompt { content: Arc<str> },
}

/// The state of an answer to a hint request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintStatus {
    /// The suggestions are complete.
    Ok,
    /// They are being prepared.
    Loading,
    /// The suggestions are unavailable.
    Error,
}

/// A suggestion to complete what the user typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The text that is displayed.
    pub label: Arc<str>,
    /// The text that is inserted.
    pub value: Arc<str>,
    pub description: Option<Arc<str>>,
}

/// The answer to a hint request.
#[derive(Debug, Clone, PartialEq)]
pub struct HintResult {
    pub session_id: SessionId,
    /// The request's prompt id.
    pub prompt_id: PromptId,
    pub trigger: HintTrigger,
    pub status: HintStatus,
    /// The suggestions, best first.
    pub suggestions: Vec<Suggestion>,
    /// True if the text is already exactly one of them.
    pub is_perfect_match: bool,
    /// The error message, if the status is an error.
    pub message: Option<Arc<str>>,
}

/// The answer to a heartbeat request, or a periodic heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The session that the request named.
    pub session_id: SessionId,
    /// The activity of the running turn; none between turns.
    pub activity: Option<Activity>,
}

impl Heartbeat {
    /// A heartbeat between turns.
    pub fn idle(session_id: SessionId) -> Box<Self> {
        Box::new(Self { session_id, activity: None })
    }
}

/// The current activity of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// A model call is in flight.
    Thinking,
    Tool(Arc<str>),
    /// The host runs a tool, and the turn waits for its answer.
    Waiting(Arc<str>),
}

impl Activity {
    /// The name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::Tool(_) => "tool",
            Self::Waiting(_) => "waiting",
        }
    }

    /// The tool's name, if a tool runs.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Thinking => None,
            Self::Tool(name) | Self::Waiting(name) => Some(name),
        }
    }
}

/// The answer to a cancel request.
#[derive(Debug, Clone, PartialEq)]
pub struct CancelResult {
    pub session_id: SessionId,
    /// The turn that the request named, or the running one.
    pub prompt_id: Option<PromptId>,
    /// True if there was something to cancel.
    pub cancelled: bool,
    /// The outcome, in a sentence.
    pub message: Arc<str>,
    /// The reason that the request gave.
    pub reason: Arc<str>,
    /// The id of the control request to answer as well, if there is one.
    pub request_id: Option<Arc<str>>,
}
