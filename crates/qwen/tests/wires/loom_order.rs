//! Spec 2 §4.2 and ruling 9: what comes after what, and in which node.

use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::{Host, asked, call, nesting, of, searching, shell, told, toolmaker, worker};

#[test]
fn after_node_exit_come_values_and_updates_with_the_same_whole_state_under_its_id() {
    for program in [asked(&toolmaker(), "loom").arg("--yolo"), searching("loom"), nesting("loom")] {
        let lines = told(&program, "loom", 0);
        let exits = lines.iter().enumerate().filter(|(_, line)| line["type"] == "node_exit");
        let mut count = 0;
        for (at, exit) in exits {
            let [values, updates] = &lines[at + 1..at + 3] else { panic!("{exit}") };
            assert_eq!((&values["type"], &updates["type"]), (&json!("values"), &json!("updates")));
            assert_eq!(values["state"], updates["state"]);
            assert!(values["state"].as_object().is_some_and(|state| !state.is_empty()), "{values}");
            assert_eq!((&values["node_id"], &updates["node_id"]), (&exit["node_id"], &exit["node_id"]));
            assert_eq!(updates["id"], exit["id"]);
            count += 1;
        }
        assert!(count > 0);
        for kind in ["values", "updates"] {
            assert_eq!(of(&lines, kind).len(), count, "{kind}: one for each exit");
        }
    }
}

#[test]
fn the_state_is_the_conversation_so_far() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    let roles = |line: &Value| -> Vec<String> {
        let messages = line["state"]["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    let states = of(&lines, "values");
    assert_eq!(roles(states[0]), ["user", "assistant"]);
    assert_eq!(states[0]["state"]["pending_tool_calls"].as_array().unwrap().len(), 4);
    assert_eq!(roles(states[2]), ["user", "assistant", "tool", "tool", "tool", "tool"]);
    assert_eq!(roles(states[3]), ["user", "assistant", "tool", "tool", "tool", "tool", "assistant"]);
}

#[test]
fn what_the_model_says_is_in_think_and_what_tools_do_is_in_act() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    for (place, kinds) in [
        ("run-think-", &["message_chunk", "tool_call_chunk", "tool_call", "usage"][..]),
        ("run-act-", &["tool_start", "tool_output", "tool_end"]),
    ] {
        for kind in kinds {
            let lines = of(&lines, kind);
            assert!(!lines.is_empty(), "{kind}");
            assert!(lines.iter().all(|line| line["node_id"].as_str().unwrap().starts_with(place)), "{kind}");
        }
    }
}

/// The types of the lines about a call, in order and without repetitions.
fn story(lines: &[Value], id: &str) -> Vec<String> {
    let about = lines.iter().filter(|line| line["call_id"] == id && line["type"] != "tool_call_chunk");
    let mut kinds: Vec<String> = about.map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_call_is_called_started_heard_and_ended() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    assert_eq!(story(&lines, "ok"), ["tool_call", "tool_start", "tool_output", "tool_end"]);
    assert_eq!(story(&lines, "fails"), ["tool_call", "tool_start", "tool_end"]);
    // What cannot even begin has an end and no start.
    assert_eq!(story(&lines, "broken"), ["tool_call", "tool_end"]);
    assert_eq!(story(&lines, "unknown"), ["tool_call", "tool_end"]);
    let output: String =
        of(&lines, "tool_output").iter().map(|line| line["content"].as_str().unwrap()).collect();
    assert!(output.contains("out\n") && output.contains("err\n"), "{output:?}");
    for end in of(&lines, "tool_end") {
        assert_eq!(end["is_error"], end["call_id"] != "ok", "{end}");
    }
}

#[test]
fn arguments_are_an_object_even_where_the_model_wrote_none() {
    for written in ["", "{broken", "[1]", "\"text\"", "null", "17"] {
        let mock = MockModel::with([
            Reply::new([ReplyEvent::call("c1", "list_directory", written).step()]),
            Reply::text("ok"),
        ]);
        let lines = told(&asked(&mock, "loom"), "loom", 0);
        assert_eq!(of(&lines, "tool_call")[0]["arguments"], json!({}), "{written}");
        assert_eq!(of(&lines, "tool_end").len(), 1, "{written}");
    }
}

