//! The commands that the specs print, run by a shell as they are printed.

use std::os::unix::fs::symlink;

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply, ReplyEvent, sse};
use serde_json::Value;

use crate::harness::judged_text;
use crate::wire::{LITE, QWEN, QWEN_CHUNK};

/// Runs a script with `qwen` on the path and a model behind it.
fn shell(mock: &MockModel, script: &str) -> Ended {
    let bin = tempfile::tempdir().unwrap();
    symlink(env!("CARGO_BIN_EXE_qwen"), bin.path().join("qwen")).unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    Program::new("/bin/sh").args(["-c", script]).env("PATH", path).with_model(mock).run()
}

fn pieces(pieces: &[&str]) -> Reply {
    Reply::new(pieces.iter().map(|piece| ReplyEvent::Text((*piece).to_owned()).step()))
}

#[test]
fn spec_1_a_greeting_as_messages() {
    let mock = MockModel::with([Reply::text("Hello there!")]);
    let ended = shell(
        &mock,
        r#"echo '{"model":"qwen-coder","messages":[{"role":"user","content":"Hello"}]}' \
  | qwen --input-format stream-json --output-format stream-json"#,
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let told = judged_text(QWEN, &ended.stdout);
    assert_eq!((told.end().status.as_str(), told.text.as_str()), ("done", "Hello there!"));
    assert_eq!(told.lines[0]["metadata"]["input_format"], "stream-json");
    let request = &mock.requests()[0];
    assert_eq!((&request.body["model"], request.last_user_text().as_str()), (&"qwen-coder".into(), "Hello"));
    assert_eq!(told.lines.last().unwrap()["choices"][0]["finish_reason"], "stop");
}

#[test]
fn spec_1_a_greeting_character_by_character() {
    let mock = MockModel::with([pieces(&["H", "e", "l", "l", "o"])]);
    let ended = shell(
        &mock,
        r#"echo '{"model":"qwen-coder","messages":[{"role":"user","content":"Output the greeting character by character."}]}' \
  | qwen --input-format stream-json --output-format stream-chunk-json"#,
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let told = judged_text(QWEN_CHUNK, &ended.stdout);
    assert_eq!((told.end().status.as_str(), told.text.as_str()), ("done", "Hello"));
    let deltas: Vec<&Value> = told
        .lines
        .iter()
        .filter(|line| line["object"] == "chat.completion.chunk")
        .map(|line| &line["choices"][0]["delta"])
        .filter(|delta| delta.is_object())
        .collect();
    assert_eq!(deltas[0], &serde_json::json!({ "role": "assistant" }), "the role comes first");
    let contents: Vec<&Value> =
        deltas.iter().map(|delta| &delta["content"]).filter(|c| c.is_string()).collect();
    assert_eq!(contents, ["H", "e", "l", "l", "o"]);
    let last = told.lines.last().unwrap();
    assert_eq!(last["choices"][0]["delta"], serde_json::json!({}));
    assert!(last["usage"].is_object() && last["choices"][0]["finish_reason"] == "stop", "{last}");
}

#[test]
fn spec_3_claude_compatible_streaming() {
    let mock = MockModel::with([pieces(&["Quanta ", "compute."])]);
    let ended = shell(&mock, r#"qwen -p "Explain quantum computing" --output-format stream-json"#);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines = judged_text(LITE, &ended.stdout).lines;
    assert_eq!(lines[1], serde_json::json!({ "type": "content_block_delta", "text": "Quanta " }));
    assert_eq!(lines[2], serde_json::json!({ "type": "content_block_delta", "text": "compute." }));
    let stop = &lines[3];
    assert_eq!(stop["usage"], serde_json::json!({ "input_tokens": 10, "output_tokens": 5 }));
    assert_eq!((&stop["stop_reason"], &stop["reason"]), (&"stop_turn".into(), &"stop_turn".into()));
}

#[test]
fn spec_3_piped_to_jq() {
    let mock = MockModel::with([pieces(&["one\n", "two \"quoted\"", "drei 世界"])]);
    let jq = shell(&mock, "command -v jq").code == Some(0);
    let filter = if jq {
        r#"jq -c 'select(.type == "content_block_delta") | .text'"#
    } else {
        r#"python3 -c 'import json,sys
for line in sys.stdin:
    line = json.loads(line)
    if line["type"] == "content_block_delta": print(json.dumps(line["text"], ensure_ascii=False))'"#
    };
    let ended = shell(&mock, &format!(r#"qwen -p "Generate a list" --output-format stream-json | {filter}"#));
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(ended.stdout, "\"one\\n\"\n\"two \\\"quoted\\\"\"\n\"drei 世界\"\n");
}

#[test]
fn spec_3_line_by_line() {
    let mock = MockModel::with([pieces(&["fn ", "main"])]);
    let ended = shell(
        &mock,
        r#"qwen -p "Write code" --output-format stream-json | while read line; do
  echo "Received: $line"
done"#,
    );
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> =
        ended.stdout.lines().map(|line| line.strip_prefix("Received: ").unwrap()).collect();
    let kinds: Vec<Value> =
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone()).collect();
    assert_eq!(kinds, ["message_start", "content_block_delta", "content_block_delta", "message_stop"]);
}

#[test]
fn spec_3_a_tool_call_is_an_event() {
    let arguments = r#"{"file_path":"missing.txt"}"#;
    let mock = MockModel::with([Reply::call("c1", "read_file", arguments), Reply::text("It is gone.")]);
    let ended = shell(&mock, r#"qwen -p "Read it" --output-format stream-json"#);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = judged_text(LITE, &ended.stdout);
    let call = told.lines.iter().find(|line| line["type"] == "tool_call").unwrap();
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&"read_file".into(), &serde_json::json!({"file_path": "missing.txt"}))
    );
}

#[test]
fn spec_4_arguments_stream_in_pieces() {
    let mock = MockModel::with([
        Reply::new([
            sse::call(0, "toolu-1", "read_file", ""),
            sse::arguments(0, "{\"file_path\": \"/path"),
            sse::arguments(0, "/to/file.txt\"}"),
            sse::finish("tool_calls"),
            sse::usage(1, 1),
            sse::done(),
        ]),
        Reply::text("ok"),
    ]);
    let ended = shell(&mock, "qwen -p x --output-format stream-json --include-partial-messages");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let events: Vec<Value> = ended
        .json_lines()
        .into_iter()
        .filter(|line| line["type"] == "stream_event")
        .map(|line| line["event"].clone())
        .collect();
    let kinds: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..7],
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let block = &events[1]["content_block"];
    assert_eq!(
        (&block["type"], &block["id"], &block["name"]),
        (&"tool_use".into(), &"toolu-1".into(), &"read_file".into())
    );
    assert_eq!(events[0]["message"]["role"], "assistant");
    let joined: String =
        events[2..4].iter().map(|event| event["delta"]["partial_json"].as_str().unwrap()).collect();
    assert_eq!(joined, "{\"file_path\": \"/path/to/file.txt\"}");
    assert_eq!(events[2]["delta"]["type"], "input_json_delta");
}
