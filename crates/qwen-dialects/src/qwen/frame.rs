//! State shared by all lines of a stream: the session, the turn, the handshake.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, PromptId, RefusedPrompt, SessionId, Timestamp, TurnStart};

use super::channel::{NO_CONTROL_CHANNEL, Stamp};
use super::wire::{ErrorBody, FatalError, Metadata};
use crate::StreamInfo;
use crate::line::push_line;

/// The version of the protocol, announced in the handshake.
pub const PROTOCOL_VERSION: &str = "1.0";

/// The capabilities that a host may require (`requires`), announced in the handshake.
pub const CAPABILITIES: &[&str] = &[
    "stream-json",
    "stream-chunk-json",
    "sessions",
    "commands",
    "command_hint",
    "heartbeat",
    "cancel",
    "control",
    "can_use_tool",
    "hook_callback",
    "mcp_message",
    "host_tools",
    "images",
    "sub_agents",
    "steer",
];

/// A line of a stream without content. Both kinds of line have these fields.
macro_rules! empty_line {
    ($kind:ident, $object:expr, $frame:expr, $at:expr) => {
        $kind {
            object: $object,
            id: $frame.id(),
            created: created($at),
            model: $frame.model(),
            session_id: $frame.session_id(),
            prompt_id: $frame.prompt_id(),
            choices: Vec::new(),
            usage: None,
            system_fingerprint: None,
            metadata: None,
        }
    };
}
pub(super) use empty_line;

/// The session and turn that lines are stamped with.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    info: StreamInfo,
    session_id: SessionId,
    prompt_id: Option<PromptId>,
    /// `chatcmpl-<session_id>`
    id: String,
    /// The model of the current message or turn.
    model: Arc<str>,
    handshake_taken: bool,
}

impl Frame {
    pub(crate) fn new(info: &StreamInfo) -> Self {
        Self {
            info: info.clone(),
            id: completion_id(&info.session_id),
            session_id: info.session_id.clone(),
            prompt_id: None,
            model: info.model.clone(),
            handshake_taken: false,
        }
    }

    /// Sets the session of the following lines.
    pub(crate) fn enter_session(&mut self, session_id: &SessionId) {
        if self.session_id != *session_id {
            self.session_id = session_id.clone();
            self.id = completion_id(session_id);
        }
    }

    pub(crate) fn start_turn(&mut self, start: &TurnStart) {
        self.enter_session(&start.session_id);
        self.prompt_id = Some(start.prompt_id.clone());
        self.model = start.model.clone();
    }

    pub(crate) fn end_turn(&mut self) {
        self.prompt_id = None;
    }

    pub(crate) fn set_model(&mut self, model: &Arc<str>) {
        self.model = model.clone();
    }

    pub(crate) fn id(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.id)
    }

    pub(crate) fn model(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.model)
    }

    // Wire types have these as options, since not every writer of such lines stamps them.
    #[expect(clippy::unnecessary_wraps, reason = "the fields that it fills are optional")]
    pub(crate) fn session_id(&self) -> Option<Cow<'_, str>> {
        Some(Cow::Borrowed(self.session_id.as_str()))
    }

    pub(crate) fn prompt_id(&self) -> Option<Cow<'_, str>> {
        self.prompt_id.as_ref().map(|id| Cow::Borrowed(id.as_str()))
    }

    /// The stamp of lines that name no turn.
    pub(crate) fn stamp(&self) -> Stamp<'_> {
        Stamp {
            session_id: &self.session_id,
            prompt_id: self.prompt_id.as_ref(),
            limitation: (self.info.input_format == "text").then_some(NO_CONTROL_CHANNEL),
        }
    }

    /// The same stream, for a prompt that is not the current turn.
    pub(crate) fn of_prompt(&self, prompt_id: &PromptId) -> Self {
        Self { prompt_id: Some(prompt_id.clone()), ..self.clone() }
    }

    /// The same stream, for a prompt that became no turn. A worker that has adopted no session yet stamps the
    /// refusal with the session that the prompt names.
    pub(crate) fn of_refused(&self, refused: &RefusedPrompt) -> Self {
        let mut frame = self.of_prompt(&refused.prompt_id);
        if let Some(session_id) = &refused.session_id {
            frame.enter_session(session_id);
        }
        frame
    }

    /// True if `prompt_id` is the current turn.
    pub(crate) fn runs(&self, prompt_id: &PromptId) -> bool {
        self.prompt_id.as_ref() == Some(prompt_id)
    }

    /// True if the handshake is still due; further calls return false.
    pub(crate) fn take_handshake(&mut self) -> bool {
        !std::mem::replace(&mut self.handshake_taken, true)
    }

    /// What the handshake announces.
    pub(crate) fn announcement(&self) -> Metadata<'_> {
        Metadata {
            protocol_version: Some(Cow::Borrowed(PROTOCOL_VERSION)),
            input_format: Some(Cow::Borrowed(self.info.input_format)),
            output_format: Some(Cow::Borrowed(self.info.format.name())),
            capabilities: Some(CAPABILITIES.iter().copied().map(Cow::Borrowed).collect()),
            session_id: self.session_id(),
            ..Metadata::default()
        }
    }

    /// The program that writes the stream.
    pub(crate) fn fingerprint(&self) -> Cow<'_, str> {
        Cow::Owned(format!("qwen-{}", self.info.version))
    }
}

fn completion_id(session_id: &SessionId) -> String {
    format!("chatcmpl-{session_id}")
}

/// The form of a fatal error on the wire.
pub(crate) enum Fatal<'a> {
    /// A message with `finish_reason: "error"`.
    Message(ErrorBody<'a>),
    /// A separate line.
    Bare,
}

/// A host that requires another protocol gets a message of the protocol; any other error is the bare
/// object.
pub(crate) fn fatal(error: &ErrorInfo) -> Fatal<'_> {
    if error.kind == ErrorKind::UnsupportedProtocol {
        Fatal::Message(ErrorBody {
            code: Some(Cow::Borrowed("unsupported_protocol")),
            ..ErrorBody::from(error)
        })
    } else {
        Fatal::Bare
    }
}

/// Writes the line of a fatal error.
pub(crate) fn push_fatal(out: &mut Vec<u8>, error: &ErrorInfo) {
    push_line(out, &FatalError { error: ErrorBody::from(error) });
}

/// The time as in `created`.
pub(crate) fn created(at: Timestamp) -> u64 {
    at.seconds()
}
