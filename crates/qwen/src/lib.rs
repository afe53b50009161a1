//! `qwen`: an agent for your code, in one small binary. This crate reads the command line and the environment
//! and connects the other crates. It is a library only so that the parsers of untrusted files can be fuzzed;
//! its public interface is the program.

mod claude_host;
mod cli;
mod io;
mod model_list;
mod print;
mod roles;
mod runtime;
mod session;
mod settings;
mod subcommands;
mod telemetry;

use std::process::ExitCode;

/// The entry point of the program.
pub fn main() -> ExitCode {
    roles::run()
}

/// Parses a text as a settings file, as the program does with the settings file of a repository. Returns the
/// number of warnings, or the error that would be shown.
pub fn read_settings(text: &str) -> Result<usize, String> {
    let document = settings::file::parse(text, settings::file::Layer::Workspace, "settings.json");
    let document = document.map_err(|error| error.message.to_string())?;
    settings::file::settings(&document.root).map_err(|error| error.message.to_string())?;
    Ok(document.warnings.len())
}
