//! Folds the log into the conversation that it describes.

pub mod open_calls;
pub mod point;
pub mod stored_run;

use std::collections::HashSet;
use std::sync::Arc;

use qwen_events::{
    AgentName, Body, CallId, Denial, EndStatus, Finish, HistoryChange, Journal, Json, Message, MessageEnd,
    ModelUsage, Part, PromptId, Role, Scope, SessionEvent, ThoughtBlock, Timestamp, ToolEnd, ToolResult,
    ToolStatus, TurnEnd, TurnStart, Usage, call_progress, message_pieces, notices, outside_turns,
};

use crate::log::entry::{Entry, EntryBody, is_main};
use crate::log::{LogError, LogHeader, LogReader, OpenCalls, StoredRun, UnansweredCalls, checkpoint_id};

/// The state of a session, computed from its log.
#[derive(Debug)]
pub struct Folded {
    pub header: LogHeader,
    /// The conversation. If calls are [unanswered](Self::unanswered), the last message requests them and has no
    /// results yet; otherwise every call has its result.
    pub messages: Vec<Message>,
    pub unanswered: UnansweredCalls,
    /// The turn that has no end.
    pub unfinished: Option<Unfinished>,
    /// The number of turns that were started.
    pub turns: u64,
    /// Model calls of the turns that ended.
    pub model_calls: u64,
    /// Tokens of the turns that ended.
    pub usage: Usage,
    /// Tokens of the turns that ended, by model.
    pub usage_by_model: Vec<ModelUsage>,
    /// The ids of the turns, in order.
    pub prompt_ids: Vec<PromptId>,
    /// The ids of the prompts that joined a running turn.
    pub steered: Vec<PromptId>,
    pub model: Option<Arc<str>>,
    pub mode: Option<Arc<str>>,
    /// True if the last turn was cancelled, interrupted or left unfinished.
    pub is_interrupted: bool,
    /// The first and the last description of its situation that the model knows.
    pub situation: Option<(Arc<str>, Arc<str>)>,
    /// The points that the session can return to, in order.
    pub checkpoints: Vec<CheckpointMeta>,
    /// How often each node has run.
    pub node_runs: Vec<(Arc<str>, u64)>,
    pub last_activity: Timestamp,
    /// The number of lines that could not be read.
    pub damaged: u64,
    /// The length of the file up to its last complete line, in bytes.
    pub(crate) length: u64,
}

/// A turn that has no end.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    pub start: TurnStart,
    /// The time when it started.
    pub at: Timestamp,
    /// When its last entry was written.
    pub last: Timestamp,
    /// Its last message, if that requested no calls: then only the turn's end is missing.
    pub answer: Option<FinalAnswer>,
    /// The text of its last message.
    pub reply: Arc<str>,
    pub steps: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub usage_by_model: Vec<ModelUsage>,
    pub denials: Vec<Denial>,
    /// What its agent needs to continue: the initial state, the change made by each step, and the effects of
    /// the incomplete step.
    pub journal: Vec<Journal>,
}

/// A message that requested no calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalAnswer {
    pub finish: Finish,
    pub aborted: bool,
}

impl Unfinished {
    /// Records a denied call.
    fn deny(&mut self, end: &ToolEnd) {
        if end.status == ToolStatus::Denied {
            self.denials.push(Denial {
                tool_name: end.call.name.clone(),
                call_id: end.call.id.clone(),
                arguments: end.call.arguments.clone(),
                reason: end.text.clone(),
            });
        }
    }

    /// The end of a turn that is not continued.
    pub(crate) fn end(self) -> TurnEnd {
        let mut usage = Usage::default();
        self.usage_by_model.iter().for_each(|spent| usage.add(&spent.usage));
        TurnEnd {
            reply: self.reply,
            usage,
            cost_usd: self.usage_by_model.iter().map(|spent| spent.cost_usd).sum(),
            usage_by_model: self.usage_by_model,
            duration_ms: self.last.0.saturating_sub(self.at.0),
            model_calls: self.model_calls,
            tool_calls: self.tool_calls,
            denials: self.denials,
            ..TurnEnd::new(self.start.prompt_id, EndStatus::Interrupted)
        }
    }
}

