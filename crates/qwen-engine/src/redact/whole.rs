//! Redacts complete texts in events. Names and ids are not expected to hold secrets and stay unchanged.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    Body, CommandResultBody, Confirmation, ControlCall, Display, ErrorInfo, FileDiff, HintResult,
    HistoryChange, HookStep, Journal, Json, Message, MessageEnd, Part, SessionEvent, TaskEvent, TaskUpdate,
    Thinking, ToolCall, TurnEnd,
};
use qwen_redact::Redactor;

use super::calls::Calls;

/// Redacts texts in place.
pub(super) struct Whole<'a> {
    pub redactor: &'a Redactor,
    pub calls: &'a mut Calls,
}

impl Whole<'_> {
    /// Redacts the texts of an event, except pieces of texts, which are redacted while they stream.
    pub fn body(&mut self, body: &mut Body) {
        match body {
            Body::TextDelta(_) | Body::ThoughtDelta(_) | Body::ToolCallDelta { .. } => {}
            Body::Ready
            | Body::NodeEnter
            | Body::MessageStart { .. }
            | Body::ThoughtSignature(_)
            | Body::Heartbeat(_)
            | Body::CancelResult(_)
            | Body::ThoughtUsage(_)
            | Body::RateLimit(_)
            | Body::ControlCancel { .. } => {}
            Body::TurnStart(start) => {
                self.text(&mut start.message);
                self.parts(&mut start.parts);
            }
            Body::NodeExit { error } => self.optional(error),
            Body::ToolCall(call) | Body::ToolStart(call) | Body::ToolOutput { call, .. } => self.call(call),
            Body::MessageEnd(end) => self.message_end(end),
            Body::Decision { call, decision } => {
                self.call(call);
                self.text(&mut decision.reason);
            }
            Body::Approval { call, confirmation, reason } => {
                self.call(call);
                self.confirmation(confirmation);
                self.text(reason);
            }
            Body::ToolDisplay { call, display } => {
                self.call(call);
                self.display(display);
            }
            Body::ToolEnd(end) => {
                self.call(&mut end.call);
                self.text(&mut end.text);
                end.display.iter_mut().for_each(|display| self.display(display));
            }
            Body::State(state) | Body::Custom(state) => self.json(state),
            Body::Checkpoint(checkpoint) => self.json(&mut checkpoint.state),
            Body::Thinking(thinking) => self.thinking(thinking),
            Body::Journal(journal) => match &mut **journal {
                Journal::Base { state: json, .. }
                | Journal::Effect { value: json, .. }
                | Journal::Step { delta: json, .. } => self.json(json),
            },
            Body::Session(notice) => self.notice(notice),
            Body::Task(event) => self.task(event),
            Body::Resumed(_) => {}
            Body::Console { text, .. } => {
                if let Cow::Owned(clean) = self.redactor.redact(text) {
                    *text = clean.into();
                }
            }
            Body::Hook(notice) => self.hook(&mut notice.step),
            Body::History(change) => self.history(change),
            Body::Error(error) | Body::Fatal(error) => self.error(error),
            Body::TurnEnd(end) => self.turn_end(end),
            Body::CommandResult(result) => {
                self.text(&mut result.command.args);
                self.command_result(&mut result.body);
            }
            Body::HintResult(result) => self.hints(result),
            Body::ControlRequest { call, .. } => self.control(call),
            Body::ControlReply(reply) => match &mut reply.result {
                Ok(json) => self.json(json),
                Err(error) => self.error(error),
            },
        }
    }

    fn message_end(&mut self, end: &mut MessageEnd) {
        self.text(&mut end.text);
        self.text(&mut end.thought);
        for block in &mut end.thoughts {
            self.text(&mut block.text);
        }
        for call in &mut end.calls {
            self.call(call);
        }
    }

    fn history(&mut self, change: &mut HistoryChange) {
        let messages = match change {
            HistoryChange::Added(messages) | HistoryChange::Replaced(messages) => messages,
            // It is redacted when it is described.
            HistoryChange::Situation(_) => return,
        };
        for Message { parts, .. } in messages {
            self.parts(parts);
        }
    }

    fn turn_end(&mut self, end: &mut TurnEnd) {
        self.errors(end.error.as_mut_slice());
        self.text(&mut end.reply);
        for denial in &mut end.denials {
            self.json(&mut denial.arguments);
            self.text(&mut denial.reason);
        }
        self.errors(&mut end.control_errors);
        if let Some(call) = &mut end.postponed {
            self.call(call);
        }
        if let Some(json) = &mut end.structured {
            self.json(json);
        }
    }

    fn command_result(&self, body: &mut CommandResultBody) {
        match body {
            CommandResultBody::Message { content, .. } | CommandResultBody::SubmitPrompt { content } => {
                self.text(content);
            }
            CommandResultBody::Dialog { data: json, .. }
            | CommandResultBody::Tool { arguments: json, .. } => self.json(json),
        }
    }

    fn hints(&self, result: &mut HintResult) {
        for suggestion in &mut result.suggestions {
            self.text(&mut suggestion.label);
            self.text(&mut suggestion.value);
            self.optional(&mut suggestion.description);
        }
        self.optional(&mut result.message);
    }

    fn hook(&self, step: &mut HookStep) {
        match step {
            HookStep::Started => {}
            HookStep::Progress(output) | HookStep::Ended { output, .. } => {
                for text in [&mut output.stdout, &mut output.stderr, &mut output.output] {
                    self.text(text);
                }
            }
            HookStep::Said { text, .. } => self.text(text),
        }
    }

    fn text(&self, text: &mut Arc<str>) {
        if let Cow::Owned(clean) = self.redactor.redact(text) {
            *text = clean.into();
        }
    }

    fn optional(&self, text: &mut Option<Arc<str>>) {
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn texts(&self, texts: &mut [Arc<str>]) {
        for text in texts {
            self.text(text);
        }
    }

    fn errors(&self, errors: &mut [ErrorInfo]) {
        for error in errors {
            self.error(error);
        }
    }

    fn json(&self, json: &mut Json) {
        if let Cow::Owned(clean) = self.redactor.redact_json(json.as_str()) {
            *json = Json::trusted(clean);
        }
    }

    fn call(&mut self, call: &mut Arc<ToolCall>) {
        *call = self.calls.clean(self.redactor, call);
    }

    fn error(&self, error: &mut ErrorInfo) {
        self.text(&mut error.message);
    }

    fn parts(&mut self, parts: &mut [Part]) {
        for part in parts {
            match part {
                Part::Text(text) | Part::Thought { text, .. } => self.text(text),
                Part::Call(call) => self.call(call),
                Part::Result(result) => self.text(&mut result.text),
                Part::Media(_) => {}
            }
        }
    }

    fn confirmation(&self, confirmation: &mut Confirmation) {
        match confirmation {
            Confirmation::Edit(diff) => self.diff(diff),
            Confirmation::Exec { command, root_command } => {
                self.text(command);
                self.text(root_command);
            }
            Confirmation::Mcp { .. } => {}
            Confirmation::Info { prompt, urls } => {
                self.text(prompt);
                self.texts(urls);
            }
            Confirmation::Plan { plan } => self.text(plan),
        }
    }

    fn display(&self, display: &mut Display) {
        match display {
            Display::Text(text) => self.text(text),
            Display::FileDiff(diff) => self.diff(diff),
            Display::TodoList(todos) => {
                for todo in todos {
                    self.text(&mut todo.content);
                }
            }
            Display::Plan { message, plan } => {
                self.text(message);
                self.text(plan);
            }
            Display::Task(task) => {
                self.text(&mut task.description);
                self.optional(&mut task.result);
            }
        }
    }

    fn diff(&self, diff: &mut FileDiff) {
        self.text(&mut diff.diff);
        self.optional(&mut diff.original);
        self.text(&mut diff.modified);
    }

    fn thinking(&self, thinking: &mut Thinking) {
        match thinking {
            Thinking::TotExpand { candidates } => self.texts(candidates),
            Thinking::TotBacktrack { reason: text, .. }
            | Thinking::GotNodeComplete { result_summary: text, .. }
            | Thinking::GotNodeFailed { error: text, .. } => self.text(text),
            Thinking::TotEvaluate { .. }
            | Thinking::GotPlan { .. }
            | Thinking::GotNodeStart { .. }
            | Thinking::GotExpand { .. } => {}
        }
    }

    fn task(&self, event: &mut TaskEvent) {
        if let Cow::Owned(clean) = self.redactor.redact(&event.task.description) {
            Arc::make_mut(&mut event.task).description = clean.into();
        }
        if let TaskUpdate::Ended(end) = &mut event.news {
            self.text(&mut end.summary);
        }
    }

    fn notice(&self, notice: &mut SessionEvent) {
        match notice {
            SessionEvent::Retry { error: text, .. }
            | SessionEvent::ModelFallback { reason: text, .. }
            | SessionEvent::Waiting { reason: text, .. }
            | SessionEvent::MaxTokens { message: text }
            | SessionEvent::LoopDetected { message: text } => self.text(text),
            SessionEvent::Finished
            | SessionEvent::Compressed { .. }
            | SessionEvent::MaxTurns { .. }
            | SessionEvent::Cancelled
            | SessionEvent::ModeChanged { .. }
            | SessionEvent::Steered { .. } => {}
        }
    }

    /// Redacts what the host is asked. A message for an MCP server in the host is the call itself, not a
    /// report of it, so it is not changed, like the arguments of a command that runs.
    fn control(&mut self, call: &mut ControlCall) {
        match call {
            ControlCall::CanUseTool { call, confirmation, reason, .. } => {
                self.call(call);
                self.confirmation(confirmation);
                self.text(reason);
            }
            ControlCall::HookCallback { input, .. } => self.json(input),
            ControlCall::McpMessage { .. } => {}
        }
    }
}
