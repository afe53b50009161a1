//! The order in which things are said.

use qwen_events::{AgentName, Body, Event, Thinking};
use qwen_thoughts::{GotOptions, Search};

use crate::harness::{Heard, ask, oracle, setup};

async fn tot(change: impl FnOnce(&mut qwen_thoughts::TotOptions)) -> Heard {
    // A proposer that is right by chance only.
    let oracle = oracle("game24?q=0&seed=2");
    ask(setup(AgentName::Tot, oracle, |setup| change(&mut setup.thinking.tot)), "1 5 5 5").await
}

/// The names of the nodes in the order of their runs, having checked that no two runs overlap.
fn node_runs(events: &[Event]) -> Vec<String> {
    let mut names = Vec::new();
    let mut inside = None;
    for event in events {
        let node = event.scope.node.as_ref();
        match &event.body {
            Body::NodeEnter => {
                assert_eq!(inside, None, "a run begins inside another");
                inside = node.cloned();
                names.extend(node.map(|node| node.name.to_string()));
            }
            Body::NodeExit { .. } => {
                assert_eq!(inside.take().as_ref(), node);
            }
            Body::State(_) => assert_eq!(inside, None),
            Body::Thinking(_) | Body::ThoughtUsage(_) | Body::TextDelta(_) => {
                assert_eq!(inside.as_ref(), node, "{:?} is said outside its node", event.body);
            }
            _ => {}
        }
    }
    names
}

#[tokio::test]
async fn a_tree_is_expanded_and_evaluated_level_by_level_and_then_answered() {
    let heard = tot(|_| {}).await;
    assert_eq!(
        node_runs(&heard.events),
        ["expand", "evaluate", "expand", "evaluate", "expand", "evaluate", "answer"]
    );
    let steps = heard.steps();
    assert_eq!(steps.len(), 6);
    for pair in steps.chunks(2) {
        let [Thinking::TotExpand { candidates }, Thinking::TotEvaluate { chosen, scores }] = pair else {
            panic!("{pair:?}")
        };
        assert_eq!(candidates.len(), scores.len());
        let best = scores.iter().copied().fold(f64::MIN, f64::max);
        let chosen = usize::try_from(*chosen).expect("an index");
        assert!((scores[chosen] - best).abs() < f64::EPSILON, "the chosen one is the best");
    }
}

#[tokio::test]
async fn depth_first_goes_back_to_an_ancestor_and_says_so() {
    let heard = tot(|options| {
        options.search = Search::Dfs;
    })
    .await;
    let back: Vec<u64> = heard
        .steps()
        .into_iter()
        .filter_map(|step| match step {
            Thinking::TotBacktrack { to_depth, reason } => {
                assert!(!reason.is_empty());
                Some(*to_depth)
            }
            _ => None,
        })
        .collect();
    assert!(!back.is_empty(), "the search went back");
    assert!(back.iter().all(|depth| *depth < 3), "{back:?}");
    assert_eq!(heard.state()["backtracks"], back.len());
    assert!(node_runs(&heard.events).contains(&"backtrack".to_owned()));
}

#[tokio::test]
async fn only_the_answer_node_writes_the_reply() {
    let graph = ask(setup(AgentName::Got, oracle("sort?seed=1"), |_| {}), "Sort ascending: 3 1 2").await;
    for heard in [tot(|_| {}).await, graph] {
        let mut text = String::new();
        for event in &heard.events {
            if let Body::TextDelta(piece) = &event.body {
                assert_eq!(event.scope.node.as_ref().map(|node| &*node.name), Some("answer"));
                text.push_str(piece);
            }
        }
        assert_eq!(text, *heard.end.reply);
        assert!(!text.is_empty());
        let spent = heard.events.iter().filter(|event| matches!(event.body, Body::ThoughtUsage(_))).count();
        assert_eq!(
            heard.end.model_calls,
            spent as u64 + 1,
            "one of usage for each call, and the reply's own"
        );
    }
}

#[tokio::test]
async fn a_graph_is_planned_then_thought_and_every_thought_starts_and_ends_once() {
    let prompt = "Sort ascending: 9 3 7 1 30 22 17 4 8 15 26 11 2 19 28 5 6 10 12 14";
    let heard = ask(setup(AgentName::Got, oracle("sort?seed=1"), |_| {}), prompt).await;
    assert_eq!(node_runs(&heard.events), ["plan", "execute", "answer"]);
    let steps = heard.steps();
    let Some(Thinking::GotPlan { node_ids, edge_count }) = steps.first() else { panic!("{steps:?}") };
    assert!(*edge_count >= node_ids.len() as u64 - 1);
    for id in node_ids {
        let place = |wanted: fn(&Thinking) -> Option<&std::sync::Arc<str>>| {
            let places: Vec<usize> = (0..steps.len()).filter(|at| wanted(steps[*at]) == Some(id)).collect();
            assert_eq!(places.len(), 1, "{id}: {places:?}");
            places[0]
        };
        let start = place(|step| if let Thinking::GotNodeStart { id } = step { Some(id) } else { None });
        let end = place(|step| if let Thinking::GotNodeComplete { id, .. } = step { Some(id) } else { None });
        assert!(start < end, "{id}");
    }
}

#[tokio::test]
async fn an_adaptive_graph_starts_expands_thinks_its_children_and_completes() {
    let options = GotOptions { adaptive: true, ..GotOptions::default() };
    let setup = setup(AgentName::Got, oracle("capacity?cap=8"), |setup| setup.thinking.got = options);
    let heard = ask(setup, "Solve a task of size 24").await;
    assert_eq!(&*heard.end.reply, "solved 24");
    let words: Vec<String> = heard
        .steps()
        .into_iter()
        .map(|step| match step {
            Thinking::GotPlan { node_ids, edge_count } => format!("plan {} {edge_count}", node_ids.len()),
            Thinking::GotNodeStart { id } => format!("start {id}"),
            Thinking::GotNodeComplete { id, .. } => format!("done {id}"),
            Thinking::GotExpand { id, nodes_added, edges_added } => {
                format!("expand {id} {nodes_added} {edges_added}")
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(words[..3], ["plan 1 0", "start root", "expand root 3 3"]);
    assert_eq!(words[3..6], ["start root/part1", "start root/part2", "start root/part3"]);
    assert_eq!(words.last().map(String::as_str), Some("done root"));
}
