//! Replays a log as the events that it was written from, for any reader of events.
//!
//! Messages and outputs come in one piece. The replay adds the ends that a process did not emit before it
//! died: every call, node and turn ends.

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, Checkpoint, Event, HistoryChange, Json, Message, MessageEnd, NodeRun, PromptId, Scope,
    SessionEvent, Timestamp, ToolCall, ToolEnd, call_progress, message_pieces, notices, outside_turns,
};

use super::entry::{EntryBody, is_main};
use super::fold::Folded;
use super::fold::open_calls::{OpenCall, Progress};
use super::{LogError, LogReader, StoredRun, checkpoint_id};
use crate::agent::SearchAgents;
use crate::state_json;

/// The node that calls run in.
const ACT: &str = "act";

/// The events of a log, in order.
pub struct Replay {
    reader: LogReader,
    /// The conversation so far.
    folded: Folded,
    /// Computes the states of searches, if the graph's state is emitted too.
    agents: Option<Arc<dyn SearchAgents>>,
    queue: VecDeque<Event>,
    /// A prompt joined the turn; the next change of the conversation has its message, which readers get.
    has_steered: bool,
    /// The main agent's node run that has no exit yet.
    node: Option<Arc<NodeRun>>,
    /// Calls whose end the replay added.
    ended: Vec<CallId>,
    /// Calls of sub-agents and thoughts that have no end yet.
    inner: Vec<Inner>,
    checkpoint_emitted: bool,
    /// The last state of the turn's agent, if it cannot be derived from the conversation.
    shown_state: Option<Json>,
    last: Timestamp,
    done: bool,
    /// The turns of the conversation so far, and how many messages were before each.
    turns: Vec<(PromptId, usize)>,
    /// The turns that were rewound.
    undone: Vec<PromptId>,
    /// Earlier conversations with their turns, which the session can return to.
    earlier: Vec<(Vec<Message>, Vec<(PromptId, usize)>)>,
}

/// A call of a sub-agent or a thought.
struct Inner {
    /// The agent that made it.
    scope: Scope,
    call: Arc<ToolCall>,
    progress: Progress,
}

/// How many earlier conversations are compared with a changed one.
const MAX_EARLIER: usize = 16;

/// True if `kept` is the beginning of `messages`. The messages between the first and the last are not compared.
fn begins_with(messages: &[Message], kept: &[Message]) -> bool {
    kept.len() <= messages.len()
        && kept.first().is_none_or(|first| messages.first() == Some(first))
        && kept.last().is_none_or(|last| messages.get(kept.len() - 1) == Some(last))
}

impl Replay {
    /// Reads the events of a log.
    pub fn new(reader: LogReader) -> Self {
        Self {
            folded: Folded::nothing(reader.header().clone()),
            reader,
            agents: None,
            queue: VecDeque::new(),
            has_steered: false,
            node: None,
            ended: Vec::new(),
            inner: Vec::new(),
            checkpoint_emitted: false,
            shown_state: None,
            last: Timestamp::default(),
            done: false,
            turns: Vec::new(),
            undone: Vec::new(),
            earlier: Vec::new(),
        }
    }

    /// Also replays the graph's state, for readers that show it. `agents` compute the states of searches.
    pub fn with_state(mut self, agents: Arc<dyn SearchAgents>) -> Self {
        self.agents = Some(agents);
        self
    }

    /// The turns read so far that are no longer a part of the conversation, because the session went back to
    /// a point before them.
    pub fn undone(&self) -> &[PromptId] {
        &self.undone
    }

