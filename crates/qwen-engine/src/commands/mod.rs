//! Commands: input that starts with `/`, `?` or `@`, or that is declared as a command. All entry points share
//! one dispatcher.
//!
//! A command is a pure function of the session's facts ([`CommandContext`]): it returns a result, and
//! possibly an [`CommandAction`] that the owner of the session carries out. So the same command runs in a
//! worker, with `-p` and in the terminal.

pub mod at;
mod builtin;
mod custom;
mod fuzzy;
mod hints;
mod local_files;
mod parse;
mod path_index;
mod set;

use std::path::Path;
use std::sync::Arc;

use qwen_events::{CommandResultBody, Json, Level, Message, PromptId, SessionId, ToolCall, ToolSpec};
use qwen_mcp::ServerStatus;
use serde_json::Value;

use crate::hooks::HookSet;
use crate::log::Store;
use crate::redact::Redactor;
use crate::subagent::AgentDefinition;

pub(crate) use custom::filled;
pub use hints::hint;
pub use local_files::with_local_files;
pub use parse::parse;
pub use path_index::PathIndex;
pub use set::{CommandDirectories, CommandEntry, CommandSet};

/// What a command can read about the session.
pub struct CommandContext<'a> {
    pub session_id: &'a SessionId,
    pub cwd: &'a Path,
    /// The model in use.
    pub model: Arc<str>,
    pub mode: &'a str,
    /// The conversation; `None` while a turn runs.
    pub history: Option<&'a [Message]>,
    pub spent: SessionTotals,
    /// The tools that the session offers.
    pub tools: &'a [ToolSpec],
    /// The sub-agents that the session offers.
    pub agents: &'a [AgentDefinition],
    pub mcp_servers: &'a [ServerStatus],
    pub hooks: &'a HookSet,
    /// The loaded memory files and their sizes in bytes.
    pub memory_files: &'a [(Arc<str>, usize)],
    /// The permission rules, such as `deny Bash(rm *)`.
    pub rules: Vec<String>,
    /// The session store; `None` if sessions are not logged.
    pub store: Option<&'a Store>,
    /// Removes secrets from what is written to files; `None` without a session.
    pub redactor: Option<&'a Redactor>,
}

/// What a session has spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// The number of model calls.
    pub requests: u64,
    pub tool_calls: u64,
    /// Tokens read by the model.
    pub prompt_tokens: u64,
    /// Tokens written by the model.
    pub completion_tokens: u64,
    /// The part of `prompt_tokens` that came from the provider's cache.
    pub cached_tokens: u64,
}

/// What the owner of the session must do after a command.
#[derive(Debug, Clone, PartialEq)]
pub enum CommandAction {
    /// Discards the conversation of the session.
    Clear,
    /// Replace the conversation by a summary; the text states what to focus on.
    Compress(Arc<str>),
    /// Use another model; `None` means the configured one.
    SwitchModel(Option<Arc<str>>),
    SetMode(Arc<str>),
    /// Switch to another session.
    Resume(SessionId),
    /// Continue in a copy of this session.
    Fork,
    /// Save a copy of this session under this id.
    Save(SessionId),
    /// Remove the last turn from the conversation.
    Undo,
    /// Bring back what the last step back removed.
    Redo,
    /// Run a tool and report its result.
    Run(ToolCall),
    /// Run a turn with this prompt.
    Submit(Arc<str>),
    /// Run a turn that consists of this shell command.
    TypedCommand(Arc<str>),
    /// Return to an earlier prompt.
    Rewind(RewindRequest),
    Quit,
}

/// What `/rewind` asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindRequest {
    /// The prompts that the session can return to.
    List,
    /// What a return to this prompt would change, and what it cannot change.
    Preview(PromptId),
    Rewind(PromptId, RewindScope),
}

/// The part of the session that returns to an earlier state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindScope {
    Conversation,
    Files,
    Both,
}

impl RewindScope {
    /// Parses the word of the command.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "conversation" => Some(Self::Conversation),
            "files" => Some(Self::Files),
            "both" => Some(Self::Both),
            _ => None,
        }
    }
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOutcome {
    /// The result for readers.
    pub body: CommandResultBody,
    /// What is left to do.
    pub action: Option<CommandAction>,
}

impl CommandOutcome {
    /// Creates an outcome that shows a text.
    pub fn info(content: impl Into<Arc<str>>) -> Self {
        Self {
            body: CommandResultBody::Message { level: Level::Info, content: content.into() },
            action: None,
        }
    }

    /// Creates an outcome that shows an error message.
    pub fn error(content: impl Into<Arc<str>>) -> Self {
        Self {
            body: CommandResultBody::Message { level: Level::Error, content: content.into() },
            action: None,
        }
    }

    /// A dialog that the host should show.
    pub fn dialog(name: &str, data: &Value) -> Self {
        let data = Json::trusted(data.to_string());
        Self { body: CommandResultBody::Dialog { name: name.into(), data }, action: None }
    }

    /// A prompt for the model.
    pub fn submit(content: impl Into<Arc<str>>) -> Self {
        let content = content.into();
        let action = Some(CommandAction::Submit(content.clone()));
        Self { body: CommandResultBody::SubmitPrompt { content }, action }
    }

    /// The same result with an action.
    pub fn then(mut self, action: CommandAction) -> Self {
        self.action = Some(action);
        self
    }
}
