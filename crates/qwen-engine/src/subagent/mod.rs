//! Sub-agents: an agent that a tool call starts, with a conversation, tools and a prompt of its own.

mod files;
mod request;
mod run;
mod steps;
mod tool;
mod transcript;

use qwen_events::{ClaudeTool, ToolDeclaration, ToolKind};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use files::is_name;
pub use files::load;
pub(crate) use steps::Steps;
pub(crate) use tool::{AgentTool, SubagentScope};

/// The name of the tool that starts sub-agents.
pub const TOOL: &str = "agent";

/// What the tool declares about itself. Its schema lists the sub-agents of the session.
pub const DECLARATION: ToolDeclaration = ToolDeclaration {
    name: TOOL,
    aliases: &["Agent"],
    kind: ToolKind::Session,
    description: "",
    arguments: &[],
    claude: &[ClaudeTool::named("Task")],
};

/// How deep agents may start agents, unless told otherwise.
pub const MAX_DEPTH: u32 = 3;

/// A sub-agent that can be started.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// Its name.
    pub name: Arc<str>,
    /// What it is good for, for the model that may start it.
    pub description: Arc<str>,
    /// Who it is told that it is.
    pub prompt: Arc<str>,
    /// Only these tools; none means all that the main agent has.
    pub tools: Option<Vec<Arc<str>>>,
    /// Not these, whatever else.
    pub disallowed_tools: Vec<Arc<str>>,
    /// Another model.
    pub model: Option<Arc<str>>,
    /// It works beside the turn whenever it is started.
    pub background: bool,
    /// What one run of it may spend; the turn's own limits hold besides.
    pub limits: AgentLimits,
}

/// What one run of a sub-agent may spend. What is absent is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentLimits {
    /// Model calls.
    pub turns: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Time.
    pub wall_time: Option<Duration>,
}

/// All of them, each name once: who comes later takes the place of who came before.
pub fn gathered(definitions: impl IntoIterator<Item = AgentDefinition>) -> Vec<AgentDefinition> {
    let mut all: Vec<AgentDefinition> = Vec::new();
    for definition in definitions {
        match all.iter_mut().find(|known| known.name == definition.name) {
            Some(known) => *known = definition,
            None => all.push(definition),
        }
    }
    all
}

/// The sub-agents that are always there.
pub fn builtin() -> Vec<AgentDefinition> {
    let reading = ["read_file", "list_directory", "glob", "grep_search"];
    vec![
        AgentDefinition {
            name: "general-purpose".into(),
            description: "Works on a task of several steps by itself and reports what came of it.".into(),
            prompt: "You are a helper that another agent started for one task. Work on it by yourself with the tools \
                     that you have, and end with a report of what you found or did: short, concrete, with paths and \
                     line numbers where they matter. Nobody can answer questions."
                .into(),
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            background: false,
            limits: AgentLimits::default(),
        },
        AgentDefinition {
            name: "explore".into(),
            description: "Looks around in the project, reading only, and reports where things are.".into(),
            prompt: "You are a helper that another agent started to find something out about the project. You can \
                     only read. End with a report of what you found: short, concrete, with paths and line numbers."
                .into(),
            tools: Some(reading.into_iter().map(Arc::from).collect()),
            disallowed_tools: Vec::new(),
            model: None,
            background: false,
            limits: AgentLimits::default(),
        },
    ]
}
