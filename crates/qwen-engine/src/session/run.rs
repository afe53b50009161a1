//! Runs a prepared turn: announces it, runs its agent, settles what the session keeps, and reports the end.

use std::sync::{Arc, PoisonError};

use qwen_events::{
    AgentName, Body, Checkpoint, ConsoleLevel, EndStatus, Json, LogScope, PromptId, SessionEvent, TurnEnd,
    TurnStart,
};

use super::ending::{notice, turn_end, within};
use super::{ReplayTarget, Session, Turn, WindowFill};
use crate::agent::{self, AgentOutcome, AgentRun};
use crate::background_tasks::TaskEventForwarder;
use crate::budget::Sums;
use crate::compaction;
use crate::context::TurnContext;
use crate::emitter::now;
use crate::graph::{Effects, RunContext, RunOutcome, State};
use crate::log::{OpenCalls, StoredRun, checkpoint_id};
use crate::react::{self, ReactState};
use crate::structured::StructuredAnswer;
use crate::subagent::{self, AgentTool, SubagentScope};
use crate::{Budget, Cancel, Emitter, Stop};

/// What the phases of a running turn share.
struct RunningTurn<'a> {
    prompt_id: PromptId,
    agent: AgentName,
    budget: Arc<Budget>,
    /// Reaches the readers and the session log.
    emit: Emitter,
    /// Reaches the readers only.
    live: &'a Emitter,
    cancel: &'a Cancel,
}

/// What remains to be reported of a turn that is settled.
struct SettledTurn {
    end: TurnEnd,
    /// The token limit that was exceeded by a turn that ended for no other reason.
    excess: Option<String>,
    /// The turn waits for answers, so the log does not record its end.
    is_deferred: bool,
}

impl Session {
    /// Runs `turn` to its end and returns that end, which is always emitted.
    pub(super) async fn run(&mut self, turn: Turn, live: &Emitter, cancel: &Cancel) -> TurnEnd {
        let Turn { start, context, answer_schema, budget, mut state, from, stored_run, .. } = turn;
        let running = RunningTurn {
            prompt_id: start.prompt_id.clone(),
            agent: start.agent,
            budget: Arc::new(budget),
            emit: self.emitter(live),
            live,
            cancel,
        };
        let begins = from == Ok(react::START);
        self.register(&running, (begins && stored_run.is_none()).then(|| state.messages.len()));
        let offers_agents = start.tools.iter().any(|name| subagent::DECLARATION.answers_to(name));
        if !self.spending.before.is_empty() {
            let spent = std::mem::take(&mut self.spending.before);
            live.emit(Body::Resumed(spent.into())).await;
        }
        self.announce(&running, start, turn.warnings).await;
        match turn.replay_target {
            Some(ReplayTarget::Readers) => self.emit_pending_message(&state, live).await,
            Some(ReplayTarget::ReadersAndLog) => self.emit_pending_message(&state, &running.emit).await,
            None => {}
        }
        if begins {
            let RunningTurn { prompt_id, budget, emit, .. } = &running;
            self.make_room(Arc::make_mut(&mut state.messages), prompt_id, budget, emit, cancel).await;
        }
        let wanted = answer_schema.map(|form| Arc::new(StructuredAnswer::new(form, &state.messages)));
        let context = self.offer_session_tools(&running, context, offers_agents, wanted.clone());
        let outcome = self.run_agent(&running, context, state, from, stored_run).await;
        let AgentOutcome { mut ran, conversation, state: shown } = outcome;
        ran.steps += turn.steps;
        if let Some(shown) = shown {
            running.emit.emit(Body::Checkpoint(Box::new(self.checkpoint(&ran, shown)))).await;
        }
        let mut settled = self.settle(&running, ran.stop, conversation);
        settled.end.continuation = turn.continuation;
        if settled.end.status == EndStatus::Done {
            settled.end.structured = wanted.and_then(|wanted| wanted.answer());
        }
        self.report_end(&running, settled).await
    }