#[test]
fn approval_comes_before_the_start_and_a_refusal_has_an_end_and_no_start() {
    for (behavior, story_of_it, is_error) in [
        ("allow", &["tool_call", "tool_approval", "tool_start", "tool_end"][..], false),
        ("approve", &["tool_call", "tool_approval", "tool_start", "tool_end"], false),
        ("deny", &["tool_call", "tool_approval", "tool_end"], true),
        ("reject", &["tool_call", "tool_approval", "tool_end"], true),
    ] {
        let mock = MockModel::with([Reply::new([shell("c1", "touch made")]), Reply::text("ok")]);
        let mut host = Host::of(&worker(&mock, "loom"), "loom");
        host.ask("go");
        let lines = host.turn(behavior);
        assert_eq!(story(&lines, "c1"), story_of_it, "{behavior}");
        let approval = of(&lines, "tool_approval")[0];
        assert_eq!(approval["arguments"], json!({ "command": "touch made" }));
        assert!(approval["node_id"] == "run-act-1" && approval["name"] == "run_shell_command");
        assert_eq!(of(&lines, "tool_end")[0]["is_error"], is_error, "{behavior}");
        assert_eq!(host.file("made").exists(), !is_error, "{behavior}");
        assert_eq!(lines.last().unwrap()["reply"], "ok", "the turn goes on");
        host.leave();
    }
}

#[test]
fn calls_beside_each_other_are_told_apart_by_their_ids() {
    let calls = ["a", "b", "c"].map(|id| shell(id, &format!("echo {id}1; echo {id}2")));
    let mock = MockModel::with([Reply::new(calls), Reply::text("ok")]);
    let lines = told(&asked(&mock, "loom").arg("--yolo"), "loom", 0);
    for id in ["a", "b", "c"] {
        assert_eq!(story(&lines, id), ["tool_call", "tool_start", "tool_output", "tool_end"], "{id}");
        let output: String = of(&lines, "tool_output")
            .iter()
            .filter(|line| line["call_id"] == id)
            .map(|line| line["content"].as_str().unwrap())
            .collect();
        assert_eq!(output, format!("{id}1\n{id}2\n"));
    }
    assert_eq!(of(&lines, "node_enter").len(), 4, "they share one act");
}

#[test]
fn a_sub_agents_events_stay_inside_their_call() {
    let mock = MockModel::start();
    mock.answer_with(|request: &mock_model::Request| {
        let results = request.messages().iter().any(|message| message["role"] == "tool");
        let sub_agent = request.last_user_text().contains("SUBTASK");
        Some(match (sub_agent, results) {
            (true, _) => Reply::text("from below"),
            (false, true) => Reply::text("from above"),
            (false, false) => Reply::new([call(
                "t1",
                "agent",
                &json!({ "description": "d", "prompt": "SUBTASK", "subagent_type": "general-purpose" }),
            )]),
        })
    });
    let lines = told(&asked(&mock, "loom").arg("--yolo"), "loom", 0);
    let inner: Vec<&Value> = lines.iter().filter(|line| line["value"]["kind"] == "subagent").collect();
    assert!(!inner.is_empty());
    assert!(inner.iter().all(|line| line["value"]["parent"] == "t1" && line["node_id"] == "run-act-1"));
    let words = inner.iter().find(|line| line["value"]["event"]["type"] == "message_chunk").unwrap();
    assert_eq!(words["value"]["event"]["content"], "from below");
    let chunks = of(&lines, "message_chunk");
    assert_eq!((chunks.len(), &chunks[0]["content"]), (1, &json!("from above")));
    assert_eq!(of(&lines, "node_enter").len(), 4, "its nodes are not ours");
    let report = of(&lines, "tool_end")[0]["result"].as_str().unwrap().to_owned();
    assert!(report.starts_with("Report of the sub-agent") && report.ends_with("\nfrom below"), "{report}");
}
