//! The contexts of sessions and turns. Each holds its parent in a field, so that a value is stored once, at
//! the lifetime that it belongs to, and a reader sees from which lifetime a value comes.

use std::path::Path;
use std::sync::Arc;

use qwen_events::{AgentName, Message, Sampling, SessionId, ToolSpec};
use qwen_mcp::Servers;
use qwen_model::{Model, Request};
use qwen_tools::{Registry, SessionResources};

use crate::agent::SearchAgents;
use crate::budget::cache_watch::CacheWatch;
use crate::compaction::Window;
use crate::hooks::HookSet;
use crate::session::situation::{Situation, Surroundings};
use crate::structured::StructuredAnswer;
use crate::subagent::{AgentDefinition, Steps};
use crate::tools::search::LoadedTools;
use crate::{Host, Limits, NetworkGate, Permissions, QuestionOrigin, SessionOverrides};

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
    /// Decides about the connections of sandboxed programs.
    pub network: Arc<NetworkGate>,
    /// Who drives the process. Refusals name the remedy that this audience can apply.
    pub audience: Audience,
}

impl ProcessServices {
    /// True if someone can answer questions and approve calls.
    pub fn can_answer(&self) -> bool {
        self.host.listens() && !self.permissions.denies_instead_of_asking()
    }
}

/// Who drives a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A user or script that starts `qwen` with flags.
    Shell,
    /// A program that drives the process over standard input and output, usually through an SDK.
    Program,
    /// A user at the interactive terminal.
    Terminal,
}

impl Audience {
    /// How this audience changes the approval mode.
    pub(crate) fn describe_mode(self, mode: &str) -> String {
        match self {
            Self::Shell => format!("with --approval-mode {mode}"),
            Self::Program => format!("with the option permission_mode={mode}"),
            Self::Terminal => format!("with Shift+Tab or /approval-mode {mode}"),
        }
    }

    /// How this audience adds allow rules.
    pub(crate) fn describe_rules(self, rules: &[String]) -> String {
        match self {
            Self::Shell => format!("with --allowed-tools '{}'", rules.join(",")),
            Self::Program => format!("with the option allowed_tools=['{}']", rules.join("', '")),
            Self::Terminal => format!("with \"always\" for '{}'", rules.join(",")),
        }
    }

    /// How this audience adds a directory to the workspace.
    pub(crate) fn describe_directory(self, directory: &Path) -> String {
        let directory = directory.display();
        match self {
            Self::Shell | Self::Terminal => format!("with --include-directories '{directory}'"),
            Self::Program => format!("with the option add_dirs=['{directory}']"),
        }
    }
}

/// What the turns of one session share.
#[derive(Clone)]
pub struct SessionContext {
    pub process: Arc<ProcessServices>,
    pub id: SessionId,
    pub agent: AgentName,
    /// Runs the agents besides ReAct.
    pub search_agents: Arc<dyn SearchAgents>,
    pub model: Arc<dyn Model>,
    /// The tools without those of MCP servers, of the host and of single turns.
    pub base_tools: Arc<Registry>,
    /// The system prompt of the main agent, before a turn adds to it.
    pub base_system_prompt: Arc<str>,
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
    /// The size of tool schemas beyond the built-in ones above which MCP and host tools are deferred, in bytes.
    pub schema_budget: usize,
    /// The deferred tools that the model has loaded.
    pub loaded_tools: Arc<LoadedTools>,
    /// The project's and the user's instructions (memory files), for sub-agents; the system prompt of the main
    /// agent contains them.
    pub instructions: Arc<str>,
    /// The environment that the model is told about.
    pub surroundings: Arc<dyn Surroundings>,
    /// Whether the provider's prompt cache is used.
    pub cache_watch: Arc<CacheWatch>,
    /// The size of the model's context window, and the fill level at which it is compacted.
    pub window: Window,
}

/// What the nodes of one agent's turn share. A sub-agent has a separate one in the same session.
#[derive(Clone)]
pub struct TurnContext {
    pub session: Arc<SessionContext>,
    /// Overrides the model for this turn.
    pub model_name: Option<Arc<str>>,
    /// The session's tools and those of the turn.
    pub tools: Arc<Registry>,
    /// The process's host, or one that approves the command that the user typed.
    pub answering_host: Arc<dyn Host>,
    pub origin: QuestionOrigin,
    /// The session's system prompt, or the sub-agent's.
    pub system_prompt: Arc<str>,
    /// What the model of this agent was told about its situation.
    pub(crate) situation: Arc<Situation>,
    pub sampling: Sampling,
    /// The names of tools that the host runs.
    pub host_tools: Arc<[Arc<str>]>,
    /// True if this agent or one of its ancestors runs in the background, outside the turn.
    pub in_background: bool,
    /// For a sub-agent in a git worktree: the directory that its relative paths and commands start from.
    pub worktree: Option<Arc<Path>>,
    /// For a sub-agent: receives the steps that it takes.
    pub(crate) steps: Option<Arc<Steps>>,
    /// The structured answer that the turn must produce.
    pub structured: Option<Arc<StructuredAnswer>>,
    /// True if the turn ends with the results of its calls, and the model is not called.
    pub only_calls: bool,
}

impl TurnContext {
    /// The directory that relative paths and commands start from.
    pub(crate) fn directory(&self) -> &Path {
        self.worktree.as_deref().unwrap_or(&self.session.resources.cwd)
    }

    /// A request to the turn's model.
    pub fn request(&self, messages: Arc<Vec<Message>>, tools: Arc<[ToolSpec]>) -> Request {
        let mut sampling = self.sampling.clone();
        sampling.effort = sampling.effort.or_else(|| self.session.process.overrides.effort());
        sampling.reasoning = sampling.reasoning.or_else(|| self.session.process.overrides.reasoning());
        sampling.thoughts = sampling.thoughts.or_else(|| self.session.process.overrides.thoughts());
        Request {
            system: self.system_prompt.clone(),
            situation: self.situation.block(),
            messages,
            tools,
            sampling,
            model: self.model_name.clone().or_else(|| self.session.process.overrides.model()),
            response_schema: None,
            caller: self.origin.parent.clone(),
            trace: None,
        }
    }
}
