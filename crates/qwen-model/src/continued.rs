//! Continues answers that the server paused or cut off at their longest length, by sending the partial answer
//! back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use qwen_events::{Finish, Message, Part, Role, Usage};

use crate::request::{Model, ModelError, Piece, Pieces, Request};

/// The maximum number of continuations of one answer that the server paused.
const MAX_CONTINUATIONS: u32 = 8;

/// The maximum number of continuations of one answer that reached the model's limit.
const MAX_EXTENSIONS: u32 = 3;

/// Asks the model for the rest of an answer that was cut off. Not every model accepts a partial answer at the
/// end of a conversation.
const CONTINUE: &str = "Your answer was cut off at the output limit. Continue exactly where it stopped, without repeating anything.";

/// A model whose incomplete answers are continued, so that readers see one answer.
pub(crate) struct Continues(pub Arc<dyn Model>);

impl Model for Continues {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn call(&self, request: Request) -> Pieces {
        let pieces = self.0.call(request.clone());
        Box::pin(Continued {
            model: Arc::clone(&self.0),
            request,
            pieces,
            written: Vec::new(),
            continuations: 0,
            extensions: 0,
            has_calls: false,
            spent: Usage::default(),
            usage: Usage::default(),
        })
    }
}

/// A part of an answer that is being written.
enum Written {
    Text(String),
    Thought { text: String, signature: Option<Arc<str>> },
}

impl Written {
    fn is_text(&self) -> bool {
        matches!(self, Self::Text(text) if !text.trim().is_empty())
    }
}

impl From<Written> for Part {
    fn from(written: Written) -> Self {
        match written {
            Written::Text(text) => Self::Text(text.into()),
            Written::Thought { text, signature } => Self::Thought { text: text.into(), signature },
        }
    }
}

/// One answer over several calls.
struct Continued {
    model: Arc<dyn Model>,
    request: Request,
    pieces: Pieces,
    /// What the current call has written.
    written: Vec<Written>,
    continuations: u32,
    /// How many of the continuations extend an answer that was cut off.
    extensions: u32,
    /// True if the answer contains calls: half a call cannot be continued.
    has_calls: bool,
    /// The usage of the earlier calls.
    spent: Usage,
    /// The usage of the current call.
    usage: Usage,
}

impl Continued {
    fn note(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) => match self.written.last_mut() {
                Some(Written::Text(known)) => known.push_str(text),
                _ => self.written.push(Written::Text((&**text).into())),
            },
            Piece::Thought(text) => match self.written.last_mut() {
                Some(Written::Thought { text: known, signature: None }) => known.push_str(text),
                _ => self.written.push(Written::Thought { text: (&**text).into(), signature: None }),
            },
            Piece::ThoughtSignature(proof) => match self.written.last_mut() {
                Some(Written::Thought { signature: signature @ None, .. }) => {
                    *signature = Some(proof.clone());
                }
                _ => self
                    .written
                    .push(Written::Thought { text: String::new(), signature: Some(proof.clone()) }),
            },
            Piece::Usage(usage) => self.usage = *usage,
            Piece::Call { .. } => self.has_calls = true,
            Piece::Start { .. }
            | Piece::CallFields { .. }
            | Piece::Paused
            | Piece::Finish(_)
            | Piece::RateLimit(_)
            | Piece::Retry { .. }
            | Piece::Waiting { .. }
            | Piece::Fallback { .. } => {}
        }
    }

    /// True if an answer that was cut off can be continued. The limit must be the model's: a limit that the
    /// user set is the answer's end.
    fn can_be_extended(&self) -> bool {
        let has_text = self.written.iter().any(Written::is_text);
        let is_users_limit = self.request.sampling.max_tokens.is_some();
        has_text && !self.has_calls && !is_users_limit && self.extensions < MAX_EXTENSIONS
    }

    /// Sends an answer that was cut off back and asks for the rest.
    fn extend(&mut self) {
        self.extensions += 1;
        // Thinking belongs to its own message, which is incomplete.
        self.written.retain(|part| !matches!(part, Written::Thought { .. }));
        self.add_parts();
        let ask = Message { role: Role::User, parts: vec![Part::Text(CONTINUE.into())] };
        Arc::make_mut(&mut self.request.messages).push(ask);
        self.call_again();
    }

    /// Sends the partial answer back and starts the next call.
    fn start_next(&mut self) {
        self.add_parts();
        self.call_again();
    }

    fn call_again(&mut self) {
        self.continuations += 1;
        let usage = std::mem::take(&mut self.usage);
        self.spent.add(&usage);
        self.pieces = self.model.call(self.request.clone());
    }

    /// Appends the parts of the current call to the conversation.
    fn add_parts(&mut self) {
        let parts: Vec<Part> = std::mem::take(&mut self.written).into_iter().map(Part::from).collect();
        let messages = Arc::make_mut(&mut self.request.messages);
        match messages.last_mut().filter(|last| last.role == Role::Assistant) {
            Some(last) => last.parts.extend(parts),
            None => messages.push(Message { role: Role::Assistant, parts }),
        }
    }
}

impl Stream for Continued {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let piece = match ready!(self.pieces.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => piece,
                // The answer so far is worth more than the failure to extend it.
                Some(Err(_)) if self.extensions > 0 && self.written.is_empty() => {
                    self.pieces = Box::pin(futures_util::stream::empty());
                    return Poll::Ready(Some(Ok(Piece::Finish(Finish::Length))));
                }
                other => return Poll::Ready(other),
            };
            self.note(&piece);
            return Poll::Ready(Some(Ok(match piece {
                Piece::Start { .. } if self.continuations > 0 => continue,
                Piece::Paused if self.continuations < MAX_CONTINUATIONS => {
                    self.start_next();
                    continue;
                }
                Piece::Paused => Piece::Finish(Finish::Stop),
                Piece::Finish(Finish::Length) if self.can_be_extended() => {
                    self.extend();
                    continue;
                }
                Piece::Usage(usage) => {
                    let mut total = self.spent;
                    total.add(&usage);
                    Piece::Usage(total)
                }
                piece => piece,
            })));
        }
    }
}
