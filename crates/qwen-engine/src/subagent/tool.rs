//! `agent`: the tool that starts a sub-agent, in the call or in the background.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use qwen_events::{
    CallId, Denial, Json, Message, Role, TaskUpdate, ToolCall, ToolDeclaration, ToolKind, ToolSpec,
};
use qwen_tools::{BackgroundTasks, CallContext, Outcome, Registry, Tool, ToolFuture};

use super::request::SubagentRequest;
use super::run::Run;
use super::steps::Steps;
use super::worktree::Worktree;
use super::{AgentDefinition, transcript};
use crate::context::TurnContext;
use crate::graph::{Effects, NodeCounter, RunContext};
use crate::react::ReactState;
use crate::session::situation::SubagentView;
use crate::{Budget, Cancel, Emitter, QuestionOrigin};

/// What an agent passes on to the agents that it starts.
#[derive(Clone)]
pub(crate) struct SubagentScope {
    pub definitions: Arc<[AgentDefinition]>,
    pub emit: Emitter,
    /// The session's event stream, independent of the speaking agent.
    pub main: Emitter,
    pub budget: Arc<Budget>,
    pub cancel: Cancel,
    /// How many more levels of sub-agents are allowed.
    pub levels: u32,
    /// Calls denied to any sub-agent. The end of the turn, or of the next one, lists them.
    pub denials: Arc<Mutex<Vec<Denial>>>,
}

pub(crate) struct AgentTool {
    spec: ToolSpec,
    /// The context of the agent that offers this tool, without the tool itself.
    context: Arc<TurnContext>,
    scope: SubagentScope,
}

impl AgentTool {
    /// The tool for an agent that runs with `context`.
    pub(crate) fn new(context: Arc<TurnContext>, scope: SubagentScope) -> Self {
        Self { spec: spec(&scope.definitions), context, scope }
    }

    /// `context` with this tool added, if the nesting limit allows it.
    pub(crate) fn offered_in(context: TurnContext, scope: SubagentScope) -> Arc<TurnContext> {
        if scope.levels == 0 || scope.definitions.is_empty() {
            return Arc::new(context);
        }
        let mut tools = Registry::clone(&context.tools);
        tools.add(Arc::new(Self::new(Arc::new(context.clone()), scope)));
        Arc::new(TurnContext { tools: Arc::new(tools), ..context })
    }

    async fn start(&self, call: &ToolCall, cx: &CallContext) -> Outcome {
        let request = match SubagentRequest::read(call, &self.scope.definitions) {
            // A run of a single prompt has no later turn that could receive the report.
            Ok(request) => SubagentRequest {
                background: request.background
                    && self.context.session.process.overrides.in_flight().is_host_attached(),
                ..request
            },
            Err(text) => return Outcome::failure("invalid_arguments", text),
        };
        let worktree = if request.is_isolated {
            match Worktree::create(&self.context, &call.id).await {
                Ok(worktree) => Some(worktree),
                Err(problem) => return no_worktree(&problem),
            }
        } else {
            None
        };
        if request.background {
            self.start_in_background(request, call, worktree).await
        } else {
            self.start_in_call(request, call, worktree, cx).await
        }
    }

    /// Runs the sub-agent inside its call, which returns the report.
    async fn start_in_call(
        &self,
        request: SubagentRequest,
        call: &ToolCall,
        worktree: Option<Worktree>,
        cx: &CallContext,
    ) -> Outcome {
        let showing = request.clone();
        cx.output.display(showing.display("running", None)).await;
        let emit = self.scope.emit.in_call(call.id.clone());
        let mut run = self.run(request, call, worktree, emit, PathBuf::new());
        if let Some(why) = run.fire_start_hooks().await {
            run.discard_worktree().await;
            self.tasks().forget(&run.task.task.id);
            return blocked(&why);
        }
        let task = run.task.clone();
        task.notify(TaskUpdate::Started).await;
        let cancel = run.cancel.clone();
        let outcome = run.finish().await;
        // A limit of the sub-agent, or a stop directed at it, ends only the sub-agent and not the turn.
        if cancel.is_stopped() && !Budget::is_subagent_limit(&cancel.cause()) && !task.is_stopping() {
            self.scope.cancel.stop(cancel.cause());
        }
        task.end(outcome.ended(&showing)).await;
        self.tasks().forget(&task.task.id);
        outcome.outcome(&showing)
    }

