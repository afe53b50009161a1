//! One turn, from its prompt to its end.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use qwen_events::{
    Body, Checkpoint, ConsoleLevel, EndStatus, HistoryChange, Json, LogScope, McpServer, Message, Part,
    PromptId, Role, Sampling, SessionEvent, SessionId, TurnEnd, TurnStart,
};
use qwen_mcp::{ServerStatus, Servers};
use qwen_tools::Registry;

use super::ending::{notice, turn_end, within};
use super::typed_command::{self, TypedByUser};
use super::{ReplayTarget, Session, Turn, TurnInput};
use crate::agent::{self, AgentOutcome, AgentRun};
use crate::background_tasks::{self, TaskEventForwarder};
use crate::budget::Sums;
use crate::compaction;
use crate::context::TurnContext;
use crate::emitter::now;
use crate::graph::{Effects, RunContext, RunOutcome, State};
use crate::log::{OpenCalls, checkpoint_id};
use crate::react::{self, ReactState, with_host_tools};
use crate::structured::{self, StructuredAnswer};
use crate::subagent::{self, AgentTool, SubagentScope};
use crate::tool_search;
use crate::{Budget, Cancel, Emitter, QuestionOrigin, REACT, Stop};

/// How long a turn waits for MCP servers to start; slower servers join the next turn.
const MCP_START_LIMIT: Duration = Duration::from_secs(10);

impl Session {
    /// Runs one turn and returns how it ended. The end is always emitted. An unfinished turn of an earlier
    /// process is first closed as interrupted.
    pub async fn turn(&mut self, input: TurnInput, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        emit.turn_begins(input.trace.as_ref());
        let typed_command = input.typed_command.clone();
        let is_typed_command = typed_command.is_some();
        let decides = self.has_postponed()
            && &*self.context.agent == REACT
            && !cancel.is_stopped()
            && !is_typed_command;
        if !decides {
            self.close_interrupted();
        }
        if !cancel.is_stopped() {
            self.log_unsent_prompts();
        }
        let prompt_id = input.prompt_id.clone().unwrap_or_else(|| self.next_prompt_id());
        let continuation = self.prompts.contains(&prompt_id);
        self.turns += 1;
        let tools = match &typed_command {
            // It needs no MCP server, so it does not wait for them.
            Some(_) => self.context.tools.clone(),
            None => self.tools(&input, cancel).await,
        };
        let mut start = self.turn_start(&prompt_id, &input, &tools);
        if is_typed_command {
            start.agent = REACT.into();
        }
        let review = self.review_prompt(&start, emit, cancel).await;
        start.parts.extend(input.attachments);
        if review.objection.is_none() {
            start.parts.extend(self.read_resources(&input.resources, emit, cancel).await);
        }
        self.hide_secrets(&mut start.parts[input.parts.len()..]);
        if let Some(context) = review.context {
            start.parts.push(Part::Text(context.into()));
        }
        if review.objection.is_none()
            && !cancel.is_stopped()
            && let Some(words) = background_tasks::reminder(&self.context.resources, &self.context.tools)
        {
            start.parts.push(Part::Text(words.into()));
        }
        if review.objection.is_none() && !cancel.is_stopped() && !is_typed_command {
            // The prompts of the other agents consist of the user's text alone.
            let news = self.describe_situation(&tools);
            start.parts.extend(news.filter(|_| &*start.agent == REACT));
        }
        let decides = decides && review.objection.is_none();
        let message = Message { role: Role::User, parts: start.parts.clone() };
        let mut state = if decides { self.decide_first(message) } else { self.with_user_message(message) };
        let mut replay_target = decides.then_some(ReplayTarget::Readers);
        if let Some(command) = typed_command.filter(|_| review.objection.is_none()) {
            state = typed_command::request(&command, &tools, state);
            replay_target = Some(ReplayTarget::ReadersAndLog);
        }
        let begin = if replay_target.is_some() { react::ACT } else { react::START };
        let budget = Budget::new(self.context.limits.clone(), self.model_calls).after_cost(self.cost_usd);
        let answer_schema = input.answer_schema.or_else(|| self.context.overrides.answer_schema());
        let mut context = self.turn_context(&start, tools, input.model, input.sampling);
        if is_typed_command {
            context.host = Arc::new(TypedByUser(context.host));
            context.only_calls = true;
        }
        let turn = Turn {
            start,
            context,
            answer_schema,
            budget,
            state,
            from: review.objection.clone().map_or(Ok(begin), |stop| Err(Some(stop))),
            steps: 0,
            replay_target,
            stored_run: None,
            continuation,
            warnings: input.warnings,
        };
        let end = self.run(turn, emit, cancel).await;
        self.is_interrupted = matches!(end.status, EndStatus::Cancelled | EndStatus::Interrupted);
        if review.objection.is_some() {
            // A blocked prompt is not part of the conversation.
            self.history.pop();
            self.note(HistoryChange::Replaced(self.history.clone()));
        }
        end
    }

