//! The closed in-process vocabulary of `qwen`: [`Command`] is all input, [`Event`] all output.
//!
//! This crate does no JSON and no I/O. Every dialect, the terminal, the session log and the tests read the
//! same events; JSON appears here only as [`Json`], a text that is carried and never parsed.

mod agent_name;
mod command;
mod control;
mod error;
mod event;
mod event_groups;
mod hidden;
mod hook;
mod ids;
mod json;
mod message;
mod session;
mod task;
mod terminal_text;
mod tool;
mod trace;
mod turn;

pub use agent_name::AgentName;
pub use command::{
    Command, CommandCall, CommandKind, Delivery, HintRequest, HintTrigger, Prompt, PromptOptions,
    PromptOrigin, Reasoning, Sampling, Thoughts,
};
pub use control::{
    Behavior, ControlBody, ControlCall, ControlReply, HookMatcher, Initialize, PermissionAnswer,
    PermissionUpdate,
};
pub use error::{ErrorInfo, ErrorKind, RefusedPrompt, Timeout};
pub use event::{Body, Event, HistoryChange, MessageEnd, Scope, ThoughtBlock, Timestamp};
pub use hidden::is_hidden;
pub use hook::{HookNotice, HookOutcome, HookOutput, HookStep};
pub use ids::{CallId, NodeRun, PromptId, SessionId, SessionIdError};
pub use json::Json;
pub use message::{Finish, Media, MediaSource, Message, Part, Role, ToolResult, image_type};
pub use session::control::{SessionControl, SessionReport, SettingChange};
pub use session::{
    Activity, CancelResult, CommandResult, CommandResultBody, ConsoleLevel, Heartbeat, HintResult,
    HintStatus, Level, LogScope, SessionEvent, Suggestion,
};
pub use task::{Task, TaskEnd, TaskEvent, TaskKind, TaskStatus, TaskTotals, TaskUpdate};
pub use terminal_text::{
    is_misleading, push_code_point, shorten_middle, terminal_text, visible_text, without_escapes,
};
pub use tool::declaration::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, ToolCatalogue, ToolDeclaration, ToolKind,
};
pub use tool::earlier_calls::{EARLIER_CALLS, without_earlier_calls};
pub use tool::file_lines::{FileLines, NO_LAST_LINE_END};
pub use tool::hunk::DiffHunk;
pub use tool::rule_offer::offer_rule;
pub use tool::search_result::{FoundFiles, FoundLines, NO_OUTPUT, command_output};
pub use tool::{
    Channel, Confirmation, Decision, DiffStat, Display, FileDiff, TaskProgress, Todo, TodoStatus, ToolCall,
    ToolEnd, ToolSpec, ToolStatus, Verdict,
};
pub use trace::TraceContext;
pub use turn::rate_limit::{RateLimit, RateLimitStatus};
pub use turn::usage::{AgentUsage, ModelUsage, Usage};
pub use turn::{Checkpoint, Denial, EndStatus, Journal, McpServer, Thinking, TurnEnd, TurnStart};