    /// Runs the sub-agent in the background and returns its task name.
    async fn start_in_background(
        &self,
        request: SubagentRequest,
        call: &ToolCall,
        worktree: Option<Worktree>,
    ) -> Outcome {
        let (path, file) = match self.context.session.resources.scratch.create("agent") {
            Ok(output) => output,
            Err(error) => {
                if let Some(worktree) = worktree {
                    worktree.finish().await;
                }
                return Outcome::failure("not_started", format!("The sub-agent cannot be started: {error}"));
            }
        };
        // Its detailed events go to its file, because it is not part of the turn whose stream is open.
        let (emit, transcript) =
            transcript::open(file, &self.context.session.resources.redactor, self.scope.main.clone());
        let showing = request.clone();
        let mut run = self.run(request, call, worktree, emit.in_call(call.id.clone()), path);
        drop(emit);
        let task = run.task.clone();
        let id = task.task.id.clone();
        if let Some(why) = run.fire_start_hooks().await {
            run.discard_worktree().await;
            self.tasks().forget(&id);
            return blocked(&why);
        }
        task.notify(TaskUpdate::Started).await;
        let file = task.output.display().to_string();
        let display = showing.display("running", None);
        self.tasks().work(&id, async move {
            let (outcome, ()) = tokio::join!(run.finish(), transcript);
            task.end(outcome.ended(&showing)).await;
        });
        Outcome {
            display: Some(display),
            mentions_tools: true,
            ..Outcome::success(format!(
                "Started in the background as task {id}.\nIts end is reported to you, with its report; until then continue \
                 with something else. Its activity is written to {file}; shell_task shows it."
            ))
        }
    }

    fn tasks(&self) -> &BackgroundTasks {
        &self.context.session.resources.tasks
    }

    /// Prepares a run of the requested sub-agent.
    fn run(
        &self,
        request: SubagentRequest,
        call: &ToolCall,
        worktree: Option<Worktree>,
        emit: Emitter,
        output: PathBuf,
    ) -> Run {
        let cancel = self.scope.cancel.child();
        let budget = Arc::new(self.scope.budget.part(request.definition.name.clone(), request.limits()));
        let words = (request.description.clone(), request.prompt.clone());
        let name = request.definition.name.clone();
        let task = self.tasks().add_agent(name, call.id.clone(), words, request.background, output);
        let scope = SubagentScope {
            emit: emit.clone(),
            budget: budget.clone(),
            cancel: cancel.clone(),
            ..self.scope.clone()
        };
        let denials = self.scope.denials.clone();
        let steps = Steps::for_task(task.clone());
        let context = self.context_for(&request, call.id.clone(), worktree.as_ref(), scope, steps);
        let state = ReactState {
            messages: vec![Message::text(Role::User, request.prompt.clone())].into(),
            ..ReactState::default()
        };
        let cx = RunContext {
            emit,
            cancel: cancel.clone(),
            budget: budget.clone(),
            runs: NodeCounter::default(),
            effects: Effects::default(),
            nested: true,
        };
        Run { request, context, state, cx, cancel, budget, denials, task, worktree }
    }

    /// The tools of this agent that `definition` leaves to its sub-agent.
    fn tools_for(&self, definition: &AgentDefinition) -> Arc<Registry> {
        let AgentDefinition { tools: wanted, disallowed_tools: unwanted, .. } = definition;
        let tools = match wanted {
            Some(names) => Arc::new(self.context.tools.restricted(names.iter().map(|name| &**name))),
            None => self.context.tools.clone(),
        };
        if unwanted.is_empty() {
            return tools;
        }
        Arc::new(tools.without(unwanted.iter().map(|name| &**name)))
    }

