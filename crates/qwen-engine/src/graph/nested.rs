//! Nested graphs: a graph as a node of another.

use futures_util::future::BoxFuture;

use super::{Graph, Node, RunContext, State, Step};
use crate::Stop;

/// Converts the inner graph's last state and stop into the outer step.
type Leave<S, T> = dyn Fn(T, Option<Stop>) -> Step<<S as State>::Delta> + Send + Sync;

/// A node that runs a nested graph. The inner nodes emit their events as they happen; budget and cancellation
/// are those of the outer run.
pub struct SubGraph<S: State, T: State> {
    graph: Graph<T>,
    enter: Box<dyn Fn(&S) -> T + Send + Sync>,
    into_result: Box<Leave<S, T>>,
}

impl<S: State, T: State> SubGraph<S, T> {
    /// A node that runs `graph` from the state that `enter` creates. `into_result` converts the last state,
    /// and the stop if there was one, into the outer step.
    pub fn new(
        graph: Graph<T>,
        enter: impl Fn(&S) -> T + Send + Sync + 'static,
        into_result: impl Fn(T, Option<Stop>) -> Step<S::Delta> + Send + Sync + 'static,
    ) -> Self {
        Self { graph, enter: Box::new(enter), into_result: Box::new(into_result) }
    }
}

impl<S: State, T: State> Node<S> for SubGraph<S, T> {
    fn run<'a>(&'a self, state: &'a S, cx: &'a RunContext) -> BoxFuture<'a, Step<S::Delta>> {
        Box::pin(async move {
            let mut inner = (self.enter)(state);
            let cx = RunContext { nested: true, ..cx.clone() };
            let ran = self.graph.run(&mut inner, &cx).await;
            (self.into_result)(inner, ran.stop)
        })
    }
}
