//! Spec 2's `tot_*` and `got_*` events: what each says about the search, in which order and in which node.

use serde_json::{Value, json};

use crate::harness::{nesting, of, qwen, searching, thinker, told};

fn kind(line: &Value) -> &str {
    line["type"].as_str().unwrap_or("reply")
}

#[test]
fn a_tree_is_expanded_then_evaluated_level_by_level() {
    let flags = ["--agent", "tot", "--tot-breadth", "2", "--tot-proposals", "3"];
    let lines = told(&thinker("loom", "oracle:game24?q=0.9&p=0.9&seed=1", &flags, "4 9 10 13"), "loom", 0);
    let steps: Vec<&Value> = lines.iter().filter(|line| kind(line).starts_with("tot_")).collect();
    assert!(steps.len() >= 2 && steps.len().is_multiple_of(2), "{steps:#?}");
    for pair in steps.chunks(2) {
        let [expand, evaluate] = pair else { panic!("{pair:#?}") };
        assert_eq!((kind(expand), kind(evaluate)), ("tot_expand", "tot_evaluate"));
        let candidates = expand["candidates"].as_array().unwrap();
        let scores: Vec<f64> =
            evaluate["scores"].as_array().unwrap().iter().map(|score| score.as_f64().unwrap()).collect();
        assert_eq!(candidates.len(), scores.len(), "a score for each candidate");
        let chosen = usize::try_from(evaluate["chosen"].as_u64().unwrap()).unwrap();
        assert!(scores.iter().all(|score| *score <= scores[chosen]), "the best is chosen: {evaluate}");
        assert!(expand["node_id"].as_str().unwrap().starts_with("run-expand-"), "{expand}");
        assert!(evaluate["node_id"].as_str().unwrap().starts_with("run-evaluate-"), "{evaluate}");
    }
}

#[test]
fn a_dead_end_goes_back_to_an_earlier_depth_and_says_why() {
    let lines = told(&searching("loom"), "loom", 0);
    let back = of(&lines, "tot_backtrack");
    assert!(!back.is_empty());
    for line in back {
        assert!(!line["reason"].as_str().unwrap().is_empty());
        assert!(line["to_depth"].as_u64().unwrap() < 3, "{line}");
        assert!(line["node_id"].as_str().unwrap().starts_with("run-backtrack-"), "{line}");
    }
}

#[test]
fn a_graph_is_planned_and_every_thought_of_the_plan_starts_and_completes_in_order() {
    let flags = ["--agent", "got"];
    let lines = told(&thinker("loom", "oracle:sort", &flags, "Sort ascending: 5 3 1 9 8 2 7 4"), "loom", 0);
    let plan = of(&lines, "got_plan")[0];
    let ids = plan["node_ids"].as_array().unwrap();
    assert_eq!(
        (plan["node_count"].as_u64(), &plan["node_id"]),
        (Some(ids.len() as u64), &json!("run-plan-1"))
    );
    assert!(plan["edge_count"].is_u64());
    for id in ids {
        let place = |kind: &str| lines.iter().position(|line| line["type"] == kind && line["id"] == *id);
        let (start, complete) = (place("got_node_start").unwrap(), place("got_node_complete").unwrap());
        assert!(start < complete, "{id}");
        assert!(lines[start]["node_id"].as_str().unwrap().starts_with("run-execute-"), "{}", lines[start]);
        assert!(lines[complete]["result_summary"].is_string());
    }
}

#[test]
fn a_complex_thought_starts_expands_has_its_parts_done_and_completes() {
    let lines = told(&nesting("loom"), "loom", 0);
    let expand = of(&lines, "got_expand")[0];
    // The body's `node_id` wins over the envelope's.
    assert_eq!(expand["node_id"], "root");
    assert_eq!((&expand["nodes_added"], &expand["edges_added"]), (&json!(3), &json!(3)));
    let place = |kind: &str, id: &str| {
        let found = lines.iter().position(|line| {
            line["type"] == kind && (line["id"] == id || (kind == "got_expand" && line["node_id"] == id))
        });
        found.unwrap_or_else(|| panic!("{kind} {id}"))
    };
    let expanded = place("got_expand", "root");
    assert!(place("got_node_start", "root") < expanded);
    for part in ["root/part1", "root/part2", "root/part3"] {
        assert!(expanded < place("got_node_start", part));
        assert!(place("got_node_start", part) < place("got_node_complete", part));
        assert!(place("got_node_complete", part) < place("got_node_complete", "root"));
    }
}

#[test]
fn whatever_the_agent_the_run_ends_with_a_checkpoint_and_the_reply_of_its_last_node() {
    for program in [searching("loom"), nesting("loom")] {
        let lines = told(&program, "loom", 0);
        let (reply, rest) = lines.split_last().unwrap();
        assert!(!reply["reply"].as_str().unwrap().is_empty());
        let last = of(rest, "node_exit").pop().unwrap();
        assert_eq!(reply["node_id"], last["node_id"], "{reply}");
        let checkpoint = of(rest, "checkpoint")[0];
        assert_eq!(checkpoint["step"], of(rest, "node_exit").len());
        assert_eq!(checkpoint["state"], of(rest, "values").pop().unwrap()["state"]);
    }
}

#[test]
fn dialects_without_such_events_tell_the_steps_as_thoughts() {
    for program in [searching, nesting] {
        let core = told(&program("core"), "core", 0);
        let thoughts = of(&core, "thought");
        assert!(!thoughts.is_empty());
        assert!(
            thoughts
                .iter()
                .all(|line| line["value"]["subject"].is_string() && line["value"]["description"].is_string())
        );
        let lite = told(&program("claude-lite"), "claude-lite", 0);
        assert!(!of(&lite, "thinking_delta").is_empty());
        assert_eq!((of(&lite, "message_start").len(), of(&lite, "message_stop").len()), (1, 1));
    }
}

#[test]
fn agot_is_the_graph_whose_thoughts_may_become_graphs() {
    let flags = ["--agent", "agot"];
    let lines = told(&thinker("loom", "oracle:capacity?cap=8", &flags, "Solve a task of size 24"), "loom", 0);
    assert_eq!(lines[0]["agent"], "agot");
    assert!(lines.iter().any(|line| kind(line) == "got_expand"), "{lines:#?}");
    assert_eq!(lines.last().unwrap()["reply"], "solved 24");
    let graphs = ["got", "agot"].map(|agent| qwen().args(["graph", "--agent", agent]).run().stdout);
    assert_eq!(graphs[0], graphs[1]);
}
