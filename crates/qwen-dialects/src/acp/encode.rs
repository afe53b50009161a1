//! Encodes events as messages of the protocol.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, CommandResult, CommandResultBody, ConsoleLevel, ControlCall, ControlReply, ErrorInfo,
    Event, HistoryChange, MessageEnd, Part, PromptId, Scope, SessionEvent, SessionId, TaskEvent, Thinking,
    Timestamp, Todo, ToolCall, ToolEnd, ToolStatus, TurnEnd, TurnStart, graph_events,
};
use serde_json::json;

use super::agents::{nested_meta, session_of};
use super::call::{announced, describe, is_command, raw_input};
use super::client::{AcpClient, SubAgents, TerminalOutput};
use super::content;
use super::message::{OpenMessage, push_user_chunks, thought_id};
use super::open_calls::{OpenCall, OpenCalls};
use super::outcome::{error_object, push_end};
use super::permission::{self, ASK_QUESTION_TOOLS};
use super::prompt::PromptContent;
use super::sizes::{self, MAX_FRAME, MAX_PART, call_id, one_line, split_at_size};
use super::thinking::thinking;
use super::wire::{
    CancelMethod, CancelParams, Chunk, ContentBlock, Cost, ElicitationMethod, ErrorResponse, Internal,
    InternalMethod, Notification, PermissionMethod, PermissionRequest, PlanEntry, PromptResponse,
    PromptResult, RawJson, Request, SessionUpdate, StopReason, ToolContent, ToolUpdate, Version,
};
use crate::line::{push_line, push_value};
use crate::qwen::PROTOCOL_VERSION;
use crate::qwen::thought::Thought;
use crate::qwen::turn::Last;
use crate::{Encoder, StreamInfo};

/// The maximum size of one entry of a plan, in bytes.
const MAX_ENTRY: usize = 4096;

/// The encoder of a stream.
pub(crate) fn encoder(info: &StreamInfo) -> Box<dyn Encoder> {
    Box::new(AcpEncoder::new(info))
}

/// Appends a `session/update` line for a session.
pub fn push_update(session_id: &str, update: &SessionUpdate<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&update_head(session_id));
    push_value(out, update);
    out.extend_from_slice(b"}}\n");
}

/// Appends a prompt as `user_message_chunk` lines, as a replay shows it.
pub fn push_prompt(session_id: &str, prompt_id: &str, content: &PromptContent, out: &mut Vec<u8>) {
    push_user_chunks(&update_head(session_id), prompt_id, content.parts.iter(), out);
}

/// Everything before the update in a line.
fn update_head(session_id: &str) -> Vec<u8> {
    let mut head = b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":".to_vec();
    push_value(&mut head, &session_id);
    head.extend_from_slice(b",\"update\":");
    head
}

struct AcpEncoder {
    session_id: SessionId,
    /// The beginning of every update, rendered once.
    head: Vec<u8>,
    client: AcpClient,
    /// Repeat the user's messages: the stream is a replay.
    replays: bool,
    /// The context window in tokens; 0 if unknown.
    window: u64,
    cwd: Arc<str>,
    /// Notices and a change of mode from before the session was known; none once it is.
    early: Option<EarlyUpdates>,
    prompt_id: Option<PromptId>,
    /// In a replay, a prompt that joined the turn and whose message comes next.
    steered: Option<PromptId>,
    message: OpenMessage,
    last: Last,
    calls: OpenCalls,
    /// Tokens in the context after the last message.
    used: u64,
    /// The cost of the turns of this stream in US dollars.
    cost: f64,
    /// The number of compactions, for their ids.
    compactions: u64,
}