    /// Registers the turn: its id, its `start` in the conversation if that is known, and who receives its events.
    fn register(&mut self, running: &RunningTurn<'_>, messages: Option<usize>) {
        let prompt_id = &running.prompt_id;
        self.prompts.insert(prompt_id.clone());
        if self.order.last().is_none_or(|(last, _)| last != prompt_id) {
            let at = messages.and_then(|count| count.checked_sub(1));
            self.order.push((prompt_id.clone(), at));
            self.removed_states.clear();
        }
        if let Some(files) = &self.files {
            files.turn_starts();
        }
        let listener = TaskEventForwarder(running.live.in_background());
        self.context.resources.tasks.set_listener(Some(Arc::new(listener)));
        let overrides = &self.context.process.overrides;
        overrides.in_flight().begin_turn();
        if running.agent == AgentName::React {
            // The other agents make no model call that a prompt could join.
            overrides.steering().open();
        }
    }

    /// Emits the start of the turn and the warnings about it.
    async fn announce(&self, running: &RunningTurn<'_>, start: TurnStart, warnings: Vec<String>) {
        let schema_warnings = react::schema_warnings(&start.host_tools);
        running.emit.emit(Body::TurnStart(Box::new(start))).await;
        if let Some(error) = self.context.process.host.refusal() {
            running.cancel.stop(Stop::refused(error));
        }
        let problems = self.context.process.mcp.take_problems().into_iter().map(Into::into);
        let warnings =
            schema_warnings.into_iter().map(Into::into).chain(warnings.into_iter().map(Into::into));
        for text in problems.chain(warnings) {
            let (level, scope) = (ConsoleLevel::Warn, LogScope::System);
            running.emit.emit(Body::Console { level, scope, text }).await;
        }
    }

    /// Adds the tools that belong to the session: sub-agents, and the tool for a structured answer.
    fn offer_session_tools(
        &self,
        running: &RunningTurn<'_>,
        context: TurnContext,
        offers_agents: bool,
        wanted: Option<Arc<StructuredAnswer>>,
    ) -> Arc<TurnContext> {
        let scope = SubagentScope {
            denials: self.denials.clone(),
            definitions: self.context.agents.clone(),
            emit: running.emit.clone(),
            main: running.live.clone(),
            budget: running.budget.clone(),
            cancel: running.cancel.clone(),
            levels: if offers_agents { self.context.agent_levels } else { 0 },
        };
        let context = AgentTool::offered_in(context, scope);
        let Some(wanted) = wanted else { return context };
        // Sub-agents return plain text to their parent agent, so they never get the answer schema.
        Arc::new(match running.agent {
            AgentName::React => wanted.offered_in(&context),
            AgentName::Tot | AgentName::Got | AgentName::Agot => {
                TurnContext { structured: Some(wanted), ..TurnContext::clone(&context) }
            }
        })
    }

    /// Runs the agent within the time limit; only describes the state if nothing is left to run.
    async fn run_agent(
        &self,
        running: &RunningTurn<'_>,
        context: Arc<TurnContext>,
        conversation: ReactState,
        from: Result<&'static str, Option<Stop>>,
        stored_run: Option<StoredRun>,
    ) -> AgentOutcome {
        let from = match from {
            Ok(from) => from,
            Err(stop) => {
                let state = running.emit.wants_state().then(|| conversation.to_json());
                let ran = RunOutcome { stop, last: None, steps: 0 };
                return AgentOutcome { ran, conversation, state };
            }
        };
        let cx = RunContext {
            emit: running.emit.clone(),
            cancel: running.cancel.clone(),
            budget: running.budget.clone(),
            runs: self.runs.clone(),
            effects: Effects::default(),
            nested: false,
        };
        let work = AgentRun { agent: running.agent, context: &context, conversation, from, stored_run };
        within(&running.budget, running.cancel, agent::run(work, &cx)).await
    }

