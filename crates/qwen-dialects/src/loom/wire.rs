//! The lines of the `loom` dialect.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::custom::CustomValue;
use crate::flat::{ControlLine, ResultNote};
use crate::payload::Payload;
use crate::qwen::wire::wire_struct;

/// One line of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "LoomLine")]
pub enum Line<'a> {
    /// An event of the run.
    Event(Frame<'a>),
    /// The reply: the last line of a turn.
    Reply(ReplyFrame<'a>),
    /// The response to a request that is not a prompt.
    Note(ResultNote<'a>),
    /// A line of the control channel.
    Control(ControlLine<'a>),
}

wire_struct! {
    /// An event and its envelope.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Frame<'a> {
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The node run; in `got_expand` the thought that opened a nested graph.
        pub node_id?: Cow<'a, str>,
        /// The number of the line in its stream, from 1 without gaps.
        pub event_id?: u64,
        /// The event inside the envelope.
        #[serde(flatten)]
        pub body: Body<'a>,
    }
}

wire_struct! {
    /// The reply and its envelope.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct ReplyFrame<'a> {
        /// The id of the session.
        pub session_id?: Cow<'a, str>,
        /// The id of the node run that wrote the reply.
        pub node_id?: Cow<'a, str>,
        /// The number of the line in its stream, from 1 without gaps.
        pub event_id?: u64,
        /// The whole answer; empty after a failure.
        pub reply: Cow<'a, str>,
    }
}

/// Defines an enum of Loom events. The protocol form and the export form write most events alike: these variants
/// stand here once, with the names that differ as parameters, and the others are given for the three places where
/// they belong.
macro_rules! loom_events {
    (
        $(#[$meta:meta])*
        $name:ident
        node: $node:ident, start: $start:ident, end: $end:ident, agent: $agent:literal, tool_end: $tool_end:literal,
        { $($pieces:tt)* } { $($states:tt)* } { $($expand:tt)* }
    ) => {
        $(#[$meta])*
        pub enum $name<'a> {
            /// A run starts.
            RunStart {
                /// The id of the run.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                run_id: Option<Cow<'a, str>>,
                /// The user's prompt.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                message: Option<Cow<'a, str>>,
                #[doc = $agent]
                #[serde(default, skip_serializing_if = "Option::is_none")]
                agent: Option<Cow<'a, str>>,
            },
            /// A node run starts.
            $start {
                /// The node's name.
                $node: Cow<'a, str>,
            },
            /// A node run ends.
            $end {
                /// The node's name.
                $node: Cow<'a, str>,
                /// The outcome.
                result: NodeResult<'a>,
            },
            $($pieces)*
            /// Tokens of a model call.
            Usage {
                /// The number of input tokens.
                prompt_tokens: u64,
                /// The number of output tokens.
                completion_tokens: u64,
                /// The sum of both.
                total_tokens: u64,
            },
            $($states)*
            /// A checkpoint was stored.
            Checkpoint(Checkpoint<'a>),
            /// Tree: candidates were proposed.
            TotExpand {
                /// The candidates.
                candidates: Vec<Cow<'a, str>>,
            },
            /// Tree: candidates were scored.
            TotEvaluate {
                /// The index of the best.
                chosen: u64,
                /// One score per candidate.
                scores: Vec<f64>,
            },
            /// Tree: a branch was abandoned.
            TotBacktrack {
                /// The reason for the end.
                reason: Cow<'a, str>,
                /// The depth at which the search continues.
                to_depth: u64,
            },
            /// Graph: the plan.
            GotPlan {
                /// The number of thoughts.
                node_count: u64,
                /// The number of edges.
                edge_count: u64,
                /// The thoughts.
                node_ids: Vec<Cow<'a, str>>,
            },
            /// Graph: a thought starts.
            GotNodeStart {
                /// The thought.
                $node: Cow<'a, str>,
            },
            /// Graph: a thought completed.
            GotNodeComplete {
                /// The thought.
                $node: Cow<'a, str>,
                /// A one-line summary of the result.
                result_summary: Cow<'a, str>,
            },
            /// Graph: a thought failed.
            GotNodeFailed {
                /// The thought.
                $node: Cow<'a, str>,
                /// The error, if the request failed.
                error: Cow<'a, str>,
            },
            $($expand)*
            /// A piece of a call's arguments.
            ToolCallChunk {
                /// The id of the tool call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The name of the tool.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                name: Option<Cow<'a, str>>,
                /// The next piece of the arguments as JSON text.
                arguments_delta: Cow<'a, str>,
            },
            /// A call is complete.
            ToolCall(Call<'a>),
            /// A tool starts.
            ToolStart {
                /// The id of the tool call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The name of the tool.
                name: Cow<'a, str>,
            },
            /// Output of a running tool.
            ToolOutput {
                /// The id of the tool call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The name of the tool.
                name: Cow<'a, str>,
                /// The output.
                content: Cow<'a, str>,
            },
            #[doc = $tool_end]
            ToolEnd {
                /// The id of the tool call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The name of the tool.
                name: Cow<'a, str>,
                /// The result text that the model receives.
                result: Cow<'a, str>,
                /// True if the call failed, was refused or was cancelled.
                is_error: bool,
            },
            /// A permission request for a call.
            ToolApproval(Call<'a>),
        }
    };
}
pub(super) use loom_events;

loom_events!(
    /// An event.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case")]
    Body
    node: id, start: NodeEnter, end: NodeExit,
    agent: " The agent: `react`, `tot`, `got`.", tool_end: " A tool call ended; a refused call has this line only.",
    {
        /// A piece of the model's text.
        MessageChunk {
            /// The text of this piece.
            content: Cow<'a, str>,
            /// The node's name.
            id: Cow<'a, str>,
        },
    } {
        /// The whole state.
        Values {
            /// The whole state of the graph.
            state: Payload<'a>,
        },
        /// The merged state after a node.
        Updates {
            /// The node's name.
            id: Cow<'a, str>,
            /// The whole state of the graph.
            state: Payload<'a>,
        },
        /// Any other event.
        Custom {
            /// The payload of the event.
            value: CustomValue<'a>,
        },
    } {
        /// Graph: a thought opened a nested graph. `node_id` is the thought and replaces the envelope's `node_id`.
        GotExpand {
            /// The number of thoughts added.
            nodes_added: u64,
            /// The number of edges added.
            edges_added: u64,
        },
    }
);

/// The outcome of a node run: `"Ok"` or `{"Err": "reason"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum NodeResult<'a> {
    /// The node run succeeded.
    Ok,
    /// The node run failed.
    Err(Cow<'a, str>),
}

/// A checkpoint of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint<'a> {
    /// The id of the checkpoint.
    pub checkpoint_id: Cow<'a, str>,
    /// The time of the checkpoint (RFC 3339).
    pub timestamp: Cow<'a, str>,
    /// The number of completed steps.
    pub step: u64,
    /// The whole state of the graph.
    pub state: Payload<'a>,
    /// The thread, which is the id of the session.
    pub thread_id: Cow<'a, str>,
    /// The namespace of the graph; empty for the outermost graph.
    pub checkpoint_ns: Cow<'a, str>,
}

/// A call with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call<'a> {
    /// The id of the tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Cow<'a, str>>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub arguments: Payload<'a>,
}
