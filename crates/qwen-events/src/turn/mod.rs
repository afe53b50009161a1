//! Start, steps and end of a turn.

pub mod rate_limit;
pub mod usage;

use std::sync::Arc;

use crate::{
    AgentName, AgentUsage, CallId, ErrorInfo, Finish, Json, ModelUsage, Part, PromptId, SessionId, Timestamp,
    ToolCall, ToolSpec, Usage,
};

/// The start of a turn, with the current state of the session.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnStart {
    pub session_id: SessionId,
    pub prompt_id: PromptId,
    /// The turn's number in its session, from 1.
    pub turn: u64,
    /// The id of the run, `run-<n>`.
    pub run_id: Arc<str>,
    pub agent: AgentName,
    pub message: Arc<str>,
    /// The same content as sent to the model, including images.
    pub parts: Vec<Part>,
    /// The client's id of that message, if it sent one.
    pub message_uuid: Option<Arc<str>>,
    /// The author of that message, as the client described it.
    pub message_origin: Option<Json>,
    pub model: Arc<str>,
    pub cwd: Arc<str>,
    /// The approval mode: `plan`, `default`, `auto`, `dontAsk`, `auto-edit`, `yolo`.
    pub permission_mode: Arc<str>,
    /// The names of the available tools.
    pub tools: Vec<Arc<str>>,
    /// Those of `tools` that the host runs.
    pub host_tools: Vec<ToolSpec>,
    /// The JSON Schema of the answer, if the request has one.
    pub json_schema: Option<Json>,
    pub mcp_servers: Vec<McpServer>,
    pub slash_commands: Vec<Arc<str>>,
    pub agents: Vec<Arc<str>>,
    pub skills: Vec<Arc<str>>,
    /// The source of the credentials, such as `OPENAI_API_KEY`; never the key.
    pub key_source: Arc<str>,
}

impl TurnStart {
    /// The start of an empty turn of the `react` agent without tools.
    pub fn new(session_id: SessionId, prompt_id: PromptId) -> Self {
        Self {
            session_id,
            prompt_id,
            turn: 1,
            run_id: "run-1".into(),
            agent: AgentName::React,
            message: Arc::default(),
            parts: Vec::new(),
            message_uuid: None,
            message_origin: None,
            model: Arc::default(),
            cwd: Arc::default(),
            permission_mode: "default".into(),
            tools: Vec::new(),
            host_tools: Vec::new(),
            json_schema: None,
            mcp_servers: Vec::new(),
            slash_commands: Vec::new(),
            agents: Vec::new(),
            skills: Vec::new(),
            key_source: "none".into(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: Arc<str>,
    /// `connected`, `pending`, `failed` or `disabled`.
    pub status: Arc<str>,
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndStatus {
    /// The agent finished its work.
    Done,
    /// [`TurnEnd::error`] has the cause.
    Error,
    /// The user or client cancelled it (interrupt key, cancel request).
    Cancelled,
    /// The process had to end (SIGTERM), or a crash was found at resume.
    Interrupted,
    /// The session reached its limit on model calls.
    MaxTurns,
    /// The limit on tool calls was reached.
    MaxToolCalls,
    /// The time limit was reached.
    MaxWallTime,
    /// The limit on tokens was reached.
    MaxTokens,
    /// The cost limit was reached.
    Budget,
}

impl EndStatus {
    pub const ALL: [Self; 9] = [
        Self::Done,
        Self::Error,
        Self::Cancelled,
        Self::Interrupted,
        Self::MaxTurns,
        Self::MaxToolCalls,
        Self::MaxWallTime,
        Self::MaxTokens,
        Self::Budget,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::MaxTurns => "max_turns",
            Self::MaxToolCalls => "max_tool_calls",
            Self::MaxWallTime => "max_wall_time",
            Self::MaxTokens => "max_tokens",
            Self::Budget => "budget",
        }
    }

    /// The exit code of a run that ended this way, if no error determines it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Error => 1,
            Self::Cancelled => 130,
            Self::Interrupted => 143,
            Self::MaxTurns => 53,
            Self::MaxToolCalls | Self::MaxWallTime | Self::MaxTokens | Self::Budget => 55,
        }
    }

    /// True if a limit ended the turn.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::MaxTurns | Self::MaxToolCalls | Self::MaxWallTime | Self::MaxTokens | Self::Budget
        )
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    pub tool_name: Arc<str>,
    pub call_id: CallId,
    /// The arguments of the refused call.
    pub arguments: Json,
    pub reason: Arc<str>,
}

