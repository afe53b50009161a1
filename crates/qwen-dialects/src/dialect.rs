//! Dialects, and the configuration of an encoder.

use std::sync::Arc;

use qwen_events::{Event, SessionId};

use crate::acp::AcpClient;

/// A wire. See the table in DESIGN: the terminal record of each differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Spec 1: `chat.completion` lines, `result/*`, `x-qwen-*`, flat control requests.
    Qwen,
    /// Spec 4 §4–5: `system`, `assistant`, `user`, `result`, `stream_event`, nested control requests.
    Claude,
    /// Spec 3: flat `message_start`, `content_block_delta`, `tool_call`, `message_stop`.
    ClaudeLite,
    /// Spec 2: `type` and payload with the envelope.
    Loom,
    /// Spec 2 §6: the single-key form.
    LoomExport,
    /// Spec 4 §1–3: `{"type","value"}`.
    Core,
    /// The Agent Client Protocol, version 1: JSON-RPC with `session/update`.
    Acp,
}

impl Dialect {
    /// Every dialect, in the order of the documentation.
    pub const ALL: [Self; 7] =
        [Self::Qwen, Self::Claude, Self::ClaudeLite, Self::Loom, Self::LoomExport, Self::Core, Self::Acp];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Qwen => "qwen",
            Self::Claude => "claude",
            Self::ClaudeLite => "claude-lite",
            Self::Loom => "loom",
            Self::LoomExport => "loom-export",
            Self::Core => "core",
            Self::Acp => "acp",
        }
    }

    /// Parses the name on the command line.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|d| d.name() == word)
    }
}

/// How much of a turn is written, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// `stream-json`: a line as soon as there is something whole to say.
    StreamJson,
    /// `stream-chunk-json`: in `qwen`, a line for every piece; elsewhere the same as `stream-json`.
    StreamChunkJson,
    /// `json`: one document at the end of the turn.
    Json,
}

impl Format {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::StreamJson => "stream-json",
            Self::StreamChunkJson => "stream-chunk-json",
            Self::Json => "json",
        }
    }
}

/// Which families of Loom events are written (`--stream-mode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamMode {
    /// The state after each node.
    Values,
    /// The change that each node made.
    Updates,
    /// `messages`: message, thought and usage events
    Messages,
    /// Everything that no other mode covers.
    Custom,
    /// The state at the end of a run.
    Checkpoints,
    /// `tasks`: run and node boundaries, ToT and GoT events
    Tasks,
    /// The tool calls and their output.
    Tools,
    /// `debug`: all of them
    Debug,
    /// The events of one type, by its name on the wire.
    Type(&'static str),
}

/// The types whose name is not a mode.
const TYPES: [&str; 19] = [
    "run_start",
    "node_enter",
    "node_exit",
    "message_chunk",
    "usage",
    "tot_expand",
    "tot_evaluate",
    "tot_backtrack",
    "got_plan",
    "got_node_start",
    "got_node_complete",
    "got_node_failed",
    "got_expand",
    "tool_call_chunk",
    "tool_call",
    "tool_start",
    "tool_output",
    "tool_end",
    "tool_approval",
];

impl StreamMode {
    /// Parses the value on the command line.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "values" => Self::Values,
            "updates" => Self::Updates,
            "messages" => Self::Messages,
            "custom" => Self::Custom,
            "checkpoints" | "checkpoint" => Self::Checkpoints,
            "tasks" => Self::Tasks,
            "tools" => Self::Tools,
            "debug" => Self::Debug,
            _ => return TYPES.into_iter().find(|name| *name == word).map(Self::Type),
        })
    }
}

/// The known limits of a model; 0 if unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelLimits {
    /// The context window in tokens.
    pub context_window: u64,
    /// The maximum length of one answer, in tokens.
    pub max_output_tokens: u64,
}

/// The configuration of an encoder.
#[derive(Debug, Clone)]
pub struct StreamInfo {
    pub dialect: Dialect,
    /// How much of a turn is written.
    pub format: Format,
    /// The name of the input format, for the handshake: `text`, `stream-json`, `stream-chunk-json`.
    pub input_format: &'static str,
    /// The session that the stream starts with.
    pub session_id: SessionId,
    /// The model that the stream starts with.
    pub model: Arc<str>,
    /// The version of this program, `x.y.z`.
    pub version: &'static str,
    /// `claude`: write `stream_event` lines too.
    pub partial_messages: bool,
    /// `claude`: write `session_state_changed` lines (the environment asked for them).
    pub session_state: bool,
    /// `claude`: the client is one of the Qwen Code SDKs (`--channel=SDK`), whose words differ in places.
    pub qwen_sdk: bool,
    /// `claude`: the client is of Claude's family; lines then have further fields that its CLI writes.
    pub claude_host: bool,
    /// `claude`, `acp`: repeat the user's messages on the stream.
    pub replay_user_messages: bool,
    /// `claude`, `acp`: the known limits of the model.
    pub model_limits: ModelLimits,
    /// `claude`: the plugins, by name and directory.
    pub plugins: Vec<(Arc<str>, Arc<str>)>,
    /// `claude`: the name of the output style.
    pub output_style: Arc<str>,
    /// `loom`: which families are written; empty means all.
    pub stream_modes: Vec<StreamMode>,
    /// `acp`: what the client can show.
    pub acp: AcpClient,
    /// Seeds the ids that an encoder mints, so that the same events give the same lines.
    pub seed: u64,
}

impl StreamInfo {
    /// The configuration for a stream without options, for a host that sends JSON lines.
    pub fn new(dialect: Dialect, format: Format, session_id: SessionId) -> Self {
        Self {
            dialect,
            format,
            input_format: "stream-json",
            session_id,
            model: Arc::default(),
            version: "",
            partial_messages: false,
            session_state: false,
            qwen_sdk: false,
            claude_host: false,
            replay_user_messages: false,
            model_limits: ModelLimits::default(),
            plugins: Vec::new(),
            output_style: "default".into(),
            stream_modes: Vec::new(),
            acp: AcpClient::default(),
            seed: 0,
        }
    }
}

/// Turns events into lines.
pub trait Encoder: Send {
    /// Appends the whole lines, each ending in `\n`, that `event` becomes. May append none.
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>);
}
