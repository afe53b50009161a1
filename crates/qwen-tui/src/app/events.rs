//! Handles events of the session.

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, CommandResult, CommandResultBody, ConsoleLevel, ControlCall, Display, ErrorInfo, Event,
    HookNotice, HookStep, SessionEvent, TaskEvent, TaskUpdate, ToolCall, ToolEnd, TurnEnd, TurnStart,
    graph_events, message_pieces,
};

use super::{Activity, Effect, Running, Terminal};
use crate::Millis;
use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine, clean_line, last_bytes};
use crate::view;

/// The number of output lines of a running command that are stored for the live region.
const TAIL: usize = 5;

/// The maximum stored length of an unterminated line.
const MAX_PARTIAL: usize = 4096;

/// The maximum stored length of a running thought.
const MAX_THOUGHT: usize = 4096;

impl Terminal {
    /// Processes an event that arrived at `now`.
    pub fn event(&mut self, event: &Event, now: Millis) {
        self.now = now;
        if let Some(parent) = &event.scope.parent {
            self.subagent_event(parent, &event.body);
        }
        // Output of a sub-agent or a thought stays inside it; only what concerns the user is shown.
        let is_own = event.scope.parent.is_none() && event.scope.thought.is_none();
        match &event.body {
            Body::TurnStart(start) => self.turn_start(start),
            Body::MessageStart { model, .. } if is_own => {
                self.options.model = clean_line(model);
                self.activity(Activity::Model);
            }
            Body::TextDelta(text) if is_own => {
                self.end_thought();
                self.activity(Activity::Answer);
                self.answer_delta(text);
            }
            Body::ThoughtDelta(text) if is_own => self.thought_delta(text),
            Body::ToolCallDelta { name, .. } if is_own => {
                self.end_thought();
                self.activity(Activity::Writing(clean_line(name)));
            }
            Body::MessageEnd(end) if is_own => {
                self.end_thought();
                self.answer_end();
                self.status.tokens = end.usage.total();
            }
            Body::ToolStart(call) if is_own => self.tool_start(call),
            Body::ToolOutput { call, text, .. } => self.tool_output(call, text),
            Body::ToolDisplay { call, display } => self.tool_display(call, display),
            Body::ToolEnd(end) if is_own => self.tool_end(end),
            Body::Thinking(step) => {
                let lines = self.work.thoughts.lines(step, self.marks);
                for line in &lines {
                    self.print_line(&line.line);
                }
            }
            Body::Session(notice) => self.notice_of(notice),
            Body::Task(task) => self.task(task),
            Body::Console { level: ConsoleLevel::Warn | ConsoleLevel::Error, text, .. } => self.note(text),
            Body::Console { level: ConsoleLevel::Debug | ConsoleLevel::Info, .. } => {}
            Body::Error(error) => self.error(error),
            Body::Fatal(error) => self.print_block(view::error(error, self.marks)),
            Body::TurnEnd(end) => self.turn_end(end),
            Body::CommandResult(result) => self.command_result(result),
            Body::HintResult(result) => self.hints(result),
            Body::ControlRequest { request_id, call, .. } => self.control_request(request_id, call),
            Body::ControlCancel { request_id } => {
                if self.questions.withdraw(request_id) {
                    self.notify("A request was withdrawn: a rule covers it, or it was answered elsewhere.");
                }
            }
            Body::ControlReply(reply) => {
                if let Err(error) = &reply.result {
                    self.print_block(view::error(error, self.marks));
                }
            }
            Body::Ready
            | graph_events!()
            | message_pieces!()
            | Body::MessageEnd(_)
            | Body::Decision { .. }
            | Body::Approval { .. }
            | Body::ToolStart(_)
            | Body::ToolEnd(_)
            | Body::RateLimit(_)
            | Body::Resumed(_)
            | Body::History(_)
            | Body::Custom(_)
            | Body::Heartbeat(_) => {}
            Body::Hook(notice) => self.hook(notice),
            Body::CancelResult(result) => {
                if let Some(prompt_id) = result.prompt_id.as_ref().filter(|_| result.cancelled) {
                    self.withdrawn(prompt_id);
                }
            }
        }
    }

    fn turn_start(&mut self, start: &TurnStart) {
        if self.phase.turn().is_none() {
            self.begin_turn(Some(start.prompt_id.clone()));
        }
        if let Some(turn) = self.phase.turn_mut() {
            turn.has_started = true;
        }
        self.status.session = Some(start.session_id.clone());
        self.options.model = clean_line(&start.model);
        self.options.mode = clean_line(&start.permission_mode);
    }

    fn thought_delta(&mut self, text: &str) {
        self.activity(Activity::Thinking);
        self.work.thought.push_str(text);
        if self.work.thought.len() > MAX_THOUGHT {
            self.work.thought = last_bytes(&self.work.thought, MAX_THOUGHT / 2).to_owned();
        }
    }

