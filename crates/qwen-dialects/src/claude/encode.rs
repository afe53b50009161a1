//! Encodes events as lines of the `claude` dialect.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    Body, CallId, CommandResult, CommandResultBody, ConsoleLevel, ControlCall, Decision, ErrorInfo,
    ErrorKind, Event, HookNotice, HookStep, Level, ModelUsage, SessionEvent, Timestamp, ToolEnd, ToolStatus,
    TurnEnd, TurnStart, Usage, Verdict, graph_events,
};

use super::blocks::Speaker;
use super::outcome::{PromptEcho, ReportedUsage};
use super::rate_limit;
use super::stream::Stream;
use super::stream::limit::{fitted, text_limit};
use super::task::Tasks;
use super::thinking::sentence;
use super::wire::control::{ControlRequest, question};
use super::wire::message::{Content, UserMessage, UserRole};
use super::wire::stream_event::{Progress, StreamEvent};
use super::wire::{
    CompactMetadata, ConversationReset, Init, Message, Notice, ServerState, SessionState, UserLine,
};
use super::words::{CLAUDE_CODE_VERSION, TOOL_DEFERRED, api_error_kind, claude_mode, qwen_mode};
use crate::dialect::{Encoder, StreamInfo};
use crate::flat::{control_response, push_flat};
use crate::line::push_line;
use crate::loom::rfc3339;
use crate::payload::Payload;

/// Writes the `claude` dialect.
#[derive(Debug)]
pub struct ClaudeEncoder {
    stream: Stream,
    reader: ReaderOptions,
    main: Speaker,
    sub_agents: Vec<Speaker>,
    /// Unanswered permission requests: the request's id and the call.
    questions: Vec<(Arc<str>, CallId)>,
    /// Running commands, for readers that receive progress.
    running: Vec<Running>,
    tasks: Tasks,
    /// Permission requests of background sub-agents, for a reader that reads nothing between two turns.
    held_questions: Vec<(Arc<str>, ControlCall)>,
    in_turn: bool,
    /// The warning in the last line of a hook.
    warned: Box<str>,
    /// True if the last event is a cancelled or refused call: a cancel now concerns the tools.
    tool_cancelled: bool,
    /// The line that started the turn.
    echo: PromptEcho,
    /// Decisions against calls that were not asked about, for hosts of Claude's family.
    decisions: Vec<(CallId, Decision)>,
    totals: SessionTotals,
}

/// The options of the reader, fixed for the whole stream.
#[derive(Debug)]
struct ReaderOptions {
    version: &'static str,
    plugins: Vec<(Arc<str>, Arc<str>)>,
    output_style: Arc<str>,
    session_state: bool,
    /// True if the reader is one of Claude's SDKs, which accept `rate_limit_event`: they never send a prompt
    /// as text.
    rate_limits: bool,
    replay_user_messages: bool,
}

/// The usage of all turns of the session so far.
#[derive(Debug, Default)]
struct SessionTotals {
    usage: Usage,
    by_model: Vec<ModelUsage>,
    cost_usd: f64,
}

impl SessionTotals {
    fn add(&mut self, end: &TurnEnd) {
        self.usage.add(&end.usage);
        self.cost_usd += end.cost_usd;
        self.add_shares(&end.usage_by_model);
    }

    /// Adds what turns spent whose ends this stream does not contain.
    fn add_models(&mut self, spent: &[ModelUsage]) {
        for model in spent {
            self.usage.add(&model.usage);
            self.cost_usd += model.cost_usd;
        }
        self.add_shares(spent);
    }

    fn add_shares(&mut self, by_model: &[ModelUsage]) {
        for more in by_model {
            match self.by_model.iter_mut().find(|known| known.model == more.model) {
                Some(known) => {
                    known.calls += more.calls;
                    known.usage.add(&more.usage);
                    known.cost_usd += more.cost_usd;
                }
                None => self.by_model.push(more.clone()),
            }
        }
    }
}

/// A running tool.
#[derive(Debug)]
struct Running {
    call: CallId,
    since: Timestamp,
    lines: u64,
    bytes: u64,
}

