//! The binary under test, with its traces on.

use std::fs;
use std::path::Path;

use mock_model::MockModel;
use mock_model::process::{self, Program};
use serde_json::{Value, json};

use crate::collector::Collector;

/// The trace and the span that a host may be in.
pub const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub const SPAN: &str = "b7ad6b7169203331";

/// The context of a host.
pub fn traceparent(flags: &str) -> String {
    format!("00-{TRACE}-{SPAN}-{flags}")
}

/// The binary in a clean place.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen")).arg("--quiet")
}

/// One prompt, traced.
pub fn asked(mock: &MockModel, collector: &Collector) -> Program {
    traced(qwen().with_model(mock).args(["-p", "Say the word plover", "--model", "mock"]), collector)
}

/// A worker that speaks the `qwen` dialect, traced.
pub fn worker(mock: &MockModel, collector: &Collector) -> Program {
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--model", "mock"];
    traced(qwen().with_model(mock).args(flags), collector)
}

/// A program with its traces on.
pub fn traced(program: Program, collector: &Collector) -> Program {
    program.args(["--telemetry", "--telemetry-otlp-endpoint", &collector.endpoint()])
}

/// Writes a file, with the directories that it is in.
pub fn write(path: impl AsRef<Path>, text: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Whether `inner` is right below `outer`.
#[track_caller]
pub fn assert_below(inner: &Value, outer: &Value) {
    assert_eq!(inner["traceId"], outer["traceId"], "{inner} {outer}");
    assert_eq!(inner["parentSpanId"], outer["spanId"], "{inner} {outer}");
}

/// A request that says something.
pub fn prompt(text: &str) -> Value {
    json!({"messages": [{"role": "user", "content": text}]})
}

/// Whether a line ends a turn.
pub fn ends_turn(line: &Value) -> bool {
    line["metadata"]["turn"].is_object()
}
