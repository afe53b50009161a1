//! The `loom` dialect and its export form.

use qwen_dialects::{Dialect, StreamInfo, StreamMode};
use qwen_events::{
    Body, Checkpoint, ConsoleLevel, EndStatus, ErrorInfo, ErrorKind, Event, Json, LogScope, SessionEvent,
    SessionId, Thinking, Timestamp, ToolStatus,
};
use serde_json::{Value, json};

use crate::script::{Script, info, whole_turn};

fn loom(events: &[Event]) -> Vec<Value> {
    crate::script::lines(&info(Dialect::Loom), events)
}

fn export(events: &[Event]) -> Vec<Value> {
    crate::script::lines(&info(Dialect::LoomExport), events)
}

/// A line in a few letters: its type, or its kind where it is a `custom` of ours, or `reply`.
fn kind(line: &Value) -> &str {
    line["value"]["kind"].as_str().or(line["type"].as_str()).unwrap_or("reply")
}

fn without_event_ids(lines: Vec<Value>) -> Vec<Value> {
    lines
        .into_iter()
        .map(|mut line| {
            line.as_object_mut().unwrap().remove("event_id");
            line
        })
        .collect()
}

#[test]
fn a_turn_is_node_runs_and_a_reply() {
    let node = |id: &str, body: Value| {
        let mut line = json!({"session_id": "sess-001", "node_id": id});
        line.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        line
    };
    let think = |body| node("run-think-1", body);
    let act = |body| node("run-act-1", body);
    let again = |body| node("run-think-2", body);
    let usage = json!({"type": "usage", "prompt_tokens": 100, "completion_tokens": 62, "total_tokens": 162});
    assert_eq!(
        json!(without_event_ids(loom(&whole_turn()))),
        json!([
            {"session_id": "sess-001", "type": "run_start", "run_id": "run-1", "message": "Hello", "agent": "react"},
            think(json!({"type": "node_enter", "id": "think"})),
            think(json!({"type": "custom", "value":
                {"kind": "thought", "subject": "Plan", "description": "look first"}})),
            think(json!({"type": "message_chunk", "content": "I ", "id": "think"})),
            think(json!({"type": "message_chunk", "content": "look.", "id": "think"})),
            think(json!({"type": "tool_call_chunk", "call_id": "call_1", "name": "read_file",
                         "arguments_delta": "{\"file_path\":"})),
            think(json!({"type": "tool_call_chunk", "call_id": "call_1", "name": "read_file",
                         "arguments_delta": "\"a\"}"})),
            think(json!({"type": "tool_call_chunk", "call_id": "call_2", "name": "write_file",
                         "arguments_delta": ""})),
            think(json!({"type": "tool_call_chunk", "call_id": "call_2", "name": "write_file",
                         "arguments_delta": "{}"})),
            think(json!({"type": "tool_call", "call_id": "call_1", "name": "read_file",
                         "arguments": {"file_path": "a"}})),
            think(json!({"type": "tool_call", "call_id": "call_2", "name": "write_file", "arguments": {}})),
            think(usage.clone()),
            think(json!({"type": "node_exit", "id": "think", "result": "Ok"})),
            think(json!({"type": "values", "state": {"step": 1}})),
            think(json!({"type": "updates", "id": "think", "state": {"step": 1}})),
            act(json!({"type": "node_enter", "id": "act"})),
            act(json!({"type": "tool_start", "call_id": "call_1", "name": "read_file"})),
            act(json!({"type": "tool_output", "call_id": "call_1", "name": "read_file", "content": "reading\n"})),
            act(json!({"type": "tool_end", "call_id": "call_1", "name": "read_file", "result": "the file",
                       "is_error": false})),
            act(json!({"type": "tool_end", "call_id": "call_2", "name": "write_file",
                       "result": "This call was declined.", "is_error": true})),
            act(json!({"type": "node_exit", "id": "act", "result": "Ok"})),
            act(json!({"type": "values", "state": {"step": 2}})),
            act(json!({"type": "updates", "id": "act", "state": {"step": 2}})),
            again(json!({"type": "node_enter", "id": "think"})),
            again(json!({"type": "message_chunk", "content": "Done", "id": "think"})),
            again(json!({"type": "message_chunk", "content": ".", "id": "think"})),
            again(usage.clone()),
            again(json!({"type": "node_exit", "id": "think", "result": "Ok"})),
            again(json!({"type": "values", "state": {"step": 3}})),
            again(json!({"type": "updates", "id": "think", "state": {"step": 3}})),
            again(json!({"reply": "Done."})),
        ])
    );
}

