//! What is said about a session rather than within a turn.

use std::sync::Arc;

use crate::{CommandCall, HintTrigger, Json, PromptId, SessionId};

/// A notice about the session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionEvent {
    /// The turn's work is done; its terminal record follows.
    Finished,
    /// History was replaced by a summary.
    Compressed {
        /// Tokens before.
        original_tokens: u64,
        /// Tokens after.
        new_tokens: u64,
    },
    /// The model's output limit, or the token limit, cut the answer.
    MaxTokens {
        /// What happened.
        message: Arc<str>,
    },
    /// The limit on model calls was reached.
    MaxTurns {
        /// The limit.
        limit: u64,
    },
    /// The turn was cancelled.
    Cancelled,
    /// A model call failed and will be tried again.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How many retries there may be.
        max_retries: u32,
        /// How long we wait.
        delay_ms: u64,
        /// The HTTP status, where there was one.
        status: Option<u16>,
        /// What went wrong.
        error: Arc<str>,
    },
    /// Another model goes on.
    ModelFallback {
        /// The model that failed.
        from: Arc<str>,
        /// The model that goes on.
        to: Arc<str>,
        /// Why.
        reason: Arc<str>,
    },
    /// The agent repeats itself.
    LoopDetected {
        /// What repeats.
        message: Arc<str>,
    },
    /// The approval mode changed.
    ModeChanged {
        /// The mode now.
        mode: Arc<str>,
    },
    /// A prompt joined the running turn before its next model call ([`Delivery::Steer`](crate::Delivery)). It has no
    /// terminal record of its own.
    Steered {
        /// The prompt's id, not the turn's.
        prompt_id: PromptId,
        /// The client's own id of the message, where it sent one.
        message_uuid: Option<Arc<str>>,
    },
}

/// How loud a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// For information.
    Info,
    /// Something to look at.
    Warning,
    /// Something failed.
    Error,
}

/// How loud a console line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsoleLevel {
    /// `debug`
    Debug,
    /// `info`
    Info,
    /// `warn`
    Warn,
    /// `error`
    Error,
}

/// Which part of the program logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogScope {
    /// The program itself.
    System,
    /// A tool.
    Tool,
    /// Only for debugging.
    Debug,
}

/// The end of a slash or at command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandResult {
    /// The session.
    pub session_id: SessionId,
    /// The prompt that held the command.
    pub prompt_id: PromptId,
    /// The command as it was understood.
    pub command: CommandCall,
    /// What came of it.
    pub body: CommandResultBody,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandResultBody {
    /// Words.
    Message {
        /// How loud.
        level: Level,
        /// The words.
        content: Arc<str>,
    },
    /// The host should show a dialog.
    Dialog {
        /// Its name, such as `settings`.
        name: Arc<str>,
        /// What it shows.
        data: Json,
    },
    /// A tool was run.
    Tool {
        /// The tool.
        name: Arc<str>,
        /// Its arguments.
        arguments: Json,
    },
    /// A prompt goes to the model; its turn follows.
    SubmitPrompt {
        /// The prompt.
        content: Arc<str>,
    },
}

/// How an answer to a hint request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintStatus {
    /// The suggestions are here.
    Ok,
    /// They are being prepared.
    Loading,
    /// They cannot be had.
    Error,
}

/// A suggestion for what is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// What is shown.
    pub label: Arc<str>,
    /// What is inserted.
    pub value: Arc<str>,
    /// What it means.
    pub description: Option<Arc<str>>,
}

/// The answer to a hint request.
#[derive(Debug, Clone, PartialEq)]
pub struct HintResult {
    /// The session.
    pub session_id: SessionId,
    /// The request's prompt id.
    pub prompt_id: PromptId,
    /// What triggered it.
    pub trigger: HintTrigger,
    /// How it stands.
    pub status: HintStatus,
    /// The suggestions, best first.
    pub suggestions: Vec<Suggestion>,
    /// Whether the text already names one of them exactly.
    pub is_perfect_match: bool,
    /// What went wrong, when the status is an error.
    pub message: Option<Arc<str>>,
}

/// A sign of life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// The session that was asked about.
    pub session_id: SessionId,
    /// What the turn under way is doing; none between turns.
    pub activity: Option<Activity>,
}

impl Heartbeat {
    /// A sign of life between turns.
    pub fn idle(session_id: SessionId) -> Box<Self> {
        Box::new(Self { session_id, activity: None })
    }
}

/// What a turn is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// The model is at work.
    Thinking,
    /// A tool runs.
    Tool(Arc<str>),
    /// The host runs a tool, and nothing else happens until it answers.
    Waiting(Arc<str>),
}

impl Activity {
    /// The word that the wire uses.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Thinking => "thinking",
            Self::Tool(_) => "tool",
            Self::Waiting(_) => "waiting",
        }
    }

    /// The tool, where there is one.
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
    /// The session.
    pub session_id: SessionId,
    /// The turn that the request named or that was running.
    pub prompt_id: Option<PromptId>,
    /// Whether there was something to cancel.
    pub cancelled: bool,
    /// What happened, in a sentence.
    pub message: Arc<str>,
    /// The reason that the request gave.
    pub reason: Arc<str>,
    /// The id of the request, where it wants a control response too.
    pub request_id: Option<Arc<str>>,
}
