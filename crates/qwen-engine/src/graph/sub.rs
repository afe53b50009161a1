//! A graph as a node of another.

use futures_util::future::BoxFuture;

use super::{Graph, Node, RunContext, State, Step};
use crate::Stop;

/// What becomes of the inner graph's last state, and of the reason to stop.
type Leave<S, T> = dyn Fn(T, Option<Stop>) -> Step<<S as State>::Delta> + Send + Sync;

/// A node that runs a graph of its own. What happens in it is said as it happens, by the inner nodes; budget and cancel
/// are those of the outer run.
pub struct SubGraph<S: State, T: State> {
    graph: Graph<T>,
    enter: Box<dyn Fn(&S) -> T + Send + Sync>,
    into_result: Box<Leave<S, T>>,
}

impl<S: State, T: State> SubGraph<S, T> {
    /// The node that runs `graph` from the state that `enter` makes. What `into_result` makes of the last state, and of the
    /// reason to stop if there was one, is the outer step.
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
