//! The frame of a turn: how it starts, thinks and ends.

use std::sync::Arc;

use crate::{
    CallId, ErrorInfo, Finish, Json, ModelUsage, Part, PromptId, SessionId, Timestamp, ToolCall, ToolSpec,
    Usage,
};

/// The start of a turn, with everything a reader may want to know about the session now.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnStart {
    /// The session.
    pub session_id: SessionId,
    /// The turn's name.
    pub prompt_id: PromptId,
    /// The turn's number in its session, from 1.
    pub turn: u64,
    /// The run's name, `run-<n>`.
    pub run_id: Arc<str>,
    /// The agent: `react`, `tot`, `got`.
    pub agent: Arc<str>,
    /// The user's words.
    pub message: Arc<str>,
    /// The same as it goes to the model, images and all.
    pub parts: Vec<Part>,
    /// The client's own id of that message, where it sent one.
    pub message_uuid: Option<Arc<str>>,
    /// The model.
    pub model: Arc<str>,
    /// The working directory.
    pub cwd: Arc<str>,
    /// The approval mode: `plan`, `default`, `auto-edit`, `yolo`.
    pub permission_mode: Arc<str>,
    /// The tools on offer.
    pub tools: Vec<Arc<str>>,
    /// Those among them that the host runs.
    pub host_tools: Vec<ToolSpec>,
    /// The JSON Schema of the answer that the request itself asks for.
    pub json_schema: Option<Json>,
    /// The MCP servers and their state.
    pub mcp_servers: Vec<McpServer>,
    /// The slash commands on offer.
    pub slash_commands: Vec<Arc<str>>,
    /// The sub-agents on offer.
    pub agents: Vec<Arc<str>>,
    /// The skills on offer.
    pub skills: Vec<Arc<str>>,
    /// Where the credentials come from, such as `OPENAI_API_KEY`; never the key.
    pub key_source: Arc<str>,
}

/// An MCP server and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: Arc<str>,
    /// `connected`, `pending`, `failed` or `disabled`.
    pub status: Arc<str>,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndStatus {
    /// The agent was done.
    Done,
    /// Something went wrong; [`TurnEnd::error`] says what.
    Error,
    /// Someone asked for it (interrupt key, cancel request).
    Cancelled,
    /// The process had to go (SIGTERM, crash found at resume).
    Interrupted,
    /// The limit on model calls in a session.
    MaxTurns,
    /// The limit on tool calls.
    MaxToolCalls,
    /// The limit on time.
    MaxWallTime,
    /// The limit on tokens.
    MaxTokens,
    /// The limit on money.
    Budget,
}

impl EndStatus {
    /// The word that the wire uses.
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

    /// The exit code of work that was ended so, where no error says more.
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

    /// Whether one of the limits ended the turn.
    pub fn is_limit(self) -> bool {
        matches!(
            self,
            Self::MaxTurns | Self::MaxToolCalls | Self::MaxWallTime | Self::MaxTokens | Self::Budget
        )
    }
}

/// A call that was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    /// The tool.
    pub tool_name: Arc<str>,
    /// The call.
    pub call_id: CallId,
    /// What it wanted to do.
    pub arguments: Json,
    /// Why it was refused.
    pub reason: Arc<str>,
}

/// The end of a turn. Every turn gets exactly one, whatever happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEnd {
    /// The turn.
    pub prompt_id: PromptId,
    /// Why it ended.
    pub status: EndStatus,
    /// What went wrong, or which limit was reached; none when it is done.
    pub error: Option<ErrorInfo>,
    /// The answer: the text of the last assistant message, as far as it came.
    pub reply: Arc<str>,
    /// Why the model stopped, for the last message.
    pub finish: Finish,
    /// Tokens of the whole turn.
    pub usage: Usage,
    /// The same by model.
    pub usage_by_model: Vec<ModelUsage>,
    /// The price in US dollars, when prices are known.
    pub cost_usd: f64,
    /// From start to end.
    pub duration_ms: u64,
    /// Of that, waiting for the model.
    pub api_duration_ms: u64,
    /// Model calls made.
    pub model_calls: u64,
    /// Tool calls made.
    pub tool_calls: u64,
    /// Calls that were refused.
    pub denials: Vec<Denial>,
    /// Control requests that went wrong.
    pub control_errors: Vec<ErrorInfo>,
    /// The answer as data, where a schema was asked for.
    pub structured: Option<Json>,
    /// The call that a hook put off: the turn ended before it, and the next one decides about it first.
    pub postponed: Option<Arc<ToolCall>>,
    /// The host went on under the name of a turn that had ended: this is one more end under that name.
    pub continuation: bool,
}

impl TurnEnd {
    /// The exit code that a one-shot run which ends like this ends with.
    pub fn exit_code(&self) -> u8 {
        match &self.error {
            // The end of input is no failure: a host may go away, and another one take the turn up.
            Some(error) if error.code == ErrorInfo::INPUT_ENDED => 0,
            // What is interrupted for want of answers says so.
            Some(error) if matches!(self.status, EndStatus::Error | EndStatus::Interrupted) => {
                error.exit_code()
            }
            _ => self.status.exit_code(),
        }
    }
}

/// A snapshot from which a run can go on.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Its id.
    pub id: Arc<str>,
    /// When it was taken.
    pub timestamp: Timestamp,
    /// How many steps were complete.
    pub step: u64,
    /// The state.
    pub state: Json,
    /// The thread, which is the session.
    pub thread_id: SessionId,
    /// The graph's name space, empty for the outermost.
    pub namespace: Arc<str>,
}

/// What a run must remember to go on when its process dies: where it began, what it did that must not be done twice,
/// and how each step changed the state. Each entry is small, so that a log grows as the run does.
#[derive(Debug, Clone, PartialEq)]
pub enum Journal {
    /// A run begins, or begins anew from a state that someone edited.
    Base {
        /// The form of the states and changes that follow; another form cannot be read.
        version: u32,
        /// The node that runs first.
        next: Arc<str>,
        /// The state to begin with.
        state: Json,
    },
    /// Something was done that must not be done twice, such as a model call.
    Effect {
        /// Its name, unique in its step and the same whenever the step is run again.
        key: Arc<str>,
        /// What came of it.
        value: Json,
    },
    /// A step is complete; the effects before it need no longer be remembered. The exit of its node follows.
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
    TotExpand {
        /// The candidates.
        candidates: Vec<Arc<str>>,
    },
    /// Tree: candidates were scored.
    TotEvaluate {
        /// The index of the best.
        chosen: u64,
        /// A score for each.
        scores: Vec<f64>,
    },
    /// Tree: a branch was given up.
    TotBacktrack {
        /// Why.
        reason: Arc<str>,
        /// The depth at which the search goes on.
        to_depth: u64,
    },
    /// Graph: the plan.
    GotPlan {
        /// The ids of its nodes.
        node_ids: Vec<Arc<str>>,
        /// How many edges it has.
        edge_count: u64,
    },
    /// Graph: a thought starts.
    GotNodeStart {
        /// The thought.
        id: Arc<str>,
    },
    /// Graph: a thought is done.
    GotNodeComplete {
        /// The thought.
        id: Arc<str>,
        /// Its result in a line.
        result_summary: Arc<str>,
    },
    /// Graph: a thought failed.
    GotNodeFailed {
        /// The thought.
        id: Arc<str>,
        /// Why.
        error: Arc<str>,
    },
    /// Graph: a thought opened a nested graph.
    GotExpand {
        /// The thought.
        id: Arc<str>,
        /// How many thoughts were added.
        nodes_added: u64,
        /// How many edges were added.
        edges_added: u64,
    },
}
