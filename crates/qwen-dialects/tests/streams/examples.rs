//! The specs' own examples: our wire types and schemas take them, and our encoders write lines of their
//! shapes.

use std::path::Path;

use qwen_dialects::{Dialect, StreamInfo};
use qwen_events::{
    Body, CallId, Checkpoint, ControlCall, ControlReply, Denial, EndStatus, ErrorInfo, ErrorKind, Event,
    Json, SessionEvent, SessionId, Thinking, Timestamp, ToolStatus, TurnEnd,
};
use serde_json::Value;

use crate::judge::{against_schema, through_wire_type};
use crate::script::{Script, info, lines, turn_end, whole_turn};

const FILES: [(&str, Dialect); 9] = [
    ("spec2-events", Dialect::Loom),
    ("spec2-bare", Dialect::Loom),
    ("spec2-reply", Dialect::Loom),
    ("spec2-types", Dialect::Loom),
    ("spec2-export", Dialect::LoomExport),
    ("spec3-events", Dialect::ClaudeLite),
    ("spec4-stream-events", Dialect::Claude),
    ("reference-claude-sdk", Dialect::Claude),
    ("reference-qwen-sdk", Dialect::Claude),
];

fn examples(file: &str) -> Vec<Value> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/spec-examples");
    let text = std::fs::read_to_string(corpus.join(format!("{file}.jsonl"))).expect(file);
    crate::script::parse(text.as_bytes())
}

/// Whether `all` has everything that `part` has.
fn contains(all: &Value, part: &Value) -> bool {
    match (all, part) {
        (Value::Object(all), Value::Object(part)) => {
            part.iter().all(|(key, part)| all.get(key).map_or(part.is_null(), |all| contains(all, part)))
        }
        (Value::Array(all), Value::Array(part)) => {
            all.len() == part.len() && all.iter().zip(part).all(|(all, part)| contains(all, part))
        }
        (all, part) => all == part,
    }
}

#[test]
fn wire_types_take_every_example_and_keep_what_is_in_it() {
    for (file, dialect) in FILES {
        for example in examples(file) {
            let again =
                through_wire_type(dialect, &example).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(contains(&again, &example), "{file}: {example} became {again}");
        }
    }
}

#[test]
fn schemas_take_every_example() {
    for (file, dialect) in FILES {
        for example in examples(file) {
            against_schema(dialect, &example).unwrap_or_else(|error| panic!("{file}: {error}"));
        }
    }
}