/// What happened before a worker's first request named its session: an update needs the session's id.
#[derive(Default)]
struct EarlyUpdates {
    mode: Option<Arc<str>>,
    notices: Vec<(&'static str, String)>,
}

impl AcpEncoder {
    fn new(info: &StreamInfo) -> Self {
        Self {
            head: update_head(info.session_id.as_str()),
            session_id: info.session_id.clone(),
            client: info.acp,
            replays: info.replay_user_messages,
            window: info.model_limits.context_window,
            cwd: Arc::default(),
            early: Some(EarlyUpdates::default()),
            prompt_id: None,
            steered: None,
            message: OpenMessage::default(),
            last: Last::default(),
            calls: OpenCalls::default(),
            used: 0,
            cost: 0.0,
            compactions: 0,
        }
    }

    fn enter_session(&mut self, session_id: &SessionId, out: &mut Vec<u8>) {
        if *session_id != self.session_id {
            self.session_id = session_id.clone();
            self.head = update_head(session_id.as_str());
        }
        let Some(early) = self.early.take() else { return };
        for (severity, title) in early.notices {
            self.notice(severity, &title, out);
        }
        if let Some(mode) = early.mode {
            self.mode(&mode, out);
        }
    }

    fn update(&self, update: &SessionUpdate<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        push_value(out, update);
        out.extend_from_slice(b"}}\n");
    }

    /// Writes an update of the agent that `parent` started, or of the main agent.
    fn update_of(&self, parent: Option<&CallId>, update: &SessionUpdate<'_>, out: &mut Vec<u8>) {
        match parent.filter(|_| self.client.agents == SubAgents::Sessions) {
            Some(parent) => push_update(&session_of(&self.session_id, parent), update, out),
            None => self.update(update, out),
        }
    }

    /// Writes the changed fields of a call that the agent of `parent` made.
    fn update_call(&self, id: &CallId, parent: Option<&CallId>, update: ToolUpdate<'_>, out: &mut Vec<u8>) {
        let mut update = ToolUpdate { tool_call_id: call_id(id), ..update };
        if let Some(parent) = parent.filter(|_| self.client.agents == SubAgents::Transcripts) {
            let mut meta = nested_meta(parent, self.client);
            if let (Some(meta), Some(serde_json::Value::Object(own))) =
                (meta.as_object_mut(), update.meta.take())
            {
                meta.extend(own);
            }
            update.meta = Some(meta);
        }
        self.update_of(parent, &SessionUpdate::ToolCallUpdate(update), out);
    }

    fn internal(&self, method: InternalMethod, params: Internal<'_>, out: &mut Vec<u8>) {
        let params = match params.session_id {
            Some(_) => params,
            None => Internal { session_id: Some(self.session_id.as_str().into()), ..params },
        };
        push_line(out, &Notification { jsonrpc: Version::Word, method, params });
    }

    fn start_turn(&mut self, start: &TurnStart, out: &mut Vec<u8>) {
        self.enter_session(&start.session_id, out);
        self.prompt_id = Some(start.prompt_id.clone());
        self.cwd = start.cwd.clone();
        self.last = Last::Nothing;
        if !self.replays {
            return;
        }
        // The text as the user sent it: the parts also have what was added for the model.
        let message = Part::Text(start.message.clone());
        let media = start.parts.iter().filter(|part| matches!(part, Part::Media(_)));
        push_user_chunks(&self.head, start.prompt_id.as_str(), std::iter::once(&message).chain(media), out);
    }

    /// Shows the prompt that joined the turn, in a replay: `change` has its message.
    fn steered_message(&mut self, change: &HistoryChange, out: &mut Vec<u8>) {
        let (Some(id), HistoryChange::Added(messages)) = (self.steered.take(), change) else { return };
        let parts = || messages.iter().flat_map(|message| &message.parts);
        // Further texts were added for the model.
        let text = parts().find(|part| matches!(part, Part::Text(_)));
        let media = parts().filter(|part| matches!(part, Part::Media(_)));
        push_user_chunks(&self.head, id.as_str(), text.into_iter().chain(media), out);
    }

    /// Writes a whole text as a message of the agent.
    fn push_message(&self, id: &str, text: &str, out: &mut Vec<u8>) {
        OpenMessage::new(id, &self.head).push_text(text, out);
    }