    /// Describes the situation to the model: in the block of the first request, or as what changed since.
    fn describe_situation(&mut self, tools: &Registry) -> Option<Part> {
        let after_interrupt = std::mem::take(&mut self.is_interrupted);
        let update = self.situation.begin_turn(&self.context, tools, after_interrupt);
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
        self.postponed = false;
        let mut afterwards = std::mem::take(&mut self.held);
        afterwards.extend(Some(message).filter(Message::has_content));
        ReactState {
            messages: std::mem::take(&mut self.history).into(),
            pending: self.open_calls.take().into_iter().map(|open| open.call).collect(),
            afterwards,
            ..ReactState::default()
        }
    }

    /// The tools of a turn: the built-in tools and those of the MCP servers that are ready, restricted to
    /// what the request allows.
    pub(super) async fn tools(&self, input: &TurnInput, cancel: &Cancel) -> Arc<Registry> {
        let mut tools = self.context.tools.clone();
        if !self.context.mcp.is_empty() {
            tokio::select! {
                () = self.context.mcp.connect_all(MCP_START_LIMIT) => {}
                _ = cancel.stopped() => {}
            }
            let mut all = Registry::clone(&tools);
            for tool in qwen_tools::mcp_tools(&self.context.mcp) {
                all.add(tool);
            }
            tools = Arc::new(all);
        }
        let tools = match &input.tools {
            Some(names) => Arc::new(tools.restricted(names.iter().map(|name| &**name))),
            None => tools,
        };
        let tools = with_host_tools(tools, &input.host_tools);
        tool_search::with_search(tools, self.context.schema_budget, &self.context.loaded_tools)
    }

    /// The context of a turn that starts with `start`.
    pub(super) fn turn_context(
        &self,
        start: &TurnStart,
        tools: Arc<Registry>,
        model_name: Option<Arc<str>>,
        sampling: Sampling,
    ) -> TurnContext {
        TurnContext {
            session: self.context.clone(),
            model_name,
            tools,
            host: self.context.host.clone(),
            origin: QuestionOrigin {
                session_id: self.context.id.clone(),
                prompt_id: start.prompt_id.clone(),
                parent: None,
                agent: Arc::default(),
            },
            system: self.context.system.clone(),
            situation: self.situation.clone(),
            sampling,
            host_tools: start.host_tools.iter().map(|spec| spec.name.clone()).collect(),
            in_background: false,
            steps: None,
            structured: None,
            only_calls: false,
        }
    }

