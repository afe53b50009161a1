//! `agent`: the tool that starts a sub-agent and waits for its report.

use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{
    CallId, Denial, Display, EndStatus, Json, Message, Part, Role, TaskProgress, ToolCall, ToolSpec,
};
use qwen_tools::permissions::canonical_tool_name;
use qwen_tools::{Arguments, Outcome, Registry, Tool, ToolCx, ToolFuture};

use super::{AgentDefinition, AgentLimits};
use crate::budget::Sums;
use crate::graph::{Cx, Effects, NodeCounter};
use crate::hooks::HookEvent;
use crate::react::{self, Kit, ReactState, Watch};
use crate::session::within;
use crate::{Asker, Budget, Cancel, Emitter, Limits};

/// What an agent that may start others hands down.
#[derive(Clone)]
pub(crate) struct Family {
    pub definitions: Arc<[AgentDefinition]>,
    pub emit: Emitter,
    pub budget: Arc<Budget>,
    pub cancel: Cancel,
    /// How many levels may still follow.
    pub levels: u32,
    /// What was refused to any of them: the turn's end lists it.
    pub denials: Arc<Mutex<Vec<Denial>>>,
}

impl Family {
    fn refused(&self, denials: Vec<Denial>) {
        self.denials.lock().unwrap_or_else(PoisonError::into_inner).extend(denials);
    }
}

/// The tool.
pub(crate) struct AgentTool {
    spec: ToolSpec,
    /// What the agent that offers this tool works with, without the tool itself.
    kit: Arc<Kit>,
    family: Family,
}

impl AgentTool {
    /// The tool for an agent that works with `kit`.
    pub(crate) fn new(kit: Arc<Kit>, family: Family) -> Self {
        Self { spec: spec(&family.definitions), kit, family }
    }

    /// `kit` with this tool in it, if agents may still start agents.
    pub(crate) fn offered_in(kit: Kit, family: Family) -> Arc<Kit> {
        if family.levels == 0 || family.definitions.is_empty() {
            return Arc::new(kit);
        }
        let mut tools = Registry::clone(&kit.tools);
        tools.add(Arc::new(Self::new(Arc::new(kit.clone()), family)));
        Arc::new(Kit { tools: Arc::new(tools), ..kit })
    }

    async fn start(&self, call: &ToolCall, cx: &ToolCx) -> Outcome {
        let task = match Task::of(call, &self.family.definitions) {
            Ok(task) => task,
            Err(text) => return Outcome::failure("invalid_arguments", text),
        };
        let progress = |status, spent: Option<&Sums>, result| {
            Display::Task(TaskProgress {
                agent: task.definition.name.clone(),
                description: task.description.clone(),
                status,
                tool_calls: spent.map_or(0, |spent| spent.tool_calls),
                tokens: spent.map_or(0, |spent| spent.usage.total()),
                result,
            })
        };
        cx.output.display(progress("running", None, None)).await;
        let emit = self.family.emit.in_call(call.id.clone());
        // A limit of its own ends the sub-agent and not the turn.
        let cancel = self.family.cancel.child();
        let budget = Arc::new(self.family.budget.part(task.definition.name.clone(), task.limits()));
        let family = Family {
            emit: emit.clone(),
            budget: budget.clone(),
            cancel: cancel.clone(),
            ..self.family.clone()
        };
        let kit = self.kit_for(&task, call.id.clone(), family);
        let mut state = ReactState {
            messages: vec![Message::text(Role::User, task.prompt.clone())].into(),
            ..ReactState::default()
        };
        let run_cx = Cx {
            emit,
            cancel: cancel.clone(),
            budget: budget.clone(),
            runs: NodeCounter::default(),
            effects: Effects::default(),
            nested: true,
        };
        if let Some(why) = welcome(&kit, &task, &mut state, &run_cx).await {
            let text =
                format!("The sub-agent was not started, because a SubagentStart hook blocked it: {why}");
            return Outcome::failure("blocked_by_hook", text);
        }
        let watch = Watch { done: HookEvent::SubagentStop, agent: &task.definition.name };
        let ran = react::run_watched(&kit, react::START, &mut state, &run_cx, &watch);
        let stop = match within(&budget, &cancel, Box::pin(ran)).await {
            Ok(ran) => ran.stop,
            Err(error) => return Outcome::failure("internal_error", error.to_string()),
        };
        if cancel.is_stopped() && !Budget::is_part_spent(&cancel.cause()) {
            self.family.cancel.stop(cancel.cause());
        }
        let spent = budget.sums();
        self.family.refused(state.denials);
        let reply = state.reply;
        match stop {
            None => Outcome {
                display: Some(progress("completed", Some(&spent), Some(reply.clone()))),
                ..Outcome::success(reply.to_string())
            },
            Some(stop) => {
                let cancelled = matches!(stop.status, EndStatus::Cancelled | EndStatus::Interrupted);
                let why = stop.error.map_or_else(|| stop.status.name().to_owned(), |error| error.to_string());
                let status = if cancelled { "cancelled" } else { "failed" };
                Outcome {
                    cancelled,
                    display: Some(progress(status, Some(&spent), Some(reply.clone()))),
                    ..Outcome::failure(
                        "subagent_failed",
                        format!("The sub-agent ended early: {why}\n{reply}"),
                    )
                }
            }
        }
    }