    fn text(&self, scope: &Scope, text: &str, out: &mut Vec<u8>) {
        if scope.parent.is_some() {
            self.nested_chunk(scope, text, false, out);
        } else if scope.thought.is_some() {
            self.message.push_thought(text, out);
        } else {
            self.message.push_text(text, out);
        }
    }

    fn thought(&self, scope: &Scope, text: &str, out: &mut Vec<u8>) {
        if scope.parent.is_some() {
            self.nested_chunk(scope, text, true, out);
        } else {
            self.message.push_thought(text, out);
        }
    }

    /// A piece of a sub-agent's message, for clients that show what sub-agents write.
    fn nested_chunk(&self, scope: &Scope, text: &str, is_thought: bool, out: &mut Vec<u8>) {
        let Some(parent) = scope.parent.as_ref().filter(|_| self.client.agents != SubAgents::Titles) else {
            return;
        };
        let message_id = self.calls.find(parent).and_then(|call| call.message_id.clone());
        let message_id = message_id.unwrap_or_else(|| format!("{}-agent", call_id(parent)));
        let message_id = if is_thought { thought_id(&message_id) } else { message_id };
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = split_at_size(rest, MAX_PART);
            let chunk = Chunk {
                message_id: Some(message_id.as_str().into()),
                content: ContentBlock::Text { text: piece.into() },
                meta: Some(nested_meta(parent, self.client)),
            };
            let update = if is_thought {
                SessionUpdate::AgentThoughtChunk(chunk)
            } else {
                SessionUpdate::AgentMessageChunk(chunk)
            };
            self.update_of(Some(parent), &update, out);
            rest = after;
        }
    }

    fn step(&self, step: &Thinking, out: &mut Vec<u8>) {
        let Thought { subject, description } = Thought::of_step(step);
        let text = if description.is_empty() {
            format!("**{subject}**\n")
        } else {
            format!("**{subject}**\n{description}\n")
        };
        let (piece, _) = split_at_size(&text, MAX_PART);
        let chunk = Chunk {
            message_id: None,
            content: ContentBlock::Text { text: piece.into() },
            meta: Some(json!({"qwen": {"thinking": thinking(step)}})),
        };
        self.update(&SessionUpdate::AgentThoughtChunk(chunk), out);
    }

    fn end_message(&mut self, scope: &Scope, end: &MessageEnd, out: &mut Vec<u8>) {
        for call in self.calls.take_undescribed(scope.parent.as_ref()) {
            self.fail(&call, "The model's message ended before the call was complete.", out);
        }
        if scope.parent.is_some() || scope.thought.is_some() {
            return;
        }
        self.last = if end.calls.is_empty() { Last::Held(Box::new(end.clone())) } else { Last::Calls };
        let used = end.usage.total();
        if used > 0 && self.window > 0 && !self.replays {
            self.used = used;
            self.usage(None, out);
        }
    }

    /// Writes the size of the context and the cost; at the end of a turn with the turn's cost.
    fn usage(&self, turn_cost: Option<f64>, out: &mut Vec<u8>) {
        let cost = (self.cost > 0.0).then(|| Cost { amount: self.cost, currency: "USD".into() });
        let meta = turn_cost.map(|cost| json!({"qwen": {"turnCostUsd": cost}}));
        self.update(&SessionUpdate::UsageUpdate { used: self.used, size: self.window, cost, meta }, out);
    }

    /// Shows that a call begins, while its arguments still arrive.
    fn announce(&mut self, scope: &Scope, id: &CallId, name: &Arc<str>, out: &mut Vec<u8>) {
        if self.calls.find(id).is_some() {
            return;
        }
        let (kind, title) = announced(name);
        let title = self.titled(scope.parent.as_ref(), title);
        self.calls.open(id.clone(), scope.parent.clone());
        let update = SessionUpdate::ToolCall(ToolUpdate {
            tool_call_id: call_id(id),
            title: Some(title.into()),
            name: Some(sizes::tool_name(name)),
            kind: Some(kind.into()),
            status: Some("pending".into()),
            meta: scope.parent.as_ref().map(|parent| nested_meta(parent, self.client)),
            ..ToolUpdate::default()
        });
        self.update_of(scope.parent.as_ref(), &update, out);
    }

