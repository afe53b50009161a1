//! The export form: events as objects with a single key, without the envelope.

use std::borrow::Cow;

use qwen_events::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::custom::CustomValue;
use super::modes;
use super::project::{Projector, Sink};
use super::wire::{Body, Call, Checkpoint, NodeResult, loom_events};
use crate::dialect::{Encoder, StreamInfo, StreamMode};
use crate::flat::{ControlLine, ResultNote, push_flat};
use crate::line::push_line;
use crate::payload::Payload;

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "LoomExportLine")]
pub enum Line<'a> {
    /// An event of the run.
    Event(Exported<'a>),
    /// The reply: the last line of a turn.
    Reply {
        /// The whole answer; empty after a failure.
        reply: Cow<'a, str>,
    },
    /// The response to a request that is not a prompt.
    Note(ResultNote<'a>),
    /// A line of the control channel.
    Control(ControlLine<'a>),
}

loom_events!(
    /// An event under its key. `node_id` here is `id` in the protocol form.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    Exported
    node: node_id, start: TaskStart, end: TaskEnd,
    agent: " The name of the agent.", tool_end: " A tool call ended.",
    {
        /// A piece of the model's text.
        Messages {
            /// The piece.
            chunk: Chunk<'a>,
            /// The origin of the piece.
            metadata: ChunkMetadata<'a>,
        },
    } {
        /// The whole state as a bare object.
        Values(Payload<'a>),
        /// The merged state after a node.
        Updates {
            /// The node's name.
            node_id: Cow<'a, str>,
            /// The whole state of the graph.
            state: Payload<'a>,
        },
        /// Any other value as a bare object.
        Custom(CustomValue<'a>),
    } {
        /// Graph: a thought opened a nested graph.
        GotExpand {
            /// The thought.
            node_id: Cow<'a, str>,
            /// The number of thoughts added.
            nodes_added: u64,
            /// The number of edges added.
            edges_added: u64,
        },
    }
);

/// A piece of the model's text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Chunk<'a> {
    /// The text of this piece.
    pub content: Cow<'a, str>,
}

/// The origin of a piece.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkMetadata<'a> {
    /// The name of the node.
    pub loom_node: Cow<'a, str>,
}

/// Writes the `loom-export` dialect.
#[derive(Debug)]
pub struct ExportEncoder {
    projector: Projector,
    /// What is written; empty means all.
    modes: Vec<StreamMode>,
}

impl ExportEncoder {
    /// An encoder for the stream that `info` describes.
    pub fn new(info: &StreamInfo) -> Self {
        Self { projector: Projector::default(), modes: info.stream_modes.clone() }
    }
}

impl Encoder for ExportEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        if !push_flat(event, out) {
            self.projector.project(event, &mut Writer { modes: &self.modes, out });
        }
    }
}

struct Writer<'a> {
    modes: &'a [StreamMode],
    out: &'a mut Vec<u8>,
}

impl Sink for Writer<'_> {
    fn event(&mut self, node_id: Option<&str>, body: Body<'_>) {
        if modes::includes(self.modes, &body) {
            push_line(self.out, &exported(node_id, body));
        }
    }

    fn reply(&mut self, _: Option<&str>, reply: &str) {
        push_line(self.out, &Line::Reply { reply: reply.into() });
    }
}

fn exported<'a>(node_id: Option<&'a str>, body: Body<'a>) -> Exported<'a> {
    match body {
        Body::RunStart { run_id, message, agent } => Exported::RunStart { run_id, message, agent },
        Body::NodeEnter { id } => Exported::TaskStart { node_id: id },
        Body::NodeExit { id, result } => Exported::TaskEnd { node_id: id, result },
        Body::MessageChunk { content, id } => {
            Exported::Messages { chunk: Chunk { content }, metadata: ChunkMetadata { loom_node: id } }
        }
        Body::Usage { prompt_tokens, completion_tokens, total_tokens } => {
            Exported::Usage { prompt_tokens, completion_tokens, total_tokens }
        }
        Body::Values { state } => Exported::Values(state),
        Body::Updates { id, state } => Exported::Updates { node_id: id, state },
        Body::Custom { value } => Exported::Custom(value),
        Body::Checkpoint(checkpoint) => Exported::Checkpoint(checkpoint),
        Body::TotExpand { candidates } => Exported::TotExpand { candidates },
        Body::TotEvaluate { chosen, scores } => Exported::TotEvaluate { chosen, scores },
        Body::TotBacktrack { reason, to_depth } => Exported::TotBacktrack { reason, to_depth },
        Body::GotPlan { node_count, edge_count, node_ids } => {
            Exported::GotPlan { node_count, edge_count, node_ids }
        }
        Body::GotNodeStart { id } => Exported::GotNodeStart { node_id: id },
        Body::GotNodeComplete { id, result_summary } => {
            Exported::GotNodeComplete { node_id: id, result_summary }
        }
        Body::GotNodeFailed { id, error } => Exported::GotNodeFailed { node_id: id, error },
        Body::GotExpand { nodes_added, edges_added } => {
            Exported::GotExpand { node_id: node_id.unwrap_or_default().into(), nodes_added, edges_added }
        }
        Body::ToolCallChunk { call_id, name, arguments_delta } => {
            Exported::ToolCallChunk { call_id, name, arguments_delta }
        }
        Body::ToolCall(call) => Exported::ToolCall(call),
        Body::ToolStart { call_id, name } => Exported::ToolStart { call_id, name },
        Body::ToolOutput { call_id, name, content } => Exported::ToolOutput { call_id, name, content },
        Body::ToolEnd { call_id, name, result, is_error } => {
            Exported::ToolEnd { call_id, name, result, is_error }
        }
        Body::ToolApproval(call) => Exported::ToolApproval(call),
    }
}
