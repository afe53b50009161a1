//! Everything that comes in.

use std::sync::Arc;

use crate::{CallId, ControlBody, ControlReply, Json, Message, Part, PromptId, ToolSpec, TraceContext};

/// What a client says to a worker.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Something to say to the agent.
    Prompt(Box<Prompt>),
    /// What could be typed here?
    Hint(Box<HintRequest>),
    /// The suggestions asked for are no longer wanted.
    HintCancel {
        /// The session, as sent.
        session_id: Option<Arc<str>>,
        /// The request's prompt id.
        prompt_id: Option<PromptId>,
    },
    /// Are you there?
    Heartbeat {
        /// The session, as sent.
        session_id: Option<Arc<str>>,
        /// From now on send one by yourself every so many milliseconds; 0 stops that.
        interval_ms: Option<u64>,
    },
    /// Stop what you are doing.
    Cancel {
        /// The session, as sent.
        session_id: Option<Arc<str>>,
        /// The turn or queued prompt that is meant; none means whatever runs.
        prompt_id: Option<PromptId>,
        /// Why, in the client's word.
        reason: Arc<str>,
        /// Where an answer on the control channel is wanted too.
        request_id: Option<Arc<str>>,
    },
    /// A request on the control channel.
    Control {
        /// Its id, to be repeated in the answer.
        request_id: Arc<str>,
        /// Whether it came in the nested form of `claude`; the answer takes the same form.
        nested: bool,
        /// What is asked.
        body: Box<ControlBody>,
    },
    /// An answer on the control channel.
    Reply {
        /// The answer.
        reply: Box<ControlReply>,
        /// The session that it says it belongs to.
        session_id: Option<Arc<str>>,
    },
    /// A request on the control channel is withdrawn.
    ControlCancel {
        /// Its id.
        request_id: Arc<str>,
    },
    /// A version or a capability that the client relies on; checked before what came on the same line.
    Requires {
        /// The protocol version, such as `1.0`.
        protocol_version: Option<Arc<str>>,
        /// Capabilities that must be there.
        capabilities: Vec<Arc<str>>,
    },
}

/// Something said to the agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// The session as sent: `_new`, an id, or nothing.
    pub session_id: Option<Arc<str>>,
    /// The turn's name; minted when absent.
    pub prompt_id: Option<PromptId>,
    /// The client's own id of the message.
    pub uuid: Option<Arc<str>>,
    /// Who speaks.
    pub origin: PromptOrigin,
    /// What is said.
    pub parts: Vec<Part>,
    /// A command declared as such.
    pub command: Option<CommandCall>,
    /// Earlier messages, where the client sent a whole conversation.
    pub history: Vec<Message>,
    /// A system prompt that came with the conversation.
    pub system: Option<Arc<str>>,
    /// Overrides for this request.
    pub options: PromptOptions,
    /// The call that a tool response answers.
    pub tool_call_id: Option<CallId>,
    /// It continues the turn of the same `prompt_id`.
    pub continuation: bool,
    /// When a prompt that arrives during a turn takes effect.
    pub delivery: Delivery,
    /// The client sends the prompt again and does not know what became of it: it joins the turn of the same `prompt_id`
    /// instead of starting another one.
    pub resend: bool,
    /// It is taken as it is written: what looks like a command or a reference to a file is neither.
    pub verbatim: bool,
    /// The client's place in a trace, under which the turn belongs.
    pub trace: Option<TraceContext>,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromptOrigin {
    /// A person or the program that acts for one.
    #[default]
    User,
    /// A tool that the host ran.
    ToolResponse,
    /// The host, giving context for the next turn.
    System,
}

/// When a prompt that arrives during a turn takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// In a turn of its own, after those before it.
    #[default]
    Queue,
    /// In the running turn, before its next model call. Without a running turn it is an ordinary prompt.
    Steer,
}

/// Overrides for one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptOptions {
    /// Another model.
    pub model: Option<Arc<str>>,
    /// Sampling.
    pub sampling: Sampling,
    /// Only these tools may be used.
    pub tool_overrides: Option<Vec<Arc<str>>>,
    /// Tools that the host runs.
    pub host_tools: Vec<ToolSpec>,
    /// The schema of this turn's result.
    pub json_schema: Option<Json>,
}

/// How the model samples; what is absent is left to the provider.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    /// `temperature`
    pub temperature: Option<f64>,
    /// `top_p`
    pub top_p: Option<f64>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u64>,
    /// `seed`
    pub seed: Option<i64>,
    /// Texts at which the model stops.
    pub stop: Vec<Arc<str>>,
    /// How hard the model thinks: `low`, `medium`, `high`, …
    pub effort: Option<Arc<str>>,
    /// Whether the model thinks before it answers, and how much.
    pub reasoning: Option<Reasoning>,
    /// What is shown of that.
    pub thoughts: Option<Thoughts>,
    /// The tokens that the model is told a turn may cost, where its wire knows such a thing.
    pub task_budget: Option<u64>,
}

/// Whether a model thinks before it answers, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasoning {
    /// Not at all.
    Off,
    /// As much as it sees fit.
    Adaptive,
    /// As many tokens as this.
    Budget(u64),
}

impl Reasoning {
    /// As many tokens as this; none means not at all.
    pub fn of_tokens(tokens: u64) -> Self {
        if tokens == 0 { Self::Off } else { Self::Budget(tokens) }
    }
}

/// What is shown of a model's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    /// A summary, where the provider makes one; otherwise the thinking itself.
    Summarized,
    /// Nothing.
    Omitted,
}

impl Thoughts {
    /// Reads the word for it.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "summarized" => Some(Self::Summarized),
            "omitted" => Some(Self::Omitted),
            _ => None,
        }
    }

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Summarized => "summarized",
            Self::Omitted => "omitted",
        }
    }
}

/// What kind of command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// `/name`
    Slash,
    /// `@path`
    At,
    /// `?`
    Help,
}

/// A command and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCall {
    /// What kind.
    pub kind: CommandKind,
    /// Its name and sub-names, such as `["chat", "list"]`.
    pub path: Vec<Arc<str>>,
    /// The rest, as typed.
    pub args: Arc<str>,
}

/// What triggers suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintTrigger {
    /// `/`
    Slash,
    /// `@`
    At,
}

/// What could be typed here?
#[derive(Debug, Clone, PartialEq)]
pub struct HintRequest {
    /// The session, as sent.
    pub session_id: Option<Arc<str>>,
    /// The request's own prompt id.
    pub prompt_id: Option<PromptId>,
    /// What triggered it.
    pub trigger: HintTrigger,
    /// The text so far.
    pub text: Arc<str>,
    /// Where the cursor is, in characters.
    pub cursor: Option<u64>,
    /// The directory that paths are relative to.
    pub cwd: Option<Arc<str>>,
}
