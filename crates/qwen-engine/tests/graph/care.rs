//! Nodes that fail: tried again, timed, and routed.

use std::time::Duration;

use qwen_engine::graph::{GraphBuilder, Next, Retry};
use qwen_engine::{Budget, Cancel, Stop};
use qwen_events::{Body, SessionEvent};

use crate::harness::{Waits, does, failure, run, run_with};

const TWICE: Retry = Retry { attempts: 2, pause: Duration::ZERO };

#[tokio::test]
async fn an_error_that_may_pass_is_tried_again_and_leaves_nothing_behind() {
    let flaky = does(|n| if n < 2 { ("half", failure(true)) } else { ("whole", Next::End) });
    let graph = GraphBuilder::default().node("a", flaky).end("a").retry("a", TWICE).build().expect("a graph");
    let done = run(&graph).await;
    assert_eq!(done.state.0, ["whole"]);
    assert!(done.ran.stop.is_none());
    assert_eq!(done.nodes(), [("a".to_owned(), None)], "attempts are one run of the node");
    let retries = done.events.iter().filter(|event| {
        matches!(&event.body, Body::Session(notice) if matches!(**notice, SessionEvent::Retry { .. }))
    });
    assert_eq!(retries.count(), 2);
}

#[tokio::test]
async fn a_node_is_not_tried_more_often_than_it_may_be_nor_for_nothing() {
    for (retryable, runs) in [(true, 3), (false, 1)] {
        let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = count.clone();
        let broken = does(move |_| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            ("tried", failure(retryable))
        });
        let graph =
            GraphBuilder::default().node("a", broken).end("a").retry("a", TWICE).build().expect("a graph");
        let done = run(&graph).await;
        assert_eq!(done.code(), Some("broken"));
        assert_eq!(done.state.0, ["tried"], "the last attempt counts");
        assert_eq!(count.load(std::sync::atomic::Ordering::Relaxed), runs);
    }
}

#[tokio::test]
async fn a_node_whose_time_is_up_ends_in_good_order_and_the_error_names_it() {
    let graph = GraphBuilder::default()
        .node("slow", Waits)
        .end("slow")
        .timeout("slow", Duration::from_millis(1))
        .build()
        .expect("a graph");
    let done = run(&graph).await;
    assert_eq!(done.state.0, ["stopped in good order"]);
    assert_eq!(done.code(), Some("node_timeout"));
    let error = done.ran.stop.and_then(|stop| stop.error).expect("an error");
    assert!(error.message.contains("'slow'"), "{error}");
}

#[tokio::test]
async fn an_error_takes_its_route_and_the_state_hears_of_it() {
    let graph = GraphBuilder::default()
        .node("a", does(|_| ("tried", failure(false))))
        .node("b", does(|_| ("mended", Next::End)))
        .end("a")
        .end("b")
        .on_error("a", "b", |error| format!("because {error}"))
        .build()
        .expect("a graph");
    let done = run(&graph).await;
    assert_eq!(done.state.0, ["tried", "because it broke", "mended"]);
    assert!(done.ran.stop.is_none());
    assert_eq!(done.nodes(), [("a".to_owned(), Some("it broke".to_owned())), ("b".to_owned(), None)]);
}

#[tokio::test]
async fn a_time_out_takes_the_route_for_errors_too_and_a_limit_does_not() {
    let graph = |first: Next| {
        GraphBuilder::default()
            .node("a", does(move |_| ("a", first.clone())))
            .node("slow", Waits)
            .node("b", does(|_| ("mended", Next::End)))
            .edge("a", "slow")
            .timeout("slow", Duration::from_millis(1))
            .on_error("slow", "b", |_| "late".to_owned())
            .on_error("a", "b", |_| "failed".to_owned())
            .end("b")
            .build()
            .expect("a graph")
    };
    let done = run(&graph(Next::Goto("slow"))).await;
    assert_eq!(done.state.0, ["a", "stopped in good order", "late", "mended"]);
    let limit = Budget::new(qwen_engine::Limits::default(), 0).out_of_time(Duration::from_secs(1));
    let done = run(&graph(Next::Stop(limit.clone()))).await;
    assert_eq!((done.state.0.as_slice(), done.ran.stop), (&["a".to_owned()][..], Some(limit)));
}

#[tokio::test]
async fn a_cancel_ends_a_node_that_has_time_left_and_one_that_waits_to_be_tried_again() {
    let cancel = Cancel::default();
    let graph = GraphBuilder::default()
        .node("a", Waits)
        .end("a")
        .timeout("a", Duration::from_secs(3600))
        .retry("a", Retry { attempts: 9, pause: Duration::from_secs(3600) })
        .build()
        .expect("a graph");
    let stopping = async { cancel.stop(Stop::cancelled()) };
    let (done, ()) = tokio::join!(run_with(&graph, &cancel, qwen_engine::Limits::default()), stopping);
    assert_eq!(done.ran.stop, Some(Stop::cancelled()));

    let cancel = Cancel::default();
    let stopper = cancel.clone();
    let failing = does(move |_| {
        stopper.stop(Stop::cancelled());
        ("tried", failure(true))
    });
    let graph = GraphBuilder::default()
        .node("a", failing)
        .end("a")
        .retry("a", Retry { attempts: 9, pause: Duration::from_secs(3600) })
        .build()
        .expect("a graph");
    let done = run_with(&graph, &cancel, qwen_engine::Limits::default()).await;
    assert_eq!((done.state.0, done.ran.stop), (vec!["tried".to_owned()], Some(Stop::cancelled())));
}
