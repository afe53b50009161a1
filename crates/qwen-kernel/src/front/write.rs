//! Lines that the kernel writes itself: its handshake, refusals, answers and the end of a turn whose worker
//! died.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_dialects::{Dialect, Encoder, Format, StreamInfo, encoder};
use qwen_events::{
    Body, CancelResult, ControlReply, EndStatus, ErrorInfo, Event, Heartbeat, Json, PromptId, Scope,
    SessionId, Timestamp, TurnEnd,
};

use super::Front;

/// Writes lines of one wire on behalf of a session.
pub struct LineWriter {
    dialect: Dialect,
    format: Format,
    model: Arc<str>,
    version: &'static str,
}

impl LineWriter {
    /// A writer for the wire of `front`. The handshake names `model` and `version`.
    pub fn new(front: &dyn Front, model: Arc<str>, version: &'static str) -> Self {
        Self { dialect: front.dialect(), format: front.format(), model, version }
    }

    fn encoder(&self, session_id: &SessionId) -> Box<dyn Encoder> {
        encoder(&StreamInfo {
            model: self.model.clone(),
            version: self.version,
            seed: fastrand::u64(..),
            ..StreamInfo::new(self.dialect, self.format, session_id.clone())
        })
    }

    /// The lines of one event, without the handshake that an encoder may write first.
    fn lines(&self, session_id: &SessionId, body: Body) -> Vec<u8> {
        let mut encoder = self.encoder(session_id);
        let mut lines = Vec::new();
        encoder.encode(&event(Body::Ready), &mut lines);
        lines.clear();
        encoder.encode(&event(body), &mut lines);
        lines
    }

    /// The hub's first line.
    pub fn handshake(&self, session_id: &SessionId) -> Vec<u8> {
        let mut lines = Vec::new();
        self.encoder(session_id).encode(&event(Body::Ready), &mut lines);
        lines
    }

    /// The error for a refused line.
    pub fn error(&self, session_id: &SessionId, error: ErrorInfo) -> Vec<u8> {
        self.lines(session_id, Body::Error(Box::new(error)))
    }

    /// The error before the process ends.
    pub fn fatal(&self, session_id: &SessionId, error: ErrorInfo) -> Vec<u8> {
        self.lines(session_id, Body::Fatal(Box::new(error)))
    }

    /// The terminal record of a turn that its worker could not end.
    pub fn turn_end(
        &self,
        session_id: &SessionId,
        prompt_id: &str,
        status: EndStatus,
        error: ErrorInfo,
        duration_ms: u64,
    ) -> Vec<u8> {
        let end =
            TurnEnd { error: Some(error), duration_ms, ..TurnEnd::new(PromptId::new(prompt_id), status) };
        self.lines(session_id, Body::TurnEnd(Box::new(end)))
    }

    /// The answer to a control request.
    pub fn control_reply(
        &self,
        session_id: &SessionId,
        request_id: &str,
        nested: bool,
        result: Result<Json, ErrorInfo>,
    ) -> Vec<u8> {
        let reply = ControlReply { request_id: request_id.into(), nested, result };
        self.lines(session_id, Body::ControlReply(Box::new(reply)))
    }

    /// Withdraws a control request of a worker that has exited.
    pub fn control_cancel(&self, session_id: &SessionId, request_id: &str) -> Vec<u8> {
        self.lines(session_id, Body::ControlCancel { request_id: request_id.into() })
    }

    /// The answer to a heartbeat for a session without a worker.
    pub fn heartbeat(&self, session_id: &SessionId) -> Vec<u8> {
        self.lines(session_id, Body::Heartbeat(Heartbeat::idle(session_id.clone())))
    }

    /// The answer to a cancel of a session without a worker.
    pub fn cancelled(
        &self,
        session_id: &SessionId,
        prompt_id: Option<&str>,
        cancelled: bool,
        request_id: Option<&str>,
    ) -> Vec<u8> {
        let message =
            if cancelled { "the queued prompt was withdrawn" } else { "there is nothing to cancel" };
        let result = CancelResult {
            session_id: session_id.clone(),
            prompt_id: prompt_id.map(PromptId::new),
            cancelled,
            message: message.into(),
            reason: "escape".into(),
            request_id: request_id.map(Into::into),
        };
        self.lines(session_id, Body::CancelResult(Box::new(result)))
    }
}

fn event(body: Body) -> Event {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Timestamp(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    Event { at, scope: Scope::default(), body }
}
