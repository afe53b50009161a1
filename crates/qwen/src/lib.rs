//! `qwen`: an agent for your code, in one small binary. This crate reads the command line and the environment and
//! wires the parts together; what the parts do is in the other crates. It is a library only so that what reads a
//! stranger's files can be fuzzed: the program is all there is to use.

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

/// The program.
pub fn main() -> ExitCode {
    roles::run()
}

/// Reads a text as a settings file, as the program does with a file that a repository brings along. Gives back how many
/// warnings there are, or the error that would be shown.
pub fn read_settings(text: &str) -> Result<usize, String> {
    let document = settings::file::parse(text, settings::file::Layer::Workspace, "settings.json");
    let document = document.map_err(|error| error.message.to_string())?;
    settings::file::settings(&document.root).map_err(|error| error.message.to_string())?;
    Ok(document.warnings.len())
}
