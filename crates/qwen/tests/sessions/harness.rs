//! The binary under test in a clean place, and what the model is asked.

use std::path::PathBuf;

use mock_model::process::{self, Ended, Program};
use mock_model::{MockModel, Request};
use serde_json::Value;

/// The binary in a clean place, with a model behind it. Clones share the place.
pub fn qwen(mock: &MockModel) -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen")).with_model(mock).args(["--model", "mock"])
}

/// Runs `program` with these flags, which must end well.
#[track_caller]
pub fn done(program: &Program, flags: &[&str]) -> Ended {
    let ended = program.clone().args(flags).run();
    assert_eq!(ended.code, Some(0), "{flags:?}: {}", ended.stderr);
    ended
}

/// Runs `qwen sessions` in the same place.
#[track_caller]
pub fn sessions(program: &Program, words: &[&str]) -> Ended {
    let flags = [&["sessions"], words].concat();
    let mut bare = process::qwen(env!("CARGO_BIN_EXE_qwen"));
    bare = bare.env("QWEN_HOME", program.qwen_home_path()).cwd(program.cwd_path());
    bare.args(flags).run()
}

/// Where the log of a session is.
pub fn log(program: &Program, id: &str) -> PathBuf {
    program.qwen_home_path().join("sessions").join(format!("{id}.jsonl"))
}

/// The conversation that the model was sent, as `role: text` lines; calls and results by their ids.
#[track_caller]
pub fn conversation(request: &Request) -> Vec<String> {
    valid(request.messages());
    let line = |message: &Value| {
        let role = message["role"].as_str().unwrap();
        if let Some(calls) = message["tool_calls"].as_array() {
            let ids: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
            return format!("{role}: [{}]", ids.join(", "));
        }
        if role == "tool" {
            return format!(
                "tool {}: {}",
                message["tool_call_id"].as_str().unwrap(),
                text(&message["content"])
            );
        }
        format!("{role}: {}", text(&message["content"]))
    };
    request.messages().iter().filter(|message| message["role"] != "system").map(line).collect()
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Fails where a server would refuse the conversation: a call without its result, a result without its call.
#[track_caller]
fn valid(messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let at = open.iter().position(|call| *call == id);
            open.remove(at.unwrap_or_else(|| panic!("nobody asked for {id}: {messages:#?}")));
            continue;
        }
        assert!(open.is_empty(), "{open:?} have no result: {messages:#?}");
        open = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|call| call["id"].as_str())
            .collect();
    }
    assert!(open.is_empty(), "{open:?} have no result: {messages:#?}");
}

/// Runs `program` with these flags in a dialect, which must end well and write a stream that passes the
/// checker.
#[track_caller]
pub fn speaks_well(program: &Program, flags: &[&str], dialect: &str) -> Ended {
    let ended = done(program, &[flags, &["--dialect", dialect, "--output-format", "stream-json"]].concat());
    let check = process::qwen(env!("CARGO_BIN_EXE_qwen"));
    let checked = check.args(["check", "--dialect", dialect]).stdin(&ended.stdout).run();
    assert_eq!(checked.code, Some(0), "{dialect}: {}{}\n{}", checked.stdout, checked.stderr, ended.stdout);
    ended
}

/// The wires.
pub const DIALECTS: [&str; 6] = ["qwen", "claude", "claude-lite", "loom", "loom-export", "core"];

/// Fails unless the stream of the session passes the checker in every dialect.
#[track_caller]
pub fn exports_well(program: &Program, id: &str) {
    for dialect in DIALECTS {
        let export = sessions(program, &["export", id, "--dialect", dialect]);
        assert_eq!(export.code, Some(0), "{dialect}: {}", export.stderr);
        let check = process::qwen(env!("CARGO_BIN_EXE_qwen"));
        let checked = check.args(["check", "--dialect", dialect]).stdin(&export.stdout).run();
        assert_eq!(
            checked.code,
            Some(0),
            "{dialect}: {}{}\n{}",
            checked.stdout,
            checked.stderr,
            export.stdout
        );
    }
}
