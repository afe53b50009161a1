//! Converts events to Loom events, for both forms, `loom` and `loom-export`.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    CallId, Checkpoint, CommandResult, CommandResultBody, EndStatus, Event, MessageEnd, NodeRun, Thinking,
    ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, Usage, call_progress, channel_events, outside_turns,
    session_notices,
};

use super::custom::{Custom, command, console, session_event, thought};
use super::timestamp::rfc3339;
use super::wire::{self, Body, Call, Frame, NodeResult};
use crate::error_object::ErrorObject;
use crate::payload::Payload;

/// Receives Loom events, in order.
pub(super) trait Sink {
    /// An event of the node run `node_id`.
    fn event(&mut self, node_id: Option<&str>, body: Body<'_>);

    /// A piece of the model's text, the most frequent event of a stream.
    fn chunk(&mut self, node: Option<&Arc<NodeRun>>, content: &str) {
        let id = node_name(node).into();
        self.event(node_id(node), Body::MessageChunk { content: content.into(), id });
    }

    fn reply(&mut self, node_id: Option<&str>, reply: &str);
}

/// Converts a stream of events and passes the results to a [`Sink`].
#[derive(Debug, Default)]
pub(super) struct Projector {
    main: Speaker,
    sub_agents: Vec<(CallId, Speaker)>,
    /// The main agent's node run, with which a sub-agent's events are stamped.
    node: Option<Arc<NodeRun>>,
    /// The current node run.
    open: Option<Arc<NodeRun>>,
    /// The node run that wrote text last.
    writer: Option<Arc<NodeRun>>,
    in_turn: bool,
}

/// The state of the message that an agent writes.
#[derive(Debug, Default)]
struct Speaker {
    thought: String,
    wrote_text: bool,
    calls: Vec<CallId>,
}

impl Projector {
    pub(super) fn project(&mut self, event: &Event, sink: &mut impl Sink) {
        use qwen_events::Body as In;

        if let Some(parent) = &event.scope.parent {
            return self.project_sub_agent(parent, event, sink);
        }
        let attributed = self.attribute_to_open_node(event);
        let event = attributed.as_ref().unwrap_or(event);
        let node = event.scope.node.as_ref();
        if let Some(node) = node {
            remember(&mut self.node, node);
        }
        match &event.body {
            In::TextDelta(_) => {
                if let Some(node) = node {
                    remember(&mut self.writer, node);
                }
                self.main.project(event, sink);
            }
            In::TurnStart(start) => self.turn_start(start, node, sink),
            In::TurnEnd(end) => self.turn_end(end, sink),
            In::NodeEnter => {
                self.open = node.cloned();
                self.main.project(event, sink);
            }
            In::NodeExit { .. } => {
                self.open = None;
                self.main.project(event, sink);
            }
            In::CommandResult(result) => self.command_result(result, sink),
            // A run that cannot even begin still ends: a reader waits for the reply.
            In::Fatal(error) => {
                sink.event(node_id(node), custom(Custom::Error(error.as_ref().into())));
                sink.event(node_id(node), custom(Custom::RunEnd { status: EndStatus::Error.name().into() }));
                self.reply("", sink);
            }
            In::ToolEnd(end) => {
                self.sub_agents.retain(|(parent, _)| *parent != end.call.id);
                self.main.project(event, sink);
            }
            In::Ready
            | In::MessageStart { .. }
            | In::ThoughtDelta(..)
            | In::ThoughtSignature(..)
            | In::ToolCallDelta { .. }
            | In::ToolCall(..)
            | In::MessageEnd(..)
            | call_progress!()
            | In::ToolStart(..)
            | In::State(..)
            | In::Checkpoint(..)
            | In::Thinking(..)
            | In::ThoughtUsage(..)
            | In::Journal(..)
            | session_notices!()
            | In::Error(..)
            | channel_events!() => self.main.project(event, sink),
        }
    }