    fn error(&mut self, error: &ErrorInfo) {
        self.print_block(view::error(error, self.marks));
        if self.phase.turn().is_some_and(|turn| !turn.has_started) {
            // The prompt was refused: no turn follows.
            self.turn_over();
        }
    }

    fn control_request(&mut self, request_id: &Arc<str>, call: &ControlCall) {
        match call {
            ControlCall::CanUseTool { call, confirmation, reason, agent_id, .. } => {
                let request_id = request_id.clone();
                self.questions.add(request_id, call.clone(), confirmation, reason, agent_id.is_some());
                let title = self.questions.first().map(|question| question.title.clone());
                self.effects.push(Effect::Notify(title.unwrap_or_default()));
                if self.questions.len() == 1 {
                    self.print_question();
                }
            }
            // Hooks and MCP servers of a host: a terminal has none.
            ControlCall::HookCallback { .. } | ControlCall::McpMessage { .. } => {}
        }
    }

    fn hook(&mut self, notice: &HookNotice) {
        match &notice.step {
            HookStep::Started => self.work.hooks.push((notice.id.clone(), clean_line(&notice.name))),
            HookStep::Ended { .. } => self.work.hooks.retain(|(id, _)| *id != notice.id),
            HookStep::Said { text, .. } => self.note(text),
            HookStep::Progress(_) => {}
        }
    }

    fn activity(&mut self, activity: Activity) {
        if let Some(turn) = self.phase.turn_mut()
            && turn.activity != activity
            && turn.activity != Activity::Ending
        {
            turn.activity = activity;
            turn.since = self.now;
        }
    }

    /// Prints a finished thought as one line.
    fn end_thought(&mut self) {
        if self.work.thought.is_empty() {
            return;
        }
        self.work.thought.clear();
        let since = self.phase.turn().map_or(self.now, |turn| turn.since);
        let text = format!("Thought for {}.", view::seconds(self.now.saturating_sub(since)));
        self.print_block(vec![Rendered::logical(StyledLine::styled(text, Style::DIM))]);
    }

    fn tool_start(&mut self, call: &Arc<ToolCall>) {
        self.activity(Activity::Tools);
        let since = self.now;
        self.print_activity(&view::summary(call));
        let call = call.clone();
        self.work.running.push(Running {
            call,
            since,
            tail: VecDeque::new(),
            partial: String::new(),
            inside: None,
        });
    }

    fn running(&mut self, id: &CallId) -> Option<&mut Running> {
        self.work.running.iter_mut().find(|running| running.call.id == *id)
    }

    /// True while the turn waits for a shell command.
    pub(super) fn has_running_command(&self) -> bool {
        self.phase.turn().is_some() && self.work.running.iter().any(|running| view::is_command(&running.call))
    }

    fn tool_output(&mut self, call: &ToolCall, text: &str) {
        let Some(running) = self.running(&call.id) else { return };
        // Only the last lines can be shown, so only they are processed, however much arrives.
        let mut from = text.len();
        for _ in 0..=TAIL {
            from = text[..from].rfind('\n').unwrap_or(0);
        }
        if from > 0 {
            running.partial.clear();
        }
        for piece in text[from..].split_inclusive('\n') {
            running.partial.push_str(piece);
            if piece.ends_with('\n') {
                let line = std::mem::take(&mut running.partial);
                running.tail.push_back(line.trim_end_matches(['\n', '\r']).to_owned());
                if running.tail.len() > TAIL {
                    running.tail.pop_front();
                }
            } else if running.partial.len() > MAX_PARTIAL {
                running.partial = last_bytes(&running.partial, MAX_PARTIAL / 2).to_owned();
            }
        }
    }

    fn tool_display(&mut self, call: &ToolCall, display: &Display) {
        match display {
            Display::TodoList(todos) => self.work.todos.clone_from(todos),
            Display::Task(task) => {
                let text = view::spent(task);
                if let Some(running) = self.running(&call.id) {
                    running.inside = Some(text);
                }
            }
            Display::Text(_) | Display::FileDiff(_) | Display::Plan { .. } => {}
        }
    }

    fn tool_end(&mut self, end: &ToolEnd) {
        let started = self.running(&end.call.id).map(|running| running.call.clone());
        self.work.running.retain(|running| running.call.id != end.call.id);
        if let Some(Display::TodoList(todos)) = &end.display {
            self.work.todos.clone_from(todos);
        }
        let mut lines = view::finished_call(end, started.as_deref(), self.marks, &self.output_limit(end));
        let is_declined = self.work.declined.iter().any(|id| *id == end.call.id);
        self.work.declined.retain(|id| *id != end.call.id);
        if is_declined {
            // The user's own words are printed already.
            lines.truncate(view::title_rows(&end.call));
        } else if let Some(Display::TodoList(todos)) = end.display.as_ref().filter(|_| self.shows_todos()) {
            // The list itself is in the live region.
            lines = vec![view::todo_summary(todos, self.marks)];
            if let Some(turn) = self.phase.turn_mut() {
                turn.has_todos = true;
            }
        }
        self.print_block(lines);
        if self.work.running.is_empty() {
            self.activity(Activity::Model);
        }
    }

