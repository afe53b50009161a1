//! The configuration of a process, resolved from flags, settings and environment and grouped by consumer.

use std::path::PathBuf;
use std::sync::Arc;

use qwen_dialects::acp::AcpClient;
use qwen_dialects::{Dialect, Format, StreamMode};
use qwen_engine::hooks::HookSet;
use qwen_engine::log::Store;
use qwen_engine::skill::Skill;
use qwen_engine::subagent::AgentDefinition;
use qwen_engine::{AnswerSchema, DefinitionSource, Limits, NetworkSettings};
use qwen_events::{AgentName, ErrorInfo, Sampling, SessionId};
use qwen_mcp::{ServerConfig, ServerStatus, Status};
use qwen_model::ModelConfig;
use qwen_permissions::Policy;
use qwen_redact::Redactor;
use qwen_thoughts::ThinkingOptions;
use qwen_tools::ToolVocabulary;

use super::{MemorySources, OutputStyle, SessionStart, Settings, SettingsFile, ThinkingFlags, mcp};
use crate::claude_host::ClaudeHostOptions;
use crate::cli::Supervision;
use crate::telemetry::Tracing;

/// The resolved configuration of a run.
#[derive(Clone)]
pub struct Config {
    pub stream: StreamConfig,
    pub session: SessionConfig,
    pub model: ModelSelection,
    pub agent: AgentConfig,
    pub workspace: WorkspaceConfig,
    pub sandbox: SandboxConfig,
    pub extensions: ExtensionConfig,
    pub claude: ClaudeHostOptions,
    pub diagnostics: DiagnosticsConfig,
    /// The merged settings, for values that none of the groups above holds.
    pub settings: Settings,
}

/// The formats of input and output.
#[derive(Clone)]
pub struct StreamConfig {
    pub dialect: Dialect,
    /// None prints plain text.
    pub format: Option<Format>,
    /// Input is JSON lines: the process is a worker.
    pub structured_input: bool,
    /// The name of the input format, as the handshake reports it.
    pub input_format: &'static str,
    /// `loom`: which events are written; empty means all.
    pub stream_modes: Vec<StreamMode>,
    /// `acp`: what the client can show.
    pub acp: AcpClient,
    /// `claude`, `acp`: echo the user's messages.
    pub replay_user_messages: bool,
    /// How the parent process supervises this worker.
    pub supervision: Supervision,
}

/// Which session runs, and where it is stored.
#[derive(Clone)]
pub struct SessionConfig {
    pub id: SessionId,
    pub start: SessionStart,
    /// None without a home directory.
    pub store: Option<Store>,
    /// True if this session is written to the store.
    pub record: bool,
}

/// The model and how it is called.
#[derive(Clone)]
pub struct ModelSelection {
    /// An error is reported only when a turn needs the model, so that the handshake and the error record can
    /// be written.
    pub config: Result<ModelConfig, ErrorInfo>,
    /// Why no model can be called without naming one: the server offers several and none is configured.
    pub undecided: Option<ErrorInfo>,
    /// The name that readers see.
    pub name: Arc<str>,
    /// Where the key comes from, as shown to readers.
    pub key_source: Arc<str>,
    /// True if the command line names the model.
    pub is_named_by_flag: bool,
    /// Sampling parameters for requests that set none.
    pub sampling: Sampling,
    /// Reasoning options for requests that set none.
    pub thinking: ThinkingFlags,
}

/// The agent's prompts and how it runs turns.
#[derive(Clone)]
pub struct AgentConfig {
    /// The names of tools and arguments that model and host see.
    pub tool_names: ToolVocabulary,
    /// The graph that runs turns.
    pub name: AgentName,
    /// The sub-agent definition that the session itself uses (`--agent NAME`).
    pub main_agent: Option<Arc<str>>,
    /// Search parameters of ToT and GoT.
    pub thinking: ThinkingOptions,
    /// Replaces the built-in system prompt.
    pub system_prompt: Option<String>,
    /// Appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// The host's description of its own policy, for the model.
    pub policy_description: Option<String>,
    pub output_style: OutputStyle,
    /// Describe the working directory in the first prompt instead of the system prompt, which is then the
    /// same for all directories.
    pub environment_in_prompt: bool,
    /// False if the host wants no sub-agents, not even the built-in ones.
    pub has_agents: bool,
    /// Sub-agents in addition to the built-in ones.
    pub definitions: Vec<AgentDefinition>,
    pub skills: Vec<Skill>,
    /// Where skills are read from, besides plugins.
    pub skill_places: Vec<(DefinitionSource, PathBuf)>,
    pub limits: Limits,
    /// The schema that answers must match (`--json-schema`).
    pub answer_schema: Option<Arc<AnswerSchema>>,
}