    /// The title of a call, which names the sub-agent that makes it.
    fn titled(&self, parent: Option<&CallId>, title: String) -> String {
        let agent = parent.and_then(|parent| self.calls.find(parent)?.agent.as_deref());
        match agent {
            Some(agent) => format!("{agent}: {title}"),
            None => title,
        }
    }

    /// Shows the complete arguments of a call, once.
    fn describe(&mut self, scope: &Scope, call: &ToolCall, out: &mut Vec<u8>) {
        let is_new = self.calls.find(&call.id).is_none();
        let described = describe(call, &self.cwd);
        let title = self.titled(scope.parent.as_ref(), described.title);
        let open = self.calls.open(call.id.clone(), scope.parent.clone());
        if std::mem::replace(&mut open.is_described, true) {
            return;
        }
        open.agent = described.agent;
        let update = ToolUpdate {
            tool_call_id: call_id(&call.id),
            title: Some(title.into()),
            kind: Some(described.kind.into()),
            status: Some("pending".into()),
            locations: (!described.locations.is_empty()).then_some(described.locations),
            raw_input: Some(raw_input(call)),
            ..ToolUpdate::default()
        };
        if is_new {
            let meta = scope.parent.as_ref().map(|parent| nested_meta(parent, self.client));
            let update = ToolUpdate { name: Some(sizes::tool_name(&call.name)), meta, ..update };
            self.update_of(scope.parent.as_ref(), &SessionUpdate::ToolCall(update), out);
        } else {
            self.update_call(&call.id, scope.parent.as_ref(), update, out);
        }
    }

    fn start_call(&mut self, scope: &Scope, call: &ToolCall, out: &mut Vec<u8>) {
        self.describe(scope, call, out);
        let has_terminal = is_command(&call.name) && self.client.terminal != TerminalOutput::Text;
        let mut update = ToolUpdate { status: Some("in_progress".into()), ..ToolUpdate::default() };
        if has_terminal {
            if let Some(open) = self.calls.find_mut(&call.id) {
                open.has_terminal = true;
            }
            let id = call_id(&call.id);
            update.content = Some(vec![ToolContent::Terminal { terminal_id: id.clone() }]);
            update.meta = Some(json!({"terminal_info": {"terminal_id": id, "cwd": &*self.cwd}}));
        }
        self.update_call(&call.id, scope.parent.as_ref(), update, out);
        let agent = self.calls.find(&call.id).and_then(|open| open.agent.as_deref());
        if let Some(name) = agent.filter(|_| self.client.agents == SubAgents::Sessions) {
            let spawned = SessionUpdate::SubagentSpawned {
                subagent_session_id: session_of(&self.session_id, &call.id).into(),
                name: name.into(),
                task: describe(call, &self.cwd).title.into(),
            };
            self.update_of(scope.parent.as_ref(), &spawned, out);
        }
    }

    /// Reports the end of the sub-agent that a call started, to clients that show it as a session.
    fn end_agent(&self, open: &OpenCall, state: &'static str, out: &mut Vec<u8>) {
        if open.agent.is_none() || self.client.agents != SubAgents::Sessions {
            return;
        }
        let update = SessionUpdate::SubagentStateUpdate {
            subagent_session_id: session_of(&self.session_id, &open.id).into(),
            state: state.into(),
        };
        self.update_of(open.parent.as_ref(), &update, out);
    }

