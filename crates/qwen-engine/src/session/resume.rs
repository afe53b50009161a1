//! Taking up a session where another process left it.

use qwen_events::{Body, EndStatus, Sampling, TurnEnd, TurnStart};

use super::{Session, SessionSetup, Turn, TurnInput};
use crate::graph::NodeCounter;
use crate::log::{Answer, Folded, Kept, Progress, Unfinished, word};
use crate::react::{self, ReactState};
use crate::{Budget, Cancel, Emitter, Stop};

impl Session {
    /// A session with the past that its log tells. A turn that was left unfinished can be gone on with
    /// ([`go_on`](Self::go_on)); a new turn closes it first.
    pub fn resume(setup: SessionSetup, folded: Folded) -> Self {
        let runs = NodeCounter::behind(folded.node_runs.iter().map(|(name, count)| (word(name), *count)));
        let prompts = folded.prompt_ids.into_iter().collect();
        Self {
            history: folded.messages,
            turns: folded.turns,
            model_calls: folded.model_calls,
            runs,
            prompts,
            unfinished: folded.unfinished,
            open_calls: folded.open_calls,
            ..Self::new(setup)
        }
    }

    /// The turn that was left unfinished.
    pub fn unfinished(&self) -> Option<&Unfinished> {
        self.unfinished.as_ref()
    }

    /// Goes back to an earlier place of the conversation. The log keeps what came after it, and that it was left.
    pub fn go_back(&mut self, mut earlier: Folded) {
        earlier.messages.extend(earlier.open_calls.settle());
        self.replace_history(earlier.messages);
    }

    /// Goes on with the turn that was left unfinished, and returns how it ended; none where there is no such turn. A
    /// call that had been started is not started again, because nobody knows what it did.
    pub async fn go_on(&mut self, emit: &Emitter, cancel: &Cancel) -> Option<TurnEnd> {
        let unfinished = self.unfinished.take()?;
        let budget = Budget::new(self.setup.limits.clone(), self.model_calls);
        budget.carry(unfinished.model_calls, unfinished.tool_calls, &unfinished.usage_by_model);
        let mut state = ReactState {
            messages: std::mem::take(&mut self.history).into(),
            reply: unfinished.reply,
            denials: unfinished.denials,
            ..ReactState::default()
        };
        let from = match unfinished.answer {
            // The answer was there; only the end was not told.
            Some(Answer { aborted: false, finish }) => {
                state.finish = Some(finish);
                Err(None)
            }
            // It was being cancelled, or its model had failed.
            Some(Answer { aborted: true, .. }) => {
                Err(Some(Stop { status: EndStatus::Interrupted, error: None }))
            }
            None if self.open_calls.is_empty() => Ok(react::START),
            None => Ok(react::ACT),
        };
        for open in self.open_calls.take() {
            match open.progress {
                Progress::Ended(result) => state.results.push(result),
                Progress::Waiting => state.pending.push(open.call),
                Progress::Started => {
                    state.interrupted.push(open.call.id.clone());
                    state.pending.push(open.call);
                }
            }
        }
        if let Some(log) = &self.log {
            log.go_on_with(unfinished.start.prompt_id.clone());
        }
        let tools = self.setup.tools.clone();
        let start = self.same_start(unfinished.start);
        let turn = Turn {
            start,
            tools,
            model: None,
            sampling: Sampling::default(),
            budget,
            state,
            from,
            steps: unfinished.steps,
            kept: Kept::of(&unfinished.journal),
        };
        Some(self.run(turn, emit, cancel).await)
    }

    /// Closes the turn that was left unfinished, if there is one, and answers the calls that nobody answered.
    pub fn close_interrupted(&mut self) {
        self.end_unfinished();
        self.history.extend(self.open_calls.settle());
    }

    /// Ends the turn that was left unfinished. Only the log is told: readers of this process never saw its start.
    pub(super) fn end_unfinished(&mut self) {
        let Some(unfinished) = self.unfinished.take() else { return };
        self.model_calls += unfinished.model_calls;
        if let Some(log) = &self.log {
            log.note(Body::TurnEnd(Box::new(unfinished.end())));
        }
    }

    /// The start of a turn that is gone on with: the same words, in the world as it is now.
    fn same_start(&self, before: TurnStart) -> TurnStart {
        let input =
            TurnInput { parts: before.parts, message_uuid: before.message_uuid, ..TurnInput::default() };
        let now = self.turn_start(&before.prompt_id, &input, &self.setup.tools);
        TurnStart { message: before.message, agent: before.agent, ..now }
    }
}