impl Encoder for ClaudeEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let parent = event.scope.parent.as_ref();
        match &event.body {
            Body::TextDelta(piece) => self.write_as(parent, |agent, stream| agent.text(stream, out, piece)),
            Body::ThoughtDelta(piece) => {
                self.write_as(parent, |agent, stream| agent.thought(stream, out, piece));
            }
            Body::ThoughtSignature(signature) => self.write_as(parent, |agent, _| agent.sign(signature)),
            Body::ToolCallDelta { call_id, name, arguments, .. } => {
                self.write_as(parent, |agent, stream| agent.arguments(stream, out, call_id, name, arguments));
            }
            Body::ToolCall(call) => self.write_as(parent, |agent, stream| agent.call(stream, out, call)),
            Body::MessageStart { message_id, model } => {
                self.tool_cancelled &= parent.is_some();
                self.write_as(parent, |agent, stream| agent.start(stream, out, message_id, model));
            }
            Body::MessageEnd(end) => self.write_as(parent, |agent, stream| agent.end(stream, out, end)),
            Body::TurnStart(start) if parent.is_none() => self.turn_start(start, out),
            Body::TurnEnd(end) if parent.is_none() => self.turn_end(end, out),
            Body::ToolStart(call) => {
                self.answered(out, |_, asked| *asked == call.id);
                if self.stream.partial && self.stream.qwen_sdk {
                    self.running.push(Running { call: call.id.clone(), since: event.at, lines: 0, bytes: 0 });
                }
            }
            Body::ToolOutput { call, text, .. } => self.progress(&call.id, parent, event.at, text, out),
            Body::ToolEnd(end) => self.tool_end(end, parent, out),
            Body::Decision { call, decision }
                if self.stream.claude_host && decision.verdict != Verdict::Allow =>
            {
                self.decisions.push((call.id.clone(), decision.clone()));
            }
            Body::Approval { call, .. } if self.stream.claude_host => {
                self.decisions.retain(|(asked, _)| *asked != call.id);
            }
            Body::Session(notice) => self.session_event(notice, out),
            // Outside a turn Qwen's Java SDK reads one line for each of its requests.
            Body::Hook(_) if self.stream.qwen_sdk && !self.in_turn => {}
            Body::Hook(notice) => self.hook(notice, out),
            Body::Console { level: ConsoleLevel::Warn | ConsoleLevel::Error, text, .. } if self.in_turn => {
                self.write_warning(text, out);
            }
            Body::Task(task) if self.must_stay_silent() => self.tasks.hold(task, event.at),
            Body::Task(task) => self.tasks.write_event(&mut self.stream, task, event.at, out),
            Body::RateLimit(limit) if self.reader.rate_limits => {
                rate_limit::push(&mut self.stream, limit, out);
            }
            Body::Resumed(spent) => self.totals.add_models(spent),
            Body::Thinking(step) => {
                self.stream.push_system(out, Notice::ThinkingProgress { text: sentence(step).into() });
            }
            Body::Custom(value) => {
                self.stream.push_system(out, Notice::Custom { value: Payload::new(value) });
            }
            Body::Error(error) => self.error(error, out),
            Body::CommandResult(result) => self.command_result(result, event.at, out),
            Body::ControlRequest { request_id, call, .. } => self.control_request(request_id, call, out),
            Body::ControlReply(reply) => push_line(out, &Message::ControlResponse(control_response(reply))),
            Body::ControlCancel { request_id } => self.withdraw(request_id, out),
            Body::Heartbeat(_) | Body::HintResult(_) | Body::CancelResult(_) => {
                push_flat(event, out);
            }
            Body::Fatal(error) => {
                self.stream.push_fatal(out, error);
                self.state(SessionState::Idle, out);
            }
            Body::Ready
            | Body::TurnStart(_)
            | graph_events!()
            | Body::Decision { .. }
            | Body::Approval { .. }
            | Body::ToolDisplay { .. }
            | Body::RateLimit(_)
            | Body::Console { .. }
            | Body::History(_)
            | Body::TurnEnd(_) => {}
        }
    }
}

impl ClaudeEncoder {
    /// Writes a warning, unless the line of a hook contained it.
    fn write_warning(&mut self, text: &str, out: &mut Vec<u8>) {
        if *std::mem::take(&mut self.warned) != *text {
            self.stream.push_warning(out, text);
        }
    }

    /// An encoder for the stream that `info` describes.
    pub fn new(info: &StreamInfo) -> Self {
        Self {
            stream: Stream::new(info),
            reader: ReaderOptions {
                version: info.version,
                plugins: info.plugins.clone(),
                output_style: info.output_style.clone(),
                session_state: info.session_state,
                rate_limits: !info.qwen_sdk && info.input_format != "text",
                replay_user_messages: info.replay_user_messages,
            },
            main: Speaker::default(),
            sub_agents: Vec::new(),
            questions: Vec::new(),
            running: Vec::new(),
            tasks: Tasks::default(),
            held_questions: Vec::new(),
            in_turn: false,
            warned: Box::default(),
            tool_cancelled: false,
            echo: PromptEcho::default(),
            decisions: Vec::new(),
            totals: SessionTotals::default(),
        }
    }

