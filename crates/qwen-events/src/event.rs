//! Output of a worker.

use std::sync::Arc;

use crate::{
    CallId, CancelResult, Channel, Checkpoint, CommandResult, Confirmation, ConsoleLevel, ControlCall,
    ControlReply, Decision, Display, ErrorInfo, Finish, Heartbeat, HintResult, HookNotice, Journal, Json,
    LogScope, Message, ModelUsage, NodeRun, PromptId, RateLimit, SessionEvent, SessionId, TaskEvent,
    Thinking, ToolCall, ToolEnd, TurnEnd, TurnStart, Usage,
};

/// A point in time, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// Whole seconds since the Unix epoch.
    pub fn seconds(self) -> u64 {
        self.0 / 1000
    }
}

/// The source of an event: the node run, inside a sub-agent the call that started it, and inside a thought
/// the thought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// The node run; none before the first and outside a run.
    pub node: Option<Arc<NodeRun>>,
    /// The tool call whose sub-agent this is; none in the main agent.
    pub parent: Option<CallId>,
    /// The thought (of a tree or graph of thoughts) that calls tools. Such messages and results belong to
    /// the thought: readers show them, but they are not part of the conversation.
    pub thought: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub at: Timestamp,
    pub scope: Scope,
    pub body: Body,
}

/// The payload of an event. The order within a turn: `TurnStart`; node runs, each from `NodeEnter` to
/// `NodeExit` and then `State`; in *think* a message from `MessageStart` to `MessageEnd`; in *act* for each
/// call `Decision`, an optional `Approval`, then `ToolStart`, `ToolOutput`* and `ToolEnd` (a refused call
/// has only its end); last `TurnEnd`.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// The worker accepts input. Written once, before anything else, in structured mode.
    Ready,
    /// The start of a turn.
    TurnStart(Box<TurnStart>),
    /// A node run starts; the scope names it.
    NodeEnter,
    /// A node run ends.
    NodeExit {
        /// The error that ended it, if any.
        error: Option<Arc<str>>,
    },
    /// The model starts a message.
    MessageStart {
        /// The id that this program assigned to the message.
        message_id: Arc<str>,
        /// The model that writes it.
        model: Arc<str>,
    },
    /// The model wrote a piece of text.
    TextDelta(Box<str>),
    /// The model wrote a piece of thinking.
    ThoughtDelta(Box<str>),
    /// The provider signed the thought so far, which is now complete.
    ThoughtSignature(Arc<str>),
    /// The model wrote a piece of a tool call's arguments.
    ToolCallDelta {
        /// The call's index in its message, from 0.
        index: u32,
        call_id: CallId,
        name: Arc<str>,
        /// The piece; the first one may be empty.
        arguments: Box<str>,
    },
    /// A tool call is complete.
    ToolCall(Arc<ToolCall>),
    /// The model's message ended, complete or not.
    MessageEnd(Box<MessageEnd>),
    /// The permission rules decided about a call.
    Decision { call: Arc<ToolCall>, decision: Decision },
    /// The user or the host is asked to approve a call.
    Approval {
        call: Arc<ToolCall>,
        /// What they are shown.
        confirmation: Box<Confirmation>,
        /// The reason for the request.
        reason: Arc<str>,
    },
    /// The start of a tool.
    ToolStart(Arc<ToolCall>),
    /// A tool wrote something.
    ToolOutput {
        call: Arc<ToolCall>,
        channel: Channel,
        /// The output, including terminal escapes.
        text: Box<str>,
    },
    /// A running tool changed what it displays to the user.
    ToolDisplay { call: Arc<ToolCall>, display: Box<Display> },
    /// A tool call ended.
    ToolEnd(Box<ToolEnd>),
    /// The graph's merged state after a node. Only sent to readers that show it.
    State(Json),
    /// A point that a session can return to was stored.
    Checkpoint(Box<Checkpoint>),
    /// A step of a tree or graph of thoughts.
    Thinking(Box<Thinking>),
    /// A model call inside a thought ended. Its output belongs to the thought and is not a message.
    ThoughtUsage(Box<ModelUsage>),
    /// What a run needs to resume after its process dies. For the session log; no dialect shows it.
    Journal(Box<Journal>),
    /// A notice about the session.
    Session(Box<SessionEvent>),
    /// A background command or a sub-agent changed state, in a turn or between two. Transient: the session
    /// log does not store it.
    Task(Box<TaskEvent>),
    /// The model's server reported a change of its rate limits. Transient, too.
    RateLimit(Box<RateLimit>),
    /// A stored session continues; what its turns spent in earlier processes. Transient, too.
    Resumed(Box<[ModelUsage]>),
    /// A log record that the host may show.
    Console {
        level: ConsoleLevel,
        /// The part of the program that logs.
        scope: LogScope,
        text: Box<str>,
    },
    /// A hook changed state. For readers that ask for it; the session log does not store it.
    Hook(Box<HookNotice>),
    /// The conversation changed other than by a turn's messages. For the session log; no dialect shows it.
    History(Box<HistoryChange>),
    /// Anything else, as JSON.
    Custom(Json),
    /// An error after which the turn, or the process, continues: a bad line, a failed notice.
    Error(Box<ErrorInfo>),
    /// The turn ended. Exactly one per turn, and its last event.
    TurnEnd(Box<TurnEnd>),
    /// The end of a slash command.
    CommandResult(Box<CommandResult>),
    /// Completion suggestions for the current input.
    HintResult(Box<HintResult>),
    /// The worker is alive.
    Heartbeat(Box<Heartbeat>),
    /// A cancel request was carried out, or there was nothing to cancel.
    CancelResult(Box<CancelResult>),
    /// The worker sends the host a control request.
    ControlRequest {
        request_id: Arc<str>,
        session_id: SessionId,
        /// The turn, if the request belongs to one.
        prompt_id: Option<PromptId>,
        call: Box<ControlCall>,
    },
    /// The worker answers a control request of the host.
    ControlReply(Box<ControlReply>),
    /// The worker withdraws a control request.
    ControlCancel { request_id: Arc<str> },
    /// An unrecoverable error: the process ends after it.
    Fatal(Box<ErrorInfo>),
}

