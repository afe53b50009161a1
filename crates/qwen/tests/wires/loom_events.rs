//! Spec 2 §4.2 and §6: every type with exactly the fields of its row, in both forms.

use std::collections::BTreeSet;

use mock_model::{MockModel, Reply, ReplyEvent, gate};
use serde_json::{Value, json};

use crate::harness::{Host, asked, fields, nesting, searching, shell, thinker, told, toolmaker, worker};

/// Type, fields besides `type`, key of the export form, its fields.
type Row = (&'static str, &'static [&'static str], &'static str, &'static [&'static str]);

const TABLE: [Row; 23] = [
    ("run_start", &["agent", "message", "run_id"], "RunStart", &["agent", "message", "run_id"]),
    ("node_enter", &["id"], "TaskStart", &["node_id"]),
    ("node_exit", &["id", "result"], "TaskEnd", &["node_id", "result"]),
    ("message_chunk", &["content", "id"], "Messages", &["chunk", "metadata"]),
    (
        "usage",
        &["completion_tokens", "prompt_tokens", "total_tokens"],
        "Usage",
        &["completion_tokens", "prompt_tokens", "total_tokens"],
    ),
    ("values", &["state"], "Values", &[]),
    ("updates", &["id", "state"], "Updates", &["node_id", "state"]),
    ("custom", &["value"], "Custom", &[]),
    (
        "checkpoint",
        &["checkpoint_id", "checkpoint_ns", "state", "step", "thread_id", "timestamp"],
        "Checkpoint",
        &["checkpoint_id", "checkpoint_ns", "state", "step", "thread_id", "timestamp"],
    ),
    ("tot_expand", &["candidates"], "TotExpand", &["candidates"]),
    ("tot_evaluate", &["chosen", "scores"], "TotEvaluate", &["chosen", "scores"]),
    ("tot_backtrack", &["reason", "to_depth"], "TotBacktrack", &["reason", "to_depth"]),
    (
        "got_plan",
        &["edge_count", "node_count", "node_ids"],
        "GotPlan",
        &["edge_count", "node_count", "node_ids"],
    ),
    ("got_node_start", &["id"], "GotNodeStart", &["node_id"]),
    ("got_node_complete", &["id", "result_summary"], "GotNodeComplete", &["node_id", "result_summary"]),
    ("got_node_failed", &["error", "id"], "GotNodeFailed", &["error", "node_id"]),
    // Its `node_id` is the thought's and takes the envelope's place.
    ("got_expand", &["edges_added", "nodes_added"], "GotExpand", &["edges_added", "node_id", "nodes_added"]),
    (
        "tool_call_chunk",
        &["arguments_delta", "call_id", "name"],
        "ToolCallChunk",
        &["arguments_delta", "call_id", "name"],
    ),
    ("tool_call", &["arguments", "call_id", "name"], "ToolCall", &["arguments", "call_id", "name"]),
    ("tool_start", &["call_id", "name"], "ToolStart", &["call_id", "name"]),
    ("tool_output", &["call_id", "content", "name"], "ToolOutput", &["call_id", "content", "name"]),
    (
        "tool_end",
        &["call_id", "is_error", "name", "result"],
        "ToolEnd",
        &["call_id", "is_error", "name", "result"],
    ),
    ("tool_approval", &["arguments", "call_id", "name"], "ToolApproval", &["arguments", "call_id", "name"]),
];