    /// Calls `write` with the agent that an event belongs to and the stream to write to.
    fn write_as(&mut self, parent: Option<&CallId>, write: impl FnOnce(&mut Speaker, &mut Stream)) {
        let speaker = match parent {
            None => &mut self.main,
            Some(parent) => {
                let known =
                    self.sub_agents.iter().position(|speaker| speaker.parent.as_ref() == Some(parent));
                let at = known.unwrap_or_else(|| {
                    self.sub_agents.push(Speaker::new(Some(parent.clone())));
                    self.sub_agents.len() - 1
                });
                &mut self.sub_agents[at]
            }
        };
        write(speaker, &mut self.stream);
    }

    fn hook(&mut self, notice: &HookNotice, out: &mut Vec<u8>) {
        if let HookStep::Said { text, failed: true } = &notice.step {
            self.warned = (&**text).into();
        }
        self.stream.push_hook(out, notice);
    }

    fn control_request(&mut self, request_id: &Arc<str>, call: &ControlCall, out: &mut Vec<u8>) {
        let is_from_background = self.tasks.is_from_background_agent(call);
        if self.must_stay_silent() && is_from_background {
            self.held_questions.push((request_id.clone(), call.clone()));
            return;
        }
        self.push_control_request(request_id, call, out);
        if let ControlCall::CanUseTool { call: asked, .. } = call
            && !is_from_background
        {
            self.questions.push((request_id.clone(), asked.id.clone()));
            self.state(SessionState::RequiresAction, out);
        }
    }

    fn push_control_request(&self, request_id: &str, call: &ControlCall, out: &mut Vec<u8>) {
        let request = question(call, &self.stream);
        push_line(out, &Message::ControlRequest(ControlRequest { request_id: request_id.into(), request }));
    }

    /// Withdraws a control request; one that was held back was never written.
    fn withdraw(&mut self, request_id: &Arc<str>, out: &mut Vec<u8>) {
        let held = self.held_questions.len();
        self.held_questions.retain(|(asked, _)| asked != request_id);
        if self.held_questions.len() < held {
            return;
        }
        push_line(out, &Message::ControlCancelRequest { request_id: request_id.as_ref().into() });
        self.answered(out, |asked, _| asked == request_id);
    }

    fn turn_start(&mut self, start: &TurnStart, out: &mut Vec<u8>) {
        self.stream.session_id = start.session_id.clone();
        self.main = Speaker::default();
        self.sub_agents.clear();
        self.questions.clear();
        self.running.clear();
        self.in_turn = true;
        self.tool_cancelled = false;
        self.decisions.clear();
        self.echo = PromptEcho { origin: start.message_origin.clone(), uuid: start.message_uuid.clone() };
        let plugins: Vec<_> = (self.reader.plugins.iter())
            .map(|(name, path)| serde_json::json!({"name": &**name, "path": &**path}))
            .collect();
        let init = Init {
            cwd: start.cwd.as_ref().into(),
            tools: words(&start.tools),
            mcp_servers: start
                .mcp_servers
                .iter()
                .map(|server| ServerState {
                    name: server.name.as_ref().into(),
                    status: server.status.as_ref().into(),
                })
                .collect(),
            model: start.model.as_ref().into(),
            permission_mode_claude: claude_mode(&start.permission_mode).into(),
            permission_mode: qwen_mode(&start.permission_mode).into(),
            slash_commands: words(&start.slash_commands),
            api_key_source: start.key_source.as_ref().into(),
            claude_code_version: CLAUDE_CODE_VERSION.into(),
            qwen_code_version: self.reader.version.into(),
            output_style: self.reader.output_style.as_ref().into(),
            agents: words(&start.agents),
            skills: words(&start.skills),
            plugins: plugins.iter().map(Payload::from_value).collect(),
        };
        if self.stream.qwen_sdk {
            // Qwen's CLI names this line after its session.
            let uuid = self.stream.session_id.clone();
            self.stream.push_system_as(out, Notice::Init(Box::new(init)), uuid.as_str());
        } else {
            self.stream.push_system(out, Notice::Init(Box::new(init)));
        }
        if self.reader.replay_user_messages {
            let minted = self.stream.uuids.next();
            push_line(
                out,
                &Message::User(UserLine {
                    uuid: Some(start.message_uuid.as_deref().unwrap_or(minted.as_str()).into()),
                    session_id: Some(self.stream.session_id.as_str().into()),
                    parent_tool_use_id: None,
                    message: UserMessage {
                        role: UserRole::User,
                        content: Content::Text(self.fitting(&start.message)),
                    },
                    tool_use_result: None,
                    is_replay: true,
                }),
            );
        }
        self.state(SessionState::Running, out);
        self.tasks.release(&mut self.stream, out);
        for (request_id, call) in std::mem::take(&mut self.held_questions) {
            self.push_control_request(&request_id, &call, out);
        }
    }

