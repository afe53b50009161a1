//! The agent that the session itself is, where `--agent` names one.

use std::sync::Arc;

use qwen_engine::TOOLS;
use qwen_engine::subagent::AgentDefinition;

use crate::session::setup;
use crate::settings::Config;

/// The agent that the session itself is, where `--agent` names one and there is one of that name.
pub fn chosen(config: &Config) -> Option<AgentDefinition> {
    let name = config.agent.main_agent.as_deref()?;
    setup::agents(config).into_iter().find(|agent| &*agent.name == name)
}

/// Only these tools may be used in a turn: those that the request wants, or else those of the session's agent.
pub fn tools(config: &Config, wanted: Option<Vec<Arc<str>>>) -> Option<Vec<Arc<str>>> {
    wanted.or_else(|| {
        let tools = chosen(config)?.tools?;
        Some(tools.iter().map(|name| TOOLS.canonical_name(name).as_ref().into()).collect())
    })
}
