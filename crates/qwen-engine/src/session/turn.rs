//! One turn, from its prompt to its end.

use std::sync::Arc;
use std::time::Duration;

use qwen_events::{
    AgentName, Body, EndStatus, HistoryChange, Json, McpServer, Message, Part, PromptId, PromptOptions, Role,
    SessionId, TurnEnd, TurnStart,
};
use qwen_mcp::{ServerStatus, Servers};
use qwen_tools::Registry;

use super::ending::{notice, unstarted_turn_end};
use super::session_hooks::PromptReview;
use super::typed_command::{self, TypedByUser};
use super::{ReplayTarget, Session, Spending, Turn, TurnInput};
use crate::background_tasks;
use crate::context::TurnContext;
use crate::react::{self, ReactState, with_host_tools};
use crate::structured;
use crate::subagent;
use crate::tool_search;
use crate::{Budget, Cancel, Emitter, QuestionOrigin, Stop};

/// How long a turn waits for MCP servers to start; slower servers join the next turn.
const MCP_START_LIMIT: Duration = Duration::from_secs(10);

impl Session {
    /// Runs one turn and returns how it ended. The end is always emitted. An unfinished turn of an earlier
    /// process is first closed as interrupted.
    pub async fn turn(&mut self, mut input: TurnInput, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        emit.turn_begins(input.prompt.trace.as_ref());
        let typed_command = input.typed_command.take();
        let decides = self.has_postponed()
            && self.context.agent == AgentName::React
            && !cancel.is_stopped()
            && typed_command.is_none();
        if !decides {
            self.close_interrupted();
        }
        if !cancel.is_stopped() {
            self.log_unsent_prompts();
        }
        let prompt_id = input.prompt.prompt_id.clone().unwrap_or_else(|| self.next_prompt_id());
        let continuation = self.prompts.contains(&prompt_id);
        self.turns += 1;
        let tools = match &typed_command {
            // It needs no MCP server, so it does not wait for them.
            Some(_) => self.context.base_tools.clone(),
            None => self.tools(&input, cancel).await,
        };
        let mut start = self.turn_start(&prompt_id, &input, &tools);
        if typed_command.is_some() {
            start.agent = AgentName::React;
        }
        let review = self.review_prompt(&start, emit, cancel).await;
        let objection = review.objection.clone();
        self.complete_prompt(&mut start, &mut input, review, typed_command.is_some(), &tools, emit, cancel)
            .await;
        let message = Message { role: Role::User, parts: start.parts.clone() };
        let decides = decides && objection.is_none();
        let mut state = if decides { self.decide_first(message) } else { self.with_user_message(message) };
        let mut replay_target = decides.then_some(ReplayTarget::Readers);
        let mut context = self.turn_context(&start, tools, input.prompt.options);
        if let Some(command) = typed_command {
            if objection.is_none() {
                state = typed_command::request(&command, &context.tools, state);
                replay_target = Some(ReplayTarget::ReadersAndLog);
            }
            context.answering_host = Arc::new(TypedByUser(context.answering_host));
            context.only_calls = true;
        }
        let begin = if replay_target.is_some() { react::ACT } else { react::START };
        let turn = Turn {
            start,
            context,
            answer_schema: input.answer_schema.or_else(|| self.context.process.overrides.answer_schema()),
            budget: self.new_budget(),
            state,
            from: objection.clone().map_or(Ok(begin), |stop| Err(Some(stop))),
            steps: 0,
            replay_target,
            stored_run: None,
            continuation,
            warnings: input.warnings,
        };
        // The future is large; one allocation per turn is negligible.
        let end = Box::pin(self.run(turn, emit, cancel)).await;
        self.is_interrupted = matches!(end.status, EndStatus::Cancelled | EndStatus::Interrupted);
        if objection.is_some() {
            // A blocked prompt is not part of the conversation.
            self.history.pop();
            self.note(HistoryChange::Replaced(self.history.clone()));
        }
        end
    }

