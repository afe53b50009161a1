//! What is asked of a model and what comes back.

use std::pin::Pin;
use std::sync::Arc;

use futures_core::Stream;
use qwen_events::{
    CallId, ErrorInfo, Finish, Json, Message, RateLimit, Sampling, ToolSpec, TraceContext, Usage,
};

/// A model that can be called.
pub trait Model: Send + Sync {
    /// The name that events carry until the server says a better one.
    fn name(&self) -> &str;

    /// Starts one call. Nothing happens before the stream is polled; dropping the stream ends the call at once.
    fn call(&self, request: Request) -> Pieces;
}

/// The pieces of one answer, in order. After an error or [`Piece::Finish`] there is nothing more.
pub type Pieces = Pin<Box<dyn Stream<Item = Result<Piece, ModelError>> + Send>>;

/// One call.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who the agent is and how it works.
    pub system: Arc<str>,
    /// The conversation so far, shared with whoever holds it: it is long, and called upon often.
    pub messages: Arc<Vec<Message>>,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// How the model samples.
    pub sampling: Sampling,
    /// Another model than the configured one, on the same server.
    pub model: Option<Arc<str>>,
    /// The schema that the answer must fit, where the provider can enforce one.
    pub response_schema: Option<Json>,
    /// The tool call whose sub-agent asks; none in the main agent.
    pub caller: Option<CallId>,
    /// The place in a trace that the server is told, so that its own traces belong to ours.
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
        /// The model's name.
        model: Arc<str>,
    },
    /// Text.
    Text(Box<str>),
    /// Thinking.
    Thought(Box<str>),
    /// The provider's proof of the thinking since the last one; without such thinking, a block of thinking that only the
    /// provider can read.
    ThoughtSignature(Arc<str>),
    /// A piece of a tool call. The id and name are there from the first piece on; ids are minted where the server
    /// sends none, and unique within the answer. `index` counts from 0 in the order of first appearance.
    Call {
        /// The call's place.
        index: u32,
        /// The call's id.
        id: Arc<str>,
        /// The tool's name.
        name: Arc<str>,
        /// More of its arguments; may be empty.
        arguments: Box<str>,
    },
    /// Fields that the provider put on a call and wants back with it, as one JSON object. Comes after the call's first piece;
    /// a later one takes the place of an earlier one.
    CallFields {
        /// The call's place.
        index: u32,
        /// The fields.
        fields: Json,
    },
    /// The server paused a long answer: it goes on when what it said so far is sent back. The client does so itself, and
    /// readers of [`Model::call`] never see it.
    Paused,
    /// Tokens spent so far, whenever they are known better: a later one takes the place of an earlier one. At least one
    /// comes before the end; one may come before the first token, and counts for nothing then but the tokens.
    Usage(Usage),
    /// The answer is whole.
    Finish(Finish),
    /// The server says something new about its limits. May come before anything else, and before a retry.
    RateLimit(Box<RateLimit>),
    /// The call failed before its first piece and will be tried again.
    Retry {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// How many retries there may be.
        max_retries: u32,
        /// How long we wait.
        delay_ms: u64,
        /// What went wrong.
        error: ErrorInfo,
    },
    /// Another model goes on.
    Fallback {
        /// The model that failed.
        from: Arc<str>,
        /// The model that goes on.
        to: Arc<str>,
        /// What went wrong.
        error: ErrorInfo,
    },
}

/// A call that failed for good. What came before it was received and counts.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(pub ErrorInfo);
