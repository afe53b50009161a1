//! The binary under test, and the one place where what it wrote is judged.

use mock_model::MockModel;
use mock_model::process::{self, Ended, Program};

use crate::stream_content::StreamContent;
use crate::wire::Wire;

/// The binary in a clean place.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
}

/// The binary with a prompt, a model behind it and a wire to speak.
pub fn asked(mock: &MockModel, wire: Wire) -> Program {
    qwen().with_model(mock).args(["-p", "Hello", "--model", "mock"]).args(wire.flags())
}

/// What a run tells, judged as a whole stream of its dialect.
#[track_caller]
pub fn judged(wire: Wire, ended: &Ended) -> StreamContent {
    judged_text(wire, &ended.stdout)
}

/// What a stream tells, judged as a whole stream of its dialect: nothing that the binary wrote goes unjudged.
#[track_caller]
pub fn judged_text(wire: Wire, stdout: &str) -> StreamContent {
    assert!(stdout.is_empty() || stdout.ends_with('\n'), "a torn last line: {stdout}");
    let checked = qwen().args(["check", "--dialect", wire.dialect]).stdin(stdout).run();
    let findings: String = checked.stdout.chars().take(4000).collect();
    assert_eq!(checked.code, Some(0), "qwen check:\n{findings}\n{}", shortened(stdout));
    StreamContent::read(wire, stdout)
}

/// A stream as a failure shows it.
fn shortened(stdout: &str) -> String {
    let lines = stdout.lines().take(60).map(|line| line.chars().take(400).chain(['\n']).collect::<String>());
    lines.collect()
}