    /// Returns a copy of an event without a node inside the open node run: all lines between the entry and the
    /// exit of a node share its id, including those about concurrent events such as a bad line of input.
    fn attribute_to_open_node(&self, event: &Event) -> Option<Event> {
        let open = self.open.as_ref().filter(|_| event.scope.node.is_none())?;
        let mut event = event.clone();
        event.scope.node = Some(open.clone());
        Some(event)
    }

    fn turn_start(&mut self, start: &TurnStart, node: Option<&Arc<NodeRun>>, sink: &mut impl Sink) {
        self.in_turn = true;
        self.node = None;
        self.writer = None;
        self.sub_agents.clear();
        let body = Body::RunStart {
            run_id: Some(start.run_id.as_ref().into()),
            message: Some(start.message.as_ref().into()),
            agent: Some(start.agent.name().into()),
        };
        sink.event(node_id(node), body);
    }

    /// A sub-agent's events are wrapped inside the main agent's, so that no reader confuses the two.
    fn project_sub_agent(&mut self, parent: &CallId, event: &Event, sink: &mut impl Sink) {
        let known = self.sub_agents.iter().position(|(id, _)| id == parent);
        let at = known.unwrap_or_else(|| {
            self.sub_agents.push((parent.clone(), Speaker::default()));
            self.sub_agents.len() - 1
        });
        let outer = node_id(self.node.as_ref());
        self.sub_agents[at].1.project(event, &mut SubagentSink { sink, outer, parent: parent.as_str() });
    }

    fn turn_end(&mut self, end: &TurnEnd, sink: &mut impl Sink) {
        let node = node_id(self.node.as_ref());
        if let Some(error) = &end.error {
            sink.event(node, custom(Custom::Error(ErrorObject::from(error))));
        }
        if end.status != EndStatus::Done {
            sink.event(node, custom(Custom::RunEnd { status: end.status.name().into() }));
        }
        // At a limit the reply is the best answer so far.
        let answered = end.status == EndStatus::Done || end.status.is_limit();
        self.reply(if answered { &end.reply } else { "" }, sink);
    }

    fn command_result(&mut self, result: &CommandResult, sink: &mut impl Sink) {
        sink.event(node_id(self.node.as_ref()), custom(command(result)));
        if self.in_turn {
            return;
        }
        match &result.body {
            CommandResultBody::Message { content, .. } => self.reply(content, sink),
            CommandResultBody::Dialog { .. } | CommandResultBody::Tool { .. } => self.reply("", sink),
            // Its turn follows, with its own reply.
            CommandResultBody::SubmitPrompt { .. } => {}
        }
    }

