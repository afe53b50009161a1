//! Builds a session from the configuration: stored history, prompts, slash commands, agents and sandbox
//! policy.

pub mod agent_definitions;
mod context;
mod gated_model;
mod git_state;
pub mod main_agent;
pub mod prompt;
pub mod retention;
mod rewind_command;
pub mod sandbox_policy;
pub mod setup;
pub mod slash;
pub mod stored;
mod surroundings;
pub mod system_prompt;

pub use context::ProcessContext;
