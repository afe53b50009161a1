//! Lines that the kernel writes itself: its handshake, refusals, answers and the end of a turn whose worker
//! died.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_dialects::{Dialect, Encoder, Format, StreamInfo, encoder};
use qwen_events::{
    Body, CallId, CancelResult, ControlReply, EndStatus, ErrorInfo, Event, Heartbeat, Json, MessageEnd,
    PromptId, Scope, SessionId, Timestamp, ToolCall, ToolEnd, TurnEnd, TurnStart,
};

use super::{Front, OpenParts, ShownCall};

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
        encoder(&self.stream_info(session_id))
    }

    fn stream_info(&self, session_id: &SessionId) -> StreamInfo {
        StreamInfo {
            model: self.model.clone(),
            version: self.version,
            seed: fastrand::u64(..),
            ..StreamInfo::new(self.dialect, self.format, session_id.clone())
        }
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

    /// The end of a turn that its worker could not end: the ends of its open parts, and the terminal record.
    pub fn turn_end(
        &self,
        session_id: &SessionId,
        prompt_id: &str,
        status: EndStatus,
        error: ErrorInfo,
        duration_ms: u64,
        open: &OpenParts,
    ) -> Vec<u8> {
        let end =
            TurnEnd { error: Some(error), duration_ms, ..TurnEnd::new(PromptId::new(prompt_id), status) };
        let end = Body::TurnEnd(Box::new(end));
        if open.is_empty() {
            return self.lines(session_id, end);
        }
        let mut lines = Vec::new();
        let mut encoder = self.encoder_within(session_id, prompt_id, open);
        self.end_parts(&mut *encoder, open, &mut lines);
        encoder.encode(&event(end), &mut lines);
        lines
    }

    /// The ends of the open parts of a turn whose terminal record is known.
    pub fn before_end(&self, session_id: &SessionId, prompt_id: &str, open: &OpenParts) -> Vec<u8> {
        let mut lines = Vec::new();
        if !open.is_empty() {
            self.end_parts(&mut *self.encoder_within(session_id, prompt_id, open), open, &mut lines);
        }
        lines
    }

    /// Ends the open parts, except a message that the terminal record itself ends.
    fn end_parts(&self, encoder: &mut dyn Encoder, open: &OpenParts, lines: &mut Vec<u8>) {
        end_calls(encoder, open, lines);
        if open.is_message_open && self.dialect != Dialect::Qwen {
            encoder.encode(&event(Body::MessageEnd(Box::new(self.cut_message()))), lines);
        }
    }

    /// The end of the open message of a turn that another worker takes up in the same stream. Its open calls
    /// are ended there.
    pub fn before_continuation(&self, session_id: &SessionId, prompt_id: &str, open: &OpenParts) -> Vec<u8> {
        let mut lines = Vec::new();
        if open.is_message_open {
            let mut encoder = self.encoder_within(session_id, prompt_id, open);
            self.end_message(&mut *encoder, &mut lines);
        }
        lines
    }

    /// The ends of all open parts of a turn that continues in another stream.
    pub fn before_fork(&self, session_id: &SessionId, prompt_id: &str, open: &OpenParts) -> Vec<u8> {
        let mut lines = Vec::new();
        if !open.is_empty() {
            let mut encoder = self.encoder_within(session_id, prompt_id, open);
            end_calls(&mut *encoder, open, &mut lines);
            if open.is_message_open {
                self.end_message(&mut *encoder, &mut lines);
            }
        }
        lines
    }

    /// Ends a message that was cut off.
    fn end_message(&self, encoder: &mut dyn Encoder, lines: &mut Vec<u8>) {
        encoder.encode(&event(Body::MessageEnd(Box::new(self.cut_message()))), lines);
        if self.dialect == Dialect::Qwen {
            // A message is ended when the next one begins.
            let mut further = Vec::new();
            encoder.encode(&event(self.message_start()), &mut further);
            let first = further.split_inclusive(|byte| *byte == b'\n').next();
            lines.extend_from_slice(first.unwrap_or_default());
        }
    }

    /// An encoder in the middle of a turn.
    fn encoder_within(&self, session_id: &SessionId, prompt_id: &str, open: &OpenParts) -> Box<dyn Encoder> {
        let start = TurnStart::new(session_id.clone(), PromptId::new(prompt_id));
        let start = TurnStart { model: self.model.clone(), ..start };
        let info = StreamInfo { partial_messages: open.is_message_open, ..self.stream_info(session_id) };
        let mut encoder = encoder(&info);
        // The client has seen these lines.
        let mut seen = Vec::new();
        encoder.encode(&event(Body::Ready), &mut seen);
        encoder.encode(&event(Body::TurnStart(Box::new(start))), &mut seen);
        if self.dialect == Dialect::Acp {
            for call in open.calls() {
                encoder.encode(&event(Body::ToolCall(Arc::new(shown_call(call)))), &mut seen);
            }
        }
        if open.is_message_open {
            encoder.encode(&event(self.message_start()), &mut seen);
            for index in 0..open.block.map_or(0, |block| block.saturating_add(1)) {
                let call_id = CallId::new(format!("block-{index}"));
                // One that is whole does not hold the next one up.
                let (name, arguments) = (Arc::default(), "{}".into());
                encoder.encode(&event(Body::ToolCallDelta { index, call_id, name, arguments }), &mut seen);
            }
        }
        encoder
    }

    /// A notice of the kernel in a turn.
    pub fn notice(&self, session_id: &SessionId, prompt_id: &str, notice: Json) -> Vec<u8> {
        let mut lines = Vec::new();
        let mut encoder = self.encoder_within(session_id, prompt_id, &OpenParts::default());
        encoder.encode(&event(Body::Custom(notice)), &mut lines);
        lines
    }

    /// A message of which only the shown part is known.
    fn cut_message(&self) -> MessageEnd {
        let shown = MessageEnd::text(Arc::default(), self.model.clone(), Arc::default());
        MessageEnd { aborted: true, ..shown }
    }

    fn message_start(&self) -> Body {
        Body::MessageStart { message_id: Arc::default(), model: self.model.clone() }
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

/// A call of which only the id and the name are known.
fn shown_call(call: &ShownCall) -> ToolCall {
    ToolCall::new(CallId::new(&*call.id), call.name.as_str().into(), Json::trusted("{}".to_owned()))
}

/// Ends the open calls: their progress is unknown.
fn end_calls(encoder: &mut dyn Encoder, open: &OpenParts, lines: &mut Vec<u8>) {
    for call in open.calls() {
        let call = shown_call(call);
        let text = "The process that ran this call has ended; what the call did is unknown.";
        let end = ToolEnd::interrupted(Arc::new(call), text.into());
        encoder.encode(&event(Body::ToolEnd(Box::new(end))), lines);
    }
}

fn event(body: Body) -> Event {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Timestamp(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    Event { at, scope: Scope::default(), body }
}
