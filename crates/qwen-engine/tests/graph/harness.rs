//! A state that remembers, nodes that do as they are told, and what is heard of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use qwen_engine::graph::{
    Effects, Graph, GraphBuilder, Next, Node, NodeCounter, RunContext, RunOutcome, State, Step,
};
use qwen_engine::{Budget, Cancel, Emitter, Limits, Stop};
use qwen_events::{Body, ErrorInfo, ErrorKind, Event, Json};
use tokio::sync::mpsc;

/// Remembers what was said to it, in order.
#[derive(Default, Debug, Clone, PartialEq)]
pub struct Memory(pub Vec<String>);

impl State for Memory {
    type Delta = String;

    fn apply(&mut self, delta: String) {
        self.0.push(delta);
    }

    fn to_json(&self) -> Json {
        Json::trusted(format!("{:?}", self.0))
    }
}

/// A node that is a function of how often it ran before.
pub struct Does<F> {
    act: F,
    runs: AtomicUsize,
}

pub fn does<F: Fn(usize) -> (&'static str, Next) + Send + Sync>(act: F) -> Does<F> {
    Does { act, runs: AtomicUsize::new(0) }
}

impl<F: Fn(usize) -> (&'static str, Next) + Send + Sync> Node<Memory> for Does<F> {
    fn run<'a>(&'a self, _: &'a Memory, _: &'a RunContext) -> BoxFuture<'a, Step<String>> {
        Box::pin(async move {
            let (delta, next) = (self.act)(self.runs.fetch_add(1, Ordering::Relaxed));
            Step { delta: delta.to_owned(), next }
        })
    }
}

/// A node that waits until it is stopped, and then says why.
pub struct Waits;

impl Node<Memory> for Waits {
    fn run<'a>(&'a self, _: &'a Memory, cx: &'a RunContext) -> BoxFuture<'a, Step<String>> {
        Box::pin(async move {
            let stop = cx.cancel.stopped().await;
            Step { delta: "stopped in good order".to_owned(), next: Next::Stop(stop) }
        })
    }
}

/// A failure that may pass, or not.
pub fn failure(retryable: bool) -> Next {
    let mut error = ErrorInfo::new(ErrorKind::Network, "broken", "it broke");
    error.retryable = retryable;
    Next::Stop(Stop::failed(error))
}

/// What came of a run.
pub struct Done {
    pub ran: RunOutcome,
    pub state: Memory,
    pub events: Vec<Event>,
}

impl Done {
    /// The nodes that ran, and how each ended.
    pub fn nodes(&self) -> Vec<(String, Option<String>)> {
        let exits = self.events.iter().filter_map(|event| match &event.body {
            Body::NodeExit { error } => {
                let name = event.scope.node.as_ref().map(|node| node.name.to_string());
                Some((name.unwrap_or_default(), error.as_ref().map(ToString::to_string)))
            }
            _ => None,
        });
        exits.collect()
    }

    /// The code of the error that it ended with.
    pub fn code(&self) -> Option<&'static str> {
        self.ran.stop.as_ref()?.error.as_ref().map(|error| error.code)
    }
}

pub async fn run(graph: &Graph<Memory>) -> Done {
    run_with(graph, &Cancel::default(), Limits::default()).await
}

pub async fn run_with(graph: &Graph<Memory>, cancel: &Cancel, limits: Limits) -> Done {
    run_heard(graph, cancel, limits, |_| ()).await
}

/// Runs while `hear` is told how many events there were, after each of them and before the next but one.
pub async fn run_heard(graph: &Graph<Memory>, cancel: &Cancel, limits: Limits, hear: impl Fn(usize)) -> Done {
    let (sender, mut receiver) = mpsc::channel(1);
    let cx = RunContext {
        emit: Emitter::new(sender),
        cancel: cancel.clone(),
        budget: Arc::new(Budget::new(limits, 0)),
        runs: NodeCounter::default(),
        effects: Effects::default(),
        nested: false,
    };
    let mut state = Memory::default();
    let work = async {
        let ran = graph.run(&mut state, &cx).await;
        drop(cx);
        ran
    };
    let listen = async {
        let mut events = Vec::new();
        while let Some(event) = receiver.recv().await {
            events.push(event);
            hear(events.len());
        }
        events
    };
    let (ran, events) = tokio::join!(work, listen);
    Done { ran, state, events }
}

/// A graph of two nodes that run one after the other.
pub fn x_then_y() -> Graph<Memory> {
    GraphBuilder::default()
        .node("x", does(|_| ("x", Next::Goto("y"))))
        .node("y", does(|_| ("y", Next::End)))
        .edge("x", "y")
        .end("y")
        .build()
        .expect("a graph")
}