    fn output(&mut self, call: &ToolCall, text: &str, at: Timestamp, out: &mut Vec<u8>) {
        let field = match self.client.terminal {
            TerminalOutput::TerminalDelta => "terminal_output_delta",
            TerminalOutput::Terminal | TerminalOutput::Text => "terminal_output",
        };
        let Some(open) = self.calls.find_mut(&call.id) else { return };
        let parent = open.parent.clone();
        if open.has_terminal {
            let mut rest = text;
            while !rest.is_empty() {
                let (piece, after) = split_at_size(rest, MAX_PART);
                let meta = json!({field: {"terminal_id": call_id(&call.id), "data": piece}});
                let update = ToolUpdate { meta: Some(meta), ..ToolUpdate::default() };
                self.update_call(&call.id, parent.as_ref(), update, out);
                rest = after;
            }
            return;
        }
        let Some(shown) = open.add_output(text, at) else { return };
        let content = Some(vec![content::fenced(&qwen_events::without_escapes(shown))]);
        self.update_call(&call.id, parent.as_ref(), ToolUpdate { content, ..ToolUpdate::default() }, out);
    }

    /// Shows the to-do list of the agent that `parent` started, or of the main agent. A session has one plan, so
    /// the list of a sub-agent is shown only where the sub-agent is a session.
    fn plan(&self, todos: &[Todo], parent: Option<&CallId>, out: &mut Vec<u8>) {
        if parent.is_some() && self.client.agents != SubAgents::Sessions {
            return;
        }
        let mut entries = Vec::new();
        let mut size = 0;
        for todo in todos {
            let content = sizes::beginning(&todo.content, MAX_ENTRY);
            // A byte is written as at most six.
            size += 6 * content.len() + 64;
            if size > MAX_FRAME / 2 {
                let content = format!("{} further tasks", todos.len() - entries.len());
                entries.push(PlanEntry {
                    content: content.into(),
                    priority: "medium".into(),
                    status: "pending".into(),
                });
                break;
            }
            entries.push(PlanEntry { content, priority: "medium".into(), status: todo.status.name().into() });
        }
        self.update_of(parent, &SessionUpdate::Plan { entries }, out);
    }

    fn display(&self, call: &ToolCall, display: &qwen_events::Display, out: &mut Vec<u8>) {
        use qwen_events::Display;
        let mut update = ToolUpdate::default();
        let Some(open) = self.calls.find(&call.id) else { return };
        match display {
            Display::TodoList(todos) => return self.plan(todos, open.parent.as_ref(), out),
            Display::FileDiff(change) => {
                let (diffs, locations) = content::diffs(change);
                update.content = Some(diffs);
                update.locations = Some(locations);
            }
            Display::Task(task) => {
                let words = format!("{} calls, {} tokens", task.tool_calls, task.tokens);
                update.content =
                    Some(vec![ToolContent::Content { content: ContentBlock::Text { text: words.into() } }]);
            }
            Display::Text(text) | Display::Plan { plan: text, .. } => {
                update.content = Some(vec![content::text(text)]);
            }
        }
        self.update_call(&call.id, open.parent.as_ref(), update, out);
    }

    fn end_call(&mut self, scope: &Scope, end: &ToolEnd, out: &mut Vec<u8>) {
        self.describe(scope, &end.call, out);
        let Some(open) = self.calls.close(&end.call.id) else { return };
        if let Some(qwen_events::Display::TodoList(todos)) = &end.display {
            self.plan(todos, open.parent.as_ref(), out);
        }
        let (contents, locations) = content::result(end, is_command(&end.call.name));
        let status = if end.status == ToolStatus::Success { "completed" } else { "failed" };
        self.end_agent(&open, status, out);
        let mut update = ToolUpdate {
            status: Some(status.into()),
            locations: (!locations.is_empty()).then_some(locations),
            raw_output: Some(content::raw_output(end)),
            ..ToolUpdate::default()
        };
        if open.has_terminal {
            let id = call_id(&end.call.id);
            update.meta = Some(
                json!({"terminal_exit": {"terminal_id": id, "exit_code": end.exit_code, "signal": null}}),
            );
        } else {
            update.content = Some(contents);
        }
        self.update_call(&end.call.id, open.parent.as_ref(), update, out);
    }