    fn reply(&mut self, reply: &str, sink: &mut impl Sink) {
        // A reply belongs to the node run that wrote it; an empty one has no writer.
        let writer = self.writer.as_ref().filter(|_| !reply.is_empty());
        sink.reply(node_id(writer.or(self.node.as_ref())), reply);
        self.in_turn = false;
        self.node = None;
        self.open = None;
        self.writer = None;
        self.main = Speaker::default();
    }
}

impl Speaker {
    fn project(&mut self, event: &Event, sink: &mut impl Sink) {
        use qwen_events::Body as In;

        let node = event.scope.node.as_ref();
        let at = node_id(node);
        match &event.body {
            In::TextDelta(piece) => {
                self.finish_thought(at, sink);
                self.wrote_text = true;
                sink.chunk(node, piece);
            }
            In::ThoughtDelta(piece) => self.thought.push_str(piece),
            In::ToolCallDelta { call_id, name, arguments, .. } => {
                self.finish_thought(at, sink);
                let body = Body::ToolCallChunk {
                    call_id: Some(call_id.as_str().into()),
                    name: Some(name.as_ref().into()),
                    arguments_delta: arguments.as_ref().into(),
                };
                sink.event(at, body);
            }
            In::ToolCall(whole) => {
                self.finish_thought(at, sink);
                self.calls.push(whole.id.clone());
                sink.event(at, Body::ToolCall(call(whole)));
            }
            In::MessageStart { .. } => *self = Self::default(),
            In::MessageEnd(end) => self.message_end(end, node, sink),
            In::NodeEnter => sink.event(at, Body::NodeEnter { id: node_name(node).into() }),
            In::NodeExit { error } => {
                let result = match error {
                    None => NodeResult::Ok,
                    Some(error) => NodeResult::Err(error.as_ref().into()),
                };
                sink.event(at, Body::NodeExit { id: node_name(node).into(), result });
            }
            In::State(state) => {
                let state = Payload::new(state);
                sink.event(at, Body::Values { state: state.clone() });
                sink.event(at, Body::Updates { id: node_name(node).into(), state });
            }
            In::Approval { call: asked, .. } => sink.event(at, Body::ToolApproval(call(asked))),
            In::ToolStart(call) => sink.event(at, tool_start(call)),
            In::ToolOutput { call, text, .. } => sink.event(at, tool_output(call, text)),
            In::ToolEnd(end) => sink.event(at, tool_end(end)),
            In::Checkpoint(taken) => sink.event(at, Body::Checkpoint(checkpoint(taken))),
            In::Thinking(step) => {
                let (thinker, body) = thinking(step);
                sink.event(thinker.or(at), body);
            }
            In::ThoughtUsage(spent) => sink.event(at, usage(&spent.usage)),
            In::Session(notice) => sink.event(at, custom(session_event(notice))),
            In::Console { level, scope, text } => sink.event(at, custom(console(*level, *scope, text))),
            In::Custom(value) => {
                sink.event(
                    at,
                    Body::Custom { value: super::custom::CustomValue::Other(Payload::new(value)) },
                );
            }
            In::Error(error) => sink.event(at, custom(Custom::Error(error.as_ref().into()))),
            // The control channel and similar events have separate lines; the rest is for people.
            In::Ready
            | In::TurnStart(..)
            | In::ThoughtSignature(..)
            | In::Decision { .. }
            | In::ToolDisplay { .. }
            | In::Journal(..)
            | In::Task(..)
            | In::RateLimit(..)
            | In::Resumed(..)
            | In::Hook(..)
            | In::History(..)
            | In::TurnEnd(..)
            | outside_turns!()
            | In::Fatal(..) => {}
        }
    }

    fn message_end(&mut self, end: &MessageEnd, node: Option<&Arc<NodeRun>>, sink: &mut impl Sink) {
        let at = node_id(node);
        self.finish_thought(at, sink);
        // A message that was not streamed has its content only here.
        if !self.wrote_text && !end.text.is_empty() {
            sink.chunk(node, &end.text);
        }
        for whole in &end.calls {
            if !self.calls.contains(&whole.id) {
                sink.event(at, Body::ToolCall(call(whole)));
            }
        }
        if !end.aborted || end.usage.total() > 0 {
            sink.event(at, usage(&end.usage));
        }
        *self = Self::default();
    }

    fn finish_thought(&mut self, node_id: Option<&str>, sink: &mut impl Sink) {
        if self.thought.is_empty() {
            return;
        }
        if let Some(thought) = thought(&self.thought) {
            sink.event(node_id, custom(thought));
        }
        self.thought.clear();
    }
}

/// Wraps a sub-agent's events for the main agent's stream.
struct SubagentSink<'a, S> {
    sink: &'a mut S,
    /// The main agent's node run.
    outer: Option<&'a str>,
    /// The call of the sub-agent.
    parent: &'a str,
}

impl<S: Sink> Sink for SubagentSink<'_, S> {
    fn event(&mut self, node_id: Option<&str>, body: Body<'_>) {
        let node_id = node_id.map(Cow::Borrowed);
        let event = Payload::from_value(&Frame { session_id: None, node_id, event_id: None, body });
        self.sink.event(self.outer, custom(Custom::Subagent { parent: self.parent.into(), event }));
    }

    fn reply(&mut self, _: Option<&str>, _: &str) {
        // A sub-agent's answer is its tool's result, never a reply.
    }
}

