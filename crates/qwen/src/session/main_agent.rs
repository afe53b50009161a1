//! The agent definition that the session itself uses (`--agent`).

use std::sync::Arc;

use qwen_engine::TOOLS;
use qwen_engine::subagent::AgentDefinition;

use crate::session::setup;
use crate::settings::Config;

/// The agent definition that `--agent` names; none if it names none or an unknown one.
pub fn chosen(config: &Config) -> Option<AgentDefinition> {
    let name = config.agent.main_agent.as_deref()?;
    setup::agents(config).into_iter().find(|agent| &*agent.name == name)
}

/// The only tools that a turn may use: those that the request lists, else those of the session's agent.
pub fn tools(config: &Config, wanted: Option<Vec<Arc<str>>>) -> Option<Vec<Arc<str>>> {
    wanted.or_else(|| {
        let tools = chosen(config)?.tools?;
        Some(tools.iter().map(|name| TOOLS.canonical_name(name).as_ref().into()).collect())
    })
}