#[test]
fn the_envelope_comes_first_and_numbers_run_on_over_turns_without_a_gap() {
    let events = [whole_turn(), whole_turn()].concat();
    let stream = String::from_utf8(crate::script::bytes(&info(Dialect::Loom), &events)).unwrap();
    for (line, n) in stream.lines().zip(1..) {
        assert!(line.starts_with(r#"{"session_id":"sess-001","#), "{line}");
        let numbered = format!(r#""event_id":{n},"#);
        assert!(line.contains(&numbered), "{numbered} {line}");
    }
    assert_eq!(stream.lines().filter(|line| line.contains(r#""reply":"#)).count(), 2);
}

#[test]
fn the_reply_is_last_and_empty_after_failure() {
    let error = || Some(ErrorInfo::new(ErrorKind::Model, "model_error", "it broke"));
    for (status, error, kinds, reply) in [
        (EndStatus::Done, None, &["run_start", "reply"][..], "so far"),
        (EndStatus::Error, error(), &["run_start", "error", "run_end", "reply"], ""),
        (EndStatus::Cancelled, None, &["run_start", "run_end", "reply"], ""),
        (EndStatus::Interrupted, None, &["run_start", "run_end", "reply"], ""),
        (EndStatus::MaxTurns, error(), &["run_start", "error", "run_end", "reply"], "so far"),
        (EndStatus::Budget, None, &["run_start", "run_end", "reply"], "so far"),
    ] {
        let lines = loom(&Script::turn().finish(status, "so far", error));
        assert_eq!(lines.iter().map(kind).collect::<Vec<_>>(), kinds, "{status:?}");
        assert_eq!(lines.last().unwrap()["reply"], reply, "{status:?}");
        if let Some(end) = lines.iter().find(|line| kind(line) == "run_end") {
            assert_eq!(end["value"]["status"], status.name());
        }
        let keys = export(&Script::turn().finish(status, "so far", None));
        assert_eq!(*keys.last().unwrap(), json!({"reply": reply}));
    }
}

#[test]
fn a_failed_node_says_why() {
    let mut script = Script::turn();
    script.enter("think", 1).push(Body::NodeExit { error: Some("no model".into()) });
    assert_eq!(loom(&script.events)[2]["result"], json!({"Err": "no model"}));
    assert_eq!(
        export(&script.events)[2],
        json!({"TaskEnd": {"node_id": "think", "result": {"Err": "no model"}}})
    );
}

#[test]
fn an_approval_carries_the_whole_call_and_the_question_goes_on_the_flat_channel() {
    let mut script = Script::turn();
    script.enter("act", 1).ask("req-1", "call_1");
    let lines = loom(&script.events);
    assert_eq!(lines[2]["type"], "tool_approval");
    assert_eq!(lines[2]["arguments"], json!({"file_path": "out.txt"}));
    assert_eq!(
        lines[3],
        json!({"type": "control_request", "request_id": "req-1", "session_id": "sess-001",
               "prompt_id": "sess-001########1", "subtype": "can_use_tool",
               "tool": {"name": "write_file", "arguments": {"file_path": "out.txt"}},
               "metadata": {"reason": "edits are asked about", "tool_call_id": "call_1"}})
    );
}

#[test]
fn a_sub_agents_events_stay_inside_the_parents_node() {
    let mut script = Script::turn();
    script.enter("act", 1).tool_start("task_1", "agent");
    script.inside(Some("task_1")).enter("think", 7).message().thought("hm").text("sub").end();
    script.inside(None).enter("act", 1).tool_end("task_1", "agent", ToolStatus::Success, "sub");
    let lines = loom(&script.done("main"));
    let inner: Vec<_> = lines.iter().filter(|line| kind(line) == "subagent").collect();
    assert_eq!(inner.len(), 4);
    for line in &inner {
        assert_eq!((&line["node_id"], &line["value"]["parent"]), (&json!("run-act-1"), &json!("task_1")));
        assert_eq!(line["value"]["event"]["node_id"], "run-think-7");
    }
    assert_eq!(inner[1]["value"]["event"]["value"]["kind"], "thought");
    assert_eq!(
        inner[2]["value"]["event"],
        json!({"node_id": "run-think-7", "type": "message_chunk", "content": "sub", "id": "think"})
    );
    assert!(!lines.iter().any(|line| line["type"] == "message_chunk"));
    assert_eq!(lines.last().unwrap()["reply"], "main");
}

fn every_thinking_step() -> Script {
    let mut script = Script::turn();
    script.enter("tot", 1);
    for step in [
        Thinking::TotExpand { candidates: vec!["a".into(), "b".into()] },
        Thinking::TotEvaluate { chosen: 1, scores: vec![0.5, 0.75] },
        Thinking::TotBacktrack { reason: "dead end".into(), to_depth: 1 },
        Thinking::GotPlan { node_ids: vec!["n1".into(), "n2".into()], edge_count: 1 },
        Thinking::GotNodeStart { id: "n1".into() },
        Thinking::GotNodeComplete { id: "n1".into(), result_summary: "ok".into() },
        Thinking::GotNodeFailed { id: "n2".into(), error: "no".into() },
        Thinking::GotExpand { id: "n1".into(), nodes_added: 3, edges_added: 2 },
    ] {
        script.push(Body::Thinking(Box::new(step)));
    }
    script.push(Body::Checkpoint(Box::new(Checkpoint {
        id: "cp-1".into(),
        timestamp: Timestamp(1_739_430_123_045),
        step: 2,
        state: Json::trusted(r#"{"x":1}"#),
        thread_id: SessionId::parse("sess-001").unwrap(),
        namespace: "".into(),
    })));
    script
}

#[test]
fn thinking_steps_and_checkpoints_are_events() {
    let lines: Vec<_> = without_event_ids(loom(&every_thinking_step().events))
        .into_iter()
        .skip(2)
        .map(|mut line| {
            assert_eq!(line.as_object_mut().unwrap().remove("session_id"), Some(json!("sess-001")));
            line
        })
        .collect();
    let at = "run-tot-1";
    assert_eq!(
        json!(lines),
        json!([
            {"node_id": at, "type": "tot_expand", "candidates": ["a", "b"]},
            {"node_id": at, "type": "tot_evaluate", "chosen": 1, "scores": [0.5, 0.75]},
            {"node_id": at, "type": "tot_backtrack", "reason": "dead end", "to_depth": 1},
            {"node_id": at, "type": "got_plan", "node_count": 2, "edge_count": 1, "node_ids": ["n1", "n2"]},
            {"node_id": at, "type": "got_node_start", "id": "n1"},
            {"node_id": at, "type": "got_node_complete", "id": "n1", "result_summary": "ok"},
            {"node_id": at, "type": "got_node_failed", "id": "n2", "error": "no"},
            {"node_id": "n1", "type": "got_expand", "nodes_added": 3, "edges_added": 2},
            {"node_id": at, "type": "checkpoint", "checkpoint_id": "cp-1", "step": 2, "state": {"x": 1},
             "timestamp": "2025-02-13T07:02:03.045Z", "thread_id": "sess-001", "checkpoint_ns": ""},
        ])
    );
}

#[test]
fn the_export_form_has_one_key_and_no_envelope() {
    let mut events = every_thinking_step().events;
    events.extend(whole_turn());
    let lines: Vec<_> = export(&events).into_iter().skip(2).collect();
    assert_eq!(
        json!(lines[..9]),
        json!([
            {"TotExpand": {"candidates": ["a", "b"]}},
            {"TotEvaluate": {"chosen": 1, "scores": [0.5, 0.75]}},
            {"TotBacktrack": {"reason": "dead end", "to_depth": 1}},
            {"GotPlan": {"node_count": 2, "edge_count": 1, "node_ids": ["n1", "n2"]}},
            {"GotNodeStart": {"node_id": "n1"}},
            {"GotNodeComplete": {"node_id": "n1", "result_summary": "ok"}},
            {"GotNodeFailed": {"node_id": "n2", "error": "no"}},
            {"GotExpand": {"node_id": "n1", "nodes_added": 3, "edges_added": 2}},
            {"Checkpoint": {"checkpoint_id": "cp-1", "timestamp": "2025-02-13T07:02:03.045Z", "step": 2,
                            "state": {"x": 1}, "thread_id": "sess-001", "checkpoint_ns": ""}},
        ])
    );
    assert_eq!(lines[9], json!({"RunStart": {"run_id": "run-1", "message": "Hello", "agent": "react"}}));
    assert_eq!(lines[10], json!({"TaskStart": {"node_id": "think"}}));
    assert_eq!(lines[11]["Custom"]["kind"], "thought", "bare, not wrapped");
    assert_eq!(
        lines[12],
        json!({"Messages": {"chunk": {"content": "I "}, "metadata": {"loom_node": "think"}}})
    );
    let values: Vec<_> = lines.iter().filter_map(|line| line.get("Values")).collect();
    assert_eq!(values[0], &json!({"step": 1}), "bare, not wrapped");
    let updates: Vec<_> = lines.iter().filter_map(|line| line.get("Updates")).collect();
    assert_eq!(updates[0], &json!({"node_id": "think", "state": {"step": 1}}));
    assert_eq!(*lines.last().unwrap(), json!({"reply": "Done."}));
    assert!(lines.iter().all(|line| line.as_object().unwrap().len() == 1));
}

#[test]
fn modes_narrow_what_is_written_and_numbers_stay_without_a_gap() {
    let events = {
        let mut events = every_thinking_step().events;
        events.extend(whole_turn());
        events
    };
    let searches = ["tot_expand", "tot_evaluate", "tot_backtrack", "got_plan", "got_expand"];
    let thoughts = ["got_node_start", "got_node_complete", "got_node_failed"];
    let tasks = [&["run_start", "node_enter", "node_exit"][..], &searches, &thoughts].concat();
    for (mode, expected) in [
        (StreamMode::Values, &["values"][..]),
        (StreamMode::Updates, &["updates"]),
        (StreamMode::Messages, &["thought", "message_chunk", "usage"]),
        (StreamMode::Checkpoints, &["checkpoint"]),
        (StreamMode::Tools, &["tool_call_chunk", "tool_call", "tool_start", "tool_output", "tool_end"]),
        (StreamMode::Custom, &["thought"]),
        (StreamMode::Type("usage"), &["usage"]),
        (StreamMode::Type("tool_end"), &["tool_end"]),
        (StreamMode::Tasks, &tasks),
    ] {
        let narrowed = StreamInfo { stream_modes: vec![mode], ..info(Dialect::Loom) };
        let lines = crate::script::lines(&narrowed, &events);
        let (reply, rest) = lines.split_last().unwrap();
        assert_eq!(reply["reply"], "Done.", "{mode:?}");
        for line in rest {
            assert!(expected.contains(&kind(line)), "{mode:?} {line}");
        }
        for kind_expected in expected {
            assert!(rest.iter().any(|line| kind(line) == *kind_expected), "{mode:?} {kind_expected}");
        }
        let numbers: Vec<_> = lines.iter().map(|line| line["event_id"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=lines.len() as u64).collect::<Vec<_>>());
    }
    let debug = StreamInfo { stream_modes: vec![StreamMode::Debug], ..info(Dialect::Loom) };
    assert_eq!(crate::script::bytes(&debug, &events), crate::script::bytes(&info(Dialect::Loom), &events));
}

#[test]
fn no_mode_hides_a_failure() {
    let narrowed = StreamInfo { stream_modes: vec![StreamMode::Values], ..info(Dialect::Loom) };
    let error = ErrorInfo::new(ErrorKind::Model, "model_error", "it broke");
    let events = Script::turn().finish(EndStatus::Error, "", Some(error));
    let lines = crate::script::lines(&narrowed, &events);
    assert_eq!(lines.iter().map(kind).collect::<Vec<_>>(), ["error", "run_end", "reply"]);
}

#[test]
fn events_unknown_to_loom_are_custom() {
    let mut script = Script::default();
    script.push(Body::Session(Box::new(SessionEvent::Compressed {
        original_tokens: 9,
        new_tokens: 3,
        manual: false,
    })));
    script.push(Body::Console { level: ConsoleLevel::Warn, scope: LogScope::Tool, text: "careful".into() });
    script.push(Body::Custom(Json::trusted(r#"[1,"two"]"#)));
    script.push(Body::Error(Box::new(ErrorInfo::new(ErrorKind::Input, "invalid_json", "not JSON"))));
    let values: Vec<_> = loom(&script.events).into_iter().map(|line| line["value"].clone()).collect();
    assert_eq!(
        json!(values),
        json!([
            {"kind": "session_event", "event": "ChatCompressed",
             "metrics": {"original_tokens": 9, "compressed_tokens": 3}},
            {"kind": "console", "level": "warn", "log_scope": "tool", "text": "careful"},
            [1, "two"],
            {"kind": "error", "type": "invalid_request_error", "message": "not JSON", "code": "invalid_json",
             "retryable": false},
        ])
    );
}

#[test]
fn a_command_has_its_reply_and_a_fatal_error_too() {
    let mut script = Script::default();
    script.help_command("me");
    let lines = loom(&script.events);
    assert_eq!(
        lines[0]["value"],
        json!({"kind": "command", "command": {"kind": "slash", "path": ["help"], "args": "me"},
               "result": {"type": "message", "level": "info", "content": "Ask me."}})
    );
    assert_eq!(lines[1]["reply"], "Ask me.");

    let fatal = || Body::Fatal(Box::new(ErrorInfo::new(ErrorKind::Internal, "internal", "our fault")));
    let mut outside = Script::default();
    outside.push(fatal());
    assert_eq!(loom(&outside.events).iter().map(kind).collect::<Vec<_>>(), ["error", "run_end", "reply"]);
    let mut inside = Script::turn();
    inside.push(fatal());
    assert_eq!(
        loom(&inside.events).iter().map(kind).collect::<Vec<_>>(),
        ["run_start", "error", "run_end", "reply"]
    );
}
