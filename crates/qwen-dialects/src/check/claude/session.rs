//! One session of a `claude` stream: its turns, from `system/init` to `result`.

use super::super::bounded::{Idle, Names, Open};
use super::super::calls::Calls;
use super::super::digest::Digest;
use super::super::report::Report;
use super::super::restart::{moves_turn, restarts_turn};
use super::partial::Partial;
use crate::claude::wire::message::{AssistantMessage, Block, Content};
use crate::claude::wire::result::{ResultLine, Subtype};
use crate::claude::wire::stream_event::StreamEvent;
use crate::claude::wire::{Notice, SessionState};

/// The model name of messages that the program writes itself.
const SYNTHETIC: &str = "<synthetic>";

/// A session and its running turn.
#[derive(Default)]
pub(super) struct Session {
    turn: Turn,
    /// True once a turn was announced, so the input is a stream and not a sequence of documents.
    announces: bool,
    /// The last reported state, if the stream reports states.
    state: Option<SessionState>,
    /// Calls without a result.
    calls: Calls,
    /// Every call of the session; sub-agents name one as their parent.
    known_calls: Names,
    /// The messages that are streamed in pieces: the main agent's and those of sub-agents.
    messages: Open<Partial>,
    /// The main agent's last message.
    last: MessageText,
    /// True once a line arrived.
    has_begun: bool,
    /// True until the first `result` if the stream begins with a later line of the session, after a client
    /// attached: the turn, its calls and its message may have begun before.
    is_cut: bool,
}

#[derive(Default, PartialEq)]
enum Turn {
    /// No turn is running.
    #[default]
    None,
    Running,
    /// The worker of the turn died, and another one takes the turn up: its calls are still open.
    Restarted,
    /// A command was answered; its result must follow.
    Answered,
}

/// The content of a message.
#[derive(Default)]
struct MessageText {
    id: Box<str>,
    text: Digest,
    calls: bool,
}

impl Idle for Session {
    fn is_idle(&self) -> bool {
        self.turn == Turn::None
    }
}

impl Session {
    pub(super) fn notice(&mut self, notice: &Notice<'_>, report: &mut Report) {
        let was_running = self.turn != Turn::None;
        match notice {
            Notice::Init(_) => {
                self.announces = true;
                if std::mem::replace(&mut self.turn, Turn::Running) == Turn::Restarted {
                    return;
                }
                if was_running {
                    report.error("no-terminal", "a turn starts before the one before it has its `result`");
                }
                self.forget_turn();
            }
            Notice::Custom { value } if moves_turn(value.as_str()) => {
                self.turn = Turn::None;
                self.forget_turn();
            }
            Notice::Custom { value } if restarts_turn(value.as_str()) => self.turn = Turn::Restarted,
            Notice::SessionStateChanged { state, .. } => {
                if *state == SessionState::Idle && self.turn != Turn::None {
                    report.error("session-state", "the session is `idle` before the `result` of its turn");
                }
                self.state = Some(*state);
            }
            Notice::ApiRetry { .. } | Notice::ThinkingProgress { .. } => {
                self.in_turn("a step of a turn", report);
            }
            _ => {}
        }
    }

    pub(super) fn assistant(
        &mut self,
        parent: Option<&str>,
        message: &AssistantMessage<'_>,
        report: &mut Report,
    ) {
        if self.turn == Turn::None && message.model == SYNTHETIC {
            self.turn = Turn::Answered;
            self.forget_turn();
        }
        self.in_turn("an `assistant` line", report);
        self.judge_parent(parent, report);
        if parent.is_none() && *self.last.id != *message.id {
            self.last = MessageText { id: message.id.as_ref().into(), ..MessageText::default() };
        }
        for block in &message.content {
            match block {
                Block::Text { text } => {
                    if parent.is_none() {
                        self.last.text.add(text);
                    }
                    if let Some(partial) = self.messages.get_mut(parent.unwrap_or_default()) {
                        partial.whole_text(text, report);
                    }
                }
                Block::ToolUse { id, input, .. } => {
                    self.known_calls.insert(id);
                    if let Some(partial) = self.messages.get_mut(parent.unwrap_or_default()) {
                        partial.whole_input(id, input.as_str(), report);
                    }
                    self.last.calls |= parent.is_none();
                    self.calls.record_call(id, report);
                }
                _ => {}
            }
        }
    }

