//! The file format of a recording.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, Finish, Json, Timeout, Usage};
use serde::{Deserialize, Serialize};

use crate::request::{ModelError, Piece};

/// One call: a line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedCall {
    /// The digest of the request.
    pub request: String,
    /// The requested model.
    pub model: String,
    /// Milliseconds since the start of the call, and the piece.
    pub pieces: Vec<(u64, RecordedPiece)>,
}

/// A piece, or the final error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RecordedPiece {
    Start(Arc<str>),
    Text(Box<str>),
    Thought(Box<str>),
    Signature(Arc<str>),
    Call { index: u32, id: Arc<str>, name: Arc<str>, arguments: Box<str> },
    CallFields { index: u32, fields: Box<str> },
    Usage(RecordedUsage),
    Finish(RecordedFinish),
    Retry { attempt: u32, max_retries: u32, delay_ms: u64, error: RecordedError },
    Fallback { from: Arc<str>, to: Arc<str>, error: RecordedError },
    Error(RecordedError),
}

/// See [`Usage`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[derive(Default)]
pub(crate) struct RecordedUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    cached_tokens: u64,
    cache_write_tokens: u64,
    thought_tokens: u64,
    estimated: bool,
}

/// See [`Finish`]; stored as its name on the OpenAI wire.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(into = "&str", try_from = "String")]
pub(crate) struct RecordedFinish(Finish);

/// See [`ErrorInfo`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RecordedError {
    kind: String,
    code: String,
    message: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    param: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default)]
    retryable: bool,
}

impl RecordedPiece {
    /// The recorded form of a piece; none for transient pieces, which would be wrong in a replay.
    pub fn from_item(item: &Result<Piece, ModelError>) -> Option<Self> {
        Some(match item.clone() {
            Ok(Piece::RateLimit(_) | Piece::Paused | Piece::Waiting { .. }) => return None,
            Ok(Piece::CallFields { index, fields }) => {
                Self::CallFields { index, fields: fields.as_str().into() }
            }
            Ok(Piece::Start { model }) => Self::Start(model),
            Ok(Piece::Text(text)) => Self::Text(text),
            Ok(Piece::Thought(text)) => Self::Thought(text),
            Ok(Piece::ThoughtSignature(signature)) => Self::Signature(signature),
            Ok(Piece::Call { index, id, name, arguments }) => Self::Call { index, id, name, arguments },
            Ok(Piece::Usage(usage)) => Self::Usage(usage.into()),
            Ok(Piece::Finish(finish)) => Self::Finish(RecordedFinish(finish)),
            Ok(Piece::Retry { attempt, max_retries, delay_ms, error }) => {
                Self::Retry { attempt, max_retries, delay_ms, error: error.into() }
            }
            Ok(Piece::Fallback { from, to, error }) => Self::Fallback { from, to, error: error.into() },
            Err(ModelError(error)) => Self::Error(error.into()),
        })
    }
}

impl From<RecordedPiece> for Result<Piece, ModelError> {
    fn from(piece: RecordedPiece) -> Self {
        Ok(match piece {
            RecordedPiece::Start(model) => Piece::Start { model },
            RecordedPiece::Text(text) => Piece::Text(text),
            RecordedPiece::Thought(text) => Piece::Thought(text),
            RecordedPiece::Signature(signature) => Piece::ThoughtSignature(signature),
            RecordedPiece::Call { index, id, name, arguments } => Piece::Call { index, id, name, arguments },
            RecordedPiece::CallFields { index, fields } => {
                Piece::CallFields { index, fields: Json::trusted(fields) }
            }
            RecordedPiece::Usage(usage) => Piece::Usage(usage.into()),
            RecordedPiece::Finish(RecordedFinish(finish)) => Piece::Finish(finish),
            RecordedPiece::Retry { attempt, max_retries, delay_ms, error } => {
                Piece::Retry { attempt, max_retries, delay_ms, error: error.into() }
            }
            RecordedPiece::Fallback { from, to, error } => Piece::Fallback { from, to, error: error.into() },
            RecordedPiece::Error(error) => return Err(ModelError(error.into())),
        })
    }
}

impl From<Usage> for RecordedUsage {
    fn from(usage: Usage) -> Self {
        let Usage { prompt_tokens, completion_tokens, cached_tokens, .. } = usage;
        let Usage { cache_write_tokens, thought_tokens, estimated, .. } = usage;
        Self {
            prompt_tokens,
            completion_tokens,
            cached_tokens,
            cache_write_tokens,
            thought_tokens,
            estimated,
        }
    }
}

impl From<RecordedUsage> for Usage {
    fn from(usage: RecordedUsage) -> Self {
        Self {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            cached_tokens: usage.cached_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            thought_tokens: usage.thought_tokens,
            estimated: usage.estimated,
        }
    }
}

impl From<RecordedFinish> for &'static str {
    fn from(RecordedFinish(finish): RecordedFinish) -> Self {
        finish.openai()
    }
}

impl TryFrom<String> for RecordedFinish {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let finish = Finish::ALL.into_iter().find(|finish| finish.openai() == name);
        finish.map(Self).ok_or_else(|| format!("unknown finish reason `{name}`"))
    }
}

impl From<ErrorInfo> for RecordedError {
    fn from(error: ErrorInfo) -> Self {
        let kind = KINDS.iter().find(|(kind, _)| *kind == error.kind).map_or("model", |(_, name)| name);
        Self {
            kind: kind.to_owned(),
            code: error.code.to_owned(),
            message: error.message,
            param: error.param,
            status: error.status,
            retryable: error.retryable,
        }
    }
}

impl From<RecordedError> for ErrorInfo {
    fn from(error: RecordedError) -> Self {
        let kind =
            KINDS.iter().find(|(_, name)| *name == error.kind).map_or(ErrorKind::Model, |(kind, _)| *kind);
        // Codes are static everywhere else. A recording has a handful of them, read once per process.
        let code = String::leak(error.code);
        let info = ErrorInfo::new(kind, code, error.message);
        ErrorInfo { param: error.param, status: error.status, retryable: error.retryable, ..info }
    }
}

/// The error kinds that a model can return, by name.
const KINDS: [(ErrorKind, &str); 9] = [
    (ErrorKind::Model, "model"),
    (ErrorKind::Auth, "auth"),
    (ErrorKind::Network, "network"),
    (ErrorKind::Settings, "settings"),
    (ErrorKind::Overloaded, "overloaded"),
    (ErrorKind::Internal, "internal"),
    (ErrorKind::Timeout(Timeout::Connect), "timeout_connect"),
    (ErrorKind::Timeout(Timeout::FirstToken), "timeout_first_token"),
    (ErrorKind::Timeout(Timeout::Stall), "timeout_stall"),
];
