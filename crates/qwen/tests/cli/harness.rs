//! The binary in a clean directory, with or without a model behind it.

use mock_model::process::{self, Program};
use mock_model::{MockModel, Reply, ReplyEvent};

pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
}

/// A shell command line in which `$QWEN` is the binary.
pub fn shell(script: &str) -> Program {
    Program::new("/bin/sh").args(["-c", script]).env("QWEN", env!("CARGO_BIN_EXE_qwen"))
}

/// A message with text and one tool call.
pub fn text_and_call(text: &str, tool: &str, arguments: &str) -> Reply {
    Reply::new([ReplyEvent::Text(text.into()).step(), ReplyEvent::call("c1", tool, arguments).step()])
}

/// A model that looks at the directory and answers.
pub fn looking() -> MockModel {
    MockModel::with([
        text_and_call("Let me look.", "list_directory", r#"{"path":"."}"#),
        Reply::text("There is nothing."),
    ])
}