    /// Reports the status `failed` for a call that has no end event.
    fn fail(&self, call: &OpenCall, why: &str, out: &mut Vec<u8>) {
        self.end_agent(call, "cancelled", out);
        let update = ToolUpdate {
            status: Some("failed".into()),
            content: Some(vec![content::text(why)]),
            ..ToolUpdate::default()
        };
        self.update_call(&call.id, call.parent.as_ref(), update, out);
    }

    fn ask(&mut self, scope: &Scope, request_id: &str, request: &ControlCall, out: &mut Vec<u8>) {
        // Hooks and servers in the host do not exist on this wire.
        let ControlCall::CanUseTool { call, confirmation, reason, .. } = request else { return };
        self.describe(scope, call, out);
        if self.client.forms
            && ASK_QUESTION_TOOLS.contains(&&*call.name)
            && let Some(params) = permission::form(self.session_id.as_str(), call)
        {
            let (jsonrpc, method) = (Version::Word, ElicitationMethod::Word);
            return push_line(out, &Request { jsonrpc, id: request_id.into(), method, params });
        }
        let rule = permission::rule(call, confirmation);
        let described = describe(call, &self.cwd);
        let parent = self.calls.find(&call.id).and_then(|open| open.parent.as_ref());
        let params = PermissionRequest {
            session_id: self.session_id.as_str().into(),
            tool_call: ToolUpdate {
                tool_call_id: call_id(&call.id),
                title: Some(self.titled(parent, described.title).into()),
                kind: Some(described.kind.into()),
                status: Some("pending".into()),
                content: Some(content::confirmation(call, confirmation, reason)),
                locations: (!described.locations.is_empty()).then_some(described.locations),
                raw_input: Some(raw_input(call)),
                ..ToolUpdate::default()
            },
            options: permission::options(confirmation, rule.as_deref()),
            meta: rule.map(|rule| json!({"qwen": {"rule": rule}})),
        };
        let (jsonrpc, method) = (Version::Word, PermissionMethod::Word);
        push_line(out, &Request { jsonrpc, id: request_id.into(), method, params });
    }

    fn mode(&self, mode: &str, out: &mut Vec<u8>) {
        self.update(&SessionUpdate::CurrentModeUpdate { current_mode_id: mode.into() }, out);
    }

    fn notice(&mut self, severity: &'static str, text: &str, out: &mut Vec<u8>) {
        let title = one_line(text);
        if !self.client.notices || self.replays || title.is_empty() {
            return;
        }
        if let Some(early) = &mut self.early {
            early.notices.push((severity, title));
        } else {
            let notice =
                SessionUpdate::Notice { severity: severity.into(), title: title.into(), description: None };
            self.update(&notice, out);
        }
    }

