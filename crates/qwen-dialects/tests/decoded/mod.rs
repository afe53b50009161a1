//! Lines that must be decoded without an error.

use qwen_dialects::decode;
use qwen_events::Command;

#[track_caller]
pub fn commands(line: &str) -> Vec<Command> {
    decode(line.as_bytes()).unwrap_or_else(|error| panic!("{line}\n{error:?}"))
}

#[track_caller]
pub fn command(line: &str) -> Command {
    let mut commands = commands(line);
    assert_eq!(commands.len(), 1, "{line}");
    commands.remove(0)
}
