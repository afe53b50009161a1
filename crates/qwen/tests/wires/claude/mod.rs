//! The `claude` dialect and its hosts.

mod control;
mod events;
mod hosts;
mod lines;
mod tools;

use mock_model::MockModel;
use mock_model::process::Program;
use serde_json::{Value, json};

use crate::harness::{Host, worker};

pub const CLAUDE: &str = "claude";

/// A worker that one of Claude's SDKs starts.
pub fn claude_sdk(mock: &MockModel) -> Program {
    worker(mock, CLAUDE).env("CLAUDE_CODE_ENTRYPOINT", "sdk-py")
}

/// A worker that one of Qwen Code's SDKs starts.
pub fn qwen_sdk(mock: &MockModel) -> Program {
    worker(mock, CLAUDE).arg("--channel=SDK")
}

/// Sends a control request and returns its answer.
#[track_caller]
pub fn control(host: &mut Host, request: &Value) -> Value {
    host.run.write_line(json!({ "type": "control_request", "request_id": "r", "request": request }));
    loop {
        let line = host.run.json();
        if line["type"] == "control_response" {
            return line["response"].clone();
        }
    }
}

/// `system/init` among the lines of a turn.
pub fn init(lines: &[Value]) -> &Value {
    lines.iter().find(|line| line["subtype"] == "init").unwrap()
}