    /// The context that the sub-agent runs with.
    fn context_for(
        &self,
        request: &SubagentRequest,
        call: CallId,
        worktree: Option<&Worktree>,
        scope: SubagentScope,
        steps: Steps,
    ) -> Arc<TurnContext> {
        let AgentDefinition { tools: wanted, disallowed_tools: unwanted, .. } = &request.definition;
        let mut tools = self.tools_for(&request.definition);
        let means = |names: &[Arc<str>], tool: &str| {
            names.iter().any(|name| **name == *tool || *crate::TOOLS.canonical_name(name) == *tool)
        };
        let in_background = self.context.in_background || request.background;
        let mut host_tools = self.context.host_tools.clone();
        if in_background {
            // The host runs tools only for a turn that waits for it, and the plan belongs to the main agent.
            let left_out = host_tools.iter().map(|name| &**name).chain(["exit_plan_mode"]);
            tools = Arc::new(tools.without(left_out));
            host_tools = Arc::default();
        }
        let model_name = request.definition.model.clone().or_else(|| self.context.model_name.clone());
        let model = model_name
            .clone()
            .or_else(|| self.context.session.process.overrides.model())
            .unwrap_or_else(|| self.context.session.model.name().into());
        let described = worktree.map(Worktree::describe);
        let directory = worktree.map_or_else(|| self.context.worktree.clone(), |used| Some(used.cwd.clone()));
        let cwd = directory.as_deref().unwrap_or_else(|| self.context.directory());
        let view = SubagentView { tools: &tools, model: &model, cwd, worktree: described.as_deref() };
        let situation = self.context.situation.for_subagent(&self.context.session, &view);
        let context = TurnContext {
            model_name,
            tools,
            origin: QuestionOrigin {
                parent: Some(call),
                agent: request.definition.name.clone(),
                ..self.context.origin.clone()
            },
            system_prompt: with_instructions(&request.definition.prompt, &self.context.session.instructions),
            situation: Arc::new(situation),
            host_tools,
            in_background,
            worktree: directory,
            steps: Some(Arc::new(steps)),
            ..TurnContext::clone(&self.context)
        };
        // An agent that lists its tools can start agents only if the list contains this tool.
        let starts =
            wanted.as_ref().is_none_or(|names| means(names, super::TOOL)) && !means(unwanted, super::TOOL);
        let levels = if starts { scope.levels - 1 } else { 0 };
        Self::offered_in(context, SubagentScope { levels, ..scope })
    }
}

impl Tool for AgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        Some(&super::DECLARATION)
    }

    /// A sub-agent without write access only reads. Starting one in the background is ordered like a change,
    /// because what it does meanwhile is not.
    fn only_reads(&self, call: &ToolCall) -> bool {
        let Ok(request) = SubagentRequest::read(call, &self.scope.definitions) else { return true };
        if request.background || request.is_isolated {
            return false;
        }
        let is_harmless = |kind: ToolKind| kind.only_reads() || kind == ToolKind::Session;
        self.context.session.process.permissions.mode() == "plan"
            || self.tools_for(&request.definition).kinds().all(is_harmless)
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(self.start(call, cx))
    }
}

/// A sub-agent's system prompt with the project's instructions.
fn with_instructions(prompt: &Arc<str>, instructions: &str) -> Arc<str> {
    if instructions.is_empty() { prompt.clone() } else { format!("{prompt}\n\n{instructions}").into() }
}

fn no_worktree(problem: &str) -> Outcome {
    let text = format!(
        "The sub-agent was not started: a git worktree cannot be created here: {}\nLeave isolation out to let it work in \
         the workspace.",
        problem.trim_end()
    );
    Outcome::failure("no_worktree", text)
}

fn blocked(why: &str) -> Outcome {
    let text = format!("The sub-agent was not started, because a SubagentStart hook blocked it: {why}");
    Outcome::failure("blocked_by_hook", text)
}

/// The arguments' schema up to the names of the sub-agents.
const PARAMETERS_BEFORE_NAMES: &str = concat!(
    r#"{"type":"object","properties":{"#,
    r#""description":{"type":"string","description":"The task in three to five words."},"#,
    r#""prompt":{"type":"string","description":"The task, with everything the sub-agent must know: it sees nothing of this conversation."},"#,
    r#""run_in_background":{"type":"boolean","description":"Return immediately with a task id instead of waiting for the "#,
    r#"report, which comes in a later message. Default false; sub-agents that only read run concurrently anyway."},"#,
    r#""isolation":{"type":"string","enum":["worktree"],"description":"worktree: work in a new git worktree of HEAD instead "#,
    r#"of the workspace. It is removed if nothing changed, otherwise the report names it."},"#,
    r#""subagent_type":{"type":"string","description":"The sub-agent.","enum":"#,
);

/// The rest of the schema.
const PARAMETERS_AFTER_NAMES: &str = r#"}},"required":["description","prompt"]}"#;

fn spec(definitions: &[AgentDefinition]) -> ToolSpec {
    let list: Vec<String> = definitions
        .iter()
        .map(|definition| format!("{}: {}", definition.name, definition.description))
        .collect();
    let names: Vec<&str> = definitions.iter().map(|definition| &*definition.name).collect();
    // Built for every turn, so only the names are serialized.
    let names = serde_json::to_string(&names).unwrap_or_else(|_| "[]".to_owned());
    let parameters = [PARAMETERS_BEFORE_NAMES, &names, PARAMETERS_AFTER_NAMES].concat();
    ToolSpec {
        name: super::TOOL.into(),
        description: format!(
            "Starts a sub-agent with a separate context for one task, and returns its report. Start several in one \
             message for tasks that do not depend on each other. The sub-agents:\n{}",
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
