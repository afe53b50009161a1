//! Tool calls that a model prints as text because its server does not convert them.

mod form;
mod scanner;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use qwen_events::Finish;

use crate::call_id::new_id;
use crate::request::{Model, ModelError, Piece, Pieces, Request};
use form::TextCall;
use scanner::{Scanned, Scanner};

/// When printed calls are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextToolCalls {
    /// In answers without structured calls, from servers that are known to pass them through.
    #[default]
    Auto,
    /// Calls are searched in all answers.
    On,
    Off,
}

/// A model whose printed calls become calls.
pub(crate) struct ReadsTextCalls {
    pub model: Arc<dyn Model>,
    /// True to look for printed calls even after a structured one.
    pub always: bool,
}

impl Model for ReadsTextCalls {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, request: Request) -> Pieces {
        if request.tools.is_empty() {
            return self.model.call(request);
        }
        Box::pin(Reader {
            scanner: Some(Scanner::new(Arc::clone(&request.tools))),
            pieces: self.model.call(request),
            always: self.always,
            out: VecDeque::new(),
            structured: 0,
            printed: 0,
        })
    }
}

/// The pieces of one answer.
struct Reader {
    pieces: Pieces,
    /// `None` once printed calls are no longer looked for.
    scanner: Option<Scanner>,
    always: bool,
    out: VecDeque<Piece>,
    /// How many structured calls the server has sent.
    structured: u32,
    /// How many printed calls were found.
    printed: u32,
}

impl Reader {
    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => match &mut self.scanner {
                Some(scanner) => {
                    if scanner.passes(&text) {
                        self.out.push_back(Piece::Text(text));
                    } else {
                        let scanned = scanner.push(&text);
                        self.emit(scanned);
                    }
                }
                None => self.out.push_back(Piece::Text(text)),
            },
            Piece::Call { index, id, name, arguments } => {
                self.structured = self.structured.max(index + 1);
                if !self.always {
                    self.flush_as_text();
                }
                self.out.push_back(Piece::Call { index: index + self.printed, id, name, arguments });
            }
            Piece::CallFields { index, fields } => {
                self.out.push_back(Piece::CallFields { index: index + self.printed, fields });
            }
            Piece::Finish(finish) => {
                if let Some(mut scanner) = self.scanner.take() {
                    let scanned = scanner.finish();
                    self.emit(scanned);
                }
                let finish =
                    if self.printed > 0 && finish == Finish::Stop { Finish::ToolCalls } else { finish };
                self.out.push_back(Piece::Finish(finish));
            }
            Piece::Usage(_)
            | Piece::Start { .. }
            | Piece::Thought(_)
            | Piece::ThoughtSignature(_)
            | Piece::Paused
            | Piece::RateLimit(_)
            | Piece::Retry { .. }
            | Piece::Waiting { .. }
            | Piece::Fallback { .. } => self.out.push_back(piece),
        }
    }

    /// A structured call: what was held back is text.
    fn flush_as_text(&mut self) {
        if let Some(scanner) = self.scanner.take() {
            let rest = scanner.into_text();
            if !rest.is_empty() {
                self.out.push_back(Piece::Text(rest.into()));
            }
        }
    }

    fn emit(&mut self, scanned: Vec<Scanned>) {
        for part in scanned {
            match part {
                Scanned::Text(text) => self.out.push_back(Piece::Text(text.into())),
                Scanned::Call(TextCall { name, arguments }) => {
                    let index = self.structured + self.printed;
                    self.printed += 1;
                    let (name, arguments) = (name.into(), arguments.into());
                    self.out.push_back(Piece::Call { index, id: new_id(), name, arguments });
                }
            }
        }
    }
}

impl Stream for Reader {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(piece) = self.out.pop_front() {
                return Poll::Ready(Some(Ok(piece)));
            }
            match ready!(self.pieces.as_mut().poll_next(cx)) {
                Some(Ok(piece)) => self.take(piece),
                Some(Err(error)) => {
                    self.flush_as_text();
                    if self.out.is_empty() {
                        return Poll::Ready(Some(Err(error)));
                    }
                    self.pieces = Box::pin(futures_util::stream::iter([Err(error)]));
                }
                None => return Poll::Ready(None),
            }
        }
    }
}