    /// True if no unsolicited line may be written: outside a turn Qwen's Java SDK reads one line for each
    /// of its requests, and would mistake any other line for the answer.
    fn must_stay_silent(&self) -> bool {
        self.stream.qwen_sdk && !self.in_turn
    }

    /// `text`, truncated in the middle if one line cannot hold it.
    fn fitting<'a>(&self, text: &'a str) -> Cow<'a, str> {
        fitted(text, text_limit(self.stream.longest))
    }

    fn turn_end(&mut self, end: &TurnEnd, out: &mut Vec<u8>) {
        self.totals.add(end);
        // Qwen's SDKs expect the tokens of the whole session here, Claude's those of the turn. Both read the
        // cost, and each model's share of it, as a running total.
        let usage = if self.stream.qwen_sdk { self.totals.usage } else { end.usage };
        let spent =
            ReportedUsage { usage: &usage, by_model: &self.totals.by_model, cost_usd: self.totals.cost_usd };
        let echo = std::mem::take(&mut self.echo);
        self.stream.push_turn_end(out, end, &spent, &echo, self.tool_cancelled);
        self.questions.clear();
        self.in_turn = false;
        self.state(SessionState::Idle, out);
    }

    fn tool_end(&mut self, end: &ToolEnd, parent: Option<&CallId>, out: &mut Vec<u8>) {
        self.answered(out, |_, asked| *asked == end.call.id);
        self.running.retain(|running| running.call != end.call.id);
        self.sub_agents.retain(|speaker| speaker.parent.as_ref() != Some(&end.call.id));
        if parent.is_none() {
            self.tool_cancelled = matches!(end.status, ToolStatus::Cancelled | ToolStatus::Denied);
        }
        if end.error_code == Some(TOOL_DEFERRED) {
            // It has no result: the `result` of the turn names it.
            return;
        }
        let decision = self.decisions.iter().position(|(call, _)| *call == end.call.id);
        let decision = decision.map(|at| self.decisions.swap_remove(at).1);
        if let Some(decision) = decision.filter(|_| end.status == ToolStatus::Denied) {
            self.push_denial(end, &decision, parent, out);
        }
        self.stream.push_tool_result(out, parent.map(CallId::as_str), end);
    }

    /// Says that a call was refused without a question.
    fn push_denial(
        &mut self,
        end: &ToolEnd,
        decision: &Decision,
        parent: Option<&CallId>,
        out: &mut Vec<u8>,
    ) {
        let room = text_limit(self.stream.longest) / 4;
        let notice = Notice::PermissionDenied {
            tool_name: end.call.name.as_ref().into(),
            tool_use_id: end.call.id.as_str().into(),
            agent_id: parent.map(|agent| agent.as_str().into()),
            decision_reason_type: Some(if decision.rule.is_some() { "rule" } else { "mode" }.into()),
            decision_reason: Some(fitted(&decision.reason, room)),
            message: fitted(&end.text, room),
        };
        self.stream.push_system(out, notice);
    }

    fn progress(
        &mut self,
        call: &CallId,
        parent: Option<&CallId>,
        at: Timestamp,
        text: &str,
        out: &mut Vec<u8>,
    ) {
        let Some(running) = self.running.iter_mut().find(|running| running.call == *call) else { return };
        running.bytes += text.len() as u64;
        running.lines += text.bytes().filter(|byte| *byte == b'\n').count() as u64;
        let content = Progress::ShellProgress {
            elapsed_ms: at.0.saturating_sub(running.since.0),
            total_lines: running.lines,
            total_bytes: running.bytes,
        };
        let event = StreamEvent::ToolProgress { tool_use_id: call.as_str().into(), content };
        self.stream.push_event(out, parent.map(CallId::as_str), event);
    }

    fn session_event(&mut self, notice: &SessionEvent, out: &mut Vec<u8>) {
        if self.must_stay_silent() {
            return;
        }
        let notice = match notice {
            SessionEvent::Compressed { original_tokens, new_tokens, manual } => Notice::CompactBoundary {
                compact_metadata: CompactMetadata {
                    trigger: if *manual { "manual" } else { "auto" }.into(),
                    pre_tokens: *original_tokens,
                    post_tokens: Some(*new_tokens),
                },
            },
            SessionEvent::Retry { attempt, max_retries, delay_ms, status, error } => Notice::ApiRetry {
                attempt: *attempt,
                max_retries: *max_retries,
                retry_delay_ms: *delay_ms,
                error_status: *status,
                error: api_error_kind(*status).into(),
                message: error.as_ref().into(),
            },
            // Hosts of this dialect know only retries; attempt 0 of 0 is a wait that does not count.
            SessionEvent::Waiting { reason, delay_ms, status, .. } => Notice::ApiRetry {
                attempt: 0,
                max_retries: 0,
                retry_delay_ms: *delay_ms,
                error_status: *status,
                error: api_error_kind(*status).into(),
                message: reason.as_ref().into(),
            },
            SessionEvent::ModelFallback { from, to, reason } => Notice::ModelFallback {
                from: from.as_ref().into(),
                to: to.as_ref().into(),
                reason: reason.as_ref().into(),
            },
            SessionEvent::LoopDetected { message } => {
                Notice::LoopDetected { message: message.as_ref().into() }
            }
            SessionEvent::ModeChanged { mode } => Notice::Status {
                status: None,
                permission_mode_claude: claude_mode(mode).into(),
                permission_mode: Some(qwen_mode(mode).into()),
            },
            SessionEvent::Steered { prompt_id, message_uuid } => Notice::Steered {
                prompt_id: prompt_id.as_str().into(),
                message_uuid: message_uuid.as_deref().map(Cow::Borrowed),
            },
            // The `result` reports these.
            SessionEvent::Finished
            | SessionEvent::MaxTokens { .. }
            | SessionEvent::MaxTurns { .. }
            | SessionEvent::Cancelled => return,
        };
        self.stream.push_system(out, notice);
    }

    fn error(&mut self, error: &ErrorInfo, out: &mut Vec<u8>) {
        let input = matches!(
            error.kind,
            ErrorKind::Input | ErrorKind::Usage | ErrorKind::UnsupportedProtocol | ErrorKind::Overloaded
        );
        let error = error.into();
        self.stream
            .push_system(out, if input { Notice::InputError { error } } else { Notice::Error { error } });
    }

    fn command_result(&mut self, result: &CommandResult, at: Timestamp, out: &mut Vec<u8>) {
        let (words, is_error): (Cow<'_, str>, bool) = match &result.body {
            CommandResultBody::Message { level, content } => {
                (content.as_ref().into(), *level == Level::Error)
            }
            CommandResultBody::Dialog { name, .. } => (
                format!("This command opens the dialog '{name}', which only a terminal can show.").into(),
                false,
            ),
            CommandResultBody::Tool { name, .. } => (format!("Ran the tool '{name}'.").into(), false),
            // Its turn follows and ends with its own result.
            CommandResultBody::SubmitPrompt { .. } => return,
        };
        if let Some(cleared) = &result.cleared_session {
            let uuid = self.stream.uuids.next();
            push_line(
                out,
                &Message::ConversationReset(ConversationReset {
                    new_conversation_id: result.session_id.as_str().into(),
                    uuid: uuid.as_str().into(),
                    session_id: cleared.as_str().into(),
                    trigger: Some("clear".into()),
                    user_message_uuid: result.message_uuid.as_deref().map(Cow::Borrowed),
                    timestamp: Some(rfc3339(at).into()),
                }),
            );
        }
        self.stream.session_id = result.session_id.clone();
        self.stream.push_command_answer(out, &words, is_error, result.message_origin.as_ref());
        self.state(SessionState::Idle, out);
    }

    /// Removes the requests that `which` selects; when none is left, the session is running again.
    fn answered(&mut self, out: &mut Vec<u8>, which: impl Fn(&Arc<str>, &CallId) -> bool) {
        let before = self.questions.len();
        self.questions.retain(|(request, call)| !which(request, call));
        if before > 0 && self.questions.is_empty() {
            self.state(SessionState::Running, out);
        }
    }

    fn state(&mut self, state: SessionState, out: &mut Vec<u8>) {
        if self.reader.session_state {
            self.stream.push_system(out, Notice::SessionStateChanged { state, sdk_host_only: true });
        }
    }
}

fn words(list: &[Arc<str>]) -> Vec<Cow<'_, str>> {
    list.iter().map(|word| Cow::Borrowed(word.as_ref())).collect()
}