    pub(super) fn user(
        &mut self,
        parent: Option<&str>,
        content: &Content<'_>,
        replay: bool,
        report: &mut Report,
    ) {
        if replay {
            return;
        }
        self.in_turn("a `user` line", report);
        self.judge_parent(parent, report);
        let Content::Blocks(blocks) = content else { return };
        for block in blocks {
            if let Block::ToolResult { tool_use_id, .. } = block {
                if self.is_cut {
                    // The call may have come before the first line.
                    self.calls.forget(tool_use_id);
                } else {
                    self.calls.answered(tool_use_id, report);
                }
            }
        }
    }

    /// Notes how the lines begin, with the first of them.
    pub(super) fn begin(&mut self, is_later_line: bool) {
        if !std::mem::replace(&mut self.has_begun, true) && is_later_line {
            self.is_cut = true;
            self.turn = Turn::Running;
        }
    }

    pub(super) fn stream_event(
        &mut self,
        parent: Option<&str>,
        event: &StreamEvent<'_>,
        report: &mut Report,
    ) {
        self.in_turn("a `stream_event`", report);
        self.judge_parent(parent, report);
        let parent = parent.unwrap_or_default();
        if !self.messages.contains(parent) {
            let message = if self.is_cut { Partial::cut() } else { Partial::default() };
            self.messages.insert(parent, message);
        }
        if let Some(partial) = self.messages.get_mut(parent) {
            partial.event(event, report);
        }
    }

    pub(super) fn result(&mut self, result: &ResultLine<'_>, report: &mut Report) {
        let fatal = result.terminal_reason.as_deref() == Some("fatal");
        if self.turn == Turn::None && self.announces && !fatal {
            report.error("one-terminal", "this `result` belongs to no turn: each turn has exactly one");
        }
        if let Some(call) = &result.deferred_tool_use {
            // The host that resumes the session answers the call.
            self.calls.answered(&call.id, report);
        }
        // A sequence of documents contains only results.
        if self.turn != Turn::None {
            self.judge_end(result, report);
        }
        self.turn = Turn::None;
        self.is_cut = false;
        self.forget_turn();
    }

    pub(super) fn finish(&mut self, id: &str, report: &mut Report) {
        if self.turn != Turn::None {
            report.error("no-terminal", format!("the stream ends before the `result` of session {id:?}"));
        } else if self.state.is_some_and(|state| state != SessionState::Idle) {
            report.error(
                "session-state",
                format!("session {id:?} reports its states, but not `idle` at the end"),
            );
        }
    }

    fn judge_end(&self, result: &ResultLine<'_>, report: &mut Report) {
        for name in self.messages.names(Partial::is_open) {
            let of = if name.is_empty() { String::new() } else { format!(" of the sub-agent of {name:?}") };
            report.error("message", format!("the `result` comes before the `message_stop`{of}"));
        }
        // An interruption or a limit may leave calls unanswered.
        if !result.is_error {
            self.calls.must_be_answered(report);
        }
        if let (Subtype::Success, Some(answer)) = (result.subtype, &result.result) {
            let answer = Digest::compute(answer);
            let silent = self.last.calls && answer.is_empty();
            if answer != self.last.text && !silent {
                report.error(
                    "reply-text",
                    format!(
                        "the answer in `result` ({} bytes) is not the text of the last message ({} bytes)",
                        answer.length(),
                        self.last.text.length()
                    ),
                );
            }
        }
    }

    /// Checks that a sub-agent's line names a known call. In a session that was joined late, earlier calls
    /// are unknown.
    fn judge_parent(&self, parent: Option<&str>, report: &mut Report) {
        if let Some(parent) = parent.filter(|parent| self.announces && !self.known_calls.contains(parent)) {
            report.error(
                "parent",
                format!("`parent_tool_use_id` is {parent:?}, which is not a call of this session"),
            );
        }
    }

    fn in_turn(&self, what: &str, report: &mut Report) {
        if self.turn == Turn::None {
            if self.announces {
                report.error("after-terminal", format!("{what} after the `result` of its turn"));
            } else {
                report.error("init", format!("{what} before the `system/init` of its turn"));
            }
        }
    }

    fn forget_turn(&mut self) {
        self.calls.clear();
        self.messages.clear();
        self.last = MessageText::default();
    }
}