    /// Notes where a turn begins, and which turns a change of the conversation undoes.
    fn note_turn_start(&mut self, body: &Body) {
        let messages = &self.folded.messages;
        if let Body::TurnStart(start) = body {
            self.turns.push((start.prompt_id.clone(), messages.len()));
        } else if let Body::History(change) = body
            && let HistoryChange::Replaced(kept) = &**change
        {
            let current = (messages.clone(), std::mem::take(&mut self.turns));
            let is_current = begins_with(&current.0, kept);
            self.earlier.push(current);
            if self.earlier.len() > MAX_EARLIER {
                self.earlier.remove(0);
            }
            // A summary also replaces the conversation, but is the beginning of no earlier one. It covers all
            // turns before it.
            let Some(at) = self.earlier.iter().rposition(|(messages, _)| begins_with(messages, kept)) else {
                let covered = self.earlier.last().into_iter().flat_map(|(_, turns)| turns);
                self.turns = covered.map(|(prompt, _)| (prompt.clone(), 0)).collect();
                return;
            };
            let (_, turns) = &self.earlier[at];
            let (remaining, removed): (Vec<_>, Vec<_>) =
                turns.iter().cloned().partition(|(_, start)| *start < kept.len());
            self.undone.retain(|prompt| remaining.iter().all(|(turn, _)| turn != prompt));
            self.undone.extend(removed.into_iter().map(|(prompt, _)| prompt));
            if !is_current && let Some((_, later)) = self.earlier.last() {
                let is_removed = |prompt: &PromptId| remaining.iter().all(|(turn, _)| turn != prompt);
                let later = later.iter().map(|(prompt, _)| prompt.clone()).filter(is_removed);
                self.undone.extend(later);
            }
            self.turns = remaining;
        }
    }

    /// The next event; `None` at the end.
    pub fn next_event(&mut self) -> Result<Option<Event>, LogError> {
        while self.queue.is_empty() && !self.done {
            let Some(entry) = self.reader.next_entry()? else {
                self.done = true;
                self.end_turn();
                break;
            };
            self.last = entry.at;
            let main = is_main(&entry.scope);
            match &entry.what {
                EntryBody::Resumed(_) => self.end_step(),
                EntryBody::Event(Body::TurnStart(_)) if main => self.end_turn(),
                EntryBody::Event(Body::TurnEnd(_)) if main => {
                    self.end_inner(true);
                    self.end_calls();
                    self.end_step();
                }
                EntryBody::Event(_) | EntryBody::File(_) | EntryBody::Pruned(_) | EntryBody::Connection => {}
            }
            if let EntryBody::Event(body) = &entry.what
                && main
            {
                self.note_turn_start(body);
            }
            self.folded.apply(&entry);
            if let EntryBody::Event(body) = entry.what {
                self.replay_event(Event { at: entry.at, scope: entry.scope, body });
            }
        }
        Ok(self.queue.pop_front())
    }

    fn replay_event(&mut self, event: Event) {
        let main = is_main(&event.scope);
        match &event.body {
            Body::History(_) if main && std::mem::take(&mut self.has_steered) => self.queue.push_back(event),
            Body::History(_) | Body::Journal(_) => {}
            Body::Session(notice) if main && matches!(**notice, SessionEvent::Steered { .. }) => {
                self.has_steered = true;
                self.queue.push_back(event);
            }
            Body::MessageEnd(end) if main => {
                self.message(&event, end);
                self.queue.push_back(event);
            }
            Body::MessageEnd(end) => self.inner_message(&event, end),
            Body::ToolStart(call) if !main => {
                if let Some(open) = self.inner.iter_mut().find(|open| open.call.id == call.id) {
                    open.progress = Progress::Started;
                }
                self.queue.push_back(event);
            }
            Body::NodeEnter if main => {
                self.node.clone_from(&event.scope.node);
                self.queue.push_back(event);
            }
            Body::NodeExit { .. } if main => {
                self.node = None;
                self.exit(event);
            }
            Body::ToolEnd(end) if self.ended.contains(&end.call.id) => {}
            Body::ToolEnd(end) if !main => {
                self.inner.retain(|open| open.call.id != end.call.id);
                self.queue.push_back(event);
            }
            Body::TurnStart(_) if main => {
                self.ended.clear();
                self.checkpoint_emitted = false;
                self.shown_state = None;
                self.queue.push_back(event);
            }
            Body::Checkpoint(checkpoint) => {
                if self.agents.is_some() {
                    self.checkpoint_emitted = true;
                    let state = if checkpoint.state.as_str() == "{}" {
                        self.state()
                    } else {
                        checkpoint.state.clone()
                    };
                    let body = Body::Checkpoint(Box::new(Checkpoint { state, ..(**checkpoint).clone() }));
                    self.queue.push_back(Event { body, ..event });
                }
            }
            Body::TurnEnd(_) if main => {
                self.checkpoint(event.at);
                self.queue.push_back(event);
            }
            Body::Ready
            | Body::TurnStart(..)
            | Body::NodeEnter
            | Body::NodeExit { .. }
            | message_pieces!()
            | call_progress!()
            | Body::ToolStart(..)
            | Body::ToolEnd(..)
            | Body::State(..)
            | Body::Thinking(..)
            | Body::ThoughtUsage(..)
            | Body::Session(..)
            | notices!()
            | Body::Custom(..)
            | Body::Error(..)
            | Body::TurnEnd(..)
            | outside_turns!()
            | Body::Fatal(..) => self.queue.push_back(event),
        }
    }