/// A graph of which one thought fails.
fn failing_graph(dialect: &str) -> Vec<Value> {
    let mock = MockModel::start();
    mock.answer_with(|request: &mock_model::Request| {
        let asked = request.last_user_text();
        Some(if asked.starts_with("Plan a graph") {
            Reply::text(
                r#"{"nodes":[{"id":"a","op":"generate","instruction":"FAILS"},{"id":"b","op":"generate"}]}"#,
            )
        } else if asked.contains("FAILS") {
            Reply::status(400, r#"{"error":{"message":"no"}}"#)
        } else {
            Reply::text("42")
        })
    });
    let program = asked(&mock, dialect).args(["--agent", "got", "--thought-retries", "0"]);
    told(&program, dialect, 0)
}

/// Streams that have every type between them.
fn everything(dialect: &'static str) -> Vec<Value> {
    let mut lines = told(&asked(&toolmaker(), dialect).arg("--yolo"), dialect, 0);
    let mock = MockModel::with([Reply::new([shell("c1", "touch x")]), Reply::text("ok")]);
    let mut host = Host::of(&worker(&mock, dialect), dialect);
    lines.extend(host.say("go").into_iter().filter(|line| line["type"] != "control_request"));
    host.leave();
    lines.extend(told(&searching(dialect), dialect, 0));
    lines.extend(told(&nesting(dialect), dialect, 0));
    lines.extend(failing_graph(dialect));
    lines.retain(|line| line.get("reply").is_none());
    lines
}

#[test]
fn every_type_of_the_table_has_exactly_the_fields_of_its_row() {
    let mut seen = BTreeSet::new();
    for line in everything("loom") {
        let kind = line["type"].as_str().unwrap();
        let (_, expected, ..) = TABLE.iter().find(|row| row.0 == kind).unwrap_or_else(|| panic!("{line}"));
        let envelope = ["session_id", "node_id", "event_id", "type"];
        let payload: Vec<&str> = fields(&line).into_iter().filter(|name| !envelope.contains(name)).collect();
        assert_eq!(payload, *expected, "{line}");
        assert!(line["session_id"].is_string() && line["event_id"].is_u64(), "{line}");
        seen.insert(kind.to_owned());
    }
    assert_eq!(seen, TABLE.iter().map(|row| row.0.to_owned()).collect(), "every type was written");
}

#[test]
fn every_key_of_the_export_form_has_exactly_the_fields_of_its_row_and_no_envelope() {
    let mut seen = BTreeSet::new();
    for line in everything("loom-export") {
        let [key] = fields(&line)[..] else { panic!("not one key: {line}") };
        let (.., expected) = TABLE.iter().find(|row| row.2 == key).unwrap_or_else(|| panic!("{line}"));
        let value = &line[key];
        match key {
            // Unwrapped: the state itself, the value itself.
            "Values" => assert!(value.get("messages").or(value.get("problem")).is_some(), "{line}"),
            "Custom" => assert!(value["kind"].is_string(), "{line}"),
            _ => assert_eq!(fields(value), *expected, "{line}"),
        }
        seen.insert(key.to_owned());
    }
    assert_eq!(seen, TABLE.iter().map(|row| row.2.to_owned()).collect(), "every key was written");
}

/// Type, field, and what its value must be.
type Kind = (&'static str, &'static str, fn(&Value) -> bool);

#[test]
fn fields_have_the_types_of_the_table() {
    let strings = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    let numbers = |value: &Value| value.as_array().is_some_and(|all| all.iter().all(Value::is_number));
    let kinds: &[Kind] = &[
        ("run_start", "run_id", Value::is_string),
        ("run_start", "agent", |value| ["react", "tot", "got"].iter().any(|agent| value == agent)),
        ("node_exit", "result", |value| value == "Ok" || value["Err"].is_string()),
        ("message_chunk", "content", Value::is_string),
        ("usage", "prompt_tokens", Value::is_u64),
        ("values", "state", Value::is_object),
        ("updates", "state", Value::is_object),
        ("checkpoint", "step", Value::is_u64),
        ("checkpoint", "checkpoint_ns", Value::is_string),
        ("tot_expand", "candidates", strings),
        ("tot_evaluate", "scores", numbers),
        ("tot_evaluate", "chosen", Value::is_u64),
        ("tot_backtrack", "to_depth", Value::is_u64),
        ("got_plan", "node_ids", strings),
        ("got_expand", "nodes_added", Value::is_u64),
        ("got_expand", "edges_added", Value::is_u64),
        ("got_node_failed", "error", Value::is_string),
        ("tool_call", "arguments", Value::is_object),
        ("tool_approval", "arguments", Value::is_object),
        ("tool_call_chunk", "arguments_delta", Value::is_string),
        ("tool_end", "is_error", Value::is_boolean),
        ("tool_end", "result", Value::is_string),
        ("tool_output", "content", Value::is_string),
    ];
    let lines = everything("loom");
    for (kind, field, holds) in kinds {
        let of_kind: Vec<&Value> = lines.iter().filter(|line| line["type"] == *kind).collect();
        assert!(!of_kind.is_empty(), "{kind}");
        assert!(of_kind.iter().all(|line| holds(&line[field])), "{kind}.{field}: {of_kind:#?}");
    }
}

#[test]
fn run_start_names_the_run_the_message_and_the_agent_before_the_first_node() {
    let got = thinker("loom", "oracle:sort", &["--agent", "got"], "Sort ascending: 5 3 1");
    for (program, agent, message) in [
        (asked(&MockModel::with([Reply::text("hi")]), "loom"), "react", "Hello"),
        (searching("loom"), "tot", "4 9 10 13"),
        (got, "got", "Sort ascending: 5 3 1"),
    ] {
        let lines = told(&program, "loom", 0);
        let expected = json!({ "type": "run_start", "run_id": "run-1", "message": message, "agent": agent,
            "session_id": lines[0]["session_id"], "event_id": 1 });
        assert_eq!((&lines[0], &lines[1]["type"]), (&expected, &json!("node_enter")));
    }
}

#[test]
fn arguments_stream_in_pieces_that_join_to_what_the_model_wrote() {
    let arguments = r#"{"command": "echo a  b"}"#;
    let mock = MockModel::with([
        Reply::new([
            mock_model::sse::call(0, "c1", "run_shell_command", ""),
            mock_model::sse::arguments(0, &arguments[..9]),
            mock_model::sse::arguments(0, &arguments[9..]),
            mock_model::sse::finish("tool_calls"),
            mock_model::sse::done(),
        ]),
        Reply::text("ok"),
    ]);
    let lines = told(&asked(&mock, "loom").arg("--yolo"), "loom", 0);
    let joined: String = lines
        .iter()
        .filter(|line| line["type"] == "tool_call_chunk" && line["call_id"] == "c1")
        .map(|line| line["arguments_delta"].as_str().unwrap())
        .collect();
    assert_eq!(joined, arguments);
    let whole = lines.iter().find(|line| line["type"] == "tool_call").unwrap();
    assert_eq!(whole["arguments"], json!({ "command": "echo a  b" }));
}

#[test]
fn pieces_and_output_are_written_while_the_run_goes_on() {
    let mock = MockModel::with([Reply::new([
        ReplyEvent::Text("first".into()).step(),
        gate("more"),
        ReplyEvent::Text("last".into()).step(),
    ])]);
    let mut run = asked(&mock, "loom").start();
    run.close_stdin();
    let seen = run.json_until(|line| line["type"] == "message_chunk");
    assert_eq!(seen.last().unwrap()["content"], "first");
    mock.open("more");
    let rest = run.json_until(|line| line["reply"].is_string());
    assert_eq!(rest.last().unwrap()["reply"], "firstlast");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn checkpoints_are_dated_in_rfc_3339_and_count_completed_steps() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    let exits = lines.iter().filter(|line| line["type"] == "node_exit").count();
    let [checkpoint] = lines.iter().filter(|line| line["type"] == "checkpoint").collect::<Vec<_>>()[..]
    else {
        panic!("one checkpoint at the end of a run")
    };
    assert_eq!(checkpoint["step"], exits);
    let stamp = checkpoint["timestamp"].as_str().unwrap();
    let shape: String = stamp.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
    let state = &lines.iter().rfind(|line| line["type"] == "values").unwrap()["state"];
    assert_eq!(&checkpoint["state"], state, "it holds the state that the run came to");
}

#[test]
fn thoughts_are_custom_events_of_their_kind() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    let thought = lines.iter().find(|line| line["value"]["kind"] == "thought").unwrap();
    assert_eq!(thought["value"], json!({ "kind": "thought", "subject": "Looking", "description": "around" }));
    assert_eq!(thought["node_id"], "run-think-1");
}
