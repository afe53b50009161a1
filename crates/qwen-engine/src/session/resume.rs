//! Resuming a session that another process left.

use std::sync::Arc;

use qwen_events::{
    Body, CallId, EndStatus, ModelUsage, Part, Prompt, PromptId, PromptOptions, ToolCall, ToolSpec, TurnEnd,
    TurnStart,
};
use qwen_tools::Registry;

use super::{ReplayTarget, Session, Spending, Turn, TurnInput};
use crate::graph::NodeCounter;
use crate::log::{FinalAnswer, Folded, OpenCall, Progress, StoredRun, Unfinished, word};
use crate::react::{self, ReactState};
use crate::session::situation::Situation;
use crate::{AnswerSchema, Cancel, Emitter, SessionContext, Stop};

impl Session {
    /// Creates a session from its log. [`continue_unfinished`](Self::continue_unfinished) continues an
    /// unfinished turn; a new turn closes it first.
    pub fn resume(context: SessionContext, folded: Folded) -> Self {
        for part in folded.messages.iter().flat_map(|message| &message.parts) {
            if let Part::Call(call) = part {
                context.loaded_tools.load(&call.name);
            }
        }
        let runs = NodeCounter::continuing(folded.node_runs.iter().map(|(name, count)| (word(name), *count)));
        let prompts = folded.prompt_ids.iter().cloned().chain(folded.steered).collect();
        let order = folded.prompt_ids.into_iter().map(|prompt| (prompt, None)).collect();
        Self {
            history: folded.messages,
            turns: folded.turns,
            // A fork has its parent's conversation, and its own expenses.
            spending: Spending {
                model_calls: folded.model_calls,
                before: if folded.header.parent.is_some() { Vec::new() } else { folded.usage_by_model },
                ..Spending::default()
            },
            runs,
            prompts,
            order,
            unfinished: folded.unfinished,
            unanswered: folded.unanswered,
            is_interrupted: folded.is_interrupted,
            situation: match folded.situation {
                Some((first, last)) => Arc::new(Situation::restored(&first, &last)),
                None => Arc::default(),
            },
            ..Self::new(context)
        }
    }

    /// What earlier processes spent on this session, until the next turn begins.
    pub fn spent_before(&self) -> &[ModelUsage] {
        &self.spending.before
    }

