//! Requests to a model and the pieces of its answer.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use qwen_events::{
    CallId, ErrorInfo, Finish, Json, Message, RateLimit, Sampling, ToolSpec, TraceContext, Usage,
};

/// A model that can be called.
pub trait Model: Send + Sync {
    /// The name in events until the server reports a more specific one.
    fn name(&self) -> &str;

    /// Starts one call. Nothing happens before the stream is polled; dropping the stream ends the call at
    /// once.
    fn call(&self, request: Request) -> Pieces;
}

/// The pieces of one answer, in order. An error or [`Piece::Finish`] is the last item.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Piece, ModelError>> + Send>>;

/// The input of one model call.
#[derive(Debug, Clone)]
pub struct Request {
    /// The system prompt; empty if there is none.
    pub system: Arc<str>,
    /// The block that precedes the text of the first user message; empty for none.
    pub situation: Arc<str>,
    /// The conversation so far; shared, because it is long and cloned often.
    pub messages: Arc<Vec<Message>>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    pub sampling: Sampling,
    /// A model other than the configured one, on the same server.
    pub model: Option<Arc<str>>,
    /// The schema of the answer, if the provider can enforce one.
    pub response_schema: Option<Json>,
    /// The tool call whose sub-agent makes the request; none in the main agent.
    pub caller: Option<CallId>,
    /// The trace context that is sent to the server, so that its traces join ours.
    pub trace: Option<TraceContext>,
}

impl Request {
    /// The request as a body of the OpenAI wire, for debug logs.
    pub fn to_openai_json(&self, model: &str) -> Vec<u8> {
        crate::openai::body(self, self.model.as_deref().unwrap_or(model))
    }
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// The server accepted the call and names the model that answers.
    Start {
        model: Arc<str>,
    },
    Text(Box<str>),
    Thought(Box<str>),
    /// The provider's signature of the thinking since the last one; without such thinking, a block of
    /// thinking that only the provider can read.
    ThoughtSignature(Arc<str>),
    /// A piece of a tool call. The id and name are present from the first piece on; ids are minted if the
    /// server sends none, and unique within the answer. `index` counts from 0 in the order of first
    /// appearance.
    Call {
        index: u32,
        id: Arc<str>,
        name: Arc<str>,
        /// The next part of the arguments; may be empty.
        arguments: Box<str>,
    },
    /// Fields that the provider set on a call and expects back with it, as one JSON object. Follows the
    /// call's first piece; a later one replaces an earlier one.
    CallFields {
        index: u32,
        fields: Json,
    },
    /// The server paused a long answer, which continues when the partial answer is sent back. The client
    /// does that itself, and readers of [`Model::call`] never see this piece.
    Paused,
    /// The tokens so far, whenever the count changes: a later one replaces an earlier one. At least one
    /// precedes the end; one may precede the first token, and then only counts tokens.
    Usage(Usage),
    /// The answer is complete.
    Finish(Finish),
    /// The server reports new rate limits. May precede anything else, including a retry.
    RateLimit(Box<RateLimit>),
    /// The call failed before its first piece and will be retried.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The maximum number of retries.
        max_retries: u32,
        /// The delay before the next attempt.
        delay_ms: u64,
        error: ErrorInfo,
    },
    /// The server's limit is reached, and the call waits until it is reset. Not counted as a retry.
    Waiting {
        /// The limit, as the server describes it.
        error: ErrorInfo,
        delay_ms: u64,
    },
    /// Another model takes over.
    Fallback {
        /// The model that failed.
        from: Arc<str>,
        /// The model that takes over.
        to: Arc<str>,
        error: ErrorInfo,
    },
}

/// A call that failed permanently. The pieces before it were received and count.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub ErrorInfo);
