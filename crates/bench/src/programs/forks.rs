//! A program that only starts the command of a shell call, again and again, and waits for it.

use std::process::Command;

/// The command line of the calls that are measured.
pub const COMMAND: &str = "true";

/// Starts it `count` times.
pub(super) fn run(count: usize) -> Result<(), String> {
    for _ in 0..count {
        let output = Command::new("bash").args(["-c", COMMAND]).output();
        output.map_err(|error| format!("cannot start bash: {error}"))?;
    }
    Ok(())
}
