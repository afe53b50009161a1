//! The lines of the `loom` dialect.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::custom::CustomValue;
use crate::flat::{ControlLine, ResultNote};
use crate::payload::Payload;
use crate::qwen::wire::wire_struct;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "LoomLine")]
pub enum Line<'a> {
    /// An event.
    Event(Frame<'a>),
    /// The reply: the last line of a turn.
    Reply(ReplyFrame<'a>),
    /// An answer to a request that is not a prompt.
    Note(ResultNote<'a>),
    /// A line of the control channel.
    Control(ControlLine<'a>),
}

wire_struct! {
    /// An event and its envelope.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct Frame<'a> {
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The node run; in `got_expand` the thought that opened a nested graph.
        pub node_id?: Cow<'a, str>,
        /// The line's number in its stream.
        pub event_id?: u64,
        /// The event.
        #[serde(flatten)]
        pub body: Body<'a>,
    }
}

wire_struct! {
    /// The reply and its envelope.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct ReplyFrame<'a> {
        /// The session.
        pub session_id?: Cow<'a, str>,
        /// The node run that wrote the reply.
        pub node_id?: Cow<'a, str>,
        /// The line's number in its stream.
        pub event_id?: u64,
        /// The whole answer; empty after failure.
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
                /// The run.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                run_id: Option<Cow<'a, str>>,
                /// The user's words.
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
                /// How it went.
                result: NodeResult<'a>,
            },
            $($pieces)*
            /// Tokens of a model call.
            Usage {
                /// Tokens read.
                prompt_tokens: u64,
                /// Tokens written.
                completion_tokens: u64,
                /// Both together.
                total_tokens: u64,
            },
            $($states)*
            /// A snapshot was taken.
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
                /// A score for each.
                scores: Vec<f64>,
            },
            /// Tree: a branch was given up.
            TotBacktrack {
                /// Why.
                reason: Cow<'a, str>,
                /// The depth at which the search goes on.
                to_depth: u64,
            },
            /// Graph: the plan.
            GotPlan {
                /// How many thoughts it has.
                node_count: u64,
                /// How many edges it has.
                edge_count: u64,
                /// The thoughts.
                node_ids: Vec<Cow<'a, str>>,
            },
            /// Graph: a thought starts.
            GotNodeStart {
                /// The thought.
                $node: Cow<'a, str>,
            },
            /// Graph: a thought is done.
            GotNodeComplete {
                /// The thought.
                $node: Cow<'a, str>,
                /// Its result in a line.
                result_summary: Cow<'a, str>,
            },
            /// Graph: a thought failed.
            GotNodeFailed {
                /// The thought.
                $node: Cow<'a, str>,
                /// Why.
                error: Cow<'a, str>,
            },
            $($expand)*
            /// The model wrote a piece of a call's arguments.
            ToolCallChunk {
                /// The call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The tool.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                name: Option<Cow<'a, str>>,
                /// The piece.
                arguments_delta: Cow<'a, str>,
            },
            /// A call is whole.
            ToolCall(Call<'a>),
            /// A tool starts.
            ToolStart {
                /// The call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The tool.
                name: Cow<'a, str>,
            },
            /// A tool wrote something.
            ToolOutput {
                /// The call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The tool.
                name: Cow<'a, str>,
                /// What it wrote.
                content: Cow<'a, str>,
            },
            #[doc = $tool_end]
            ToolEnd {
                /// The call.
                #[serde(default, skip_serializing_if = "Option::is_none")]
                call_id: Option<Cow<'a, str>>,
                /// The tool.
                name: Cow<'a, str>,
                /// What went back to the model.
                result: Cow<'a, str>,
                /// Whether it failed, was refused or was cancelled.
                is_error: bool,
            },
            /// Someone is asked about a call.
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
    agent: " The agent: `react`, `tot`, `got`.", tool_end: " A call is over; one that was refused has this alone.",
    {
        /// The model wrote a piece.
        MessageChunk {
            /// The piece.
            content: Cow<'a, str>,
            /// The node's name.
            id: Cow<'a, str>,
        },
    } {
        /// The whole state.
        Values {
            /// The state.
            state: Payload<'a>,
        },
        /// The state after a node, merged.
        Updates {
            /// The node's name.
            id: Cow<'a, str>,
            /// The state.
            state: Payload<'a>,
        },
        /// Anything else.
        Custom {
            /// What.
            value: CustomValue<'a>,
        },
    } {
        /// Graph: a thought opened a nested graph. The thought itself is `node_id`, in the place of the envelope's.
        GotExpand {
            /// How many thoughts were added.
            nodes_added: u64,
            /// How many edges were added.
            edges_added: u64,
        },
    }
);

/// How a node run went: `"Ok"` or `{"Err": "why"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub enum NodeResult<'a> {
    /// It went well.
    Ok,
    /// It failed.
    Err(Cow<'a, str>),
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint<'a> {
    /// Its id.
    pub checkpoint_id: Cow<'a, str>,
    /// When it was taken, in RFC 3339.
    pub timestamp: Cow<'a, str>,
    /// How many steps were complete.
    pub step: u64,
    /// The state.
    pub state: Payload<'a>,
    /// The thread, which is the session.
    pub thread_id: Cow<'a, str>,
    /// The graph's name space, empty for the outermost.
    pub checkpoint_ns: Cow<'a, str>,
}

/// A call with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call<'a> {
    /// The call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Cow<'a, str>>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    pub arguments: Payload<'a>,
}
