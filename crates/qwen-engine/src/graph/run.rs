//! Runs graphs.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{Body, EndStatus, ErrorInfo, ErrorKind, Journal, Json, NodeRun};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{BuildError, Effects, Graph, Next, State, Step, attempt};
use crate::{Budget, Cancel, Emitter, Stop};

/// What a running node may use.
#[derive(Clone)]
pub struct RunContext {
    /// Emits events, stamped with the node run.
    pub emit: Emitter,
    /// Ends the run early.
    pub cancel: Cancel,
    /// What the run may spend.
    pub budget: Arc<Budget>,
    /// Numbers the node runs of a session by name.
    pub runs: NodeCounter,
    /// What an earlier process did in the step that it did not complete.
    pub effects: Effects,
    /// The run is a step of an outer run, and only the outer run is logged.
    pub nested: bool,
}

/// Numbers the node runs of a session by name, from 1.
#[derive(Clone, Default)]
pub struct NodeCounter(Arc<Mutex<HashMap<&'static str, u64>>>);

impl NodeCounter {
    /// Continues the numbering of earlier runs of the session.
    pub(crate) fn continuing(runs: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        Self(Arc::new(Mutex::new(runs.into_iter().collect())))
    }

    /// The next run of a node.
    pub(crate) fn next(&self, name: &'static str) -> Arc<NodeRun> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = counts.entry(name).or_insert(0);
        *n += 1;
        Arc::new(NodeRun::new(name, *n))
    }
}

/// How a run ended.
pub struct RunOutcome {
    /// Why it ended early, if it did.
    pub stop: Option<Stop>,
    pub last: Option<Arc<NodeRun>>,
    /// The number of completed steps.
    pub steps: u64,
}

impl RunOutcome {
    /// A run that could not start.
    pub fn failed(error: &BuildError) -> Self {
        Self { stop: Some(invalid_graph(error.to_string())), last: None, steps: 0 }
    }
}

impl<S: State> Graph<S> {
    /// Runs from the start until the end, a stop, or a cancellation between two nodes. Inside a node, the
    /// node handles cancellation, because only it knows which events it must still emit. A state with open
    /// work is first brought to a point where it has none.
    pub async fn run(&self, state: &mut S, cx: &RunContext) -> RunOutcome {
        self.run_from(self.start(), state, cx).await
    }

    /// Like `run`, but starts from any node, to continue an interrupted run.
    pub async fn run_from(&self, start: &'static str, state: &mut S, cx: &RunContext) -> RunOutcome {
        let mut name = start;
        let mut ran = RunOutcome { stop: None, last: None, steps: 0 };
        loop {
            if cx.cancel.is_stopped() && !state.has_open_work() {
                ran.stop = Some(cx.cancel.cause());
                return ran;
            }
            let Some(placed) = self.find(name) else {
                ran.stop = Some(invalid_graph(format!("the graph has no node '{name}'")));
                return ran;
            };
            if let Err(stop) = cx.budget.step()
                && !state.has_open_work()
            {
                ran.stop = Some(stop);
                return ran;
            }
            let run = cx.runs.next(name);
            let inner = RunContext { emit: cx.emit.in_node(run.clone()), ..cx.clone() };
            inner.emit.emit(Body::NodeEnter).await;
            let Step { delta, next } = attempt::attempt(placed, state, &inner).await;
            let mut next = self.checked(name, next);
            let error = match &next {
                Next::Stop(stop) if stop.status != EndStatus::Done => Some(describe(stop)),
                _ => None,
            };
            let routed = match (&next, &placed.on_error) {
                (Next::Stop(Stop { status: EndStatus::Error, error: Some(error) }), Some(route)) => {
                    Some((route.to, (route.delta)(error)))
                }
                _ => None,
            };
            // A step that waits for answers runs again in the process that has them.
            if !matches!(&next, Next::Stop(stop) if stop.is_deferred()) {
                inner.log_step::<S>(&delta, &next);
            }
            state.apply(delta);
            if let Some((to, delta)) = routed {
                next = Next::Goto(to);
                inner.log_step::<S>(&delta, &next);
                state.apply(delta);
            }
            ran.steps += 1;
            ran.last = Some(run);
            inner.emit.emit(Body::NodeExit { error }).await;
            if inner.emit.wants_state() {
                inner.emit.emit(Body::State(state.to_json())).await;
            }
            match next {
                Next::Goto(to) => name = to,
                Next::End => return ran,
                Next::Stop(stop) => {
                    ran.stop = Some(stop);
                    return ran;
                }
            }
        }
    }

    /// The transition, if an edge allows it.
    fn checked(&self, name: &str, next: Next) -> Next {
        match next {
            Next::Goto(to) if !self.allows(name, to) => {
                Next::Stop(invalid_graph(format!("the node '{name}' went to '{to}', which no edge allows")))
            }
            Next::End if !self.may_end(name) => {
                Next::Stop(invalid_graph(format!("the node '{name}' ended the run, which no edge allows")))
            }
            next => next,
        }
    }
}

impl RunContext {
    /// Performs an effect that must not be repeated. If an earlier process or attempt did it, returns the
    /// stored result. `key` names the effect within the step. Errors are returned and not stored.
    pub async fn once<T, E>(&self, key: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
    {
        if let Some(known) = self.effects.recall(key)
            && let Ok(value) = serde_json::from_str(known.as_str())
        {
            return Ok(value);
        }
        let value = work.await?;
        if !self.nested
            && let Ok(text) = serde_json::to_string(&value)
        {
            let stored = Json::trusted(text);
            self.effects.remember(key, stored.clone());
            if self.emit.is_logged() {
                self.emit
                    .record_only(Body::Journal(Box::new(Journal::Effect { key: key.into(), value: stored })));
            }
        }
        Ok(value)
    }

    /// Logs the change that a step makes, so that a later process need not repeat the step.
    fn log_step<S: State>(&self, delta: &S::Delta, next: &Next) {
        if self.nested {
            return;
        }
        self.effects.forget();
        if self.emit.is_logged()
            && let Some(delta) = S::delta_to_json(delta)
        {
            let next = match next {
                Next::Goto(to) => Some(Arc::from(*to)),
                Next::End | Next::Stop(_) => None,
            };
            self.emit.record_only(Body::Journal(Box::new(Journal::Step { next, delta })));
        }
    }
}

fn invalid_graph(message: String) -> Stop {
    Stop::failed(ErrorInfo::new(ErrorKind::Internal, "broken_graph", message))
}

fn describe(stop: &Stop) -> Arc<str> {
    match &stop.error {
        Some(error) => error.message.clone(),
        None => stop.status.name().into(),
    }
}