    /// The unfinished turn of an earlier process.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        self.unfinished.as_ref()
    }

    /// True if the unfinished turn waits for the host to answer one of these calls. If so, answers are
    /// accepted from now on and the turn may be continued; `tools` that the host declares again replace those
    /// it declared then.
    pub fn awaits_host(&mut self, answers: &[CallId], tools: Vec<ToolSpec>) -> bool {
        let Some(unfinished) = &mut self.unfinished else { return false };
        let named = |call: &ToolCall| unfinished.start.host_tools.iter().any(|spec| spec.name == call.name);
        let waiting: Vec<CallId> =
            self.unanswered.calls.waiting().filter(|call| named(call)).map(|call| call.id.clone()).collect();
        if !answers.iter().any(|id| waiting.contains(id)) {
            return false;
        }
        if !tools.is_empty() {
            unfinished.start.host_tools = tools;
        }
        self.context.process.overrides.in_flight().expect_host_answers(waiting);
        true
    }

    /// Continues the unfinished turn and returns how it ended; `None` if there is no such turn. A call that
    /// had already started is not started again, because its effects are unknown.
    ///
    /// With `replays_message`, readers receive the message whose calls are continued again.
    pub async fn continue_unfinished(
        &mut self,
        replays_message: bool,
        emit: &Emitter,
        cancel: &Cancel,
    ) -> Option<TurnEnd> {
        let unfinished = self.unfinished.take()?;
        emit.turn_begins(None);
        let (again, stored_run) = self.restart_returned(&unfinished);
        let budget = self.new_budget();
        if again.is_none() {
            budget.carry(unfinished.model_calls, unfinished.tool_calls, &unfinished.usage_by_model);
        }
        let mut state = ReactState {
            messages: std::mem::take(&mut self.history).into(),
            reply: unfinished.reply,
            denials: unfinished.denials,
            afterwards: std::mem::take(&mut self.unanswered.held),
            ..ReactState::default()
        };
        let from = self.find_entry(unfinished.answer, &mut state);
        self.restore_calls(&unfinished.start, &mut state);
        let mut input = same_input(&unfinished.start);
        if again.is_some() {
            // Under a new prompt id it is a different message.
            input.prompt.uuid = None;
        }
        let tools = self.tools(&input, cancel).await;
        let replay_target = match (&again, state.pending.is_empty()) {
            (_, true) => None,
            (Some(_), false) => Some(ReplayTarget::ReadersAndLog),
            (None, false) => replays_message.then_some(ReplayTarget::Readers),
        };
        let steps = match again {
            Some(_) => u64::from(replay_target.is_some()),
            None => unfinished.steps,
        };
        let start = match again {
            Some(prompt_id) => self.same_start(TurnStart { prompt_id, ..unfinished.start }, &input, &tools),
            None => {
                if let Some(log) = &self.log {
                    log.record_resumed(unfinished.start.prompt_id.clone());
                }
                self.same_start(unfinished.start, &input, &tools)
            }
        };
        let turn = Turn {
            context: self.turn_context(&start, tools, PromptOptions::default()),
            start,
            answer_schema: input.answer_schema.or_else(|| self.context.process.overrides.answer_schema()),
            budget,
            state,
            from,
            steps,
            replay_target,
            stored_run,
            continuation: false,
            warnings: Vec::new(),
        };
        let end = Box::pin(self.run(turn, emit, cancel)).await;
        self.is_interrupted = matches!(end.status, EndStatus::Cancelled | EndStatus::Interrupted);
        Some(end)
    }

    /// Starts the turn again if the session returned to a point in it. Returns its new id, and the stored run to
    /// continue from.
    fn restart_returned(&mut self, unfinished: &Unfinished) -> (Option<PromptId>, Option<StoredRun>) {
        let stored_run = StoredRun::from_journal(&unfinished.journal);
        let Some(returned) = self.returned.take() else { return (None, stored_run) };
        // The agent reads it too, and reports it if it is unreadable.
        let base = stored_run.as_ref().and_then(|stored_run| {
            self.context.search_agents.rebase(unfinished.start.agent, stored_run).ok()
        });
        let rebased = base.as_ref().and_then(|base| StoredRun::from_journal(std::slice::from_ref(base)));
        (Some(self.begin_again(&returned, base)), rebased.or(stored_run))
    }

    /// The node where the turn continues, or how it ends if nothing is left to run.
    fn find_entry(
        &self,
        answer: Option<FinalAnswer>,
        state: &mut ReactState,
    ) -> Result<&'static str, Option<Stop>> {
        match answer {
            // The answer was complete; only the turn end was not recorded.
            Some(FinalAnswer { aborted: false, finish }) => {
                state.finish = Some(finish);
                Err(None)
            }
            // The turn was being cancelled, or its model call had failed.
            Some(FinalAnswer { aborted: true, .. }) => {
                Err(Some(Stop { status: EndStatus::Interrupted, error: None }))
            }
            None if self.unanswered.calls.is_empty() => Ok(react::START),
            None => Ok(react::ACT),
        }
    }

    /// Moves the open calls to the state: results that are known, calls that wait, and calls that an earlier
    /// process interrupted.
    fn restore_calls(&mut self, start: &TurnStart, state: &mut ReactState) {
        let in_flight = self.context.process.overrides.in_flight();
        let by_host = |open: &OpenCall| {
            in_flight.is_host_attached() && start.host_tools.iter().any(|spec| spec.name == open.call.name)
        };
        for open in self.unanswered.calls.take() {
            match open.progress {
                // The host runs this call and may still answer it.
                Progress::Started if by_host(&open) => state.pending.push(open.call),
                Progress::Ended(result) => state.results.push(result),
                Progress::Waiting => state.pending.push(open.call),
                Progress::Started => {
                    state.interrupted.push(open.call.id.clone());
                    state.pending.push(open.call);
                }
            }
        }
    }

    /// Closes the unfinished turn, if there is one, and answers the calls that have no result.
    pub fn close_interrupted(&mut self) {
        self.end_unfinished();
        self.close_calls();
    }

    /// True if a hook postponed a call that the next turn must decide about first.
    pub fn has_postponed(&self) -> bool {
        self.unanswered.postponed && !self.unanswered.calls.is_empty() && self.unfinished.is_none()
    }

    /// Answers the calls that have no result, then appends the messages received in the meantime.
    pub(super) fn close_calls(&mut self) {
        self.unanswered.postponed = false;
        self.history.extend(self.unanswered.calls.take_results());
        self.history.append(&mut self.unanswered.held);
    }

    /// Ends the unfinished turn. Only the log records it: readers of this process never saw its start.
    pub(super) fn end_unfinished(&mut self) {
        let Some(unfinished) = self.unfinished.take() else { return };
        if self.returned.take().is_some() {
            return self.discard_restored_turn();
        }
        self.spending.model_calls += unfinished.model_calls;
        self.spending.before.extend(unfinished.usage_by_model.iter().cloned());
        if let Some(log) = &self.log {
            log.note(Body::TurnEnd(Box::new(unfinished.end())));
        }
    }

    /// The start of a continued turn: the same message with the current settings and tools.
    fn same_start(&self, before: TurnStart, input: &TurnInput, tools: &Registry) -> TurnStart {
        let now = self.turn_start(&before.prompt_id, input, tools);
        TurnStart { message: before.message, agent: before.agent, ..now }
    }
}

/// The input of a continued turn, from its recorded start. A schema that no longer parses is dropped: a turn
/// could not start with it.
fn same_input(before: &TurnStart) -> TurnInput {
    let form = before.json_schema.as_ref().and_then(|schema| AnswerSchema::parse(schema.as_str()).ok());
    let options = PromptOptions { host_tools: before.host_tools.clone(), ..PromptOptions::default() };
    let prompt = Prompt {
        parts: before.parts.clone(),
        uuid: before.message_uuid.clone(),
        options,
        ..Prompt::default()
    };
    TurnInput { prompt, answer_schema: form.map(Arc::new), ..TurnInput::default() }
}