    pub(super) async fn run(&mut self, turn: Turn, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        let Turn {
            start,
            context,
            answer_schema,
            budget,
            mut state,
            from,
            steps,
            replay_target,
            stored_run,
            continuation,
            warnings,
        } = turn;
        let agent = start.agent.clone();
        let live = emit;
        let emit = &self.emitter(emit);
        let prompt_id = start.prompt_id.clone();
        self.prompts.insert(prompt_id.clone());
        if self.order.last().is_none_or(|(last, _)| *last != prompt_id) {
            let fresh = from == Ok(react::START) && stored_run.is_none();
            let at = state.messages.len().checked_sub(1).filter(|_| fresh);
            self.order.push((prompt_id.clone(), at));
            self.removed_states.clear();
        }
        if let Some(files) = &self.files {
            files.turn_starts();
        }
        let budget = Arc::new(budget);
        let tasks = &self.context.resources.tasks;
        tasks.set_listener(Some(Arc::new(TaskEventForwarder(live.in_background()))));
        self.context.overrides.in_flight().begin_turn();
        if &*agent == REACT {
            // The other agents make no model call that a prompt could join.
            self.context.overrides.steering().open();
        }
        let schema_warnings = react::schema_warnings(&start.host_tools);
        let offers_agents = start.tools.iter().any(|name| subagent::DECLARATION.answers_to(name));
        emit.emit(Body::TurnStart(Box::new(start))).await;
        if let Some(error) = self.context.host.refusal() {
            cancel.stop(Stop::refused(error));
        }
        for text in self
            .context
            .mcp
            .take_problems()
            .into_iter()
            .map(Into::into)
            .chain(schema_warnings.into_iter().map(Into::into))
            .chain(warnings.into_iter().map(Into::into))
        {
            let (level, scope) = (ConsoleLevel::Warn, LogScope::System);
            emit.emit(Body::Console { level, scope, text }).await;
        }
        match replay_target {
            Some(ReplayTarget::Readers) => self.emit_pending_message(&state, live).await,
            Some(ReplayTarget::ReadersAndLog) => self.emit_pending_message(&state, emit).await,
            None => {}
        }
        if from == Ok(react::START) {
            self.make_room(Arc::make_mut(&mut state.messages), &prompt_id, &budget, emit, cancel).await;
        }
        let scope = SubagentScope {
            denials: self.denials.clone(),
            definitions: self.context.agents.clone(),
            emit: emit.clone(),
            main: live.clone(),
            budget: budget.clone(),
            cancel: cancel.clone(),
            levels: if offers_agents { self.context.agent_levels } else { 0 },
        };
        let mut context = AgentTool::offered_in(context, scope);
        let wanted = answer_schema.map(|form| Arc::new(StructuredAnswer::new(form, &state.messages)));
        if let Some(wanted) = wanted.clone() {
            // Sub-agents return plain text to their parent agent, so they never get the answer schema.
            context = Arc::new(match &*agent {
                REACT => wanted.offered_in(&context),
                _ => TurnContext { structured: Some(wanted), ..TurnContext::clone(&context) },
            });
        }
        let cx = RunContext {
            emit: emit.clone(),
            cancel: cancel.clone(),
            budget: budget.clone(),
            runs: self.runs.clone(),
            effects: Effects::default(),
            nested: false,
        };
        let AgentOutcome { mut ran, conversation: mut state, state: shown } = match from {
            Ok(from) => {
                let options = &self.context.thinking;
                let work = AgentRun {
                    agent: &agent,
                    options,
                    context: &context,
                    conversation: state,
                    from,
                    stored_run,
                };
                // The agents' futures are large; one allocation per turn is negligible.
                within(&budget, cancel, Box::pin(agent::run(work, &cx))).await
            }
            Err(stop) => {
                let shown = emit.wants_state().then(|| state.to_json());
                AgentOutcome {
                    ran: RunOutcome { stop, last: None, steps: 0 },
                    conversation: state,
                    state: shown,
                }
            }
        };
        ran.steps += steps;
        if let Some(shown) = shown {
            emit.emit(Body::Checkpoint(Box::new(self.checkpoint(&ran, shown)))).await;
        }
        let postponed = ran.stop.as_ref().is_some_and(|stop| *stop == Stop::postponed());
        let postponed = if postponed { std::mem::take(&mut state.pending) } else { Vec::new() };
        if postponed.is_empty() {
            state.close_open_calls();
        } else {
            self.open_calls = OpenCalls::of(&postponed);
            self.held = std::mem::take(&mut state.afterwards);
            self.postponed = true;
        }
        self.history = Arc::unwrap_or_clone(std::mem::take(&mut state.messages));
        state.denials.append(&mut self.denials.lock().unwrap_or_else(PoisonError::into_inner));
        // At any other end the limit is the cause and is reported as such, or the user knows why.
        let excess = if ran.stop.is_none() { budget.token_excess() } else { None };
        let mut sums = budget.close();
        self.collect_late(&mut sums, budget);
        self.model_calls += sums.model_calls;
        // Without a model call the fill level is unchanged.
        if sums.model_calls > 0 || self.context_tokens == 0 {
            (self.context_tokens, self.context_estimated) = match sums.context {
                (0, _) => (compaction::estimate(&self.history), true),
                counted => counted,
            };
        }
        if state.compacted_at.is_some() {
            self.forget_turn_starts();
        }
        if ran.stop.as_ref().is_some_and(|stop| stop.status == EndStatus::Cancelled) {
            // Cancelling a turn also stops the session's background sub-agents.
            self.context.resources.tasks.stop_agents();
        }
        let deferred = ran.stop.as_ref().is_some_and(Stop::is_deferred);
        let mut end = turn_end(prompt_id, ran.stop, state, sums);
        self.cost_usd += end.cost_usd;
        end.control_errors = self.context.host.take_errors();
        end.continuation = continuation;
        end.postponed = postponed.into_iter().next();
        if end.status == EndStatus::Done {
            end.structured = wanted.and_then(|wanted| wanted.answer());
        }
        self.context.overrides.in_flight().end_turn();
        self.prompts.extend(self.context.overrides.steering().close());
        if let Some(message) = excess {
            let notice = SessionEvent::MaxTokens { message: message.into() };
            emit.emit(Body::Session(Box::new(notice))).await;
        }
        if let Some(notice) = notice(end.status) {
            emit.emit(Body::Session(Box::new(notice))).await;
        }
        // The log does not record the end of a turn that waits for answers.
        let emit = if deferred { live } else { emit };
        emit.emit(Body::TurnEnd(Box::new(end.clone()))).await;
        end
    }

