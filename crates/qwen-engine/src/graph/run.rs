//! Running a graph.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{Body, ErrorInfo, ErrorKind, NodeRun};

use super::{BuildError, Graph, Next, State};
use crate::{Budget, Cancel, Emitter, Stop};

/// What a running node may use.
pub struct Cx {
    /// Where events go, stamped with the node run.
    pub emit: Emitter,
    /// Ends the run early.
    pub cancel: Cancel,
    /// What the run may spend.
    pub budget: Arc<Budget>,
    /// Numbers the node runs of a session by name.
    pub runs: NodeCounter,
}

/// Numbers the node runs of a session by name, from 1.
#[derive(Clone, Default)]
pub struct NodeCounter(Arc<Mutex<HashMap<&'static str, u64>>>);

impl NodeCounter {
    /// Goes on behind the runs that a session had before.
    pub(crate) fn behind(runs: impl IntoIterator<Item = (&'static str, u64)>) -> Self {
        Self(Arc::new(Mutex::new(runs.into_iter().collect())))
    }

    fn next(&self, name: &'static str) -> Arc<NodeRun> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n = counts.entry(name).or_insert(0);
        *n += 1;
        Arc::new(NodeRun::new(name, *n))
    }
}

/// How a run ended.
pub struct Ran {
    /// Why it ended early, if it did.
    pub stop: Option<Stop>,
    /// The last node run.
    pub last: Option<Arc<NodeRun>>,
    /// Completed steps.
    pub steps: u64,
}

impl Ran {
    /// A run that could not even start.
    pub(crate) fn failed(error: &BuildError) -> Self {
        Self { stop: Some(broken(error.to_string())), last: None, steps: 0 }
    }
}

impl<S: State> Graph<S> {
    /// Runs from the start until the end, a stop, or a cancel between two nodes; inside a node it is the node that
    /// heeds the cancel, because only it knows what it must still say.
    pub async fn run(&self, state: &mut S, cx: &Cx) -> Ran {
        self.run_from(self.start, state, cx).await
    }

    /// The same from a node that is not the start, to go on with a run that was interrupted.
    pub async fn run_from(&self, start: &'static str, state: &mut S, cx: &Cx) -> Ran {
        let mut name = start;
        let mut ran = Ran { stop: None, last: None, steps: 0 };
        loop {
            if cx.cancel.is_stopped() {
                ran.stop = Some(cx.cancel.cause());
                return ran;
            }
            let Some((_, node)) = self.nodes.iter().find(|(n, _)| *n == name) else {
                ran.stop = Some(broken(format!("the graph has no node '{name}'")));
                return ran;
            };
            let run = cx.runs.next(name);
            let inner = Cx {
                emit: cx.emit.in_node(run.clone()),
                cancel: cx.cancel.clone(),
                budget: cx.budget.clone(),
                runs: cx.runs.clone(),
            };
            inner.emit.emit(Body::NodeEnter).await;
            let step = node.run(state, &inner).await;
            let mut next = step.next;
            state.apply(step.delta);
            ran.steps += 1;
            ran.last = Some(run);
            match next {
                Next::Goto(to) if !self.allows(name, to) => {
                    next =
                        Next::Stop(broken(format!("the node '{name}' went to '{to}', which no edge allows")));
                }
                Next::End if !self.may_end(name) => {
                    next =
                        Next::Stop(broken(format!("the node '{name}' ended the run, which no edge allows")));
                }
                _ => {}
            }
            let error = match &next {
                Next::Stop(stop) => Some(describe(stop)),
                _ => None,
            };
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
}

fn broken(message: String) -> Stop {
    Stop::failed(ErrorInfo::new(ErrorKind::Internal, "broken_graph", message))
}

fn describe(stop: &Stop) -> Arc<str> {
    match &stop.error {
        Some(error) => error.message.clone(),
        None => stop.status.name().into(),
    }
}
