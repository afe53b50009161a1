//! Models that solve one kind of problem with a known quality: `oracle:game24?q=0.3&p=0.7`. They read the
//! actual prompts of the agents, so that a search can be measured without a server and reproducibly.
//!
//! An answer depends only on the seed and the prompt, not on the order or the concurrency of the calls.

mod capacity;
pub(crate) mod demonstration;
mod error_rate;
mod game24;
mod intersect;
mod moves;
mod numbers;
mod prompt;
mod random;
mod rational;
mod sort;
mod spec;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use qwen_events::{ErrorInfo, Finish, Message, Part, Role};

use crate::estimate;
use crate::request::{Model, Piece, Pieces, Request};
use prompt::Prompt;
use random::SeededRandom;

/// A problem that an oracle solves. It answers each kind of prompt in the requested format.
trait Problem: Send + Sync {
    /// The answer to `prompt`.
    fn answer(&self, prompt: &Prompt<'_>, random: &mut SeededRandom) -> String;
}

/// A model that solves one kind of problem.
pub(crate) struct Oracle {
    name: Arc<str>,
    problem: Arc<dyn Problem>,
    seed: u64,
    delay: Duration,
}

impl Oracle {
    /// Parses the text after `oracle:`.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let mut spec = spec::Spec::parse(text)?;
        let seed = spec.take("seed", 0)?;
        let delay = Duration::from_millis(spec.take("delay", 0)?);
        let problem: Arc<dyn Problem> = match spec.kind.as_str() {
            "game24" => Arc::new(game24::Game24 {
                proposer: spec.probability("q", 0.3)?,
                evaluator: spec.probability("p", 0.7)?,
            }),
            "sort" => Arc::new(sort::Sort),
            "intersect" => Arc::new(intersect::Intersect),
            "capacity" => Arc::new(capacity::Capacity { cap: spec.take("cap", 8)? }),
            _ => return Err(spec.unknown_kind()),
        };
        spec.finish()?;
        Ok(Self { name: format!("oracle:{}", spec.kind).into(), problem, seed, delay })
    }
}

impl Model for Oracle {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, request: Request) -> Pieces {
        let (problem, name) = (self.problem.clone(), self.name.clone());
        let (seed, delay) = (self.seed, self.delay);
        Box::pin(stream::unfold((Some(request), VecDeque::new()), move |(request, mut left)| {
            let (problem, name) = (problem.clone(), name.clone());
            async move {
                if let Some(request) = &request {
                    if delay.is_zero() {
                        tokio::task::yield_now().await;
                    } else {
                        tokio::time::sleep(delay).await;
                    }
                    left = pieces(&*problem, &name, seed, request);
                }
                let piece = left.pop_front()?;
                Some((Ok(piece), (None, left)))
            }
        }))
    }
}

/// The complete answer, in a few pieces.
fn pieces(problem: &dyn Problem, name: &Arc<str>, seed: u64, request: &Request) -> VecDeque<Piece> {
    let asked = last_words(&request.messages);
    let text = problem.answer(&Prompt::read(&asked), &mut SeededRandom::new(seed, &asked));
    let usage = estimate::usage(estimate::prompt_tokens(request), text.len(), 0);
    let mut pieces = VecDeque::from([Piece::Start { model: name.clone() }]);
    pieces.extend(text.split_inclusive('\n').map(|line| Piece::Text(line.into())));
    pieces.push_back(Piece::Usage(usage));
    pieces.push_back(Piece::Finish(Finish::Stop));
    pieces
}

/// The last user message.
fn last_words(messages: &[Message]) -> String {
    let last = messages.iter().rev().find(|message| message.role == Role::User);
    let parts = last.map(|message| message.parts.as_slice()).unwrap_or_default();
    let texts =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None });
    texts.collect::<Vec<_>>().join("\n")
}