    fn session_event(&mut self, event: &SessionEvent, out: &mut Vec<u8>) {
        match event {
            SessionEvent::Finished | SessionEvent::Cancelled => {}
            SessionEvent::Compressed { original_tokens, new_tokens, .. } => {
                if self.client.compaction {
                    self.compactions += 1;
                    let id = format!("compaction-{}", self.compactions);
                    let status = "completed".into();
                    self.update(&SessionUpdate::CompactionUpdate { compaction_id: id.into(), status }, out);
                } else {
                    let words = format!(
                        "The conversation was compressed from {original_tokens} to {new_tokens} tokens."
                    );
                    self.notice("info", &words, out);
                }
                if self.window > 0 && !self.replays {
                    self.used = *new_tokens;
                    self.usage(None, out);
                }
            }
            SessionEvent::MaxTokens { message } => self.notice("warning", message, out),
            SessionEvent::MaxTurns { limit } => {
                self.notice("warning", &format!("The limit of {limit} model calls was reached."), out);
            }
            SessionEvent::Retry { attempt, max_retries, error, .. } => {
                let words = format!("The model call failed (attempt {attempt} of {max_retries}): {error}");
                self.notice("warning", &words, out);
            }
            SessionEvent::Waiting { reason, delay_ms, .. } => {
                let seconds = delay_ms.div_ceil(1000);
                self.notice("info", &format!("Waiting {seconds} s for the model server: {reason}"), out);
            }
            SessionEvent::ModelFallback { from, to, reason } => {
                self.notice("warning", &format!("{to} continues in place of {from}: {reason}"), out);
            }
            SessionEvent::LoopDetected { message } => self.notice("warning", message, out),
            SessionEvent::ModeChanged { .. } if self.replays => {}
            SessionEvent::ModeChanged { mode } => match &mut self.early {
                Some(early) => early.mode = Some(mode.clone()),
                None => self.mode(mode, out),
            },
            SessionEvent::Steered { prompt_id, .. } if self.replays => {
                self.steered = Some(prompt_id.clone());
            }
            SessionEvent::Steered { prompt_id, .. } => {
                let prompt_id = Some(prompt_id.as_str().into());
                self.internal(InternalMethod::Steered, Internal { prompt_id, ..Internal::default() }, out);
            }
        }
    }

    fn task(&mut self, event: &TaskEvent, out: &mut Vec<u8>) {
        if let Some((_, words)) = crate::task::notice(event) {
            self.notice("info", &words, out);
        }
    }

    fn command(&mut self, result: &CommandResult, out: &mut Vec<u8>) {
        self.enter_session(&result.session_id, out);
        let text = match &result.body {
            CommandResultBody::SubmitPrompt { .. } => return,
            CommandResultBody::Message { content, .. } => content.to_string(),
            CommandResultBody::Dialog { name, data } => {
                format!("**{name}**\n```json\n{}\n```\n", data.as_str())
            }
            CommandResultBody::Tool { name, .. } => format!("Ran {name}."),
        };
        let prompt_id = result.prompt_id.as_str();
        self.push_message(&format!("{prompt_id}-command"), &text, out);
        let meta = Some(json!({"qwen": {"command": result.command.path.join(" ")}}));
        let result = PromptResult { stop_reason: StopReason::EndTurn, usage: None, meta };
        push_line(out, &PromptResponse { jsonrpc: Version::Word, id: prompt_id.into(), result });
    }

    fn end_turn(&mut self, end: &TurnEnd, out: &mut Vec<u8>) {
        if let Some(session_id) = &end.session_id {
            self.enter_session(session_id, out);
        }
        if self.prompt_id.as_ref() == Some(&end.prompt_id) {
            let closing = self.last.close(end);
            if !closing.streamed && !closing.content.is_empty() {
                self.push_message(&format!("{}-reply", end.prompt_id), &closing.content, out);
            }
            for call in self.calls.take_all() {
                self.fail(&call, "The turn ended before the call did.", out);
            }
            self.prompt_id = None;
        }
        if end.cost_usd > 0.0 {
            self.cost += end.cost_usd;
            if self.window > 0 && self.used > 0 && !self.replays {
                self.usage(Some(end.cost_usd), out);
            }
        }
        push_end(end, self.client.unstable_usage, out);
    }

    fn reply(&self, reply: &ControlReply, out: &mut Vec<u8>) {
        let request_id = Some(Cow::Borrowed(&*reply.request_id));
        let params = match &reply.result {
            Ok(json) => Internal {
                request_id,
                result: Some(RawJson(Cow::Borrowed(json.as_str()))),
                ..Internal::default()
            },
            Err(error) => Internal { request_id, error: Some(error_object(error)), ..Internal::default() },
        };
        self.internal(InternalMethod::ControlResponse, params, out);
    }

