//! Spec 4 §4–5: the events of a streamed message, field by field, in their wrapper.

use mock_model::{MockModel, Reply, anthropic, sse};
use serde_json::{Value, json};

use crate::harness::{asked, fields, of, qwen, told, toolmaker, with_a_sub_agent, worker};

const CLAUDE: &str = "claude";

/// The stream events of a run, in their wrappers.
fn streamed(mock: &MockModel) -> Vec<Value> {
    let lines = told(&asked(mock, CLAUDE).args(["--yolo", "--include-partial-messages"]), CLAUDE, 0);
    lines.into_iter().filter(|line| line["type"] == "stream_event").collect()
}

fn events(mock: &MockModel) -> Vec<Value> {
    streamed(mock).into_iter().map(|line| line["event"].clone()).collect()
}

#[test]
fn every_event_is_wrapped_with_a_name_of_its_own_its_session_and_its_parent() {
    let lines = streamed(&toolmaker());
    let mut names: Vec<&str> = lines.iter().map(|line| line["uuid"].as_str().unwrap()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), lines.len(), "uuids are unique");
    for line in &lines {
        assert_eq!(fields(line), ["event", "parent_tool_use_id", "session_id", "type", "uuid"], "{line}");
        assert!(line["event"].is_object() && line["parent_tool_use_id"].is_null(), "{line}");
        assert_eq!(line["session_id"], lines[0]["session_id"]);
    }
}

#[test]
fn a_message_starts_with_id_role_and_model_and_stops() {
    let events = events(&toolmaker());
    let starts = of(&events, "message_start");
    assert_eq!(
        (starts.len(), of(&events, "message_stop").len()),
        (2, 2),
        "one for each message of the model"
    );
    for start in starts {
        let message = &start["message"];
        assert_eq!((&message["role"], &message["model"]), (&json!("assistant"), &json!("mock")));
        assert!(message["id"].as_str().is_some_and(|id| !id.is_empty()), "{start}");
    }
    assert_eq!(events.last().unwrap()["type"], "message_stop");
}

#[test]
fn blocks_are_numbered_from_zero_start_stream_and_stop_one_at_a_time() {
    let events = events(&toolmaker());
    let mut next = 0;
    let mut open: Option<u64> = None;
    for event in &events {
        match event["type"].as_str().unwrap() {
            "message_start" => next = 0,
            "content_block_start" => {
                assert_eq!((open, event["index"].as_u64()), (None, Some(next)), "{event}");
                open = Some(next);
                next += 1;
            }
            "content_block_delta" => assert_eq!(event["index"].as_u64(), open, "{event}"),
            "content_block_stop" => {
                assert_eq!(event["index"].as_u64(), open.take(), "{event}");
                assert_eq!(fields(event), ["index", "type"]);
            }
            _ => assert_eq!(open, None, "{event}"),
        }
    }
}

#[test]
fn blocks_of_each_type_have_their_fields_and_pieces_of_their_own_kind() {
    let events = events(&toolmaker());
    let block = |kind: &str| {
        let start = events.iter().find(|event| event["content_block"]["type"] == kind);
        start.unwrap_or_else(|| panic!("{kind}: {events:#?}"))
    };
    let tool = &block("tool_use")["content_block"];
    assert_eq!((&tool["id"], &tool["name"]), (&json!("ok"), &json!("run_shell_command")));
    assert!(tool["input"].is_object(), "{tool}");
    for (kind, delta, field) in [
        ("text", "text_delta", "text"),
        ("thinking", "thinking_delta", "text"),
        ("thinking", "thinking_delta", "thinking"),
        ("tool_use", "input_json_delta", "partial_json"),
    ] {
        let index = &block(kind)["index"];
        let pieces: Vec<&Value> = events
            .iter()
            .take_while(|event| event["type"] != "message_stop")
            .filter(|event| event["type"] == "content_block_delta" && event["index"] == *index)
            .collect();
        assert!(!pieces.is_empty(), "{kind}");
        assert!(
            pieces.iter().all(|piece| piece["delta"]["type"] == delta && piece["delta"][field].is_string()),
            "{kind}.{field}"
        );
    }
}

