//! The built-in model: no network, no intelligence, a handful of intents. It makes everything around a
//! model usable without one, and its answers say so.
//!
//! It has no state: its answer depends only on the conversation, so the same conversation gives the same
//! answer.

mod intent;
mod words;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use qwen_events::{Finish, Message, Part, Role, ToolResult};

use crate::estimate;
use crate::oracle::demonstration;
use crate::request::{Model, Piece, Pieces, Request};
use intent::Intent;

pub(crate) struct Demo;

const NAME: &str = "demo";

/// How long the model takes to answer an agent that thinks in trees or graphs.
const THINKING: Duration = Duration::from_millis(30);

impl Model for Demo {
    fn name(&self) -> &str {
        NAME
    }

    fn call(&self, request: Request) -> Pieces {
        Box::pin(stream::unfold((Some(request), VecDeque::new()), |(request, mut left)| async move {
            if let Some(request) = &request {
                let thought = demonstration::answer(&last_words(&request.messages));
                if thought.is_some() {
                    // A search is drawn while it runs, and a user must be able to follow it.
                    tokio::time::sleep(THINKING).await;
                }
                left = answer(request, thought);
            }
            // Yields, so that the reader can process each piece, as with a slower model.
            tokio::task::yield_now().await;
            let piece = left.pop_front()?;
            Some((Ok(piece), (None, left)))
        }))
    }
}

/// The whole answer. `thought` is the one for an agent that thinks in trees or graphs.
fn answer(request: &Request, thought: Option<String>) -> VecDeque<Piece> {
    let results = results_to_answer(&request.messages);
    let mut pieces = VecDeque::from([Piece::Start { model: NAME.into() }]);
    let mut finish = Finish::Stop;
    if let Some(thought) = thought {
        pieces.push_back(Piece::Text(thought.into()));
    } else if results.is_empty() {
        let asked = last_words(&request.messages);
        let offers = |tool: &str| request.tools.iter().any(|spec| &*spec.name == tool);
        match Intent::read(&asked) {
            None => push_words(&mut pieces, &words::self_description(&asked)),
            Some(intent) => match intent.call(&offers) {
                Some((name, arguments)) => {
                    pieces.push_back(Piece::Thought(words::thought(&intent, name).into()));
                    pieces.push_back(Piece::Call {
                        index: 0,
                        id: format!("call_demo_{}", calls_so_far(&request.messages)).into(),
                        name: Arc::from(name),
                        arguments: arguments.into(),
                    });
                    finish = Finish::ToolCalls;
                }
                None => push_words(&mut pieces, &words::no_tool_for(&intent)),
            },
        }
    } else {
        push_words(&mut pieces, &words::summarize_results(&results));
    }
    let (mut bytes, mut thought_bytes) = (0, 0);
    for piece in &pieces {
        match piece {
            Piece::Text(text) => bytes += text.len(),
            Piece::Thought(text) => thought_bytes += text.len(),
            Piece::Call { name, arguments, .. } => bytes += name.len() + arguments.len(),
            _ => {}
        }
    }
    pieces.push_back(Piece::Usage(estimate::usage(estimate::prompt_tokens(request), bytes, thought_bytes)));
    pieces.push_back(Piece::Finish(finish));
    pieces
}

/// Emits `text` word by word.
fn push_words(pieces: &mut VecDeque<Piece>, text: &str) {
    pieces.extend(text.split_inclusive(char::is_whitespace).map(|word| Piece::Text(word.into())));
}

/// The tool results that follow the last assistant message.
fn results_to_answer(messages: &[Message]) -> Vec<&ToolResult> {
    let since_the_model =
        messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
    let parts = messages[since_the_model..].iter().flat_map(|message| &message.parts);
    parts.filter_map(|part| if let Part::Result(result) = part { Some(result) } else { None }).collect()
}

fn last_words(messages: &[Message]) -> String {
    let last = messages.iter().rev().find(|message| message.role == Role::User);
    let parts = last.map(|message| message.parts.as_slice()).unwrap_or_default();
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None })
        .collect();
    texts.join("\n")
}

fn calls_so_far(messages: &[Message]) -> usize {
    messages.iter().flat_map(|message| &message.parts).filter(|part| matches!(part, Part::Call(_))).count()
}
