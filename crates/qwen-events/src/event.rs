//! Everything that goes out.

use std::sync::Arc;

use crate::{
    CallId, CancelResult, Channel, Checkpoint, CommandResult, Confirmation, ConsoleLevel, ControlCall,
    ControlReply, Decision, Display, ErrorInfo, Finish, Heartbeat, HintResult, HookNotice, Journal, Json,
    LogScope, Message, ModelUsage, NodeRun, PromptId, RateLimit, SessionEvent, SessionId, TaskEvent,
    Thinking, ToolCall, ToolEnd, TurnEnd, TurnStart, Usage,
};

/// A moment, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment in whole seconds.
    pub fn seconds(self) -> u64 {
        self.0 / 1000
    }
}

/// Who speaks: the node run, inside a sub-agent the call that started it, and inside a thought the thought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The node run; none before the first and outside a run.
    pub node: Option<Arc<NodeRun>>,
    /// The tool call whose sub-agent this is; none in the main agent.
    pub parent: Option<CallId>,
    /// The thought of a tree or graph of thoughts that calls tools. Such messages and results are the thought's own:
    /// they are shown, and are no part of the conversation.
    pub thought: Option<Arc<str>>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// Who speaks.
    pub scope: Scope,
    /// What happened.
    pub body: Body,
}

/// What happened. The order within a turn: `TurnStart`; node runs, each from `NodeEnter` to `NodeExit` and then
/// `State`; in *think* a message from `MessageStart` to `MessageEnd`; in *act* for each call `Decision`, perhaps
/// `Approval`, then `ToolStart`, `ToolOutput`* and `ToolEnd` (a refused call has only its end); last `TurnEnd`.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The worker listens. Written once, before anything else, in structured mode.
    Ready,
    /// A turn starts.
    TurnStart(Box<TurnStart>),
    /// A node run starts; the scope names it.
    NodeEnter,
    /// A node run ends.
    NodeExit {
        /// What went wrong in it.
        error: Option<Arc<str>>,
    },
    /// The model starts a message.
    MessageStart {
        /// Our id of it.
        message_id: Arc<str>,
        /// The model that writes.
        model: Arc<str>,
    },
    /// The model wrote a piece of text.
    TextDelta(Box<str>),
    /// The model thought a piece.
    ThoughtDelta(Box<str>),
    /// The provider signed the thought so far, which is whole now.
    ThoughtSignature(Arc<str>),
    /// The model wrote a piece of a tool call's arguments.
    ToolCallDelta {
        /// The call's place in its message, from 0.
        index: u32,
        /// The call.
        call_id: CallId,
        /// The tool.
        name: Arc<str>,
        /// The piece; the first one may be empty.
        arguments: Box<str>,
    },
    /// A tool call is whole.
    ToolCall(Arc<ToolCall>),
    /// The model's message is over, whole or not.
    MessageEnd(Box<MessageEnd>),
    /// A call was judged.
    Decision {
        /// The call.
        call: Arc<ToolCall>,
        /// The judgement.
        decision: Decision,
    },
    /// Someone is asked about a call.
    Approval {
        /// The call.
        call: Arc<ToolCall>,
        /// What they are shown.
        confirmation: Box<Confirmation>,
        /// Why they are asked.
        reason: Arc<str>,
    },
    /// A tool starts.
    ToolStart(Arc<ToolCall>),
    /// A tool wrote something.
    ToolOutput {
        /// The call.
        call: Arc<ToolCall>,
        /// Where it wrote.
        channel: Channel,
        /// What it wrote, terminal escapes and all.
        text: Box<str>,
    },
    /// What people are shown of a tool's work changed while it runs.
    ToolDisplay {
        /// The call.
        call: Arc<ToolCall>,
        /// What they are shown now.
        display: Box<Display>,
    },
    /// A tool call is over.
    ToolEnd(Box<ToolEnd>),
    /// The graph's state after a node, merged. Only sent to readers that show it.
    State(Json),
    /// A snapshot was taken.
    Checkpoint(Box<Checkpoint>),
    /// A step of a tree or graph of thoughts.
    Thinking(Box<Thinking>),
    /// A model call inside a thought is over. What it wrote is the thought's and no message.
    ThoughtUsage(Box<ModelUsage>),
    /// What a run must remember to go on when its process dies. For the session log; no dialect shows it.
    Journal(Box<Journal>),
    /// A notice about the session.
    Session(Box<SessionEvent>),
    /// Something happened to a command in the background or to a sub-agent, in a turn or between two. Of the moment: the
    /// session log does not keep it.
    Task(Box<TaskEvent>),
    /// The model's server says how far we may go, and that is news. Of the moment too.
    RateLimit(Box<RateLimit>),
    /// The program logs something that the host may show.
    Console {
        /// How loud.
        level: ConsoleLevel,
        /// Which part of the program.
        scope: LogScope,
        /// The words.
        text: Box<str>,
    },
    /// Something happened to a hook. For readers that ask for it; the log does not keep it.
    Hook(Box<HookNotice>),
    /// The conversation changed other than by a turn's own messages. For the session log; no dialect shows it.
    History(Box<HistoryChange>),
    /// Anything else, as JSON.
    Custom(Json),
    /// Something went wrong and the turn, or the process, goes on: a bad line, a failed notice.
    Error(Box<ErrorInfo>),
    /// The turn is over. Exactly one a turn, and last.
    TurnEnd(Box<TurnEnd>),
    /// A command is over.
    CommandResult(Box<CommandResult>),
    /// Suggestions for what is being typed.
    HintResult(Box<HintResult>),
    /// We are alive.
    Heartbeat(Box<Heartbeat>),
    /// A cancel request was carried out, or there was nothing to cancel.
    CancelResult(Box<CancelResult>),
    /// We ask the host something.
    ControlRequest {
        /// The question's id.
        request_id: Arc<str>,
        /// The session.
        session_id: SessionId,
        /// The turn, within one.
        prompt_id: Option<PromptId>,
        /// The question.
        call: Box<ControlCall>,
    },
    /// We answer the host.
    ControlReply(Box<ControlReply>),
    /// A question of ours no longer matters.
    ControlCancel {
        /// The question's id.
        request_id: Arc<str>,
    },
    /// Nothing can go on: the process ends after this.
    Fatal(Box<ErrorInfo>),
}

/// A change of the conversation that no message of a turn stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryChange {
    /// Messages that the client brought along, or context for the next turn.
    Added(Vec<Message>),
    /// All that was said so far is replaced, by a summary or by nothing.
    Replaced(Vec<Message>),
}

/// A block of thinking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThoughtBlock {
    /// What was thought; empty where only the provider can read it.
    pub text: Arc<str>,
    /// The provider's proof of it.
    pub signature: Option<Arc<str>>,
}

/// The end of a model's message.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageEnd {
    /// Our id of it.
    pub message_id: Arc<str>,
    /// The model that wrote.
    pub model: Arc<str>,
    /// Its text, joined.
    pub text: Arc<str>,
    /// Its thinking, joined.
    pub thought: Arc<str>,
    /// The provider's proof of the thinking, where it is one block.
    pub signature: Option<Arc<str>>,
    /// The blocks of the thinking, where they are several: each has its own proof.
    pub thoughts: Vec<ThoughtBlock>,
    /// Its whole calls.
    pub calls: Vec<Arc<ToolCall>>,
    /// Why the model stopped.
    pub finish: Finish,
    /// Its tokens.
    pub usage: Usage,
    /// It was cut off by a cancel or a broken stream.
    pub aborted: bool,
}