    /// Adds what background sub-agents spent from earlier turns' budgets since those turns ended, and retains
    /// `budget` if a sub-agent may still spend from it.
    fn collect_late(&mut self, sums: &mut Sums, budget: Arc<Budget>) {
        for earlier in &self.open_budgets {
            self.model_calls += earlier.take_late(sums);
        }
        self.open_budgets.retain(|earlier| Arc::strong_count(earlier) > 1);
        if self.context.resources.tasks.has_agents() {
            self.open_budgets.push(budget);
        }
    }

    /// The state at the end of a run, in the form readers get.
    fn checkpoint(&self, ran: &RunOutcome, state: Json) -> Checkpoint {
        Checkpoint {
            id: checkpoint_id(&self.context.id, self.turns, ran.steps),
            timestamp: now(),
            step: ran.steps,
            state,
            thread_id: self.context.id.clone(),
            namespace: "".into(),
        }
    }

    /// The names of a turn's tools, including the sub-agent tool if it is offered.
    fn tool_names(&self, input: &TurnInput, tools: &Registry) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = tools.specs().iter().map(|spec| spec.name.clone()).collect();
        let wanted = input
            .tools
            .as_ref()
            .is_none_or(|wanted| wanted.iter().any(|name| subagent::DECLARATION.answers_to(name)));
        if wanted && self.context.agent_levels > 0 && !self.context.agents.is_empty() {
            names.push(tools.name_of(&subagent::DECLARATION).into());
        }
        let structured = input.answer_schema.is_some() || self.context.overrides.answer_schema().is_some();
        if structured && &*self.context.agent == REACT {
            names.push(tools.name_of(&structured::DECLARATION).into());
        }
        names
    }

    pub(super) fn turn_start(&self, prompt_id: &PromptId, input: &TurnInput, tools: &Registry) -> TurnStart {
        let context = &*self.context;
        let message: String = input.parts.iter().filter_map(Part::as_text).collect();
        TurnStart {
            session_id: context.id.clone(),
            prompt_id: prompt_id.clone(),
            turn: self.turns,
            run_id: format!("run-{}", self.turns).into(),
            agent: context.agent.clone(),
            message: message.into(),
            parts: input.parts.clone(),
            message_uuid: Some(input.message_uuid.clone().unwrap_or_else(minted_uuid)),
            message_origin: input.message_origin.clone(),
            model: (input.model.clone().or_else(|| context.overrides.model()))
                .unwrap_or_else(|| context.model.name().into()),
            cwd: context.resources.cwd.to_string_lossy().into(),
            permission_mode: context.permissions.mode().into(),
            tools: self.tool_names(input, tools),
            host_tools: input.host_tools.clone(),
            json_schema: input.answer_schema.as_ref().map(|form| Json::trusted(form.text())),
            mcp_servers: mcp_servers(&context.mcp),
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