    /// Emits the events before the end of a message, one piece for each kind.
    fn message(&mut self, event: &Event, end: &MessageEnd) {
        let mut bodies =
            vec![Body::MessageStart { message_id: end.message_id.clone(), model: end.model.clone() }];
        if !end.thought.is_empty() {
            bodies.push(Body::ThoughtDelta((&*end.thought).into()));
        }
        if !end.text.is_empty() {
            bodies.push(Body::TextDelta((&*end.text).into()));
        }
        for (index, call) in end.calls.iter().enumerate() {
            bodies.push(Body::ToolCallDelta {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                call_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.malformed.as_deref().unwrap_or(call.arguments.as_str()).into(),
            });
        }
        bodies.extend(end.calls.iter().cloned().map(Body::ToolCall));
        let push_event = |body| Event { at: event.at, scope: event.scope.clone(), body };
        self.queue.extend(bodies.into_iter().map(push_event));
    }

    /// A message of a sub-agent or a thought. A continued thought emits its calls again; calls that were
    /// already emitted are skipped.
    fn inner_message(&mut self, event: &Event, end: &MessageEnd) {
        let is_answered = |call: &&Arc<ToolCall>| {
            self.ended.contains(&call.id) || self.inner.iter().any(|open| open.call.id == call.id)
        };
        let calls: Vec<Arc<ToolCall>> = end.calls.iter().filter(|call| !is_answered(call)).cloned().collect();
        if calls.is_empty() && !end.calls.is_empty() {
            return;
        }
        let open = |call: &Arc<ToolCall>| Inner {
            scope: event.scope.clone(),
            call: call.clone(),
            progress: Progress::Waiting,
        };
        self.inner.extend(calls.iter().map(open));
        let end = MessageEnd { calls, ..end.clone() };
        self.message(event, &end);
        self.queue.push_back(Event { body: Body::MessageEnd(Box::new(end)), ..event.clone() });
    }

    fn exit(&mut self, event: Event) {
        let (at, scope) = (event.at, event.scope.clone());
        self.queue.push_back(event);
        if self.agents.is_some() {
            let state = self.state();
            self.queue.push_back(Event { at, scope, body: Body::State(state) });
        }
    }

    fn state(&mut self) -> Json {
        if let Some(turn) = &self.folded.unfinished
            && let Some(stored_run) = StoredRun::from_journal(&turn.journal)
        {
            // If the state can no longer be read, the state is derived from the conversation alone.
            self.shown_state = self
                .agents
                .as_ref()
                .and_then(|agents| agents.restore_state(turn.start.agent, &stored_run).ok());
        }
        if let Some(state) = &self.shown_state {
            return state.clone();
        }
        let pending: Vec<Arc<ToolCall>> = self.folded.unanswered.calls.waiting().cloned().collect();
        state_json::conversation(&self.folded.messages, &pending)
    }

