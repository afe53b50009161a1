//! Input that a client sends to a worker.

use std::sync::Arc;

use crate::{CallId, ControlBody, ControlReply, Json, Message, Part, PromptId, ToolSpec, TraceContext};

/// One command from a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Text for the agent.
    Prompt(Box<Prompt>),
    /// Asks for completion suggestions.
    Hint(Box<HintRequest>),
    /// Withdraws a suggestion request.
    HintCancel {
        /// The session, as sent.
        session_id: Option<Arc<str>>,
        /// The request's prompt id.
        prompt_id: Option<PromptId>,
    },
    /// Asks the worker to prove that it is alive.
    Heartbeat {
        /// The session, as sent.
        session_id: Option<Arc<str>>,
        /// The interval of periodic heartbeats in milliseconds; 0 stops them.
        interval_ms: Option<u64>,
    },
    /// Stops a running turn or a queued prompt.
    Cancel {
        /// The session, as sent.
        session_id: Option<Arc<str>>,
        /// The turn or queued prompt to stop; none stops the running turn.
        prompt_id: Option<PromptId>,
        /// The client's reason, verbatim.
        reason: Arc<str>,
        /// The control request to answer as well, if the client expects an answer on the control channel.
        request_id: Option<Arc<str>>,
    },
    /// A request on the control channel.
    Control {
        /// The id that the answer repeats.
        request_id: Arc<str>,
        /// True for the nested form of `claude`; the answer uses the same form.
        nested: bool,
        body: Box<ControlBody>,
    },
    /// An answer on the control channel.
    Reply {
        reply: Box<ControlReply>,
        /// The session that the answer names.
        session_id: Option<Arc<str>>,
    },
    /// Withdraws a request on the control channel.
    ControlCancel { request_id: Arc<str> },
    /// A protocol version or capability that the client requires. Checked before the other commands on the
    /// same line.
    Requires {
        /// The protocol version, such as `1.0`.
        protocol_version: Option<Arc<str>>,
        /// Capabilities that the worker must have.
        capabilities: Vec<Arc<str>>,
    },
}

/// One prompt and its overrides.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// The session as sent: `_new`, an id, or nothing.
    pub session_id: Option<Arc<str>>,
    /// The turn's id; minted when absent.
    pub prompt_id: Option<PromptId>,
    /// The number of the line of input that held it, if one did.
    pub input: Option<u64>,
    /// The client's own id of the message.
    pub uuid: Option<Arc<str>>,
    /// The author of the message, as the client described it; echoed in the terminal record.
    pub message_origin: Option<Json>,
    pub origin: PromptOrigin,
    pub parts: Vec<Part>,
    /// A command that the client declared explicitly.
    pub command: Option<CommandCall>,
    /// Earlier messages, where the client sent a whole conversation.
    pub history: Vec<Message>,
    /// A system prompt that came with the conversation.
    pub system: Option<Arc<str>>,
    pub options: PromptOptions,
    /// The call that a tool response answers.
    pub tool_call_id: Option<CallId>,
    /// True when the prompt continues the turn with the same `prompt_id`.
    pub continuation: bool,
    /// When a prompt that arrives during a turn takes effect.
    pub delivery: Delivery,
    /// The client repeats a prompt without knowing its outcome: it joins the turn with the same `prompt_id`
    /// instead of starting another one.
    pub resend: bool,
    /// True when the text is literal: commands and file references in it are not expanded.
    pub verbatim: bool,
    /// The client's trace context, which becomes the parent of the turn's trace.
    pub trace: Option<TraceContext>,
}

/// The author of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PromptOrigin {
    /// The user, or a program acting for the user.
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
    /// In a separate turn, after the prompts queued before it.
    #[default]
    Queue,
    /// In the running turn, before its next model call. Without a running turn it is an ordinary prompt.
    Steer,
}

/// Overrides for one request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PromptOptions {
    pub model: Option<Arc<str>>,
    pub sampling: Sampling,
    /// The only tools that may be used; none allows all.
    pub tool_overrides: Option<Vec<Arc<str>>>,
    /// Tools that the host runs.
    pub host_tools: Vec<ToolSpec>,
    /// The schema of this turn's result.
    pub json_schema: Option<Json>,
}

/// Sampling parameters; the provider chooses the absent ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    /// The parameter `temperature` of the model.
    pub temperature: Option<f64>,
    /// The parameter `top_p` of the model.
    pub top_p: Option<f64>,
    /// The maximum length of the answer, in tokens.
    pub max_tokens: Option<u64>,
    /// The parameter `seed` of the model.
    pub seed: Option<i64>,
    /// Texts at which the model stops.
    pub stop: Vec<Arc<str>>,
    /// The reasoning effort: `low`, `medium`, `high`, …
    pub effort: Option<Arc<str>>,
    /// Whether the model thinks before it answers, and how much.
    pub reasoning: Option<Reasoning>,
    /// What readers see of the thinking.
    pub thoughts: Option<Thoughts>,
    /// The token budget per turn that is sent to the model, on wires that support it.
    pub task_budget: Option<u64>,
}

/// Whether a model thinks before it answers, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasoning {
    Off,
    /// The model decides how much it reasons.
    Adaptive,
    /// At most this many tokens.
    Budget(u64),
}

impl Reasoning {
    /// A budget of `tokens`; 0 turns thinking off.
    pub fn of_tokens(tokens: u64) -> Self {
        if tokens == 0 { Self::Off } else { Self::Budget(tokens) }
    }
}

/// What readers see of a model's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoughts {
    /// A summary if the provider makes one; otherwise the thinking itself.
    Summarized,
    Omitted,
}

impl Thoughts {
    /// Parses the setting's value.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "summarized" => Some(Self::Summarized),
            "omitted" => Some(Self::Omitted),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Summarized => "summarized",
            Self::Omitted => "omitted",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandKind {
    /// A command of the form `/name`.
    Slash,
    /// A reference of the form `@path`.
    At,
    /// The command `?`, which shows the help.
    Help,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandCall {
    pub kind: CommandKind,
    /// Its name and sub-names, such as `["chat", "list"]`.
    pub path: Vec<Arc<str>>,
    /// The rest of the input, as typed.
    pub args: Arc<str>,
}

/// The character that triggers suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintTrigger {
    /// The character `/`, for commands.
    Slash,
    /// The character `@`, for files.
    At,
}

/// A request for completion suggestions.
#[derive(Debug, Clone, PartialEq)]
pub struct HintRequest {
    /// The session, as sent.
    pub session_id: Option<Arc<str>>,
    /// The id of this request.
    pub prompt_id: Option<PromptId>,
    pub trigger: HintTrigger,
    /// The text typed so far.
    pub text: Arc<str>,
    /// The cursor position, in characters.
    pub cursor: Option<u64>,
    /// The directory that paths are relative to.
    pub cwd: Option<Arc<str>>,
}
