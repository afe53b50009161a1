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

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ClaudeLine")]
pub enum Line<'a> {
    /// A line of the dialect itself.
    Message(Message<'a>),
    /// An answer to a request that is not a prompt, as every dialect writes it.
    Note(ResultNote<'a>),
}

/// A line of the dialect itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message<'a> {
    /// Something about the session.
    System(SystemLine<'a>),
    /// One content block of the model's message.
    Assistant(AssistantLine<'a>),
    /// A tool's result, or words of the user.
    User(UserLine<'a>),
    /// The end of a turn.
    Result(Box<ResultLine<'a>>),
    /// A piece of the model's message, while it is written.
    StreamEvent(StreamEventLine<'a>),
    /// How far the model's server lets us go.
    RateLimitEvent(RateLimitLine<'a>),
    /// The conversation starts anew in another session.
    ConversationReset(ConversationReset<'a>),
    /// We ask the host something.
    ControlRequest(ControlRequest<'a>),
    /// We answer the host.
    ControlResponse(ControlResponse<'a>),
    /// A question of ours no longer matters.
    ControlCancelRequest {
        /// The question's id.
        request_id: Cow<'a, str>,
    },
}

/// The conversation starts anew in another session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConversationReset<'a> {
    /// The session in which it goes on.
    pub new_conversation_id: Cow<'a, str>,
    /// Names this line.
    pub uuid: Cow<'a, str>,
    /// The session that is over.
    pub session_id: Cow<'a, str>,
    /// What discarded the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Cow<'a, str>>,
    /// The client's id of the message that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message_uuid: Option<Cow<'a, str>>,
    /// When it happened (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Cow<'a, str>>,
}

/// Something about the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemLine<'a> {
    /// What there is to say.
    #[serde(flatten)]
    pub notice: Notice<'a>,
    /// The session.
    pub session_id: Cow<'a, str>,
    /// Names this line.
    pub uuid: Cow<'a, str>,
}

/// What there is to say about the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "subtype", rename_all = "snake_case")]
pub enum Notice<'a> {
    /// A turn starts: all there is to know about the session now.
    Init(Box<Init<'a>>),
    /// Whether the session works, waits for an answer, or rests.
    SessionStateChanged {
        /// The state.
        state: SessionState,
        /// The line is for the SDK itself and not for its user.
        #[serde(default)]
        sdk_host_only: bool,
    },
    /// A model call failed and will be tried again.
    ApiRetry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How many retries there may be.
        max_retries: u32,
        /// How long we wait.
        retry_delay_ms: u64,
        /// The HTTP status, where there was one.
        error_status: Option<u16>,
        /// The kind of failure, such as `rate_limit`.
        error: Cow<'a, str>,
        /// What went wrong.
        #[serde(default)]
        message: Cow<'a, str>,
    },
    /// A command in the background or a sub-agent has started.
    TaskStarted(TaskStarted<'a>),
    /// A sub-agent has taken a step.
    TaskProgress(TaskProgress<'a>),
    /// A command in the background or a sub-agent is over.
    TaskNotification(TaskNotification<'a>),
    /// Such a task changed: somebody ended it.
    TaskUpdated {
        /// The task.
        task_id: Cow<'a, str>,
        /// What changed.
        patch: TaskPatch<'a>,
    },
    /// The commands and sub-agents that work in the background, after one started or ended.
    BackgroundTasksChanged {
        /// All of them.
        tasks: Vec<LiveTask<'a>>,
    },
    /// A call was refused without a question.
    PermissionDenied {
        /// The tool.
        tool_name: Cow<'a, str>,
        /// The call.
        tool_use_id: Cow<'a, str>,
        /// The sub-agent that made it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent_id: Option<Cow<'a, str>>,
        /// What decided: `rule` or `mode`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_reason_type: Option<Cow<'a, str>>,
        /// Why, in a sentence.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decision_reason: Option<Cow<'a, str>>,
        /// What the model is told.
        message: Cow<'a, str>,
    },
    /// A hook was called.
    HookStarted {
        /// Which.
        #[serde(flatten)]
        hook: HookName<'a>,
    },
    /// A hook wrote something and works on.
    HookProgress {
        /// Which.
        #[serde(flatten)]
        hook: HookName<'a>,
        /// What it wrote so far.
        #[serde(flatten)]
        words: HookWords<'a>,
    },
    /// A hook is over.
    HookResponse {
        /// Which.
        #[serde(flatten)]
        hook: HookName<'a>,
        /// What it wrote.
        #[serde(flatten)]
        words: HookWords<'a>,
        /// How a command ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// How it went.
        outcome: Outcome,
    },
    /// Words for people.
    Informational {
        /// The words.
        content: Cow<'a, str>,
        /// `info`, `notice`, `suggestion` or `warning`.
        level: Cow<'a, str>,
        /// The call that they are about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_use_id: Option<Cow<'a, str>>,
    },
    /// Something about the session changed.
    Status {
        /// What the session is busy with; null for nothing in particular.
        status: Option<Cow<'a, str>>,
        /// The approval mode in Claude's words.
        #[serde(rename = "permissionMode", default)]
        permission_mode_claude: Cow<'a, str>,
        /// The approval mode in Qwen's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permission_mode: Option<Cow<'a, str>>,
    },
    /// History was replaced by a summary.
    CompactBoundary {
        /// How much.
        compact_metadata: CompactMetadata<'a>,
    },
    /// Another model goes on.
    ModelFallback {
        /// The model that failed.
        from: Cow<'a, str>,
        /// The model that goes on.
        to: Cow<'a, str>,
        /// Why.
        reason: Cow<'a, str>,
    },
    /// The agent repeats itself.
    LoopDetected {
        /// What repeats.
        message: Cow<'a, str>,
    },
    /// A prompt joins the running turn before its next model call.
    Steered {
        /// The prompt.
        prompt_id: Cow<'a, str>,
        /// The client's own id of its message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_uuid: Option<Cow<'a, str>>,
    },
    /// A step of a tree or graph of thoughts.
    ThinkingProgress {
        /// The step, in words.
        text: Cow<'a, str>,
    },
    /// Anything else the agent wants to say, as JSON.
    Custom {
        /// What it says.
        value: Payload<'a>,
    },
    /// A line could not be used; the process goes on.
    InputError {
        /// Why.
        error: ErrorObject<'a>,
    },
    /// Something else went wrong; the turn goes on.
    Error {
        /// What.
        error: ErrorObject<'a>,
    },
}

/// All there is to know about the session at the start of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Init<'a> {
    /// The working directory.
    pub cwd: Cow<'a, str>,
    /// The tools on offer.
    pub tools: Vec<Cow<'a, str>>,
    /// The MCP servers and their state.
    pub mcp_servers: Vec<ServerState<'a>>,
    /// The model.
    pub model: Cow<'a, str>,
    /// The approval mode in Claude's words.
    #[serde(rename = "permissionMode", default)]
    pub permission_mode_claude: Cow<'a, str>,
    /// The approval mode in Qwen's words.
    #[serde(default)]
    pub permission_mode: Cow<'a, str>,
    /// The slash commands on offer.
    #[serde(default)]
    pub slash_commands: Vec<Cow<'a, str>>,
    /// Where the credentials come from; never the key.
    #[serde(rename = "apiKeySource", default)]
    pub api_key_source: Cow<'a, str>,
    /// The version of Claude Code whose behaviour the SDKs may expect.
    #[serde(default)]
    pub claude_code_version: Cow<'a, str>,
    /// Our version.
    #[serde(default)]
    pub qwen_code_version: Cow<'a, str>,
    /// The style of the answers.
    #[serde(default)]
    pub output_style: Cow<'a, str>,
    /// The sub-agents on offer.
    #[serde(default)]
    pub agents: Vec<Cow<'a, str>>,
    /// The skills on offer.
    #[serde(default)]
    pub skills: Vec<Cow<'a, str>>,
    /// The plugins, each with `name` and `path`.
    #[serde(default)]
    pub plugins: Vec<Payload<'a>>,
}

/// An MCP server and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerState<'a> {
    /// The server.
    pub name: Cow<'a, str>,
    /// Its state, such as `connected`.
    pub status: Cow<'a, str>,
}

/// How much of the history a summary replaced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactMetadata<'a> {
    /// Who asked for it.
    pub trigger: Cow<'a, str>,
    /// Tokens before.
    pub pre_tokens: u64,
    /// Tokens after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_tokens: Option<u64>,
}

/// Whether the session works, waits for an answer, or rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It works.
    Running,
    /// It waits for the host's answer.
    RequiresAction,
    /// It rests.
    Idle,
}

/// One content block of the model's message. Blocks of one message share `message.id`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantLine<'a> {
    /// Names this line.
    pub uuid: Cow<'a, str>,
    /// The session.
    pub session_id: Cow<'a, str>,
    /// The call whose sub-agent speaks; null in the main agent.
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The message, with this block alone.
    pub message: AssistantMessage<'a>,
    /// The kind of failure that this message reports, such as `rate_limit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// The block was cut off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aborted: bool,
}

/// A tool's result, or words of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserLine<'a> {
    /// Names this line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uuid: Option<Cow<'a, str>>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    /// The call whose sub-agent speaks; null in the main agent.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The message.
    pub message: UserMessage<'a>,
    /// How the call went, as data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_result: Option<Box<ToolOutcome<'a>>>,
    /// The client's own message, repeated.
    #[serde(rename = "isReplay", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replay: bool,
}

/// A piece of the model's message, while it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamEventLine<'a> {
    /// Names this line.
    pub uuid: Cow<'a, str>,
    /// The session.
    pub session_id: Cow<'a, str>,
    /// The call whose sub-agent speaks; null in the main agent.
    #[serde(default)]
    pub parent_tool_use_id: Option<Cow<'a, str>>,
    /// The piece.
    pub event: StreamEvent<'a>,
}
