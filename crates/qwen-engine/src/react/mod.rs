//! ReAct: think, act by running the requested tools, observe their results, think again.

mod act;
mod argument_schema;
mod arguments;
mod call;
mod call_order;
mod context_window;
mod emit_message;
mod guarded_call;
mod host_tool;
mod loop_detection;
mod observe;
mod permit;
mod stop_hooks;
mod think;

use std::sync::Arc;

use qwen_events::{CallId, Denial, Finish, Json, Message, Part, Role, ToolCall, ToolResult};

use crate::context::TurnContext;
use crate::graph::{BuildError, END, Edge, Graph, GraphBuilder, State};
use crate::log::OpenCalls;
use crate::state_json;

pub(crate) use argument_schema::warnings as schema_warnings;
pub(crate) use arguments::parse_arguments;
pub use arguments::written_call;
pub use call::{CallOutcome, CallStart, Openness, run_call};
pub use call_order::{CallOrder, CallPlace};
pub use emit_message::emit_message;
pub(crate) use host_tool::with_host_tools;
pub(crate) use stop_hooks::{StopHooks, run_with_stop_hooks};
pub(crate) use think::stream_message;
pub use think::{announce_limit, silent_end};

/// The conversation and its pending work.
#[derive(Default)]
pub(crate) struct ReactState {
    pub messages: Arc<Vec<Message>>,
    /// Calls that wait for *act*.
    pub pending: Vec<Arc<ToolCall>>,
    /// Calls that were running when an earlier process died: they are not run again.
    pub interrupted: Vec<CallId>,
    /// Results that wait for *observe*.
    pub results: Vec<ToolResult>,
    /// What hooks added about these calls; it follows the results.
    pub hook_notes: Vec<String>,
    pub denials: Vec<Denial>,
    /// The last assistant message's text.
    pub reply: Arc<str>,
    pub finish: Option<Finish>,
    /// User messages that arrived after a hook postponed calls: they follow the results of these calls.
    pub afterwards: Vec<Message>,
    /// The length of the conversation when a summary last replaced older messages in this turn.
    pub compacted_at: Option<usize>,
}

/// State changes that nodes return.
pub(crate) enum Delta {
    /// *think*: a message, complete or cut off, and its calls.
    MessageAdded { message: Option<Message>, calls: Vec<Arc<ToolCall>>, reply: Arc<str>, finish: Finish },
    /// *act*: the results, in the order of the calls.
    CallsEnded {
        results: Vec<ToolResult>,
        denials: Vec<Denial>,
        /// Calls that still wait for an answer, or for an earlier call that does.
        open: Vec<Arc<ToolCall>>,
        /// What hooks add about the calls, for the model.
        hook_notes: Vec<String>,
    },
    /// *observe*: the results and additional context join the conversation.
    ResultsAdded(Vec<Message>),
    /// *think*: a summary replaced older messages before the model call.
    Compacted { messages: Arc<Vec<Message>>, then: Box<Delta> },
    /// No change.
    None,
}

impl ReactState {
    /// Adds results for the calls of the last message that a run left open when it ended early: models reject
    /// a conversation with open calls.
    pub fn close_open_calls(&mut self) {
        let Some(last) = self.messages.last().filter(|message| message.role == Role::Assistant) else {
            return;
        };
        let calls = last.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some(call.clone()),
            _ => None,
        });
        let mut open = OpenCalls::from_calls(&calls.collect::<Vec<_>>());
        let mut answer = None;
        for result in std::mem::take(&mut self.results) {
            answer = answer.or(open.answer(result));
        }
        Arc::make_mut(&mut self.messages).extend(answer.or_else(|| open.take_results()));
    }

    /// Sorts the results into the order of the calls in the last message.
    fn sort_results(&mut self) {
        let calls = self.messages.last().map_or(&[][..], |message| &message.parts);
        let place =
            |id: &CallId| calls.iter().position(|part| matches!(part, Part::Call(call) if call.id == *id));
        self.results.sort_by_key(|result| place(&result.call_id));
    }
}

impl State for ReactState {
    type Delta = Delta;

    fn apply(&mut self, delta: Delta) {
        match delta {
            Delta::MessageAdded { message, calls, reply, finish } => {
                Arc::make_mut(&mut self.messages).extend(message);
                self.pending = calls;
                self.reply = reply;
                self.finish = Some(finish);
            }
            Delta::CallsEnded { results, denials, open, mut hook_notes } => {
                self.hook_notes.append(&mut hook_notes);
                self.pending = open;
                self.interrupted.clear();
                if self.results.is_empty() {
                    self.results = results;
                } else {
                    // Some calls had ended before the turn was interrupted.
                    self.results.extend(results);
                    self.sort_results();
                }
                self.denials.extend(denials);
            }
            Delta::ResultsAdded(messages) => {
                self.results.clear();
                self.hook_notes.clear();
                let conversation = Arc::make_mut(&mut self.messages);
                conversation.extend(messages);
                conversation.append(&mut self.afterwards);
            }
            Delta::Compacted { messages, then } => {
                self.compacted_at = Some(messages.len());
                self.messages = messages;
                self.apply(*then);
            }
            Delta::None => {}
        }
    }

    fn to_json(&self) -> Json {
        state_json::react(self)
    }

    /// Every call needs a result in the conversation, or the next turn would be invalid.
    fn has_open_work(&self) -> bool {
        !self.pending.is_empty() || !self.results.is_empty()
    }
}

/// The node where a turn starts.
pub(crate) const START: &str = "think";
/// The node where a turn continues that was interrupted while tools ran.
pub(crate) const ACT: &str = "act";

pub(crate) const EDGES: [Edge; 4] =
    [("think", "act"), ("think", END), ("act", "observe"), ("observe", "think")];

pub(crate) fn graph(context: &Arc<TurnContext>) -> Result<Graph<ReactState>, BuildError> {
    GraphBuilder::default()
        .node(START, think::Think(context.clone()))
        .node(ACT, act::Act(context.clone()))
        .node("observe", observe::Observe(context.clone()))
        .edges(&EDGES)
        .build()
}