/// Stores `node` unless it is already stored.
fn remember(slot: &mut Option<Arc<NodeRun>>, node: &Arc<NodeRun>) {
    if !slot.as_ref().is_some_and(|known| Arc::ptr_eq(known, node)) {
        *slot = Some(node.clone());
    }
}

/// The node run's id.
pub(super) fn node_id(node: Option<&Arc<NodeRun>>) -> Option<&str> {
    node.map(|node| node.id.as_ref())
}

/// The node's name. An event that needs one and is outside all nodes is attributed to the model's node.
pub(super) fn node_name(node: Option<&Arc<NodeRun>>) -> &str {
    node.map_or("think", |node| node.name.as_ref())
}

fn custom(value: Custom<'_>) -> Body<'_> {
    Body::Custom { value: value.into() }
}

fn usage(usage: &Usage) -> Body<'static> {
    Body::Usage {
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        total_tokens: usage.total(),
    }
}

fn call(call: &ToolCall) -> Call<'_> {
    Call {
        call_id: Some(call.id.as_str().into()),
        name: call.name.as_ref().into(),
        arguments: Payload::new(&call.arguments),
    }
}

fn tool_start(call: &ToolCall) -> Body<'_> {
    Body::ToolStart { call_id: Some(call.id.as_str().into()), name: call.name.as_ref().into() }
}

fn tool_output<'a>(call: &'a ToolCall, text: &'a str) -> Body<'a> {
    Body::ToolOutput {
        call_id: Some(call.id.as_str().into()),
        name: call.name.as_ref().into(),
        content: text.into(),
    }
}

fn tool_end(end: &ToolEnd) -> Body<'_> {
    Body::ToolEnd {
        call_id: Some(end.call.id.as_str().into()),
        name: end.call.name.as_ref().into(),
        result: end.text.as_ref().into(),
        is_error: end.status != ToolStatus::Success,
    }
}

fn checkpoint(taken: &Checkpoint) -> wire::Checkpoint<'_> {
    wire::Checkpoint {
        checkpoint_id: taken.id.as_ref().into(),
        timestamp: rfc3339(taken.timestamp).into(),
        step: taken.step,
        state: Payload::new(&taken.state),
        thread_id: taken.thread_id.as_str().into(),
        checkpoint_ns: taken.namespace.as_ref().into(),
    }
}

/// The step, and the thought id that replaces the envelope's node id, if there is one.
fn thinking(step: &Thinking) -> (Option<&str>, Body<'_>) {
    let words = |list: &'_ [Arc<str>]| list.iter().map(|word| word.to_string().into()).collect();
    let body = match step {
        Thinking::TotExpand { candidates } => Body::TotExpand { candidates: words(candidates) },
        Thinking::TotEvaluate { chosen, scores } => {
            Body::TotEvaluate { chosen: *chosen, scores: scores.clone() }
        }
        Thinking::TotBacktrack { reason, to_depth } => {
            Body::TotBacktrack { reason: reason.as_ref().into(), to_depth: *to_depth }
        }
        Thinking::GotPlan { node_ids, edge_count } => Body::GotPlan {
            node_count: node_ids.len() as u64,
            edge_count: *edge_count,
            node_ids: words(node_ids),
        },
        Thinking::GotNodeStart { id } => Body::GotNodeStart { id: id.as_ref().into() },
        Thinking::GotNodeComplete { id, result_summary } => {
            Body::GotNodeComplete { id: id.as_ref().into(), result_summary: result_summary.as_ref().into() }
        }
        Thinking::GotNodeFailed { id, error } => {
            Body::GotNodeFailed { id: id.as_ref().into(), error: error.as_ref().into() }
        }
        Thinking::GotExpand { id, nodes_added, edges_added } => {
            let body = Body::GotExpand { nodes_added: *nodes_added, edges_added: *edges_added };
            return (Some(id.as_ref()), body);
        }
    };
    (None, body)
}
