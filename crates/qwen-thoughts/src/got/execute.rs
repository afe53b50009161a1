//! *execute*: runs every thought as soon as its inputs are ready, independent ones concurrently.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use qwen_events::{Body, Thinking};

use super::operate::{Outcome, Task, operate};
use super::state::{Delta, GotState, Standing, Thought};
use super::work::Work;
use crate::thinking::{ThoughtFailure, ThoughtRunner, summary};
use qwen_engine::Stop;
use qwen_engine::graph::{Next, Node, RunContext, Step};

pub(super) struct Execute(pub Arc<ThoughtRunner>);

impl Node<GotState> for Execute {
    fn run<'a>(&'a self, state: &'a GotState, cx: &'a RunContext) -> BoxFuture<'a, Step<Delta>> {
        Box::pin(async move {
            let mut work = Work::new(state);
            let mut running = FuturesUnordered::new();
            let mut stop: Option<Stop> = None;
            loop {
                if stop.is_none() {
                    // Starting more thoughts than can run concurrently would only keep their inputs in
                    // memory.
                    for task in work.take_ready(self.0.parallel.saturating_sub(running.len())) {
                        // A thought that resumes to combine its parts, or because its nested graph did not
                        // fit, was already reported.
                        if task.parts.is_none() && !task.restarted {
                            emit_step(Thinking::GotNodeStart { id: task.thought.id.as_str().into() }, cx)
                                .await;
                        }
                        running.push(self.think(state, task, cx));
                    }
                }
                let Some((at, outcome)) = running.next().await else { break };
                record_outcome(&mut work, at, outcome, &mut stop, cx).await;
            }
            if let Some(stop) = &stop {
                fail_open(&mut work, stop, cx).await;
            }
            finish(work, stop)
        })
    }
}

impl Execute {
    async fn think(&self, state: &GotState, task: Task, cx: &RunContext) -> (usize, Outcome) {
        (task.at, operate(&self.0, state, &task, cx).await)
    }
}

/// Records the outcome of a thought and reports it.
async fn record_outcome(
    work: &mut Work,
    at: usize,
    outcome: Outcome,
    stop: &mut Option<Stop>,
    cx: &RunContext,
) {
    let id: Arc<str> = work.thought(at).id.as_str().into();
    match outcome {
        Outcome::Made(results) => {
            work.done(at, results);
            let result_summary = summary_of(work.thought(at)).into();
            emit_step(Thinking::GotNodeComplete { id, result_summary }, cx).await;
        }
        Outcome::Expanded(planned) => {
            if let Some((nodes_added, edges_added)) = work.expand(at, planned) {
                emit_step(Thinking::GotExpand { id, nodes_added, edges_added }, cx).await;
            }
        }
        Outcome::Failed(ThoughtFailure::Thought(error)) => {
            let skipped = work.fail(at, error.message.to_string());
            emit_step(Thinking::GotNodeFailed { id, error: error.message }, cx).await;
            for (at, why) in skipped {
                let id = work.thought(at).id.as_str().into();
                emit_step(Thinking::GotNodeFailed { id, error: why.into() }, cx).await;
            }
        }
        Outcome::Failed(ThoughtFailure::Run(cause)) => {
            let error =
                cause.error.as_ref().map_or(cause.status.name().into(), |error| error.message.clone());
            work.state.thoughts[at].standing = Standing::Failed;
            work.state.thoughts[at].error = Some(error.to_string());
            emit_step(Thinking::GotNodeFailed { id, error }, cx).await;
            stop.get_or_insert(cause);
        }
    }
}

/// Ends the thoughts that were started and that the stop leaves unfinished: every started thought must end.
async fn fail_open(work: &mut Work, stop: &Stop, cx: &RunContext) {
    let error: Arc<str> =
        stop.error.as_ref().map_or(stop.status.name().into(), |error| error.message.clone());
    for at in work.open_thoughts() {
        let thought = &mut work.state.thoughts[at];
        thought.standing = Standing::Failed;
        thought.error = Some(error.to_string());
        let id = thought.id.as_str().into();
        emit_step(Thinking::GotNodeFailed { id, error: error.clone() }, cx).await;
    }
}

/// The final state of the thoughts. The run continues to *answer* with the results so far, unless it was
/// cancelled.
fn finish(work: Work, stop: Option<Stop>) -> Step<Delta> {
    let thoughts = work.state.thoughts;
    let cancelled = stop.as_ref().is_some_and(|stop| !stop.status.is_limit());
    let missing = thoughts.iter().filter(|thought| thought.standing != Standing::Done).count();
    let shortfall = match (&stop, missing) {
        (Some(_), _) => Some("A limit ended the thinking.".to_owned()),
        (None, 0) => None,
        (None, n) => Some(format!("{n} of {} thoughts produced no result.", thoughts.len())),
    };
    let next = match stop.clone().filter(|_| cancelled) {
        Some(stop) => Next::Stop(stop),
        None => Next::Goto("answer"),
    };
    Step { delta: Delta::Executed { thoughts, shortfall, limit: stop.filter(|_| !cancelled) }, next }
}

/// The outcome of a thought, in one line.
fn summary_of(thought: &Thought) -> String {
    let Some(best) = thought.best() else { return "nothing".to_owned() };
    let count = thought.results.len();
    let score = best.score.map(|score| format!(" [{score:.2}]")).unwrap_or_default();
    let of = if count > 1 { format!(" (best of {count})") } else { String::new() };
    format!("{}{score}{of}", summary(&best.text))
}

async fn emit_step(step: Thinking, cx: &RunContext) {
    cx.emit.emit(Body::Thinking(Box::new(step))).await;
}