/// A point that the session can return to: the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointMeta {
    pub id: Arc<str>,
    pub at: Timestamp,
    pub prompt_id: PromptId,
    /// The turn's number, from 1.
    pub turn: u64,
    /// The number of completed steps in the turn.
    pub step: u64,
    /// The node that had run.
    pub node: Arc<str>,
    /// The number of messages in the conversation.
    pub messages: usize,
}

impl Folded {
    /// Folds a log up to its end.
    pub fn read(mut reader: LogReader) -> Result<Self, LogError> {
        let mut folded = Self::nothing(reader.header().clone());
        while let Some(entry) = reader.next_entry()? {
            folded.apply(&entry);
        }
        folded.length = reader.offset();
        folded.damaged = reader.damaged();
        Ok(folded)
    }

    /// The state before the first entry.
    pub(crate) fn nothing(header: LogHeader) -> Self {
        Self {
            last_activity: header.created,
            header,
            messages: Vec::new(),
            unanswered: UnansweredCalls::default(),
            unfinished: None,
            turns: 0,
            model_calls: 0,
            usage: Usage::default(),
            usage_by_model: Vec::new(),
            prompt_ids: Vec::new(),
            steered: Vec::new(),
            model: None,
            mode: None,
            situation: None,
            is_interrupted: false,
            checkpoints: Vec::new(),
            node_runs: Vec::new(),
            damaged: 0,
            length: 0,
        }
    }
    /// Applies the next entry.
    pub(crate) fn apply(&mut self, entry: &Entry) {
        self.last_activity = self.last_activity.max(entry.at);
        if let Some(turn) = &mut self.unfinished {
            turn.last = turn.last.max(entry.at);
        }
        if let EntryBody::Pruned(gone) = &entry.what {
            let gone: HashSet<&Arc<str>> = gone.iter().collect();
            self.checkpoints.retain(|checkpoint| !gone.contains(&checkpoint.id));
        }
        let EntryBody::Event(body) = &entry.what else { return };
        if let Body::ThoughtUsage(spent) = body {
            self.thought_usage(spent);
        }
        if entry.scope.parent.is_none() && entry.scope.thought.is_some() {
            return self.thought(body);
        }
        if !is_main(&entry.scope) {
            // Sub-agents and thoughts have separate conversations; the main conversation only gets their
            // results.
            return;
        }
        match body {
            Body::TurnStart(start) => self.turn_start(start, entry.at),
            Body::NodeEnter => self.node_enter(&entry.scope),
            Body::NodeExit { .. } => self.node_exit(&entry.scope, entry.at),
            Body::MessageEnd(end) => self.message(end),
            Body::ToolStart(call) => self.tool_start(&call.id),
            Body::ToolEnd(end) => self.tool_end(end),
            Body::History(change) => self.history(change),
            Body::Journal(journal) => self.journal(journal),
            Body::TurnEnd(end) => self.turn_end(end),
            Body::Session(notice) => {
                if let SessionEvent::Steered { prompt_id, .. } = &**notice {
                    self.steered.push(prompt_id.clone());
                }
            }
            Body::Ready
            | message_pieces!()
            | call_progress!()
            | Body::State(..)
            | Body::Checkpoint(..)
            | Body::Thinking(..)
            | Body::ThoughtUsage(..)
            | notices!()
            | Body::Custom(..)
            | Body::Error(..)
            | outside_turns!()
            | Body::Fatal(..) => {}
        }
    }

