//! How runs go.

use qwen_engine::graph::{GraphBuilder, Next, Step, SubGraph, fan_out};
use qwen_engine::{Cancel, Limits, Stop};
use qwen_events::{Body, EndStatus};

use crate::harness::{Memory, does, run, run_with, x_then_y};

#[tokio::test]
async fn deltas_are_applied_in_the_order_of_the_steps_and_runs_never_overlap() {
    let graph = GraphBuilder::default()
        .node("a", does(|n| if n == 0 { ("a1", Next::Goto("b")) } else { ("a2", Next::End) }))
        .node("b", does(|_| ("b", Next::Goto("a"))))
        .edges(&[("a", "b"), ("b", "a")])
        .end("a")
        .build()
        .expect("a graph");
    let done = run(&graph).await;
    assert_eq!(done.state.0, ["a1", "b", "a2"]);
    let ids: Vec<String> = done
        .events
        .iter()
        .map(|event| {
            let id = event.scope.node.as_ref().map(|node| node.id.to_string()).unwrap_or_default();
            format!("{id}{}", if matches!(event.body, Body::NodeEnter) { "<" } else { ">" })
        })
        .collect();
    assert_eq!(ids, ["run-a-1<", "run-a-1>", "run-b-1<", "run-b-1>", "run-a-2<", "run-a-2>"]);
    assert_eq!(done.ran.steps, 3);
}

#[tokio::test]
async fn a_way_that_no_edge_allows_ends_the_run() {
    for (next, words) in [(Next::Goto("b"), "went to 'b'"), (Next::End, "ended the run")] {
        let graph = GraphBuilder::default()
            .node("a", does(move |_| ("", next.clone())))
            .node("b", does(|_| ("", Next::End)))
            .edge("a", "a")
            .edge("a", "c")
            .node("c", does(|_| ("", Next::End)))
            .edge("c", "b")
            .build()
            .expect("a graph");
        let done = run(&graph).await;
        assert_eq!(done.code(), Some("broken_graph"));
        let error = done.ran.stop.and_then(|stop| stop.error).expect("an error");
        assert!(error.message.contains(words), "{error}");
    }
}

#[tokio::test]
async fn an_endless_graph_is_ended_by_its_steps() {
    let graph = GraphBuilder::default()
        .node("a", does(|_| ("again", Next::Goto("a"))))
        .edge("a", "a")
        .build()
        .expect("a graph");
    let limits = Limits { steps: Some(7), ..Limits::default() };
    let done = run_with(&graph, &Cancel::default(), limits).await;
    assert_eq!((done.state.0.len(), done.ran.steps), (7, 7));
    assert_eq!(done.ran.stop.map(|stop| stop.status), Some(EndStatus::Budget));
}

#[tokio::test]
async fn a_graph_inside_a_graph_speaks_for_itself_and_shares_budget_and_cancel() {
    let sub = SubGraph::new(
        x_then_y(),
        |outer: &Memory| Memory(vec![format!("from {}", outer.0.join(" "))]),
        |inner: Memory, stop: Option<Stop>| Step {
            delta: inner.0.join(", "),
            next: stop.map_or(Next::End, Next::Stop),
        },
    );
    let graph = GraphBuilder::default()
        .node("a", does(|_| ("a", Next::Goto("sub"))))
        .node("sub", sub)
        .edge("a", "sub")
        .end("sub")
        .build()
        .expect("a graph");
    let done = run(&graph).await;
    assert_eq!(done.state.0, ["a", "from a, x, y"]);
    let names: Vec<String> = done.nodes().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["a", "x", "y", "sub"]);
    let limits = Limits { steps: Some(3), ..Limits::default() };
    let done = run_with(&graph, &Cancel::default(), limits).await;
    assert_eq!(done.ran.stop.map(|stop| stop.status), Some(EndStatus::Budget), "the inner steps count");
}

#[tokio::test]
async fn work_that_fans_out_joins_in_its_own_order() {
    let (first, second) = (tokio::sync::Notify::new(), tokio::sync::Notify::new());
    // Each waits for the next one, so they can only end in the opposite order.
    let tasks: Vec<futures_util::future::BoxFuture<'_, u8>> = vec![
        Box::pin(async {
            first.notified().await;
            1
        }),
        Box::pin(async {
            second.notified().await;
            first.notify_one();
            2
        }),
        Box::pin(async {
            second.notify_one();
            3
        }),
    ];
    assert_eq!(fan_out(tasks).await, [1, 2, 3]);
}