    /// Ends a turn whose process died.
    fn end_turn(&mut self) {
        let Some(unfinished) = self.folded.unfinished.clone() else { return };
        self.end_inner(true);
        self.end_calls();
        self.end_step();
        self.checkpoint(self.last);
        self.push_event(None, Body::TurnEnd(Box::new(unfinished.end())));
    }

    /// Ends the calls that have no end, in the node where calls end.
    fn end_calls(&mut self) {
        let open: Vec<OpenCall> =
            self.folded.unanswered.calls.calls().iter().filter(|open| self.is_open(open)).cloned().collect();
        if open.is_empty() {
            return;
        }
        self.end_inner(true);
        if self.node.as_ref().is_none_or(|node| &*node.name != ACT) {
            self.end_step();
            let node = Arc::new(NodeRun::new(ACT, 0));
            self.node = Some(node.clone());
            self.push_event(Some(node), Body::NodeEnter);
        }
        for open in open {
            self.end_call(&open);
        }
    }

    /// Ends the running calls of sub-agents and thoughts; with `all`, which means that the turn is not
    /// continued, also those that were not running.
    fn end_inner(&mut self, all: bool) {
        let ends = |open: &mut Inner| all || open.progress == Progress::Started;
        for Inner { scope, call, progress } in self.inner.extract_if(.., ends) {
            self.ended.push(call.id.clone());
            let end = interrupted(&call, &progress);
            self.queue.push_back(Event { at: self.last, scope, body: Body::ToolEnd(Box::new(end)) });
        }
    }

    /// Ends the node run that has no exit, and the calls that were running in it.
    fn end_step(&mut self) {
        self.end_inner(false);
        let started: Vec<OpenCall> = self
            .folded
            .unanswered
            .calls
            .calls()
            .iter()
            .filter(|open| open.progress == Progress::Started && self.is_open(open))
            .cloned()
            .collect();
        for open in started {
            self.end_call(&open);
        }
        if let Some(node) = self.node.take() {
            let scope = Scope { node: Some(node), ..Scope::default() };
            let body = Body::NodeExit { error: Some("interrupted".into()) };
            self.exit(Event { at: self.last, scope, body });
        }
    }

    fn is_open(&self, open: &OpenCall) -> bool {
        !matches!(open.progress, Progress::Ended(_)) && !self.ended.contains(&open.call.id)
    }

    fn end_call(&mut self, open: &OpenCall) {
        self.ended.push(open.call.id.clone());
        let end = interrupted(&open.call, &open.progress);
        self.push_event(self.node.clone(), Body::ToolEnd(Box::new(end)));
    }

    /// Emits the state at the end of a run, unless the log contains it.
    fn checkpoint(&mut self, at: Timestamp) {
        let Some((id, step)) = self.folded.checkpoints.last().map(|last| (last.turn, last.step)) else {
            return;
        };
        if self.agents.is_none() || std::mem::replace(&mut self.checkpoint_emitted, true) {
            return;
        }
        let session = self.folded.header.session_id.clone();
        let checkpoint = Checkpoint {
            id: checkpoint_id(&session, id, step),
            timestamp: at,
            step,
            state: self.state(),
            thread_id: session,
            namespace: Arc::default(),
        };
        self.push_event(None, Body::Checkpoint(Box::new(checkpoint)));
    }

    fn push_event(&mut self, node: Option<Arc<NodeRun>>, body: Body) {
        self.queue.push_back(Event { at: self.last, scope: Scope { node, ..Scope::default() }, body });
    }
}

/// The end of a call that got as far as `progress`.
fn interrupted(call: &Arc<ToolCall>, progress: &Progress) -> ToolEnd {
    ToolEnd::interrupted(call.clone(), progress.without_result().into())
}