#[test]
fn schemas_refuse_what_is_no_line() {
    for (dialect, line) in [
        (Dialect::Claude, r#"{"type":"assistant","message":{}}"#),
        (Dialect::Claude, r#"{"type":"nonsense"}"#),
        (Dialect::ClaudeLite, r#"{"type":"content_block_delta"}"#),
        (Dialect::ClaudeLite, r#"{"type":"tool_call","name":"x","arguments":"{}"}"#),
        (Dialect::Loom, r#"{"type":"node_enter"}"#),
        (Dialect::Loom, r#"{"reply":7}"#),
        (Dialect::LoomExport, r#"{"TaskStart":{"id":"think"}}"#),
    ] {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(against_schema(dialect, &line).is_err(), "{line}");
    }
}

#[test]
fn the_example_stream_of_spec_2_is_what_its_events_become() {
    let mut script = Script::turn();
    script.enter("think", 1).message().text("I").text(" don't").end().exit();
    let mut lines =
        lines(&info(Dialect::Loom), &script.done("I don't have access to your device's clock ..."));
    let mut expected = examples("spec2-events");
    expected.extend(examples("spec2-reply"));
    // The spec's prose counts from 1 and its example from 0, and its reply follows lines that are not shown.
    for (line, n) in lines.iter_mut().chain(&mut expected).zip((1..=7).chain(1..=7)) {
        line["event_id"] = n.into();
    }
    assert_eq!(lines, expected);
}

/// Whether `line` has the shape of `example`: the same keys and kinds of values, the same words that tell
/// lines apart.
fn fits(key: &str, example: &Value, line: &Value) -> bool {
    const TELLING: [&str; 5] = ["type", "subtype", "role", "status", "behavior"];
    const FREE: [&str; 9] =
        ["input", "arguments", "state", "value", "tool_input", "Values", "Custom", "modelUsage", "response"];
    match (example, line) {
        (Value::Object(example), Value::Object(line)) => {
            FREE.contains(&key)
                || example
                    .iter()
                    .all(|(key, example)| line.get(key).is_some_and(|line| fits(key, example, line)))
        }
        (Value::Array(example), Value::Array(line)) => {
            example.iter().all(|example| line.iter().any(|line| fits(key, example, line)))
        }
        (Value::String(example), Value::String(line)) => !TELLING.contains(&key) || example == line,
        (Value::Null, _) => true,
        (example, line) => {
            FREE.contains(&key) || std::mem::discriminant(example) == std::mem::discriminant(line)
        }
    }
}

/// Everything that an engine can tell, in a few turns.
fn showcase() -> Vec<Event> {
    let mut events = whole_turn();
    let mut script = Script::turn();
    for notice in [
        SessionEvent::Retry {
            attempt: 1,
            max_retries: 4,
            delay_ms: 500,
            status: Some(529),
            error: "busy".into(),
        },
        SessionEvent::ModeChanged { mode: "plan".into() },
    ] {
        script.push(Body::Session(Box::new(notice)));
    }
    script.enter("think", 1).message().call("call_1", "read_file", r#"{"file_path":"a"}"#).end();
    script.ask("req-1", "call_1");
    script.tool_start("call_1", "read_file");
    script.tool_output("call_1", "read_file", "text");
    script.tool_end("call_1", "read_file", ToolStatus::Success, "text");
    script.push(Body::NodeExit { error: Some("text".into()) });
    for step in [
        Thinking::TotExpand { candidates: vec!["a".into()] },
        Thinking::TotEvaluate { chosen: 0, scores: vec![0.5] },
        Thinking::TotBacktrack { reason: "dead end".into(), to_depth: 1 },
        Thinking::GotPlan { node_ids: vec!["n1".into()], edge_count: 1 },
        Thinking::GotNodeStart { id: "n1".into() },
        Thinking::GotNodeComplete { id: "n1".into(), result_summary: "ok".into() },
        Thinking::GotNodeFailed { id: "n1".into(), error: "text".into() },
        Thinking::GotExpand { id: "n1".into(), nodes_added: 3, edges_added: 2 },
    ] {
        script.push(Body::Thinking(Box::new(step)));
    }
    script.push(Body::Checkpoint(Box::new(Checkpoint {
        id: "cp-1".into(),
        timestamp: Timestamp(1),
        step: 2,
        state: Json::empty_object(),
        thread_id: SessionId::parse("sess-001").unwrap(),
        namespace: "".into(),
    })));
    script.push(Body::Custom(Json::trusted("[1]")));
    for call in [
        ControlCall::HookCallback {
            callback_id: "hook_0".into(),
            input: Json::empty_object(),
            tool_use_id: Some("call_1".into()),
        },
        ControlCall::McpMessage {
            server: "calc".into(),
            message: Json::trusted(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        },
    ] {
        script.push(Body::ControlRequest {
            request_id: "r".into(),
            session_id: SessionId::parse("sess-001").unwrap(),
            prompt_id: None,
            call: Box::new(call),
        });
    }
    script.push(Body::ControlCancel { request_id: "r".into() });
    for result in [Ok(Json::empty_object()), Err(ErrorInfo::new(ErrorKind::Input, "unknown", "text"))] {
        script.push(Body::ControlReply(Box::new(ControlReply {
            request_id: "r".into(),
            nested: true,
            result,
        })));
    }
    script.push(Body::TurnEnd(Box::new(TurnEnd {
        reply: "text".into(),
        structured: Some(Json::trusted(r#"{"n":1}"#)),
        denials: vec![Denial {
            tool_name: "write_file".into(),
            call_id: CallId::new("call_2"),
            arguments: Json::empty_object(),
            reason: "no".into(),
        }],
        ..turn_end()
    })));
    events.append(&mut script.events);
    let api_error = ErrorInfo { status: Some(400), ..ErrorInfo::new(ErrorKind::Model, "model_error", "bad") };
    events.extend(Script::turn().finish(EndStatus::Error, "", Some(api_error)));
    events.extend(Script::turn().finish(EndStatus::Cancelled, "", None));
    events
}

#[test]
fn encoders_write_lines_of_every_examples_shape() {
    for (file, dialect) in FILES {
        let info = StreamInfo {
            partial_messages: true,
            session_state: true,
            qwen_sdk: file == "reference-qwen-sdk",
            ..info(dialect)
        };
        let lines = lines(&info, &showcase());
        for example in examples(file) {
            assert!(lines.iter().any(|line| fits("", &example, line)), "{file}: no line is like {example}");
        }
    }
}
