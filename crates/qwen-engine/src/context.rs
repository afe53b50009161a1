//! The contexts of sessions and turns. Each holds its parent and dereferences to it, so that a field is
//! stored once, at the lifetime that it belongs to. A field of the same name overrides the parent's.

use std::ops::Deref;
use std::sync::Arc;

use qwen_events::{Sampling, SessionId};
use qwen_mcp::Servers;
use qwen_model::Model;
use qwen_tools::{Registry, SessionResources};

use crate::compaction::Window;
use crate::hooks::HookSet;
use crate::structured::StructuredAnswer;
use crate::subagent::{AgentDefinition, Steps};
use crate::{Host, Limits, Permissions, QuestionOrigin, SessionOverrides, ThinkingOptions};

/// What all sessions of one process share.
#[derive(Clone)]
pub struct ProcessServices {
    /// Answers permission questions, hooks and host-side MCP calls, and runs host tools.
    pub host: Arc<dyn Host>,
    /// Decides which tool calls may run.
    pub permissions: Arc<Permissions>,
    /// Settings that can change while a turn runs.
    pub overrides: Arc<SessionOverrides>,
    pub mcp: Arc<Servers>,
    /// Hooks that observe the work and may block it.
    pub hooks: Arc<HookSet>,
}

/// What the turns of one session share.
#[derive(Clone)]
pub struct SessionContext {
    pub process: Arc<ProcessServices>,
    pub id: SessionId,
    /// The agent: `react`, `tot` or `got`.
    pub agent: Arc<str>,
    /// Options of the `tot` and `got` agents.
    pub thinking: ThinkingOptions,
    pub model: Arc<dyn Model>,
    pub tools: Arc<Registry>,
    /// The system prompt.
    pub system: Arc<str>,
    /// The limits per turn and per session.
    pub limits: Limits,
    /// The working directory and the state that tool calls share.
    pub resources: Arc<SessionResources>,
    /// The origin of the credentials, for display.
    pub key_source: Arc<str>,
    /// The sub-agents that the model may start.
    pub agents: Arc<[AgentDefinition]>,
    /// The maximum nesting depth of sub-agents.
    pub agent_levels: u32,
    /// The available skills, for display.
    pub skills: Vec<Arc<str>>,
    /// The available slash commands, for display.
    pub slash_commands: Vec<Arc<str>>,
    /// The size of the model's context window, and the fill level at which it is compacted.
    pub window: Window,
}

impl Deref for SessionContext {
    type Target = ProcessServices;

    fn deref(&self) -> &ProcessServices {
        &self.process
    }
}

/// What the nodes of one agent's turn share. A sub-agent has a separate one in the same session.
#[derive(Clone)]
pub(crate) struct TurnContext {
    pub session: Arc<SessionContext>,
    /// Overrides the model for this turn.
    pub model_name: Option<Arc<str>>,
    /// The session's tools and those of the turn.
    pub tools: Arc<Registry>,
    /// The process's host, or one that approves the command that the user typed.
    pub host: Arc<dyn Host>,
    pub origin: QuestionOrigin,
    /// The session's system prompt, or the sub-agent's.
    pub system: Arc<str>,
    pub sampling: Sampling,
    /// The names of tools that the host runs.
    pub host_tools: Arc<[Arc<str>]>,
    /// True if this agent or one of its ancestors runs in the background, outside the turn.
    pub in_background: bool,
    /// For a sub-agent: receives the steps that it takes.
    pub steps: Option<Arc<Steps>>,
    /// The structured answer that the turn must produce.
    pub structured: Option<Arc<StructuredAnswer>>,
    /// True if the turn ends with the results of its calls, and the model is not called.
    pub only_calls: bool,
}

impl Deref for TurnContext {
    type Target = SessionContext;

    fn deref(&self) -> &SessionContext {
        &self.session
    }
}
