//! Lines that the kernel writes itself: its handshake, refusals, answers and the end of a turn whose worker
//! died.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_dialects::{Dialect, Encoder, Format, ModelLimits, StreamInfo, encoder};
use qwen_events::{
    Body, CancelResult, ControlReply, EndStatus, ErrorInfo, Event, Finish, Heartbeat, Json, PromptId, Scope,
    SessionId, Timestamp, TurnEnd, Usage,
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
            dialect: self.dialect,
            format: self.format,
            input_format: "stream-json",
            session_id: session_id.clone(),
            model: self.model.clone(),
            version: self.version,
            partial_messages: false,
            session_state: false,
            qwen_sdk: false,
            replay_user_messages: false,
            model_limits: ModelLimits::default(),
            plugins: Vec::new(),
            output_style: "default".into(),
            stream_modes: Vec::new(),
            seed: fastrand::u64(..),
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
        let end = TurnEnd {
            prompt_id: PromptId::new(prompt_id),
            status,
            error: Some(error),
            reply: Arc::default(),
            finish: Finish::Stop,
            usage: Usage::default(),
            usage_by_model: Vec::new(),
            cost_usd: 0.0,
            duration_ms,
            api_duration_ms: 0,
            model_calls: 0,
            tool_calls: 0,
            denials: Vec::new(),
            control_errors: Vec::new(),
            structured: None,
            postponed: None,
            continuation: false,
        };
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
