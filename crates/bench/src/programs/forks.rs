//! A program that only starts the command of a shell call, again and again, and waits for it.

use std::process::Command;

/// A command line that bash has nothing to do for but to start a program.
pub const PLAIN: &str = "true";
/// A command line that takes a shell.
pub const SCRIPT: &str = "true && true";

/// Starts `command` so many times.
pub(super) fn run(mut command: Command, count: usize) -> Result<(), String> {
    for _ in 0..count {
        let output = command.output();
        output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    }
    Ok(())
}

/// The plain command line by itself.
pub(super) fn plain() -> Command {
    Command::new(PLAIN)
}

/// The other one, with bash.
pub(super) fn script() -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-c", SCRIPT]);
    bash
}
