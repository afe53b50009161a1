//! The control channel, both ways.

use std::sync::Arc;

use crate::{Confirmation, ErrorInfo, Json, SessionControl, ToolCall};

/// What the client asks of us.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlBody {
    /// The handshake.
    Initialize(Box<Initialize>),
    /// Stop the running turn.
    Interrupt,
    /// Use another model; none means the default.
    SetModel(Option<Arc<str>>),
    /// Use another approval mode.
    SetPermissionMode(Arc<str>),
    /// Think harder, or less hard.
    SetEffort(Option<Arc<str>>),
    /// Which slash commands are there?
    SupportedCommands,
    /// How are the MCP servers? (`mcp_status` of Claude, `mcp_server_status` of Qwen)
    McpStatus,
    /// Connect a server again.
    McpReconnect(Arc<str>),
    /// Switch a server on or off.
    McpToggle {
        /// The server.
        server: Arc<str>,
        /// On or off.
        enabled: bool,
    },
    /// How full is the context?
    ContextUsage {
        /// Item by item too.
        details: bool,
    },
    /// Which models are there?
    AvailableModels,
    /// What was spent?
    UsageInfo {
        /// `today`, `week`, `month` or `all`.
        range: Option<Arc<str>>,
    },
    /// Go on with an interrupted turn.
    ContinueLastTurn,
    /// Put files back to where they were at a message.
    RewindFiles {
        /// The message.
        message_id: Arc<str>,
        /// Only say what would happen.
        dry_run: bool,
    },
    /// Stop a background task.
    StopTask(Arc<str>),
    /// End the session.
    EndSession,
    /// An MCP message from a server that lives in the host.
    McpMessage {
        /// The server.
        server: Arc<str>,
        /// The JSON-RPC message.
        message: Json,
    },
    /// What only some hosts turn and look up.
    SessionControl(Box<SessionControl>),
    /// A subtype that we do not know.
    Unknown(Arc<str>),
    /// A subtype that we know with a body that does not fit.
    Malformed {
        /// The subtype.
        subtype: Arc<str>,
        /// What does not fit.
        error: Box<ErrorInfo>,
    },
}

/// The handshake of the control channel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Initialize {
    /// Hooks that live in the host.
    pub hooks: Vec<HookMatcher>,
    /// MCP servers that live in the host.
    pub sdk_mcp_servers: Vec<Arc<str>>,
    /// Further MCP servers: name and configuration.
    pub mcp_servers: Vec<(Arc<str>, Json)>,
    /// Sub-agents: name and definition.
    pub agents: Vec<(Arc<str>, Json)>,
    /// Replaces the system prompt.
    pub system_prompt: Option<Arc<str>>,
    /// Is added to the system prompt.
    pub append_system_prompt: Option<Arc<str>>,
    /// What differs from place to place is told with the first prompt instead of in the system prompt, so that many
    /// sessions share one.
    pub environment_in_prompt: bool,
    /// Calls of these tools go to others: names, and the tools that are called instead.
    pub tool_aliases: Vec<(Arc<str>, Arc<str>)>,
    /// What the host asks for that is known and changes nothing here.
    pub ignored_options: Vec<&'static str>,
    /// Only these skills; none means all.
    pub skills: Option<Vec<Arc<str>>>,
    /// The schema of the result.
    pub json_schema: Option<Json>,
    /// How hard the model thinks.
    pub effort: Option<Arc<str>>,
    /// How long a permission question may stay open.
    pub permission_timeout_ms: Option<u64>,
    /// Send a heartbeat every so many milliseconds.
    pub heartbeat_ms: Option<u64>,
}

/// Which of the host's hooks are called when.
#[derive(Debug, Clone, PartialEq)]
pub struct HookMatcher {
    /// The event, such as `PreToolUse`.
    pub event: Arc<str>,
    /// Which tools; none means all.
    pub matcher: Option<Arc<str>>,
    /// The host's names for its functions.
    pub callback_ids: Vec<Arc<str>>,
    /// How long one may take.
    pub timeout_ms: Option<u64>,
    /// A failing hook blocks what it watches.
    pub block_on_failure: bool,
}

/// What we ask of the host.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlCall {
    /// May this call run?
    CanUseTool {
        /// The call.
        call: Arc<ToolCall>,
        /// What a person is shown.
        confirmation: Box<Confirmation>,
        /// Why we ask.
        reason: Arc<str>,
        /// The path that is out of bounds, where that is the reason.
        blocked_path: Option<Arc<str>>,
        /// The sub-agent that asks.
        agent_id: Option<Arc<str>>,
    },
    /// A hook that lives in the host.
    HookCallback {
        /// The host's name for its function.
        callback_id: Arc<str>,
        /// What it is told.
        input: Json,
        /// The call that it is about.
        tool_use_id: Option<Arc<str>>,
    },
    /// A message for an MCP server that lives in the host.
    McpMessage {
        /// The server.
        server: Arc<str>,
        /// The JSON-RPC message.
        message: Json,
    },
}

/// An answer on the control channel, either way.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlReply {
    /// The request's id.
    pub request_id: Arc<str>,
    /// Whether the nested form of `claude` is spoken.
    pub nested: bool,
    /// The answer, or why there is none.
    pub result: Result<Json, ErrorInfo>,
}

/// What a permission answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    /// Run it.
    Allow,
    /// Do not.
    Deny,
    /// Ask someone else.
    Ask,
}

/// An answer to "may this call run?".
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionAnswer {
    /// Yes or no.
    pub behavior: Behavior,
    /// The words that go with it.
    pub message: Option<Arc<str>>,
    /// Other arguments to run with.
    pub updated_input: Option<Json>,
    /// Rules that change with the answer.
    pub updated_permissions: Vec<PermissionUpdate>,
    /// Stop the whole turn.
    pub interrupt: bool,
}

/// A change of the rules that came with an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionUpdate {
    /// Use another approval mode.
    SetMode(Arc<str>),
    /// Add rules, such as `Bash(git log *)`.
    AddRules {
        /// What the rules say.
        behavior: Behavior,
        /// The rules.
        rules: Vec<Arc<str>>,
    },
    /// Take rules back.
    RemoveRules {
        /// What the rules say.
        behavior: Behavior,
        /// The rules.
        rules: Vec<Arc<str>>,
    },
    /// Add directories to the workspace.
    AddDirectories(Vec<Arc<str>>),
}
