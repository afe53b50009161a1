//! A cancel at every point of a run: it ends there, in good order, and says so.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::BoxFuture;
use qwen_engine::graph::{Graph, GraphBuilder, Next, Node, Retry, RunContext, Step, SubGraph, fan_out};
use qwen_engine::{Cancel, Limits, Stop};
use qwen_events::{Body, ConsoleLevel, LogScope};

use crate::harness::{Done, Memory, does, failure, run, run_heard, x_then_y};

/// A node whose tasks speak beside each other.
struct Fans;

impl Node<Memory> for Fans {
    fn run<'a>(&'a self, _: &'a Memory, cx: &'a RunContext) -> BoxFuture<'a, Step<String>> {
        Box::pin(async move {
            let said = |task: u8| async move {
                let text = format!("task {task}").into();
                cx.emit
                    .emit(Body::Console { level: ConsoleLevel::Info, scope: LogScope::System, text })
                    .await;
                task.to_string()
            };
            Step { delta: fan_out((1..=3).map(said)).await.concat(), next: Next::Goto("sub") }
        })
    }
}

/// A graph with a bit of everything: retries, a time-out, work that fans out, a route for errors, a graph
/// inside.
fn everything() -> Graph<Memory> {
    let sub = SubGraph::new(
        x_then_y(),
        |_: &Memory| Memory::default(),
        |inner: Memory, stop: Option<Stop>| Step {
            delta: inner.0.concat(),
            next: stop.map_or(Next::Goto("breaks"), Next::Stop),
        },
    );
    let flaky = does(|n| if n < 2 { ("half", failure(true)) } else { ("whole", Next::Goto("fans")) });
    GraphBuilder::default()
        .node("flaky", flaky)
        .node("fans", Fans)
        .node("sub", sub)
        .node("breaks", does(|_| ("broke", failure(false))))
        .node("last", does(|_| ("mended", Next::End)))
        .edges(&[("flaky", "fans"), ("fans", "sub"), ("sub", "breaks")])
        .end("last")
        .retry("flaky", Retry { attempts: 2, pause: Duration::ZERO })
        .timeout("fans", Duration::from_secs(3600))
        .on_error("breaks", "last", |error| format!("because {error}"))
        .build()
        .expect("a graph")
}

/// How often each node run was entered and left.
fn balance(done: &Done) -> HashMap<String, (usize, usize)> {
    let mut runs: HashMap<String, (usize, usize)> = HashMap::new();
    for event in &done.events {
        let Some(node) = &event.scope.node else { continue };
        let run = runs.entry(node.id.to_string()).or_default();
        match &event.body {
            Body::NodeEnter => run.0 += 1,
            Body::NodeExit { .. } => run.1 += 1,
            _ => {}
        }
    }
    runs
}

#[tokio::test]
async fn a_cancel_at_any_event_ends_the_run_there_and_every_node_is_left_once() {
    let whole = run(&everything()).await;
    assert_eq!(whole.state.0, ["whole", "123", "xy", "broke", "because it broke", "mended"]);
    assert!(whole.ran.stop.is_none());
    let mut cancelled = 0;
    for at in 0..=whole.events.len() {
        let cancel = Cancel::default();
        if at == 0 {
            cancel.stop(Stop::cancelled());
        }
        let hear = |heard: usize| {
            if heard == at {
                cancel.stop(Stop::cancelled());
            }
        };
        let done = run_heard(&everything(), &cancel, Limits::default(), hear).await;
        match &done.ran.stop {
            Some(stop) => {
                assert_eq!(*stop, Stop::cancelled(), "at event {at}");
                cancelled += 1;
            }
            None => assert_eq!(done.state, whole.state, "at event {at}: done before it was heard"),
        }
        assert!(done.events.len() <= whole.events.len(), "at event {at}: nothing more is done");
        for (run, (entered, left)) in balance(&done) {
            assert_eq!((entered, left), (1, 1), "at event {at}: {run}");
        }
    }
    assert!(cancelled > whole.events.len() / 2, "{cancelled} of {}", whole.events.len());
}

#[tokio::test]
async fn a_limit_of_steps_at_any_step_ends_the_run_there() {
    let whole = run(&everything()).await;
    for steps in 0..6 {
        let limits = Limits { steps: Some(steps), ..Limits::default() };
        let done = run_heard(&everything(), &Cancel::default(), limits, |_| ()).await;
        let stop = done.ran.stop.as_ref().expect("a limit");
        assert_eq!(stop.status, qwen_events::EndStatus::Budget, "{steps}");
        assert!(done.events.len() < whole.events.len(), "{steps}");
        assert!(balance(&done).values().all(|run| *run == (1, 1)), "{steps}");
    }
}
