//! The arguments of an `agent` call.

use std::sync::Arc;

use qwen_events::{Display, TaskProgress, ToolCall};
use qwen_tools::Arguments;

use super::run::SubagentOutcome;
use super::{AgentDefinition, AgentLimits};
use crate::Limits;

#[derive(Clone)]
pub(super) struct SubagentRequest {
    pub definition: AgentDefinition,
    pub description: Arc<str>,
    pub prompt: Arc<str>,
    pub background: bool,
    /// It works in a git worktree that only it uses.
    pub is_isolated: bool,
}

impl SubagentRequest {
    pub(super) fn read(call: &ToolCall, definitions: &[AgentDefinition]) -> Result<Self, String> {
        let arguments = Arguments::parse(call).map_err(|error| error.to_string())?;
        let prompt = arguments.nonempty_text("prompt").map_err(|error| error.to_string())?;
        let description = arguments.optional_text("description").map_err(|error| error.to_string())?;
        let wanted = arguments.optional_text("subagent_type").map_err(|error| error.to_string())?;
        let background = arguments.optional_bool("run_in_background").map_err(|error| error.to_string())?;
        let definition = match wanted {
            None => definitions.first(),
            Some(name) => {
                let named = |definition: &&AgentDefinition| &*definition.name == name;
                let spelt = |definition: &&AgentDefinition| definition.name.eq_ignore_ascii_case(name);
                definitions.iter().find(named).or_else(|| definitions.iter().find(spelt))
            }
        };
        let isolation = arguments.optional_text("isolation").map_err(|error| error.to_string())?;
        if isolation.is_some_and(|isolation| isolation != "worktree") {
            return Err(arguments.refuse("isolation", "must be \"worktree\", or be left out").to_string());
        }
        let definition = definition.ok_or_else(|| {
            let names: Vec<&str> = definitions.iter().map(|definition| &*definition.name).collect();
            format!(
                "There is no sub-agent '{}'. There are: {}.",
                wanted.unwrap_or_default(),
                names.join(", ")
            )
        })?;
        Ok(Self {
            definition: definition.clone(),
            description: description.unwrap_or_default().into(),
            prompt: prompt.into(),
            background: background.unwrap_or(false) || definition.background,
            is_isolated: isolation.is_some(),
        })
    }

    pub(super) fn limits(&self) -> Limits {
        let AgentLimits { turns, tool_calls, tokens, wall_time } = self.definition.limits;
        Limits { turns, tool_calls, wall_time, tokens, ..Limits::default() }
    }

    /// The display form for users.
    pub(super) fn display(&self, status: &'static str, outcome: Option<&SubagentOutcome>) -> Display {
        Display::Task(TaskProgress {
            agent: self.definition.name.clone(),
            description: self.description.clone(),
            status,
            tool_calls: outcome.map_or(0, |outcome| outcome.spent.tool_calls),
            tokens: outcome.map_or(0, |outcome| outcome.spent.tokens),
            result: outcome.map(|outcome| outcome.reply.clone()),
        })
    }
}