/// The end of a turn. Every turn gets exactly one, in every case.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    pub prompt_id: PromptId,
    pub status: EndStatus,
    /// The error, or the limit that was reached; none for a turn that is done.
    pub error: Option<ErrorInfo>,
    /// The text of the last assistant message, possibly incomplete.
    pub reply: Arc<str>,
    /// Why the model stopped in the last message.
    pub finish: Finish,
    /// The tokens of the whole turn.
    pub usage: Usage,
    /// The same as `usage`, separated by model.
    pub usage_by_model: Vec<ModelUsage>,
    /// The part of the turn that sub-agents spent, by name.
    pub usage_by_agent: Vec<AgentUsage>,
    /// The price in US dollars, if prices are known.
    pub cost_usd: f64,
    /// From start to end of the turn.
    pub duration_ms: u64,
    /// The part of `duration_ms` spent waiting for the model.
    pub api_duration_ms: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub denials: Vec<Denial>,
    /// Control requests that failed.
    pub control_errors: Vec<ErrorInfo>,
    /// The answer as data, if a schema was requested.
    pub structured: Option<Json>,
    /// The call that a hook postponed: the turn ended before it, and the next turn decides about it first.
    pub postponed: Option<Arc<ToolCall>>,
    /// True if the host continued under the id of an ended turn: this is another end under that id.
    pub continuation: bool,
    /// The session, if the turn started before this stream did.
    pub session_id: Option<SessionId>,
}

impl TurnEnd {
    /// True if the model or its provider refused to give the last answer.
    pub fn is_refused(&self) -> bool {
        self.status == EndStatus::Error && self.finish == Finish::ContentFilter
    }

    /// The end of a turn that did nothing.
    pub fn new(prompt_id: PromptId, status: EndStatus) -> Self {
        Self {
            prompt_id,
            status,
            error: None,
            reply: Arc::default(),
            finish: Finish::Stop,
            usage: Usage::default(),
            usage_by_model: Vec::new(),
            usage_by_agent: Vec::new(),
            cost_usd: 0.0,
            duration_ms: 0,
            api_duration_ms: 0,
            model_calls: 0,
            tool_calls: 0,
            denials: Vec::new(),
            control_errors: Vec::new(),
            structured: None,
            postponed: None,
            continuation: false,
            session_id: None,
        }
    }

    /// The exit code of a one-shot run that ends this way.
    pub fn exit_code(&self) -> u8 {
        match &self.error {
            // The end of input is not a failure: the host may disconnect, and another host may resume the
            // turn.
            Some(error) if error.code == ErrorInfo::INPUT_ENDED => 0,
            // The error of an interruption for lack of answers determines the code.
            Some(error) if matches!(self.status, EndStatus::Error | EndStatus::Interrupted) => {
                error.exit_code()
            }
            _ => self.status.exit_code(),
        }
    }
}

/// A snapshot from which a run can resume.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    pub id: Arc<str>,
    pub timestamp: Timestamp,
    /// The number of completed steps.
    pub step: u64,
    pub state: Json,
    /// The thread, which is the session.
    pub thread_id: SessionId,
    /// The graph's namespace; empty for the outermost.
    pub namespace: Arc<str>,
}

/// What a run needs to resume after its process dies: its initial state, the effects that must not be
/// repeated, and the state change of each step. Entries are small, so the log grows linearly with the run.
#[derive(Debug, Clone, PartialEq)]
pub enum Journal {
    /// A run begins, or restarts from a state that was edited.
    Base {
        /// The format of the states and changes that follow; other versions cannot be read.
        version: u32,
        /// The node that runs first.
        next: Arc<str>,
        /// The state at the start of the run.
        state: Json,
    },
    /// An effect that must not be repeated, such as a model call.
    Effect {
        /// Unique in its step, and the same whenever the step runs again.
        key: Arc<str>,
        /// The result of the effect.
        value: Json,
    },
    /// A step is complete; the effects before it can be discarded. The exit of its node follows.
    Step {
        /// The node that runs next; none at the end.
        next: Option<Arc<str>>,
        /// The change of the state.
        delta: Json,
    },
}

/// A step of a tree or graph of thoughts.
#[derive(Debug, Clone, PartialEq)]
pub enum Thinking {
    /// Tree: candidates were proposed.
    TotExpand { candidates: Vec<Arc<str>> },
    /// Tree: candidates were scored.
    TotEvaluate {
        /// The index of the best candidate.
        chosen: u64,
        /// One score per candidate.
        scores: Vec<f64>,
    },
    /// Tree: a branch was abandoned.
    TotBacktrack {
        reason: Arc<str>,
        /// The depth at which the search continues.
        to_depth: u64,
    },
    /// The plan of a graph of thoughts.
    GotPlan {
        /// The ids of its nodes.
        node_ids: Vec<Arc<str>>,
        edge_count: u64,
    },
    /// Graph: a thought starts.
    GotNodeStart { id: Arc<str> },
    /// Graph: a thought is done.
    GotNodeComplete {
        id: Arc<str>,
        /// A one-line summary of the result.
        result_summary: Arc<str>,
    },
    /// Graph: a thought failed.
    GotNodeFailed { id: Arc<str>, error: Arc<str> },
    /// Graph: a thought opened a nested graph.
    GotExpand { id: Arc<str>, nodes_added: u64, edges_added: u64 },
}
