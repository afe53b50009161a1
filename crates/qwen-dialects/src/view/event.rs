//! What a person would see of a line, whichever dialect it was in.

use qwen_events::Thinking;

/// Something event, and who showed it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ViewLine {
    /// The session, where the line names one.
    pub(super) session: Option<Box<str>>,
    /// The call whose sub-agent speaks.
    pub(super) parent: Option<Box<str>>,
    /// The line's number in its stream.
    pub(super) number: Option<u64>,
    /// What is seen.
    pub(super) event: ViewEvent,
}

impl ViewLine {
    pub(super) fn of(event: ViewEvent) -> Self {
        Self { session: None, parent: None, number: None, event }
    }
}

/// What is seen.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ViewEvent {
    /// Nothing that a person would want to see.
    Nothing,
    /// A turn starts.
    TurnStart {
        /// The user's words, where the stream repeats them.
        message: Option<String>,
        /// Who answers: the agent, or the model.
        by: Option<String>,
    },
    /// A node run starts.
    NodeEnter(String),
    /// A node run ends, and what went wrong in it.
    NodeExit(Option<String>),
    /// A piece of the answer, or all of it.
    Text(String),
    /// A piece of thinking.
    ThoughtPiece(String),
    /// A whole thought.
    Thought {
        /// What it is about.
        subject: String,
        /// The thought.
        text: String,
    },
    /// The model calls a tool.
    Call {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The arguments, as JSON.
        arguments: String,
    },
    /// A tool starts.
    CallStart {
        /// The call.
        id: String,
        /// The tool.
        name: String,
    },
    /// A tool wrote something.
    CallOutput {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// What it wrote.
        text: String,
    },
    /// A call is over.
    CallEnd {
        /// The call.
        id: String,
        /// The tool, where the line names it.
        name: String,
        /// Whether it went well.
        ok: bool,
        /// What came of it.
        text: String,
    },
    /// Someone is asked about a call.
    Approval {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// What would happen.
        words: String,
    },
    /// Something worth a quiet line.
    Notice(String),
    /// Something went wrong.
    Error(String),
    /// A step of a tree or graph of thoughts.
    Step(Step),
    /// The agent's state, as JSON.
    State(String),
    /// Tokens of a model call.
    Usage(Tokens),
    /// Why the run that is about to end did not end well.
    RunEnd(String),
    /// The turn is over.
    TurnEnd(End),
    /// A line that nobody understands.
    Unknown(String),
}

/// A step of a tree or graph of thoughts.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Candidates were proposed.
    Expand(Vec<String>),
    /// Candidates were scored.
    Evaluate {
        /// The index of the best.
        chosen: u64,
        /// A score for each.
        scores: Vec<f64>,
    },
    /// A branch was given up.
    Backtrack {
        /// Why.
        reason: String,
        /// The depth at which the search goes on.
        to_depth: u64,
    },
    /// The plan.
    Plan {
        /// The thoughts.
        ids: Vec<String>,
        /// How many edges there are.
        edges: u64,
    },
    /// A thought starts.
    Start(String),
    /// A thought is done, and what came of it.
    Done(String, String),
    /// A thought failed, and why.
    Failed(String, String),
    /// A thought opened a nested graph of so many thoughts.
    Grow(String, u64),
}

/// Tokens read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tokens {
    pub(super) read: u64,
    pub(super) written: u64,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct End {
    /// In a word; `done` when nothing was wrong, empty where the record does not say.
    pub(super) status: String,
    /// The answer, for those who have seen none of it.
    pub(super) reply: String,
    /// What went wrong.
    pub(super) errors: Vec<String>,
    /// Tokens of the whole turn, where the record has them.
    pub(super) tokens: Option<Tokens>,
    /// Calls that were refused.
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
