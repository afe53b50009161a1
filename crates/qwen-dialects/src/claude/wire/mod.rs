//! The lines of the `claude` dialect.

pub mod control;
pub mod display;
pub mod message;
pub mod result;
pub mod stream_event;
pub mod tool_output;

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::control::ControlRequest;
use self::display::ToolOutcome;
use self::message::{AssistantMessage, UserMessage};
use self::result::ResultLine;
use self::stream_event::StreamEvent;
use crate::claude::hook::{HookName, HookWords, Outcome};
use crate::claude::rate_limit::RateLimitLine;
use crate::claude::task::{LiveTask, TaskNotification, TaskPatch, TaskProgress, TaskStarted};
use crate::error_object::ErrorObject;
use crate::flat::{ControlResponse, ResultNote};
use crate::payload::Payload;

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ClaudeLine")]
pub enum Line<'a> {
    /// A line of the dialect itself.
    Message(Message<'a>),
    /// The response to a request that is not a prompt; the same in every dialect.
    Note(ResultNote<'a>),
}

/// A line of the dialect itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message<'a> {
    /// A message about the session.
    System(SystemLine<'a>),
    /// One content block of the model's message.
    Assistant(AssistantLine<'a>),
    /// A tool result or a message of the user.
    User(UserLine<'a>),
    /// The end of a turn.
    Result(Box<ResultLine<'a>>),
    /// A piece of the model's message while it is streamed.
    StreamEvent(StreamEventLine<'a>),
    /// The rate limit state that the model's server reports.
    RateLimitEvent(RateLimitLine<'a>),
    /// The conversation was reset and continues in a new session.
    ConversationReset(ConversationReset<'a>),
    /// A control request to the host.
    ControlRequest(ControlRequest<'a>),
    /// A response to a control request of the host.
    ControlResponse(ControlResponse<'a>),
    /// A control request is withdrawn; a response to it is ignored.
    ControlCancelRequest {
        /// The id of the control request, repeated in its response.
        request_id: Cow<'a, str>,
    },
}

/// The conversation was reset and continues in a new session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationReset<'a> {
    /// The id of the new session.
    pub new_conversation_id: Cow<'a, str>,
    /// A unique id of this line.
    pub uuid: Cow<'a, str>,
    /// The id of the session that ended.
    pub session_id: Cow<'a, str>,
    /// The command that reset the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Cow<'a, str>>,
    /// The client's id of the message with that command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<Cow<'a, str>>,
    /// The time of the reset (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Cow<'a, str>>,
}

/// A message about the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemLine<'a> {
    /// The content of the message.
    #[serde(flatten)]
    pub notice: Notice<'a>,
    /// The id of the session.
    pub session_id: Cow<'a, str>,
    /// A unique id of this line.
    pub uuid: Cow<'a, str>,
}

/// The content of the message about the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Notice<'a> {
    /// The start of a turn, with the state of the session.
    Init(Box<Init<'a>>),
    /// The activity of the session.
    SessionStateChanged {
        /// The whole state of the graph.
        state: SessionState,
        /// True if the line is meant for the SDK and not for its user.
        #[serde(default)]
        sdk_host_only: bool,
    },
    /// A model call failed and will be retried.
    ApiRetry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The maximum number of retries.
        max_retries: u32,
        /// The delay before the next attempt in milliseconds.
        retry_delay_ms: u64,
        /// The HTTP status code, if there was one.
        error_status: Option<u16>,
        /// The kind of failure, such as `rate_limit`.
        error: Cow<'a, str>,
        /// The error message for users.
        #[serde(default)]
        message: Cow<'a, str>,
    },
    /// A background command or sub-agent started.
    TaskStarted(TaskStarted<'a>),
    /// A sub-agent made progress.
    TaskProgress(TaskProgress<'a>),
    /// A background command or sub-agent ended.
    TaskNotification(TaskNotification<'a>),
    /// A background task was stopped.
    TaskUpdated {
        /// The id of the task.
        task_id: Cow<'a, str>,
        /// The fields that changed, with their new values.
        patch: TaskPatch<'a>,
    },
    /// The running background tasks, sent after one started or ended.
    BackgroundTasksChanged {
        /// The tasks that run now.
        tasks: Vec<LiveTask<'a>>,
    },
    /// A call was refused without a permission request.
    PermissionDenied {
        /// The name of the tool.
        tool_name: Cow<'a, str>,
        /// The id of the tool call.
        tool_use_id: Cow<'a, str>,
        /// The id of the sub-agent that made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<Cow<'a, str>>,
        /// The source of the decision: `rule` or `mode`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_reason_type: Option<Cow<'a, str>>,
        /// The reason, one sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_reason: Option<Cow<'a, str>>,
        /// The text that the model receives.
        message: Cow<'a, str>,
    },
    /// A hook of the session started.
    HookStarted {
        /// The hook and its run.
        #[serde(flatten)]
        hook: HookName<'a>,
    },
    /// A running hook produced output.
    HookProgress {
        /// The hook and its run.
        #[serde(flatten)]
        hook: HookName<'a>,
        /// What it wrote so far.
        #[serde(flatten)]
        words: HookWords<'a>,
    },
    /// A hook of the session ended.
    HookResponse {
        /// The hook and its run.
        #[serde(flatten)]
        hook: HookName<'a>,
        /// The output of the hook.
        #[serde(flatten)]
        words: HookWords<'a>,
        /// The exit code of a hook command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// How the hook ended.
        outcome: Outcome,
    },
    /// A message for users.
    Informational {
        /// The text of the message.
        content: Cow<'a, str>,
        /// `info`, `notice`, `suggestion` or `warning`.
        level: Cow<'a, str>,
        /// The id of the tool call that the message concerns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<Cow<'a, str>>,
    },
    /// The status of the session changed.
    Status {
        /// The activity of the session, such as `compacting`; null for none.
        status: Option<Cow<'a, str>>,
        /// The approval mode in Claude's vocabulary.
        #[serde(rename = "permissionMode", default)]
        permission_mode_claude: Cow<'a, str>,
        /// The approval mode in Qwen's vocabulary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permission_mode: Option<Cow<'a, str>>,
    },
    /// The history was compacted into a summary.
    CompactBoundary {
        /// The sizes before and after.
        compact_metadata: CompactMetadata<'a>,
    },
    /// A fallback model continues the turn.
    ModelFallback {
        /// The model that failed.
        from: Cow<'a, str>,
        /// The model that continues the turn.
        to: Cow<'a, str>,
        /// The reason for the end.
        reason: Cow<'a, str>,
    },
    /// A loop was detected.
    LoopDetected {
        /// A description of the repetition.
        message: Cow<'a, str>,
    },
    /// A prompt joins the running turn before its next model call.
    Steered {
        /// The prompt that joined the turn.
        prompt_id: Cow<'a, str>,
        /// The client's own id of its message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_uuid: Option<Cow<'a, str>>,
    },
    /// A step of a tree or graph of thoughts.
    ThinkingProgress {
        /// A description of the step.
        text: Cow<'a, str>,
    },
    /// Other information, as JSON.
    Custom {
        /// The payload of the event.
        value: Payload<'a>,
    },
    /// An input line was rejected; the process continues.
    InputError {
        /// The error, if the request failed.
        error: ErrorObject<'a>,
    },
    /// A recoverable error; the turn continues.
    Error {
        /// The error, if the request failed.
        error: ErrorObject<'a>,
    },
}

/// The state of the session at the start of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Init<'a> {
    /// The working directory of the session.
    pub cwd: Cow<'a, str>,
    /// The names of the available tools.
    pub tools: Vec<Cow<'a, str>>,
    /// The MCP servers and their state.
    pub mcp_servers: Vec<ServerState<'a>>,
    /// The name of the model.
    pub model: Cow<'a, str>,
    /// The approval mode in Claude's vocabulary.
    #[serde(rename = "permissionMode", default)]
    pub permission_mode_claude: Cow<'a, str>,
    /// The approval mode in Qwen's vocabulary.
    #[serde(default)]
    pub permission_mode: Cow<'a, str>,
    /// The names of the available slash commands.
    #[serde(default)]
    pub slash_commands: Vec<Cow<'a, str>>,
    /// The source of the credentials, never the key itself.
    #[serde(rename = "apiKeySource", default)]
    pub api_key_source: Cow<'a, str>,
    /// The version of Claude Code whose behaviour the SDKs may expect.
    #[serde(default)]
    pub claude_code_version: Cow<'a, str>,
    /// The version of this program.
    #[serde(default)]
    pub qwen_code_version: Cow<'a, str>,
    /// The name of the output style.
    #[serde(default)]
    pub output_style: Cow<'a, str>,
    /// The names of the available sub-agents.
    #[serde(default)]
    pub agents: Vec<Cow<'a, str>>,
    /// The names of the available skills.
    #[serde(default)]
    pub skills: Vec<Cow<'a, str>>,
    /// The plugins, each with `name` and `path`.
    #[serde(default)]
    pub plugins: Vec<Payload<'a>>,
}

/// An MCP server and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerState<'a> {
    /// The name of the MCP server.
    pub name: Cow<'a, str>,
    /// The connection state, such as `connected`.
    pub status: Cow<'a, str>,
}

/// The sizes before and after compaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactMetadata<'a> {
    /// The trigger: `manual` or `auto`.
    pub trigger: Cow<'a, str>,
    /// The number of tokens before compaction.
    pub pre_tokens: u64,
    /// The number of tokens after compaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_tokens: Option<u64>,
}

/// The activity of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// A turn is running.
    Running,
    /// A request awaits the host's response.
    RequiresAction,
    /// No turn is running.
    Idle,
}

/// One content block of the model's message. Blocks of one message share `message.id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantLine<'a> {
    /// A unique id of this line.
    pub uuid: Cow<'a, str>,
    /// The id of the session.
    pub session_id: Cow<'a, str>,
    /// The id of the tool call that started the sub-agent; null for the main agent.
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The message with this block only.
    pub message: AssistantMessage<'a>,
    /// The kind of failure that this message reports, such as `rate_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// True if the block is incomplete because the message was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
}

/// A tool result or a message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserLine<'a> {
    /// A unique id of this line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Cow<'a, str>>,
    /// The id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The id of the tool call that started the sub-agent; null for the main agent.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The message that the line carries.
    pub message: UserMessage<'a>,
    /// The outcome of the call as structured data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Box<ToolOutcome<'a>>>,
    /// True if the line repeats a message of the client.
    #[serde(rename = "isReplay", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
}

/// A piece of the model's message while it is streamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamEventLine<'a> {
    /// A unique id of this line.
    pub uuid: Cow<'a, str>,
    /// The id of the session.
    pub session_id: Cow<'a, str>,
    /// The id of the tool call that started the sub-agent; null for the main agent.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The event of the streamed message.
    pub event: StreamEvent<'a>,
}
