//! A model that answers by a function.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::stream;
use qwen_events::{ErrorInfo, ErrorKind, Finish, Part, Role, Usage};
use qwen_model::{Model, ModelError, Piece, Pieces, Request};

/// What a fake says.
pub enum Says {
    Text(String),
    /// A tool call: name and arguments.
    Call(&'static str, String),
    Error(&'static str),
}

impl From<&str> for Says {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A model that answers by a function of what the user said last and how many tool results came since.
pub struct Fake<F> {
    answer: F,
    pub calls: AtomicUsize,
    pub prompts: Mutex<Vec<String>>,
}

impl<F: Fn(&str, usize) -> Says + Send + Sync + 'static> Fake<F> {
    pub fn new(answer: F) -> Arc<Self> {
        Arc::new(Self { answer, calls: AtomicUsize::new(0), prompts: Mutex::default() })
    }
}

impl<F: Fn(&str, usize) -> Says + Send + Sync + 'static> Model for Fake<F> {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn call(&self, request: Request) -> Pieces {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let asked = request.messages.iter().rev().find(|message| message.role == Role::User);
        let text: String = asked
            .iter()
            .flat_map(|message| &message.parts)
            .filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None })
            .collect();
        let results = request.messages.iter().filter(|message| message.role == Role::Tool).count();
        let said = (self.answer)(&text, results);
        self.prompts.lock().expect("a lock").push(text);
        let usage = Usage { prompt_tokens: 10, completion_tokens: 1, ..Usage::default() };
        let pieces = match said {
            Says::Text(text) => {
                vec![Ok(Piece::Text(text.into())), Ok(Piece::Usage(usage)), Ok(Piece::Finish(Finish::Stop))]
            }
            Says::Call(name, arguments) => vec![
                Ok(Piece::Call {
                    index: 0,
                    id: "call_1".into(),
                    name: name.into(),
                    arguments: arguments.into(),
                }),
                Ok(Piece::Usage(usage)),
                Ok(Piece::Finish(Finish::ToolCalls)),
            ],
            Says::Error(message) => {
                vec![Err(ModelError(ErrorInfo::new(ErrorKind::Model, "model_error", message)))]
            }
        };
        stream::iter(pieces).boxed()
    }
}

/// Whether a prompt asks for the task that `title` names.
pub fn is(prompt: &str, title: &str) -> bool {
    prompt.starts_with(title)
}
