//! `qwen`: an agent for your code, in one small binary. This crate reads the command line and the environment and
//! wires the parts together; what the parts do is in the other crates.

mod cli;
mod code_pages;
mod commands;
mod descriptor;
mod exit;
mod input;
mod mirror;
mod oneshot;
mod output;
mod print;
mod prompt;
mod role;
mod sessions;
mod settings;
mod setup;
mod signals;
mod slash;
mod stream;
mod system_prompt;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    role::run()
}