    /// Takes over what the run leaves: the conversation, calls for the next turn, and what was spent.
    fn settle(
        &mut self,
        running: &RunningTurn<'_>,
        stop: Option<Stop>,
        mut state: ReactState,
    ) -> SettledTurn {
        let is_postponed = stop.as_ref().is_some_and(|stop| *stop == Stop::postponed());
        let postponed = if is_postponed { std::mem::take(&mut state.pending) } else { Vec::new() };
        if postponed.is_empty() {
            state.close_open_calls();
        } else {
            self.unanswered.calls = OpenCalls::from_calls(&postponed);
            self.unanswered.held = std::mem::take(&mut state.afterwards);
            self.unanswered.postponed = true;
        }
        self.history = Arc::unwrap_or_clone(std::mem::take(&mut state.messages));
        state.denials.append(&mut self.denials.lock().unwrap_or_else(PoisonError::into_inner));
        // At any other end the limit is the cause and is reported as such, or the user knows why.
        let excess = if stop.is_none() { running.budget.token_excess() } else { None };
        let sums = self.take_sums(running.budget.clone());
        if state.compacted_at.is_some() {
            self.forget_turn_starts();
        }
        if stop.as_ref().is_some_and(|stop| stop.status == EndStatus::Cancelled) {
            // Cancelling a turn also stops the session's background sub-agents.
            self.context.resources.tasks.stop_agents();
        }
        let is_deferred = stop.as_ref().is_some_and(Stop::is_deferred);
        let mut end = turn_end(running.prompt_id.clone(), stop, state, sums);
        self.spending.cost_usd += end.cost_usd;
        end.control_errors = self.context.process.host.take_errors();
        end.postponed = postponed.into_iter().next();
        let overrides = &self.context.process.overrides;
        overrides.in_flight().end_turn();
        self.prompts.extend(overrides.steering().close());
        SettledTurn { end, excess, is_deferred }
    }

    /// Closes the budget of a turn and adds what was spent to the session's sums.
    fn take_sums(&mut self, budget: Arc<Budget>) -> Sums {
        let mut sums = budget.close();
        self.collect_late(&mut sums, budget);
        self.spending.model_calls += sums.model_calls;
        // Without a model call the fill level is unchanged.
        if sums.model_calls > 0 || self.window_fill.tokens == 0 {
            let (tokens, is_estimated) = match sums.context {
                (0, _) => (compaction::estimate(&self.history), true),
                counted => counted,
            };
            self.window_fill = WindowFill { tokens, is_estimated, fixed_part: 0 };
        }
        sums
    }

    /// Emits the notices about the end, and the end itself.
    async fn report_end(&self, running: &RunningTurn<'_>, settled: SettledTurn) -> TurnEnd {
        let SettledTurn { end, excess, is_deferred } = settled;
        if let Some(message) = excess {
            let notice = SessionEvent::MaxTokens { message: message.into() };
            running.emit.emit(Body::Session(Box::new(notice))).await;
        }
        if let Some(notice) = notice(end.status) {
            running.emit.emit(Body::Session(Box::new(notice))).await;
        }
        let emit = if is_deferred { running.live } else { &running.emit };
        emit.emit(Body::TurnEnd(Box::new(end.clone()))).await;
        end
    }

    /// Adds what background sub-agents spent from earlier turns' budgets since those turns ended, and retains
    /// `budget` if a sub-agent may still spend from it.
    fn collect_late(&mut self, sums: &mut Sums, budget: Arc<Budget>) {
        for earlier in &self.spending.open_budgets {
            self.spending.model_calls += earlier.take_late(sums);
        }
        self.spending.open_budgets.retain(|earlier| Arc::strong_count(earlier) > 1);
        if self.context.resources.tasks.has_agents() {
            self.spending.open_budgets.push(budget);
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
}