    /// True if the live region shows the todo list.
    fn shows_todos(&self) -> bool {
        !self.options.plain && self.work.show_tasks && self.phase.turn().is_some()
    }

    /// Handles an event inside the sub-agent of a call.
    fn subagent_event(&mut self, parent: &CallId, body: &Body) {
        let words = if let Body::ToolStart(call) = body {
            view::summary(call)
        } else if let Body::MessageStart { .. } = body {
            "thinking".to_owned()
        } else {
            return;
        };
        if let Some(running) = self.running(parent) {
            running.inside = Some(words);
        }
    }

    fn task(&mut self, event: &TaskEvent) {
        let task = &event.task;
        if !task.background {
            return;
        }
        let name = clean_line(&task.description);
        match &event.news {
            TaskUpdate::Started => self.work.tasks.push((task.id.clone(), name)),
            TaskUpdate::Progress { last_tool, .. } => {
                if let Some((_, shown)) = self.work.tasks.iter_mut().find(|(id, _)| *id == task.id)
                    && let Some(tool) = last_tool
                {
                    *shown = format!("{name}: {}", clean_line(tool));
                }
            }
            TaskUpdate::Ended(end) => {
                self.work.tasks.retain(|(id, _)| *id != task.id);
                let summary = clean_line(&end.summary);
                let name = if summary.contains(&name) { String::new() } else { format!("{name}: ") };
                let text = format!("Task {}: {name}{summary}", end.status.name());
                self.note(&text);
            }
        }
    }

    fn notice_of(&mut self, notice: &SessionEvent) {
        match notice {
            SessionEvent::Retry { attempt, max_retries, delay_ms, error, .. } => {
                self.activity(Activity::Retry(view::retry(*attempt, *max_retries, *delay_ms, error)));
            }
            SessionEvent::Waiting { reason, delay_ms, .. } => {
                let seconds = delay_ms.div_ceil(1000);
                self.note(&format!("Waiting {seconds} s for the model's server: {reason}"));
            }
            SessionEvent::ModelFallback { from, to, reason } => {
                self.note(&format!("{from} failed ({reason}); continuing with {to}"));
            }
            SessionEvent::LoopDetected { message } | SessionEvent::MaxTokens { message } => {
                self.note(message);
            }
            SessionEvent::Compressed { original_tokens, new_tokens, manual } => {
                self.status.tokens = *new_tokens;
                // The result of the command that asked for it states the same.
                if !manual {
                    self.note(&format!(
                        "The conversation was compressed from {original_tokens} to {new_tokens} tokens."
                    ));
                }
            }
            SessionEvent::ModeChanged { mode } => self.options.mode = clean_line(mode),
            SessionEvent::Finished | SessionEvent::Cancelled | SessionEvent::MaxTurns { .. } => {}
            SessionEvent::Steered { prompt_id, .. } => {
                if let Some(text) = self.remove_steer(prompt_id) {
                    self.print_prompt(&text);
                }
            }
        }
    }

    /// Prints a notice line.
    pub(super) fn note(&mut self, text: &str) {
        let lines =
            text.lines().map(|line| Rendered::prose(StyledLine::styled(line, Style::color(Color::Yellow))));
        let lines = lines.collect();
        self.print_block(lines);
    }

    fn turn_end(&mut self, end: &TurnEnd) {
        let Some(turn) = self.phase.turn() else { return };
        if turn.prompt_id.as_ref().is_some_and(|id| *id != end.prompt_id) {
            return;
        }
        let started = turn.started;
        let ended = turn.ended.clone();
        let has_todos = turn.has_todos;
        self.end_thought();
        self.answer_end();
        if has_todos {
            self.print_block(view::todo_lines(&self.work.todos, self.marks));
        }
        self.status.cost += end.cost_usd;
        self.print_block(view::turn_end(end, ended.as_deref(), self.marks));
        if self.status.focused == Some(false) && self.now.saturating_sub(started) > 2000 {
            self.effects.push(Effect::Notify("Done".to_owned()));
        }
        self.turn_over();
    }

    fn turn_over(&mut self) {
        self.phase.end_turn();
        self.work.running.clear();
        self.work.hooks.clear();
        self.questions.end_turn(!self.work.tasks.is_empty());
        self.work.thought.clear();
        if !self.begin_left_over() {
            self.send_next();
        }
    }

    fn command_result(&mut self, result: &CommandResult) {
        if !self.show_result(result) {
            return;
        }
        self.remove_steer(&result.prompt_id);
        let is_over = !matches!(result.body, CommandResultBody::SubmitPrompt { .. });
        let is_this = |id: &qwen_events::PromptId| *id == result.prompt_id;
        if is_over && self.phase.turn().and_then(|turn| turn.prompt_id.as_ref()).is_some_and(is_this) {
            self.turn_over();
        }
    }
}