    /// Completes the prompt in `start` with what the user did not write: attachments, resources, context from hooks,
    /// a reminder of background tasks, and news about the situation.
    #[expect(clippy::too_many_arguments, reason = "each describes another source of parts")]
    async fn complete_prompt(
        &mut self,
        start: &mut TurnStart,
        input: &mut TurnInput,
        review: PromptReview,
        is_typed_command: bool,
        tools: &Registry,
        emit: &Emitter,
        cancel: &Cancel,
    ) {
        let is_accepted = review.objection.is_none();
        start.parts.append(&mut input.attachments);
        if is_accepted {
            start.parts.extend(self.read_resources(&input.resources, emit, cancel).await);
        }
        self.hide_secrets(&mut start.parts[input.prompt.parts.len()..]);
        if let Some(context) = review.context {
            start.parts.push(Part::Text(context.into()));
        }
        if !is_accepted || cancel.is_stopped() {
            return;
        }
        if let Some(words) = background_tasks::reminder(&self.context.resources, &self.context.base_tools) {
            start.parts.push(Part::Text(words.into()));
        }
        if !is_typed_command {
            let news = self.describe_situation(tools, input.prompt.options.model.as_ref());
            if start.agent == AgentName::React {
                start.parts.extend(news);
            } else {
                // The prompts of the other agents consist of the user's text alone.
                self.situation.fold_changes();
            }
        }
    }

    /// A budget for the next turn, after what the session has spent.
    pub(super) fn new_budget(&self) -> Budget {
        let Spending { model_calls, cost_usd, .. } = self.spending;
        Budget::new(self.context.limits.clone(), model_calls).after_cost(cost_usd)
    }

    /// Reports the end of a prompt whose turn is not run because of `stop`. The model never sees the prompt, no hook
    /// reviews it, and it is not a turn of the conversation.
    pub async fn end_unstarted(&mut self, input: TurnInput, stop: Stop, live: &Emitter) {
        live.turn_begins(input.prompt.trace.as_ref());
        self.close_interrupted();
        let prompt_id = input.prompt.prompt_id.clone().unwrap_or_else(|| self.next_prompt_id());
        let continuation = !self.prompts.insert(prompt_id.clone());
        self.turns += 1;
        let cancel = Cancel::default();
        cancel.stop(stop.clone());
        let tools = self.tools(&input, &cancel).await;
        let start = self.turn_start(&prompt_id, &input, &tools);
        let end = TurnEnd { continuation, ..unstarted_turn_end(prompt_id, stop) };
        let emit = self.emitter(live);
        emit.emit(Body::TurnStart(Box::new(start))).await;
        if let Some(notice) = notice(end.status) {
            emit.emit(Body::Session(Box::new(notice))).await;
        }
        emit.emit(Body::TurnEnd(Box::new(end))).await;
        self.has_unsent_prompts = true;
    }

    /// Describes the situation to the model: in the block of the first request, or as what changed since.
    /// `model` is the prompt's own.
    fn describe_situation(&mut self, tools: &Registry, model: Option<&Arc<str>>) -> Option<Part> {
        let after_interrupt = std::mem::take(&mut self.is_interrupted);
        let update = self.situation.begin_turn(&self.context, tools, model, after_interrupt);
        if let Some(text) = update.log {
            self.note(HistoryChange::Situation(text));
        }
        update.news.map(|news| Part::Text(news.into()))
    }

    /// The conversation with the user's message appended.
    fn with_user_message(&mut self, message: Message) -> ReactState {
        self.close_calls();
        let mut messages = std::mem::take(&mut self.history);
        messages.push(message);
        ReactState { messages: messages.into(), ..ReactState::default() }
    }

    /// The conversation ending in the calls that a hook postponed. The user's message follows their results;
    /// an empty message only requests the decision.
    fn decide_first(&mut self, message: Message) -> ReactState {
        self.unanswered.postponed = false;
        let mut afterwards = std::mem::take(&mut self.unanswered.held);
        afterwards.extend(Some(message).filter(Message::has_content));
        ReactState {
            messages: std::mem::take(&mut self.history).into(),
            pending: self.unanswered.calls.take().into_iter().map(|open| open.call).collect(),
            afterwards,
            ..ReactState::default()
        }
    }

