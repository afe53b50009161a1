//! Graphs that cannot work are refused, and those that can are drawn as they are declared.

use std::time::Duration;

use qwen_engine::graph::{BuildError, END, GraphBuilder, Next, Retry, mermaid};

use crate::harness::{Memory, does};

fn node() -> impl qwen_engine::graph::Node<Memory> + 'static {
    does(|_| ("", Next::End))
}

#[test]
fn a_graph_that_cannot_work_is_refused_with_the_name_of_what_is_wrong() {
    let one = || GraphBuilder::<Memory>::default().node("a", node());
    let retry = Retry { attempts: 1, pause: Duration::ZERO };
    let cases = [
        (GraphBuilder::<Memory>::default().build().err(), Some(BuildError::Empty)),
        (one().node("a", node()).end("a").build().err(), Some(BuildError::Twice("a"))),
        (one().edge("a", "b").build().err(), Some(BuildError::Unknown("b"))),
        (one().end("a").edge("c", "a").build().err(), Some(BuildError::Unknown("c"))),
        (one().node("b", node()).end("a").build().err(), Some(BuildError::Unreachable("b"))),
        (one().end("a").retry("d", retry).build().err(), Some(BuildError::Unknown("d"))),
        (one().end("a").timeout("e", Duration::ZERO).build().err(), Some(BuildError::Unknown("e"))),
        (one().end("a").on_error("a", "f", |_| String::new()).build().err(), Some(BuildError::Unknown("f"))),
        (one().end("a").build().err(), None),
        (one().node("b", node()).end("a").on_error("a", "b", |_| String::new()).build().err(), None),
    ];
    for (got, expected) in cases {
        assert_eq!(got, expected);
    }
    assert_eq!(BuildError::Unreachable("b").to_string(), "no path leads from the start to the node 'b'");
}

#[test]
fn a_drawing_shows_the_declared_edges_and_nothing_else() {
    let graph = GraphBuilder::<Memory>::default()
        .node("a", node())
        .node("b", node())
        .node("c", node())
        .edge("a", "b")
        .edges(&[("b", "a"), ("b", END)])
        .on_error("a", "c", |_| String::new())
        .end("c")
        .build()
        .expect("a graph");
    let drawn = "flowchart TD\n    start([start]) --> a\n    a --> b\n    b --> a\n    b --> stop([end])\n    \
                 c --> stop([end])\n    a -. error .-> c\n";
    assert_eq!(graph.mermaid(), drawn);
    assert_eq!(
        mermaid("a", &[("a", END)]),
        "flowchart TD\n    start([start]) --> a\n    a --> stop([end])\n"
    );
}
