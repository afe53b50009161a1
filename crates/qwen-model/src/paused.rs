//! Continues answers that the server paused, by sending the partial answer back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use qwen_events::{Finish, Message, Part, Role, Usage};

use crate::request::{Model, ModelError, Piece, Pieces, Request};

/// The maximum number of continuations of one answer.
const MAX_CONTINUATIONS: u32 = 8;

/// A model whose paused answers are continued, so that readers see one answer.
pub(crate) struct ContinuesPaused(pub Arc<dyn Model>);

impl Model for ContinuesPaused {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn call(&self, request: Request) -> Pieces {
        let pieces = self.0.call(request.clone());
        Box::pin(Continued {
            model: Arc::clone(&self.0),
            request,
            pieces,
            parts: Vec::new(),
            continuations: 0,
            spent: Usage::default(),
            usage: Usage::default(),
        })
    }
}

/// One answer over several calls.
struct Continued {
    model: Arc<dyn Model>,
    request: Request,
    pieces: Pieces,
    /// The parts that the current call has written.
    parts: Vec<Part>,
    continuations: u32,
    /// The usage of the earlier calls.
    spent: Usage,
    /// The usage of the current call.
    usage: Usage,
}

impl Continued {
    fn note(&mut self, piece: &Piece) {
        match piece {
            Piece::Text(text) => match self.parts.last_mut() {
                Some(Part::Text(known)) => *known = format!("{known}{text}").into(),
                _ => self.parts.push(Part::Text((&**text).into())),
            },
            Piece::Thought(text) => match self.parts.last_mut() {
                Some(Part::Thought { text: known, signature: None }) => {
                    *known = format!("{known}{text}").into();
                }
                _ => self.parts.push(Part::Thought { text: (&**text).into(), signature: None }),
            },
            Piece::ThoughtSignature(proof) => match self.parts.last_mut() {
                Some(Part::Thought { signature: signature @ None, .. }) => *signature = Some(proof.clone()),
                _ => self.parts.push(Part::Thought { text: "".into(), signature: Some(proof.clone()) }),
            },
            Piece::Usage(usage) => self.usage = *usage,
            Piece::Start { .. }
            | Piece::Call { .. }
            | Piece::CallFields { .. }
            | Piece::Paused
            | Piece::Finish(_)
            | Piece::RateLimit(_)
            | Piece::Retry { .. }
            | Piece::Fallback { .. } => {}
        }
    }

    /// Sends the partial answer back and starts the next call.
    fn start_next(&mut self) {
        self.continuations += 1;
        let usage = std::mem::take(&mut self.usage);
        self.spent.add(&usage);
        let parts = std::mem::take(&mut self.parts);
        let messages = Arc::make_mut(&mut self.request.messages);
        match messages.last_mut().filter(|last| last.role == Role::Assistant) {
            Some(last) => last.parts.extend(parts),
            None => messages.push(Message { role: Role::Assistant, parts }),
        }
        self.pieces = self.model.call(self.request.clone());
    }
}

impl Stream for Continued {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let piece = match ready!(self.pieces.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => piece,
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
