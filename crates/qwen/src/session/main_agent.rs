//! The agent definition that the session itself uses (`--agent`).

use std::sync::Arc;

use qwen_engine::TOOLS;
use qwen_engine::subagent::AgentDefinition;
use qwen_events::ToolSpec;

use crate::session::setup;
use crate::settings::{Config, tool_name_problem};

/// The agent definition that `--agent` names; none if it names none or an unknown one.
pub fn find_main_agent(config: &Config) -> Option<AgentDefinition> {
    let name = config.agent.main_agent.as_deref()?;
    setup::agents(config).into_iter().find(|agent| &*agent.name == name)
}

/// The only tools that a turn may use: those that the request lists, else those of the session's agent.
pub fn tools(config: &Config, wanted: Option<Vec<Arc<str>>>) -> Option<Vec<Arc<str>>> {
    wanted.or_else(|| {
        let tools = find_main_agent(config)?.tools?;
        Some(tools.iter().map(|name| TOOLS.canonical_name(name).as_ref().into()).collect())
    })
}

/// What is wrong with the names in a request's list of tools. Tools of MCP servers and of the host are known
/// too.
pub fn unknown_tools(wanted: Option<&[Arc<str>]>, host_tools: &[ToolSpec]) -> Vec<String> {
    let is_declared = |name: &str| host_tools.iter().any(|tool| &*tool.name == name);
    let unknown = wanted.unwrap_or_default().iter().filter(|name| !is_declared(name));
    let problems = unknown.filter_map(|name| tool_name_problem(name, false));
    problems.map(|problem| format!("options.tool_overrides: {problem}")).collect()
}
