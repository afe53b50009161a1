//! The graph engine without anything in its nodes: what is left is what a step costs.

use std::io::Write;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_engine::graph::{Effects, Graph, GraphBuilder, Next, Node, NodeCounter, RunContext, State, Step};
use qwen_engine::{Budget, Cancel, Emitter, Limits};
use qwen_events::Json;
use tokio::sync::mpsc;

use crate::process;

/// Counts the steps that are left.
struct Left(usize);

impl State for Left {
    type Delta = usize;

    fn apply(&mut self, delta: usize) {
        self.0 -= delta;
    }

    fn to_json(&self) -> Json {
        Json::trusted(self.0.to_string())
    }
}

/// Hands over to the other node until no step is left.
struct Pass(&'static str);

impl Node<Left> for Pass {
    fn run<'a>(&'a self, state: &'a Left, _: &'a RunContext) -> BoxFuture<'a, Step<usize>> {
        let next = if state.0 > 1 { Next::Goto(self.0) } else { Next::End };
        Box::pin(std::future::ready(Step { delta: 1, next }))
    }
}

/// Runs `count` steps and prints the nanoseconds of processor time that they took.
pub(super) fn run(count: usize) -> Result<(), String> {
    let edges = [("ping", "pong"), ("pong", "ping")];
    let graph = GraphBuilder::default().node("ping", Pass("pong")).node("pong", Pass("ping")).edges(&edges);
    let graph = graph.end("ping").end("pong").build().map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| format!("cannot start the event loop: {error}"))?;
    let before = process::own_cpu_ns();
    let steps = runtime.block_on(walk(&graph, count));
    let spent = process::own_cpu_ns() - before;
    if steps != count as u64 {
        return Err(format!("{steps} of {count} steps were made"));
    }
    writeln!(std::io::stdout(), "{spent}").map_err(|error| error.to_string())
}

/// The engine on one side and a reader of its events on the other, as in a worker.
async fn walk(graph: &Graph<Left>, count: usize) -> u64 {
    let (sender, mut events) = mpsc::channel(256);
    let limits = Limits { steps: Some(u64::MAX), ..Limits::default() };
    let cx = RunContext {
        emit: Emitter::new(sender),
        cancel: Cancel::default(),
        budget: Arc::new(Budget::new(limits, 0)),
        runs: NodeCounter::default(),
        effects: Effects::default(),
        nested: false,
    };
    let work = async {
        let ran = graph.run(&mut Left(count), &cx).await;
        drop(cx);
        ran.steps
    };
    let read = async { while events.recv().await.is_some() {} };
    tokio::join!(work, read).0
}