    /// What the sub-agent works with.
    fn kit_for(&self, task: &Task<'_>, call: CallId, family: Family) -> Arc<Kit> {
        let AgentDefinition { tools: wanted, disallowed_tools: unwanted, .. } = task.definition;
        let mut tools = match wanted {
            Some(names) => Arc::new(self.kit.tools.restricted(names.iter().map(|name| &**name))),
            None => self.kit.tools.clone(),
        };
        let means = |names: &[Arc<str>], tool: &str| {
            names.iter().any(|name| **name == *tool || *canonical_tool_name(name) == *tool)
        };
        if !unwanted.is_empty() {
            tools = Arc::new(tools.without(unwanted.iter().map(|name| &**name)));
        }
        let kit = Kit {
            model_name: task.definition.model.clone().or_else(|| self.kit.model_name.clone()),
            tools,
            asker: Asker {
                parent: Some(call),
                agent: task.definition.name.clone(),
                ..self.kit.asker.clone()
            },
            system: task.definition.prompt.clone(),
            ..Kit::clone(&self.kit)
        };
        // An agent that names its tools starts agents of its own only if it names that one too.
        let starts =
            wanted.as_ref().is_none_or(|names| means(names, super::TOOL)) && !means(unwanted, super::TOOL);
        let levels = if starts { family.levels - 1 } else { 0 };
        Self::offered_in(kit, Family { levels, ..family })
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(self.start(call, cx))
    }
}

/// Tells the hooks that a sub-agent starts, and the sub-agent what they want it to know. Where one of them blocks it, says
/// why.
async fn welcome(kit: &Kit, task: &Task<'_>, state: &mut ReactState, cx: &Cx) -> Option<Arc<str>> {
    if !kit.hooks.listens(HookEvent::SubagentStart) {
        return None;
    }
    let agent = &*task.definition.name;
    let fields = vec![("agent_type", agent.into()), ("prompt", (*task.prompt).into())];
    let ruling = kit.fire(HookEvent::SubagentStart, None, agent, fields, cx).await;
    if let (Some(context), Some(first)) =
        (ruling.context_text(), Arc::make_mut(&mut state.messages).first_mut())
    {
        first.parts.push(Part::Text(context.into()));
    }
    ruling.block
}

/// What a call asks for.
struct Task<'a> {
    definition: &'a AgentDefinition,
    description: Arc<str>,
    prompt: Arc<str>,
}

impl<'a> Task<'a> {
    fn of(call: &ToolCall, definitions: &'a [AgentDefinition]) -> Result<Self, String> {
        let arguments = Arguments::of(call).map_err(|error| error.to_string())?;
        let prompt = arguments.sound_text("prompt").map_err(|error| error.to_string())?;
        let description = arguments.optional_text("description").map_err(|error| error.to_string())?;
        let wanted = arguments.optional_text("subagent_type").map_err(|error| error.to_string())?;
        arguments.optional_bool("run_in_background").map_err(|error| error.to_string())?;
        let definition = match wanted {
            None => definitions.first(),
            Some(name) => definitions.iter().find(|definition| &*definition.name == name),
        };
        let definition = definition.ok_or_else(|| {
            let names: Vec<&str> = definitions.iter().map(|definition| &*definition.name).collect();
            format!(
                "There is no sub-agent '{}'. There are: {}.",
                wanted.unwrap_or_default(),
                names.join(", ")
            )
        })?;
        Ok(Self { definition, description: description.unwrap_or_default().into(), prompt: prompt.into() })
    }

    fn limits(&self) -> Limits {
        let AgentLimits { turns, tool_calls, tokens, wall_time } = self.definition.limits;
        Limits { turns, tool_calls, wall_time, tokens, ..Limits::default() }
    }
}

/// The schema of the arguments, up to the names of the sub-agents.
const PARAMETERS_BEFORE_NAMES: &str = concat!(
    r#"{"type":"object","properties":{"#,
    r#""description":{"type":"string","description":"The task in three to five words."},"#,
    r#""prompt":{"type":"string","description":"The task, with everything the sub-agent must know: it sees nothing else."},"#,
    r#""run_in_background":{"type":"boolean","description":"Understood and not needed: calls of one message run beside "#,
    r#"each other, and the report is always waited for."},"#,
    r#""subagent_type":{"type":"string","description":"Which sub-agent.","enum":"#,
);

/// The rest of it.
const PARAMETERS_AFTER_NAMES: &str = r#"}},"required":["description","prompt"]}"#;

fn spec(definitions: &[AgentDefinition]) -> ToolSpec {
    let list: Vec<String> = definitions
        .iter()
        .map(|definition| format!("{}: {}", definition.name, definition.description))
        .collect();
    let names: Vec<&str> = definitions.iter().map(|definition| &*definition.name).collect();
    // Written for every turn, so nothing but the names is put together.
    let names = serde_json::to_string(&names).unwrap_or_else(|_| "[]".to_owned());
    let parameters = [PARAMETERS_BEFORE_NAMES, &names, PARAMETERS_AFTER_NAMES].concat();
    ToolSpec {
        name: super::TOOL.into(),
        description: format!(
            "Starts a sub-agent with a context of its own for one task, and gives back its report. Start several at \
             once for tasks that do not depend on each other. The sub-agents:\n{}",
            list.join("\n")
        )
        .into(),
        parameters: Json::trusted(parameters),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_the_tool_names_every_sub_agent() {
        let definitions = super::super::builtin();
        let schema: serde_json::Value = serde_json::from_str(spec(&definitions).parameters.as_str()).unwrap();
        let names: Vec<&str> = definitions.iter().map(|definition| &*definition.name).collect();
        assert_eq!(schema["properties"]["subagent_type"]["enum"], serde_json::json!(names));
        assert_eq!(schema["required"], serde_json::json!(["description", "prompt"]));
    }
}