    fn turn_start(&mut self, start: &TurnStart, at: Timestamp) {
        self.is_interrupted = true;
        if let Some(left) = self.unfinished.take() {
            self.unanswered.postponed = false;
            self.spend(left.model_calls, &left.usage_by_model);
        }
        let prompt = Message { role: Role::User, parts: start.parts.clone() };
        if std::mem::take(&mut self.unanswered.postponed)
            && start.agent == AgentName::React
            && !self.unanswered.calls.is_empty()
        {
            self.unanswered.held.extend(Some(prompt).filter(Message::has_content));
        } else {
            self.close_calls();
            self.messages.push(prompt);
        }
        self.turns = self.turns.max(start.turn);
        self.prompt_ids.push(start.prompt_id.clone());
        self.model = Some(start.model.clone());
        self.mode = Some(start.permission_mode.clone());
        self.unfinished = Some(Unfinished {
            start: start.clone(),
            at,
            last: at,
            answer: None,
            reply: Arc::default(),
            steps: 0,
            model_calls: 0,
            tool_calls: 0,
            usage_by_model: Vec::new(),
            denials: Vec::new(),
            journal: Vec::new(),
        });
    }

    fn node_enter(&mut self, scope: &Scope) {
        let Some(node) = &scope.node else { return };
        match self.node_runs.iter_mut().find(|(name, _)| *name == node.name) {
            Some((_, count)) => *count += 1,
            None => self.node_runs.push((node.name.clone(), 1)),
        }
    }

    fn node_exit(&mut self, scope: &Scope, at: Timestamp) {
        let Some(turn) = &mut self.unfinished else { return };
        turn.steps += 1;
        self.checkpoints.push(CheckpointMeta {
            id: checkpoint_id(&self.header.session_id, turn.start.turn, turn.steps),
            at,
            prompt_id: turn.start.prompt_id.clone(),
            turn: turn.start.turn,
            step: turn.steps,
            node: scope.node.as_ref().map(|node| node.name.clone()).unwrap_or_default(),
            messages: self.messages.len(),
        });
    }

    /// Adds results for the calls that have none, then the messages that waited for them.
    fn close_calls(&mut self) {
        self.messages.extend(self.unanswered.calls.take_results());
        self.messages.append(&mut self.unanswered.held);
    }

    fn message(&mut self, end: &MessageEnd) {
        self.close_calls();
        if let Some(turn) = &mut self.unfinished {
            turn.reply = end.text.clone();
            turn.answer =
                end.calls.is_empty().then_some(FinalAnswer { finish: end.finish, aborted: end.aborted });
            turn.model_calls += 1;
            add_usage(&mut turn.usage_by_model, &end.model, 1, &end.usage, 0.0);
        }
        self.messages.extend(assistant_message(end));
        self.unanswered.calls = OpenCalls::from_calls(&end.calls);
    }

    fn tool_start(&mut self, id: &CallId) {
        if let Some(turn) = &mut self.unfinished {
            turn.tool_calls += 1;
        }
        self.unanswered.calls.start(id);
    }

    fn tool_end(&mut self, end: &ToolEnd) {
        if let Some(turn) = &mut self.unfinished {
            turn.deny(end);
        }
        let answered = self.unanswered.calls.answer(ToolResult {
            call_id: end.call.id.clone(),
            name: end.call.name.clone(),
            text: end.text.clone(),
            media: end.media.clone(),
            is_error: end.status != ToolStatus::Success,
        });
        if let Some(answered) = answered {
            self.messages.push(answered);
            self.messages.append(&mut self.unanswered.held);
        }
    }

