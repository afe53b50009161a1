//! The binary under test, driven by JSON lines.

use std::fs;
use std::path::Path;

use mock_model::MockModel;
use mock_model::process::{self, Program, Run};
use serde_json::{Value, json};

/// The binary in a clean place.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
}

/// A worker that speaks the `qwen` dialect.
pub fn worker(mock: &MockModel) -> Program {
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--model", "mock"];
    qwen().with_model(mock).args(flags)
}

/// Writes a file, with the directories that it is in.
pub fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The configuration of a small MCP server; `mode` says what is wrong with it, if anything.
pub fn library(mode: &str) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/servers/library.py");
    let args: Vec<&str> = [script, mode].into_iter().filter(|arg| !arg.is_empty()).collect();
    json!({"command": "python3", "args": args})
}

/// Says something to the agent.
pub fn say(run: &mut Run, text: &str) {
    run.write_line(json!({"messages": [{"role": "user", "content": text}]}));
}

/// What is said until the turn ends.
pub fn until_end(run: &mut Run) -> Vec<Value> {
    run.json_until(|line| line["metadata"]["turn"].is_object())
}

/// Asks something on the control channel and reads on until the answer.
pub fn ask(run: &mut Run, request: &Value) -> Value {
    run.write_line(json!({"type": "control_request", "request_id": "ours", "request": request}));
    let lines = run.json_until(|line| line["response"]["request_id"] == "ours");
    lines.last().unwrap()["response"].clone()
}

/// Answers a question of the worker.
pub fn answer(run: &mut Run, question: &Value, response: &Value) {
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": response});
    run.write_line(json!({"type": "control_response", "response": response}));
}

/// Reads on until the worker calls a hook of the host.
pub fn hook_callback(run: &mut Run) -> Value {
    let lines = run.json_until(|line| line["type"] == "control_request");
    lines.last().unwrap().clone()
}
