//! Commands: what is typed with a `/`, `?` or `@` in front, or declared as a command. One dispatcher for every way in.
//!
//! A command is a pure function of the session's facts ([`CommandContext`]): it says what came of it, and perhaps an
//! [`Action`] that whoever holds the session carries out. So it can run in a worker, behind `-p` and in the terminal.

pub mod at;
mod builtin;
mod custom;
mod fuzzy;
mod hints;
mod local_files;
mod parse;
mod set;

use std::path::Path;
use std::sync::Arc;

use qwen_events::{CommandResultBody, Json, Level, Message, SessionId, ToolCall, ToolSpec};
use qwen_mcp::ServerStatus;
use serde_json::Value;

use crate::hooks::HookSet;
use crate::log::Store;
use crate::subagent::AgentDefinition;

pub(crate) use custom::filled;
pub use hints::hint;
pub use local_files::with_local_files;
pub use parse::parse;
pub use set::{CommandDirectories, CommandEntry, CommandSet};

/// What a command may know about the session.
pub struct CommandContext<'a> {
    /// The session.
    pub session_id: &'a SessionId,
    /// The working directory.
    pub cwd: &'a Path,
    /// The model in use.
    pub model: Arc<str>,
    /// The approval mode.
    pub mode: &'a str,
    /// The conversation; none while a turn runs.
    pub history: Option<&'a [Message]>,
    /// What was spent.
    pub spent: SessionTotals,
    /// The tools on offer.
    pub tools: &'a [ToolSpec],
    /// The sub-agents on offer.
    pub agents: &'a [AgentDefinition],
    /// The MCP servers.
    pub mcp_servers: &'a [ServerStatus],
    /// The hooks.
    pub hooks: &'a HookSet,
    /// The memory files in force, and their sizes in bytes.
    pub memory_files: &'a [(Arc<str>, usize)],
    /// The permission rules, such as `deny Bash(rm *)`.
    pub rules: Vec<String>,
    /// Where sessions are kept, if they are.
    pub store: Option<&'a Store>,
}

/// What a session has spent so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// Model calls.
    pub requests: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tokens read by the model.
    pub prompt_tokens: u64,
    /// Tokens written by the model.
    pub completion_tokens: u64,
    /// Of the tokens read, those from the provider's cache.
    pub cached_tokens: u64,
}

/// What a command leaves to whoever holds the session.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Forget the conversation.
    Clear,
    /// Replace the conversation by a summary; the words say what matters.
    Compress(Arc<str>),
    /// Use another model; none means the configured one.
    SwitchModel(Option<Arc<str>>),
    /// Use another approval mode.
    SetMode(Arc<str>),
    /// Go on with another session.
    Resume(SessionId),
    /// Go on in a copy of this session.
    Fork,
    /// Keep a copy of this session under that name.
    Save(SessionId),
    /// Take the last turn back out of the conversation.
    Undo,
    /// Run a tool, and say what came of it.
    Run(ToolCall),
    /// Run a turn with this prompt.
    Submit(Arc<str>),
    /// End.
    Quit,
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandOutcome {
    /// What readers are told.
    pub body: CommandResultBody,
    /// What is still to be done.
    pub action: Option<Action>,
}

impl CommandOutcome {
    /// Words.
    pub fn say(content: impl Into<Arc<str>>) -> Self {
        Self {
            body: CommandResultBody::Message { level: Level::Info, content: content.into() },
            action: None,
        }
    }

    /// Words about what went wrong.
    pub fn fail(content: impl Into<Arc<str>>) -> Self {
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
        let action = Some(Action::Submit(content.clone()));
        Self { body: CommandResultBody::SubmitPrompt { content }, action }
    }

    /// The same with something left to do.
    pub fn then(mut self, action: Action) -> Self {
        self.action = Some(action);
        self
    }
}