#[test]
fn pieces_of_input_join_to_the_whole_input() {
    let arguments = r#"{"path": "."}"#;
    let mock = MockModel::with([
        Reply::new([
            sse::call(0, "c1", "list_directory", ""),
            sse::arguments(0, &arguments[..5]),
            sse::arguments(0, &arguments[5..]),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("ok"),
    ]);
    let lines = told(&asked(&mock, CLAUDE).arg("--include-partial-messages"), CLAUDE, 0);
    let joined: String =
        lines.iter().filter_map(|line| line["event"]["delta"]["partial_json"].as_str()).collect();
    assert_eq!(joined, arguments);
    let whole = lines.iter().find(|line| line["message"]["content"][0]["type"] == "tool_use").unwrap();
    assert_eq!(whole["message"]["content"][0]["input"], json!({ "path": "." }));
}

#[test]
fn events_come_only_when_asked_for() {
    let mock = MockModel::with([Reply::text("hi")]);
    let lines = told(&asked(&mock, CLAUDE), CLAUDE, 0);
    assert!(of(&lines, "stream_event").is_empty());
    assert_eq!(lines.last().unwrap()["result"], "hi");
}

#[test]
fn a_nested_call_names_its_parent() {
    let mock = with_a_sub_agent();
    let lines = told(&asked(&mock, CLAUDE).args(["--yolo", "--include-partial-messages"]), CLAUDE, 0);
    let inner = lines.iter().find(|line| line["message"]["content"][0]["id"] == "inner").unwrap();
    assert_eq!(inner["parent_tool_use_id"], "outer");
    let result = lines.iter().find(|line| line["message"]["content"][0]["tool_use_id"] == "inner").unwrap();
    assert_eq!(result["parent_tool_use_id"], "outer");
    assert_eq!(lines.last().unwrap()["result"], "from above");
}

#[test]
fn calls_that_the_model_writes_in_turns_stream_one_after_the_other_and_whole() {
    let mock = MockModel::with([
        Reply::new([
            sse::call(0, "a", "glob", r#"{"pattern":"#),
            sse::call(1, "b", "glob", r#"{"pattern":"#),
            sse::arguments(0, r#""*.x"}"#),
            sse::arguments(1, r#""*.y"}"#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("Done."),
    ]);
    let events = events(&mock);
    let of_first: Vec<&Value> = events
        .iter()
        .take_while(|event| event["type"] != "message_stop")
        .filter(|event| event["index"].is_u64())
        .collect();
    let order: Vec<u64> = of_first.iter().map(|event| event["index"].as_u64().unwrap()).collect();
    assert!(order.is_sorted(), "{order:?}");
    for (index, pattern) in [(0, "*.x"), (1, "*.y")] {
        let pieces = of_first.iter().filter(|event| event["index"] == index);
        let written: String = pieces.filter_map(|event| event["delta"]["partial_json"].as_str()).collect();
        assert_eq!(written, json!({"pattern": pattern}).to_string(), "{index}");
    }
}

#[test]
fn a_signed_thought_shows_its_signature_and_goes_back_to_the_provider_with_what_only_that_can_read() {
    use anthropic::{
        arguments, block_stop, call_start, event, message_delta, message_start, message_stop, signature,
        thought, thought_start,
    };
    let redacted = json!({"index": 1, "content_block": {"type": "redacted_thinking", "data": "ENC"}});
    let mock = MockModel::with([
        Reply::new([
            message_start(5),
            thought_start(0),
            thought(0, "Hm."),
            signature(0, "SIG"),
            signature(0, "=="),
            block_stop(0),
            event("content_block_start", redacted),
            block_stop(1),
            call_start(2, "toolu_1", "glob"),
            arguments(2, r#"{"pattern":"*"}"#),
            block_stop(2),
            message_delta("tool_use", 3),
            message_stop(),
        ]),
        Reply::text("Done."),
    ]);
    let program = qwen().env("ANTHROPIC_BASE_URL", mock.origin()).env("ANTHROPIC_API_KEY", "k");
    let lines =
        told(&program.args(["-p", "x", "--dialect", CLAUDE, "--output-format", "stream-json"]), CLAUDE, 0);
    let thoughts: Vec<&Value> = lines
        .iter()
        .map(|line| &line["message"]["content"][0])
        .filter(|block| block["type"] == "thinking")
        .collect();
    assert_eq!(thoughts, [&json!({"type": "thinking", "thinking": "Hm.", "signature": "SIG=="})]);
    let requests = mock.requests();
    let said = requests[1].messages().iter().find(|message| message["role"] == "assistant").unwrap();
    assert_eq!(
        said["content"],
        json!([
            {"type": "thinking", "thinking": "Hm.", "signature": "SIG=="},
            {"type": "redacted_thinking", "data": "ENC"},
            {"type": "tool_use", "id": "toolu_1", "name": "glob", "input": {"pattern": "*"}},
        ])
    );
}

#[test]
fn the_commands_that_an_sdk_asks_for_are_names() {
    let ask =
        json!({"type": "control_request", "request_id": "r", "request": {"subtype": "supported_commands"}});
    let ended = worker(&MockModel::with([]), CLAUDE).stdin(format!("{ask}\n")).run();
    let answer: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
    let commands = answer["response"]["response"]["commands"].as_array().unwrap();
    assert!(commands.contains(&"help".into()) && commands.iter().all(Value::is_string), "{answer}");
}
