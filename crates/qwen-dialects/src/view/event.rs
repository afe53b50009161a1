//! Dialect-independent events of the viewer.

use qwen_events::Thinking;

/// One event and its source.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ViewLine {
    /// The session, if the line names one.
    pub(super) session: Option<Box<str>>,
    /// The call whose sub-agent wrote the line.
    pub(super) parent: Option<Box<str>>,
    /// The node run that the line belongs to, if the dialect has node runs.
    pub(super) node: Option<Box<str>>,
    /// The number of the line in its stream, from 1 without gaps.
    pub(super) number: Option<u64>,
    pub(super) event: ViewEvent,
}

impl ViewLine {
    pub(super) fn new(event: ViewEvent) -> Self {
        Self { session: None, parent: None, node: None, number: None, event }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ViewEvent {
    /// Nothing to show.
    Nothing,
    /// A turn starts.
    TurnStart {
        /// The user's prompt, if the stream repeats it.
        message: Option<String>,
        /// The agent or the model that answers.
        by: Option<String>,
    },
    /// A node run starts.
    NodeEnter(String),
    /// A node run ends, with its error if it failed.
    NodeExit(Option<String>),
    /// A piece of the answer, or all of it.
    Text(String),
    /// A piece of thinking.
    ThoughtPiece(String),
    /// A complete thought.
    Thought {
        /// The headline.
        subject: String,
        text: String,
    },
    /// The model calls a tool.
    Call {
        id: String,
        name: String,
        /// As JSON.
        arguments: String,
    },
    /// A tool starts.
    CallStart {
        id: String,
        name: String,
    },
    /// Output of a running tool.
    CallOutput {
        id: String,
        name: String,
        text: String,
    },
    /// A call ended.
    CallEnd {
        id: String,
        /// The tool, if the line names it.
        name: String,
        /// True if the call succeeded.
        ok: bool,
        /// The result.
        text: String,
    },
    /// The user or the host is asked to approve a call.
    Approval {
        id: String,
        name: String,
        /// A description of the effect.
        words: String,
    },
    /// A minor notice.
    Notice(String),
    Error(String),
    /// A step of a tree or graph of thoughts.
    Step(Step),
    /// The agent's state, as JSON.
    State(String),
    /// Tokens of a model call.
    Usage(Tokens),
    /// The reason why the run that is about to end failed.
    RunEnd(String),
    /// The turn ended.
    TurnEnd(End),
    /// A line that no reader recognises.
    Unknown(String),
}

/// A step of a tree or graph of thoughts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Candidates were proposed.
    Expand(Vec<String>),
    /// Candidates were scored.
    Evaluate {
        /// The index of the best candidate.
        chosen: u64,
        /// One score per candidate.
        scores: Vec<f64>,
    },
    /// A branch was abandoned.
    Backtrack {
        reason: String,
        /// The depth at which the search continues.
        to_depth: u64,
    },
    /// The plan.
    Plan {
        /// The thoughts.
        ids: Vec<String>,
        /// The number of edges.
        edges: u64,
    },
    /// A thought starts.
    Start(String),
    /// A thought is done, with its result.
    Done(String, String),
    /// A thought failed, with the error.
    Failed(String, String),
    /// A thought opened a nested graph with this number of thoughts.
    Grow(String, u64),
}

/// Tokens read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tokens {
    pub(super) read: u64,
    pub(super) written: u64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct End {
    /// `done` for success, empty if the record has no status.
    pub(super) status: String,
    /// The answer, for readers that have not seen its text.
    pub(super) reply: String,
    pub(super) errors: Vec<String>,
    /// The tokens of the whole turn, if the record has them.
    pub(super) tokens: Option<Tokens>,
    /// The number of refused calls.
    pub(super) denials: usize,
}

impl From<&Thinking> for Step {
    fn from(step: &Thinking) -> Self {
        let words = |list: &[std::sync::Arc<str>]| list.iter().map(ToString::to_string).collect();
        match step {
            Thinking::TotExpand { candidates } => Self::Expand(words(candidates)),
            Thinking::TotEvaluate { chosen, scores } => {
                Self::Evaluate { chosen: *chosen, scores: scores.clone() }
            }
            Thinking::TotBacktrack { reason, to_depth } => {
                Self::Backtrack { reason: reason.to_string(), to_depth: *to_depth }
            }
            Thinking::GotPlan { node_ids, edge_count } => {
                Self::Plan { ids: words(node_ids), edges: *edge_count }
            }
            Thinking::GotNodeStart { id } => Self::Start(id.to_string()),
            Thinking::GotNodeComplete { id, result_summary } => {
                Self::Done(id.to_string(), result_summary.to_string())
            }
            Thinking::GotNodeFailed { id, error } => Self::Failed(id.to_string(), error.to_string()),
            Thinking::GotExpand { id, nodes_added, .. } => Self::Grow(id.to_string(), *nodes_added),
        }
    }
}