    /// The tools of a turn: the built-in tools and those of the MCP servers that are ready, restricted to
    /// what the request allows.
    pub(super) async fn tools(&self, input: &TurnInput, cancel: &Cancel) -> Arc<Registry> {
        let mut tools = self.context.base_tools.clone();
        if !self.context.process.mcp.is_empty() {
            tokio::select! {
                () = self.context.process.mcp.connect_all(MCP_START_LIMIT) => {}
                _ = cancel.stopped() => {}
            }
            let mut all = Registry::clone(&tools);
            for tool in qwen_tools::mcp_tools(&self.context.process.mcp) {
                all.add(tool);
            }
            tools = Arc::new(all);
        }
        let tools = match &input.prompt.options.tool_overrides {
            Some(names) => Arc::new(tools.restricted(names.iter().map(|name| &**name))),
            None => tools,
        };
        let tools = with_host_tools(tools, &input.prompt.options.host_tools);
        tool_search::with_search(tools, self.context.schema_budget, &self.context.loaded_tools)
    }

    /// The context of a turn that starts with `start`.
    pub(super) fn turn_context(
        &self,
        start: &TurnStart,
        tools: Arc<Registry>,
        options: PromptOptions,
    ) -> TurnContext {
        TurnContext {
            session: self.context.clone(),
            model_name: options.model,
            tools,
            answering_host: self.context.process.host.clone(),
            origin: QuestionOrigin {
                session_id: self.context.id.clone(),
                prompt_id: start.prompt_id.clone(),
                parent: None,
                agent: Arc::default(),
            },
            system_prompt: self.context.base_system_prompt.clone(),
            situation: self.situation.clone(),
            sampling: options.sampling,
            host_tools: start.host_tools.iter().map(|spec| spec.name.clone()).collect(),
            in_background: false,
            worktree: None,
            steps: None,
            structured: None,
            only_calls: false,
        }
    }

    /// The names of a turn's tools, including the sub-agent tool if it is offered.
    fn tool_names(&self, input: &TurnInput, tools: &Registry) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = tools.specs().iter().map(|spec| spec.name.clone()).collect();
        let wanted = input
            .prompt
            .options
            .tool_overrides
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|name| subagent::DECLARATION.answers_to(name)));
        if wanted && self.context.agent_levels > 0 && !self.context.agents.is_empty() {
            names.push(tools.name_of(&subagent::DECLARATION).into());
        }
        let structured =
            input.answer_schema.is_some() || self.context.process.overrides.answer_schema().is_some();
        if structured && self.context.agent == AgentName::React {
            names.push(tools.name_of(&structured::DECLARATION).into());
        }
        names
    }

    pub(super) fn turn_start(&self, prompt_id: &PromptId, input: &TurnInput, tools: &Registry) -> TurnStart {
        let context = &*self.context;
        let message: String = input.prompt.parts.iter().filter_map(Part::as_text).collect();
        TurnStart {
            session_id: context.id.clone(),
            prompt_id: prompt_id.clone(),
            turn: self.turns,
            run_id: format!("run-{}", self.turns).into(),
            agent: context.agent,
            message: message.into(),
            parts: input.prompt.parts.clone(),
            message_uuid: Some(input.prompt.uuid.clone().unwrap_or_else(minted_uuid)),
            message_origin: input.prompt.message_origin.clone(),
            model: (input.prompt.options.model.clone().or_else(|| context.process.overrides.model()))
                .unwrap_or_else(|| context.model.name().into()),
            cwd: context.resources.cwd.to_string_lossy().into(),
            permission_mode: context.process.permissions.mode().into(),
            tools: self.tool_names(input, tools),
            host_tools: input.prompt.options.host_tools.clone(),
            json_schema: input.answer_schema.as_ref().map(|form| Json::trusted(form.text())),
            mcp_servers: mcp_servers(&context.process.mcp),
            slash_commands: context.slash_commands.clone(),
            agents: context.agents.iter().map(|agent| agent.name.clone()).collect(),
            skills: context.skills.clone(),
            key_source: context.key_source.clone(),
        }
    }
}

/// Generates an id for a message without a client id, so that clients can refer to it later.
fn minted_uuid() -> Arc<str> {
    SessionId::from_random(fastrand::u128(..)).as_str().into()
}

/// The MCP servers in the form readers get.
fn mcp_servers(servers: &Servers) -> Vec<McpServer> {
    let seen = |server: ServerStatus| McpServer { name: server.name, status: server.status.name().into() };
    servers.status().into_iter().map(seen).collect()
}