    fn history(&mut self, change: &HistoryChange) {
        match change {
            HistoryChange::Added(messages) => {
                if let Some(turn) = &mut self.unfinished {
                    // A message added to an unfinished turn means that the turn continues.
                    turn.answer = None;
                }
                if !self.unanswered.held.is_empty() {
                    self.close_calls();
                }
                for message in messages {
                    self.unanswered.calls.continue_with(message, &mut self.messages);
                }
            }
            HistoryChange::Replaced(messages) => {
                self.unanswered.calls = messages.last().map(OpenCalls::left_by).unwrap_or_default();
                self.messages.clone_from(messages);
                self.unanswered.held.clear();
                // The changes that the conversation reported may be lost, so the description starts over.
                self.situation = None;
            }
            HistoryChange::Situation(text) => {
                let first = self.situation.take().map_or_else(|| text.clone(), |(first, _)| first);
                self.situation = Some((first, text.clone()));
            }
        }
    }

    /// Applies an event of a thought: the turn counts its usage and records which tools were started.
    fn thought(&mut self, body: &Body) {
        let Some(turn) = &mut self.unfinished else { return };
        match body {
            Body::ToolStart(call) => {
                turn.tool_calls += 1;
                let started =
                    Journal::Effect { key: StoredRun::started(&call.id), value: Json::trusted("null") };
                turn.journal.push(started);
            }
            Body::ToolEnd(end) => turn.deny(end),
            _ => {}
        }
    }

    fn thought_usage(&mut self, spent: &ModelUsage) {
        if let Some(turn) = &mut self.unfinished {
            turn.model_calls += spent.calls;
            add_usage(&mut turn.usage_by_model, &spent.model, spent.calls, &spent.usage, spent.cost_usd);
        }
    }

    fn journal(&mut self, journal: &Journal) {
        let Some(turn) = &mut self.unfinished else { return };
        match journal {
            Journal::Base { .. } => turn.journal.clear(),
            // The effects of a completed step are no longer needed.
            Journal::Step { .. } => {
                while turn.journal.pop_if(|kept| matches!(kept, Journal::Effect { .. })).is_some() {}
            }
            Journal::Effect { .. } => {}
        }
        turn.journal.push(journal.clone());
    }

    fn turn_end(&mut self, end: &TurnEnd) {
        self.unfinished = None;
        self.unanswered.postponed = end.postponed.is_some();
        self.is_interrupted = matches!(end.status, EndStatus::Cancelled | EndStatus::Interrupted);
        if !self.unanswered.postponed && !self.unanswered.held.is_empty() {
            self.close_calls();
        }
        self.spend(end.model_calls, &end.usage_by_model);
    }

    fn spend(&mut self, model_calls: u64, by_model: &[ModelUsage]) {
        self.model_calls += model_calls;
        for spent in by_model {
            self.usage.add(&spent.usage);
            add_usage(&mut self.usage_by_model, &spent.model, spent.calls, &spent.usage, spent.cost_usd);
        }
    }
}

fn add_usage(list: &mut Vec<ModelUsage>, model: &Arc<str>, calls: u64, usage: &Usage, cost_usd: f64) {
    match list.iter_mut().find(|spent| spent.model == *model) {
        Some(spent) => {
            spent.calls += calls;
            spent.usage.add(usage);
            spent.cost_usd += cost_usd;
        }
        None => list.push(ModelUsage { model: model.clone(), calls, usage: *usage, cost_usd }),
    }
}

/// The message for the conversation; `None` if the model's answer is empty.
fn assistant_message(end: &MessageEnd) -> Option<Message> {
    let mut parts = Vec::new();
    if !end.thoughts.is_empty() {
        let blocks = end.thoughts.iter().cloned();
        parts.extend(blocks.map(|ThoughtBlock { text, signature }| Part::Thought { text, signature }));
    } else if !end.thought.is_empty() || end.signature.is_some() {
        parts.push(Part::Thought { text: end.thought.clone(), signature: end.signature.clone() });
    }
    if !end.text.is_empty() {
        parts.push(Part::Text(end.text.clone()));
    }
    parts.extend(end.calls.iter().cloned().map(Part::Call));
    let has_content = parts.iter().any(|part| !matches!(part, Part::Thought { .. }));
    has_content.then_some(Message { role: Role::Assistant, parts })
}
