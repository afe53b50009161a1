//! Requests and answers of the control channel, in both directions.

use std::sync::Arc;

use crate::{CallId, Confirmation, ErrorInfo, Json, SessionControl, ToolCall};

/// A control request from the client.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlBody {
    /// The handshake, with the host's options.
    Initialize(Box<Initialize>),
    /// Stop the running turn.
    Interrupt,
    /// Switches to another model; none means the default.
    SetModel(Option<Arc<str>>),
    /// Switches to another approval mode.
    SetPermissionMode(Arc<str>),
    /// Sets the reasoning effort; none means the default.
    SetEffort(Option<Arc<str>>),
    /// Lists the slash commands.
    SupportedCommands,
    /// Reports the state of the MCP servers (`mcp_status` of Claude, `mcp_server_status` of Qwen).
    McpStatus,
    /// Reconnects an MCP server.
    McpReconnect(Arc<str>),
    /// Enables or disables an MCP server.
    McpToggle {
        server: Arc<str>,
        enabled: bool,
    },
    /// Reports how much of the context window is used.
    ContextUsage {
        /// True to include the individual items.
        details: bool,
    },
    /// Lists the available models.
    AvailableModels,
    /// Reports the usage of a period.
    UsageInfo {
        /// `today`, `week`, `month` or `all`.
        range: Option<Arc<str>>,
    },
    /// Continues an interrupted turn.
    ContinueLastTurn {
        /// False if the host already has the message whose calls are continued, so that it is not sent again.
        replay: bool,
    },
    /// Restores files to their state at a message.
    RewindFiles {
        message_id: Arc<str>,
        /// True to report the changes without making them.
        dry_run: bool,
    },
    StopTask(Arc<str>),
    /// Moves the command that this call waits for to the background; none means every such command.
    BackgroundTasks(Option<CallId>),
    EndSession,
    /// An MCP message from a server that runs in the host.
    McpMessage {
        server: Arc<str>,
        message: Json,
    },
    /// A session control that only some hosts send.
    SessionControl(Box<SessionControl>),
    /// A subtype that the worker does not know.
    Unknown(Arc<str>),
    /// A known subtype with an invalid body.
    Malformed {
        subtype: Arc<str>,
        /// The reason why the body is invalid.
        error: Box<ErrorInfo>,
    },
}

/// The handshake of the control channel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Initialize {
    /// Hooks that run in the host.
    pub hooks: Vec<HookMatcher>,
    /// MCP servers that run in the host.
    pub sdk_mcp_servers: Vec<Arc<str>>,
    /// Further MCP servers: name and configuration.
    pub mcp_servers: Vec<(Arc<str>, Json)>,
    /// Sub-agents: name and definition.
    pub agents: Vec<(Arc<str>, Json)>,
    /// True if the host sent an empty list of sub-agents: there are none, not even the built-in ones.
    pub without_agents: bool,
    /// Replaces the system prompt.
    pub system_prompt: Option<Arc<str>>,
    /// Text appended to the system prompt.
    pub append_system_prompt: Option<Arc<str>>,
    /// The host's description of its own policy, for the model.
    pub policy_description: Option<Arc<str>>,
    /// True to send what depends on the environment with the first prompt instead of in the system prompt,
    /// so that many sessions share one system prompt.
    pub environment_in_prompt: bool,
    /// Tool aliases: the called name and the tool that runs instead.
    pub tool_aliases: Vec<(Arc<str>, Arc<str>)>,
    /// True if the host wants text and thoughts of sub-agents too.
    pub forward_agent_text: Option<bool>,
    /// Options that the host sent and that are recognized but have no effect.
    pub ignored_options: Vec<&'static str>,
    /// The only skills to offer; none means all.
    pub skills: Option<Vec<Arc<str>>>,
    /// The schema of the result.
    pub json_schema: Option<Json>,
    /// The reasoning effort of the session.
    pub effort: Option<Arc<str>>,
    /// The deadline of permission requests.
    pub permission_timeout_ms: Option<u64>,
    /// The interval of periodic heartbeats.
    pub heartbeat_ms: Option<u64>,
}

/// One registration of hook callbacks in the host.
#[derive(Debug, Clone, PartialEq)]
pub struct HookMatcher {
    /// The event, such as `PreToolUse`.
    pub event: Arc<str>,
    /// The tools that the hook applies to; none means all.
    pub matcher: Option<Arc<str>>,
    /// The host's ids of its callbacks.
    pub callback_ids: Vec<Arc<str>>,
    /// The time limit of one callback.
    pub timeout_ms: Option<u64>,
    /// True if a failing hook blocks the event that it watches.
    pub block_on_failure: bool,
}

/// A control request to the host.
#[derive(Debug, Clone, PartialEq)]
pub enum ControlCall {
    /// Asks for permission to run a call.
    CanUseTool {
        call: Arc<ToolCall>,
        /// What to show to the user.
        confirmation: Box<Confirmation>,
        /// The reason for the request.
        reason: Arc<str>,
        /// The path outside the workspace, if that is the reason.
        blocked_path: Option<Arc<str>>,
        /// The sub-agent that makes the call.
        agent_id: Option<Arc<str>>,
    },
    /// Runs a hook in the host.
    HookCallback {
        /// The host's id of the callback.
        callback_id: Arc<str>,
        /// The input of the hook.
        input: Json,
        /// The call that the hook applies to.
        tool_use_id: Option<Arc<str>>,
    },
    /// A message for an MCP server that runs in the host.
    McpMessage { server: Arc<str>, message: Json },
}

/// An answer on the control channel, in either direction.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlReply {
    pub request_id: Arc<str>,
    /// True for the nested form of `claude`.
    pub nested: bool,
    /// The answer, or the error that replaces it.
    pub result: Result<Json, ErrorInfo>,
}

/// The decision in a permission answer or rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behavior {
    Allow,
    Deny,
    /// Leaves the decision to the user.
    Ask,
}

/// An answer to [`ControlCall::CanUseTool`].
#[derive(Debug, Clone, PartialEq)]
pub struct PermissionAnswer {
    pub behavior: Behavior,
    /// Explanation that accompanies the decision.
    pub message: Option<Arc<str>>,
    /// Arguments that replace those of the call.
    pub updated_input: Option<Json>,
    /// Changes of the permission rules.
    pub updated_permissions: Vec<PermissionUpdate>,
    /// True to stop the whole turn.
    pub interrupt: bool,
}

/// A change of the permission rules that came with an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum PermissionUpdate {
    /// Switches to another approval mode.
    SetMode(Arc<str>),
    /// Adds rules, such as `Bash(git log *)`.
    AddRules { behavior: Behavior, rules: Vec<Arc<str>> },
    /// Removes rules from the session.
    RemoveRules { behavior: Behavior, rules: Vec<Arc<str>> },
    /// Adds directories to the workspace.
    AddDirectories(Vec<Arc<str>>),
}
