//! Reports of what the lines of a worker mean, for the parent process.
//!
//! They are made from the same events as the lines and at the same place, so that the number of a line is known.
//! Tests: `crates/qwen/tests/hub/commits.rs` and
//! `crates/qwen-kernel/tests/peers/`.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_dialects::qwen::PROTOCOL_VERSION;
use qwen_events::{
    Body, CommandResultBody, ControlReply, ErrorInfo, Event, SessionEvent, call_progress, graph_events,
    message_pieces, notices,
};
use qwen_kernel::ipc::{HUB_REQUEST, Place, Report, ReportedFact, WorkerMessage};

use super::parent::ParentProcess;
use crate::io::stream::OutputObserver;

/// Reports a worker's events to its parent process.
pub(super) struct OutputReports {
    parent: Arc<ParentProcess>,
    /// The number of lines so far.
    lines: u64,
    /// Reports about lines that are not written yet.
    pending: Vec<u8>,
}

impl OutputReports {
    pub fn new(parent: Arc<ParentProcess>) -> Self {
        Self { parent, lines: 0, pending: Vec::new() }
    }

    /// The number of lines that were written to standard output.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

impl OutputObserver for OutputReports {
    fn note(&mut self, event: &Event, rendered: &[u8]) {
        let before = self.lines;
        self.lines += memchr::memchr_iter(b'\n', rendered).count() as u64;
        let Some(fact) = reported_fact(event) else { return };
        // Of an event with several lines, the last one completes it.
        let at = if self.lines > before { Place::Line(self.lines) } else { Place::After(self.lines) };
        self.pending.extend_from_slice(&WorkerMessage::Report(Report { at, fact }).to_line());
    }

    fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    fn flush(&mut self) -> BoxFuture<'_, ()> {
        self.parent.send_lines(&self.pending);
        self.pending.clear();
        Box::pin(self.parent.send_waiting())
    }
}

/// What the parent must know about an event.
fn reported_fact(event: &Event) -> Option<ReportedFact> {
    let is_main = event.scope.parent.is_none() && event.scope.thought.is_none();
    match &event.body {
        Body::Ready => Some(ReportedFact::Ready { version: PROTOCOL_VERSION.to_owned() }),
        Body::TurnStart(start) => {
            is_main.then(|| ReportedFact::TurnStarted { prompt_id: start.prompt_id.as_str().to_owned() })
        }
        Body::TurnEnd(end) => {
            let tokens = (end.usage.prompt_tokens, end.usage.completion_tokens);
            is_main.then(|| ReportedFact::turn_ended(end.prompt_id.as_str(), end.status, tokens))
        }
        Body::Session(notice) => note_joined(notice),
        Body::ControlRequest { request_id, .. } => {
            Some(ReportedFact::QuestionOpened { request_id: request_id.to_string() })
        }
        Body::ControlCancel { request_id } => {
            Some(ReportedFact::QuestionClosed { request_id: request_id.to_string() })
        }
        Body::ControlReply(reply) => Some(ReportedFact::RequestAnswered {
            request_id: reply.request_id.to_string(),
            accepted: reply.request_id.starts_with(HUB_REQUEST) && accepts(reply),
        }),
        Body::CommandResult(result) => Some(ReportedFact::CommandEnded {
            prompt_id: result.prompt_id.as_str().to_owned(),
            submits_prompt: matches!(result.body, CommandResultBody::SubmitPrompt { .. }),
        }),
        Body::Error(error) => note_refusal(error),
        Body::Fatal(error) => Some(ReportedFact::Failed { message: error.message.to_string() }),
        graph_events!()
        | message_pieces!()
        | Body::MessageEnd(..)
        | call_progress!()
        | Body::ToolStart(..)
        | Body::ToolEnd(..)
        | Body::Thinking(..)
        | notices!()
        | Body::History(..)
        | Body::Custom(..)
        | Body::HintResult(..)
        | Body::Heartbeat(..)
        | Body::CancelResult(..) => None,
    }
}

/// The prompt that joined the running turn, if the notice reports one.
fn note_joined(notice: &SessionEvent) -> Option<ReportedFact> {
    if let SessionEvent::Steered { prompt_id, .. } = notice {
        return Some(ReportedFact::PromptJoined { prompt_id: prompt_id.as_str().to_owned() });
    }
    None
}

/// The refusal of a line of input; none for another error.
fn note_refusal(error: &ErrorInfo) -> Option<ReportedFact> {
    let prompt_id = error.refused.as_ref().map(|refused| refused.prompt_id.as_str().to_owned());
    (error.input.is_some() || prompt_id.is_some()).then(|| ReportedFact::Refused {
        input: error.input,
        prompt_id,
        code: error.code.to_owned(),
        message: error.message.to_string(),
    })
}

/// True if the answer to a request is that it was accepted.
fn accepts(reply: &ControlReply) -> bool {
    #[derive(serde::Deserialize)]
    struct Answer {
        accepted: bool,
    }
    let answer = reply.result.as_ref().ok();
    answer
        .and_then(|json| serde_json::from_str::<Answer>(json.as_str()).ok())
        .is_some_and(|read| read.accepted)
}