/// The directories of the run, and the permissions in them.
#[derive(Clone)]
pub struct WorkspaceConfig {
    pub cwd: PathBuf,
    /// Additional directories that tools may work in.
    pub extra_roots: Vec<PathBuf>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `$QWEN_HOME`, by default `~/.qwen`.
    pub qwen_home: Option<PathBuf>,
    /// Approval mode and permission rules.
    pub policy: Policy,
    /// True if the folder's own configuration takes effect.
    pub is_trusted: bool,
    pub memory_files: MemorySources,
}

/// What the sandbox of commands enforces.
#[derive(Clone)]
pub struct SandboxConfig {
    pub mode: qwen_sandbox::SandboxMode,
    pub network: bool,
    /// The hosts that rules open.
    pub hosts: NetworkSettings,
    /// Directories that sandboxed commands cannot read.
    pub private: Vec<PathBuf>,
    /// Directories inside of those that they can read.
    pub visible: Vec<PathBuf>,
}

/// Plugins, MCP servers and hooks.
#[derive(Clone)]
pub struct ExtensionConfig {
    /// Plugin names and directories.
    pub plugins: Vec<(Arc<str>, PathBuf)>,
    pub mcp_servers: Vec<(Arc<str>, ServerConfig)>,
    /// Servers that are configured but disabled.
    pub unwanted_mcp_servers: Vec<(Arc<str>, ServerConfig)>,
    /// The settings files that were searched for.
    pub settings_files: Vec<SettingsFile>,
    pub hooks: Arc<HookSet>,
    /// Directories of the user's slash commands.
    pub user_commands: Vec<PathBuf>,
    /// Directories of the trusted project's slash commands.
    pub project_commands: Vec<PathBuf>,
}

/// What is reported outside the stream, and what is redacted from it.
#[derive(Clone)]
pub struct DiagnosticsConfig {
    pub redactor: Arc<Redactor>,
    /// None unless telemetry is on.
    pub tracing: Option<Arc<Tracing>>,
    pub log: LogConfig,
    /// Warnings about flags and settings, one sentence each.
    pub warnings: Vec<String>,
}

/// What is written to standard error and to the debug log.
#[derive(Debug, Clone)]
pub struct LogConfig {
    pub level: LogLevel,
    /// JSON lines instead of text.
    pub is_json: bool,
    /// Off unless `--debug` or `--debug-file` is given.
    pub debug: Option<DebugTarget>,
}

/// How much of a run is reported on standard error in addition to what a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Warnings,
    /// Also the model's narration, and one line about the whole turn.
    Summary,
    /// Also a line for every model call and tool call.
    Steps,
}

/// Where `--debug` and `--debug-file` write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DebugTarget {
    Stderr,
    File(PathBuf),
}

impl AgentConfig {
    /// Everything that is appended to the system prompt: the output style's instructions, then the caller's
    /// text.
    pub fn appended_prompt(&self) -> Option<String> {
        let parts: Vec<&str> = [&self.output_style.instructions, &self.append_system_prompt]
            .into_iter()
            .filter_map(Option::as_deref)
            .collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

impl ModelSelection {
    /// The sampling parameters of a request, completed from the settings.
    pub fn sampling_with(&self, request: Sampling) -> Sampling {
        let configured = &self.sampling;
        Sampling {
            temperature: request.temperature.or(configured.temperature),
            top_p: request.top_p.or(configured.top_p),
            max_tokens: request.max_tokens.or(configured.max_tokens),
            task_budget: request.task_budget.or(configured.task_budget),
            ..request
        }
    }
}

impl ExtensionConfig {
    /// The MCP servers that are configured but not used: disabled, or from an untrusted folder.
    pub fn unused_mcp_servers(&self) -> Vec<ServerStatus> {
        let unwanted = self.unwanted_mcp_servers.iter();
        let unwanted =
            unwanted.map(|(name, server)| ServerStatus::unused(name.clone(), server, Status::Disabled));
        let untrusted = self.settings_files.iter().filter(|file| file.state == SettingsFile::NOT_TRUSTED);
        unwanted.chain(untrusted.flat_map(|file| mcp::untrusted(&file.path))).collect()
    }
}