    fn error(&mut self, error: &ErrorInfo, out: &mut Vec<u8>) {
        if let Some(refused) = &error.refused {
            let response = ErrorResponse {
                jsonrpc: Version::Word,
                id: refused.prompt_id.as_str().into(),
                error: error_object(error),
            };
            return push_line(out, &response);
        }
        if self.prompt_id.is_some() {
            return self.notice("warning", &error.message, out);
        }
        let params = Internal { error: Some(error_object(error)), ..Internal::default() };
        self.internal(InternalMethod::Error, params, out);
    }
}

impl Encoder for AcpEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let scope = &event.scope;
        let is_main = scope.parent.is_none();
        match &event.body {
            Body::TextDelta(text) => self.text(scope, text, out),
            Body::ThoughtDelta(text) => self.thought(scope, text, out),
            Body::MessageStart { message_id, .. } if is_main => {
                self.message = OpenMessage::new(message_id, &self.head);
                if scope.thought.is_none() {
                    self.last = Last::Open;
                }
            }
            Body::MessageStart { message_id, .. } => {
                let parent = scope.parent.as_ref().and_then(|parent| self.calls.find_mut(parent));
                if let Some(parent) = parent {
                    parent.message_id = Some(message_id.to_string());
                }
            }
            Body::ToolCallDelta { call_id, name, .. } => self.announce(scope, call_id, name, out),
            Body::ToolCall(call) => self.describe(scope, call, out),
            Body::MessageEnd(end) => self.end_message(scope, end, out),
            Body::ToolStart(call) => self.start_call(scope, call, out),
            Body::ToolOutput { call, text, .. } => self.output(call, text, event.at, out),
            Body::ToolDisplay { call, display } => self.display(call, display, out),
            Body::ToolEnd(end) => self.end_call(scope, end, out),
            Body::ControlRequest { request_id, session_id, call, .. } => {
                self.enter_session(session_id, out);
                self.ask(scope, request_id, call, out);
            }
            Body::ControlCancel { request_id } => {
                let params = CancelParams { request_id: Cow::Borrowed(request_id) };
                push_line(out, &Notification::<CancelMethod, _>::new(params));
            }
            Body::TurnStart(start) if is_main => self.start_turn(start, out),
            Body::TurnEnd(end) if is_main => self.end_turn(end, out),
            Body::History(change) if is_main => self.steered_message(change, out),
            Body::Thinking(step) => self.step(step, out),
            Body::Session(event) if is_main => self.session_event(event, out),
            Body::Task(event) => self.task(event, out),
            Body::Console { level: ConsoleLevel::Warn, text, .. } => self.notice("warning", text, out),
            Body::Console { level: ConsoleLevel::Error, text, .. } => self.notice("error", text, out),
            Body::CommandResult(result) => self.command(result, out),
            Body::ControlReply(reply) => self.reply(reply, out),
            Body::Heartbeat(heartbeat) => {
                let session_id = Some(heartbeat.session_id.as_str().into());
                self.internal(InternalMethod::Heartbeat, Internal { session_id, ..Internal::default() }, out);
            }
            Body::Ready => {
                let protocol_version = Some(PROTOCOL_VERSION.into());
                self.internal(
                    InternalMethod::Ready,
                    Internal { protocol_version, ..Internal::default() },
                    out,
                );
            }
            Body::Error(error) => self.error(error, out),
            Body::Fatal(error) => {
                let params = Internal { error: Some(error_object(error)), ..Internal::default() };
                self.internal(InternalMethod::Fatal, params, out);
            }
            Body::Custom(value) => {
                let result = Some(RawJson(Cow::Borrowed(value.as_str())));
                self.internal(InternalMethod::Custom, Internal { result, ..Internal::default() }, out);
            }
            Body::TurnStart(..)
            | graph_events!()
            | Body::Resumed(..)
            | Body::ThoughtSignature(..)
            | Body::Decision { .. }
            | Body::Approval { .. }
            | Body::Session(..)
            | Body::RateLimit(..)
            | Body::Console { .. }
            | Body::Hook(..)
            | Body::History(..)
            | Body::TurnEnd(..)
            | Body::HintResult(..)
            | Body::CancelResult(..) => {}
        }
    }
}
