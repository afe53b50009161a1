//! Plays one call of a script.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue};
use qwen_events::{Finish, Usage};

use super::RequestSummary;
use super::format::Step;
use crate::estimate;
use crate::exchange;
use crate::failure::{self, Failure};
use crate::request::Piece;
use crate::retry::Attempt;

/// The polling interval for an awaited file.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// An attempt that plays one call.
pub(crate) struct Playing {
    request: RequestSummary,
    call: Result<(usize, Arc<[Step]>), Option<Failure>>,
    at: usize,
    /// The rest of the current step.
    rest: Rest,
    started: bool,
    calls: u32,
    bytes: usize,
    thought_bytes: usize,
    usage: Option<Usage>,
    finished: Option<Finish>,
    ended: bool,
}

/// The unplayed part of a step.
enum Rest {
    None,
    /// Pieces of the present text, thought or call, from this one on.
    Pieces(usize),
    Repeat(u64),
}

impl Playing {
    pub fn new(call: Result<(usize, Arc<[Step]>), Failure>, request: RequestSummary) -> Self {
        Self {
            request,
            call: call.map_err(Some),
            at: 0,
            rest: Rest::None,
            started: false,
            calls: 0,
            bytes: 0,
            thought_bytes: 0,
            usage: None,
            finished: None,
            ended: false,
        }
    }
}

impl Attempt for Playing {
    async fn next(&mut self) -> Result<Option<Piece>, Failure> {
        // Nothing here waits for a server; other tasks must still run.
        tokio::task::coop::consume_budget().await;
        let (number, steps) = match &mut self.call {
            Ok((number, steps)) => (*number, Arc::clone(steps)),
            Err(failure) => return failure.take().map_or(Ok(None), Err),
        };
        if !self.started {
            self.started = true;
            let named = steps.iter().find_map(|step| match step {
                Step::Model(model) => Some(model),
                _ => None,
            });
            return Ok(Some(Piece::Start { model: Arc::clone(named.unwrap_or(&self.request.model)) }));
        }
        while self.finished.is_none() {
            let Some(step) = steps.get(self.at) else {
                if steps.is_empty() {
                    return Err(exchange::empty_stream(&self.request.model));
                }
                self.finished = Some(if self.calls > 0 { Finish::ToolCalls } else { Finish::Stop });
                break;
            };
            if let Some(piece) = self.play(step, number).await? {
                return Ok(Some(piece));
            }
            self.at += 1;
            self.rest = Rest::None;
        }
        Ok(self.end())
    }
}

impl Playing {
    /// Plays more of `step`; none at its end.
    async fn play(&mut self, step: &Step, number: usize) -> Result<Option<Piece>, Failure> {
        match step {
            Step::Text { pieces } => {
                let Some(text) = self.next_of(pieces) else { return Ok(None) };
                self.bytes += text.len();
                return Ok(Some(Piece::Text(text)));
            }
            Step::Thought { pieces } => {
                let Some(text) = self.next_of(pieces) else { return Ok(None) };
                self.thought_bytes += text.len();
                return Ok(Some(Piece::Thought(text)));
            }
            Step::Repeat { times, text } => {
                let left = if let Rest::Repeat(left) = self.rest { left } else { *times };
                self.rest = Rest::Repeat(left.saturating_sub(1));
                if left > 0 {
                    self.bytes += text.len();
                    return Ok(Some(Piece::Text(text.clone())));
                }
            }
            Step::ToolCall { name, id, arguments } => {
                if let Some(piece) = self.next_of(arguments) {
                    return Ok(Some(self.call_piece(number, name, id.as_ref(), piece)));
                }
                self.calls += 1;
            }
            Step::Delay(pause) => tokio::time::sleep(*pause).await,
            Step::WaitForFile(path) => wait_for(path).await,
            Step::Error { status, message, retry_after } => {
                return Err(scripted_failure(*status, message, *retry_after, &self.request.model));
            }
            Step::Break => {
                let message =
                    format!("the stream of the model `{}` broke, as the script says", self.request.model);
                return Err(failure::network("stream_broken", message));
            }
            Step::Usage(usage) => self.usage = Some(*usage),
            Step::Finish(finish) => self.finished = Some(*finish),
            Step::Model(_) => {}
            Step::Expect { contains } => {
                if !self.request.last.contains(contains.as_str()) {
                    let message = format!(
                        "call {number} of the script (from 0) expects `{}` in the last message, which is: {}",
                        failure::quote(contains.as_bytes()),
                        failure::quote(self.request.last.as_bytes()),
                    );
                    return Err(failure::not_an_answer("script_expectation", message));
                }
            }
        }
        Ok(None)
    }

    fn next_of(&mut self, pieces: &[Box<str>]) -> Option<Box<str>> {
        let at = if let Rest::Pieces(at) = self.rest { at } else { 0 };
        self.rest = Rest::Pieces(at + 1);
        pieces.get(at).cloned()
    }

    fn call_piece(
        &mut self,
        number: usize,
        name: &Arc<str>,
        id: Option<&Arc<str>>,
        arguments: Box<str>,
    ) -> Piece {
        let index = self.calls;
        self.bytes += arguments.len();
        // The same script produces the same ids in every run.
        let id = id.cloned().unwrap_or_else(|| format!("call_script_{number}_{index}").into());
        Piece::Call { index, id, name: Arc::clone(name), arguments }
    }

    /// The usage, then the finish, then nothing.
    fn end(&mut self) -> Option<Piece> {
        if self.ended {
            return self.finished.take().map(Piece::Finish);
        }
        self.ended = true;
        let estimated = || estimate::usage(self.request.prompt_tokens, self.bytes, self.thought_bytes);
        Some(Piece::Usage(self.usage.unwrap_or_else(estimated)))
    }
}

/// The failure of an `error` step, classified like a server's.
fn scripted_failure(status: Option<u16>, message: &str, retry_after: Option<f64>, model: &str) -> Failure {
    let Some(status) = status else {
        return failure::network("connection_failed", message);
    };
    let mut headers = HeaderMap::new();
    if let Some(value) = retry_after.and_then(|seconds| HeaderValue::try_from(seconds.to_string()).ok()) {
        headers.insert("retry-after", value);
    }
    failure::refused(status, &headers, message.as_bytes(), model)
}

async fn wait_for(path: &Path) {
    while !path.exists() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