/// A change of the conversation other than by a turn's messages.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryChange {
    /// Messages that the client sent, or context for the next turn.
    Added(Vec<Message>),
    /// The whole conversation is replaced, by a summary or by nothing.
    Replaced(Vec<Message>),
    /// What the model knows about its situation from here on, one `topic: text` per line.
    Situation(Arc<str>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThoughtBlock {
    /// The thinking; empty if only the provider can read it.
    pub text: Arc<str>,
    /// The provider's signature of the text.
    pub signature: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MessageEnd {
    /// The id that this program assigned to the message.
    pub message_id: Arc<str>,
    /// The model that wrote it.
    pub model: Arc<str>,
    /// The text of the message, all pieces joined.
    pub text: Arc<str>,
    /// The thinking of the message, all pieces joined.
    pub thought: Arc<str>,
    /// The provider's signature, if the thinking is one block.
    pub signature: Option<Arc<str>>,
    /// The blocks of the thinking, if there are several: each has its own signature.
    pub thoughts: Vec<ThoughtBlock>,
    /// The tool calls, with complete arguments.
    pub calls: Vec<Arc<ToolCall>>,
    /// Why the model stopped.
    pub finish: Finish,
    pub usage: Usage,
    /// True if a cancel or a broken stream cut the message off.
    pub aborted: bool,
}

impl MessageEnd {
    /// A complete message that is text only.
    pub fn text(message_id: Arc<str>, model: Arc<str>, text: Arc<str>) -> Self {
        Self {
            message_id,
            model,
            text,
            thought: Arc::default(),
            signature: None,
            thoughts: Vec::new(),
            calls: Vec::new(),
            finish: Finish::Stop,
            usage: Usage::default(),
            aborted: false,
        }
    }
}
