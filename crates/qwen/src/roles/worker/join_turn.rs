//! Prompts that join a turn: a prompt that steers the running turn, and a prompt that is sent again.

use qwen_dialects::Dialect;
use qwen_engine::SteeringPrompt;
use qwen_engine::commands::with_local_files;
use qwen_events::{Body, Delivery, Prompt, PromptId, PromptOrigin, TurnEnd};

use super::queue::used_before;
use super::worker::{RunningTurn, Worker};
use crate::session::slash::attached_files;

impl Worker {
    /// Passes a steering prompt to the running turn. Returns it if it must wait for a separate turn.
    pub(super) fn steer_turn(
        &mut self,
        mut prompt: Prompt,
        running: Option<RunningTurn<'_>>,
    ) -> Option<Prompt> {
        let dialect = self.process.config.stream.dialect;
        let is_other = self.sessions.is_other(prompt.session_id.as_deref(), dialect);
        let Some(turn) = running.filter(|_| prompt.delivery == Delivery::Steer && !is_other) else {
            return Some(prompt);
        };
        if prompt.origin != PromptOrigin::User
            || !prompt.history.is_empty()
            || self.command_in(&prompt).is_some()
        {
            return Some(prompt);
        }
        let attachments = if prompt.verbatim {
            Vec::new()
        } else {
            prompt.parts = with_local_files(std::mem::take(&mut prompt.parts));
            attached_files(&prompt.parts, &self.process)
        };
        let prompt_id = prompt.prompt_id.clone().unwrap_or_else(|| {
            self.steered += 1;
            PromptId::new(format!("{}+{}", turn.prompt_id, self.steered))
        });
        let steering = SteeringPrompt { prompt_id, prompt, attachments };
        let refused = self.process.services.overrides.steering().offer(steering).err();
        refused.map(|steering| steering.prompt)
    }

    /// Queues the prompts that the turn ended without: each gets a separate turn, before those that arrived
    /// later.
    pub(super) fn queue_undelivered(&mut self) {
        for steering in self.process.services.overrides.steering().take_undelivered().into_iter().rev() {
            self.queue.push_first(steering.prompt);
        }
    }

    /// Moves a prompt that waits to join the running turn back to the queue, where it can be withdrawn.
    pub(super) fn withdraw_steering(&mut self, prompt_id: &PromptId) {
        if let Some(steering) = self.process.services.overrides.steering().withdraw(prompt_id) {
            self.queue.push(Prompt { prompt_id: Some(steering.prompt_id), ..steering.prompt }, None);
        }
    }

    /// Answers a prompt that is sent again. A turn that is running or queued reports its end anyway; the end
    /// of a completed turn is reported again, as a continuation.
    pub(super) async fn rejoin(
        &mut self,
        prompt_id: &PromptId,
        input: Option<u64>,
        running: Option<RunningTurn<'_>>,
    ) {
        if running.is_some_and(|turn| turn.prompt_id == prompt_id)
            || self.queue.find(prompt_id, None).is_some()
        {
            return;
        }
        let body = match self.ended_turn(prompt_id) {
            Some(end) => Body::TurnEnd(Box::new(end)),
            None => Body::Error(Box::new(used_before(prompt_id).for_input(input))),
        };
        self.emit.unredacted().emit(body).await;
    }

    /// The logged end of a turn of this session, to be reported again. Only lines of the qwen dialect name
    /// their turn.
    pub(super) fn ended_turn(&self, prompt_id: &PromptId) -> Option<TurnEnd> {
        let config = &self.process.config;
        let store = config.session.store.as_ref().filter(|_| config.stream.dialect == Dialect::Qwen)?;
        let mut end = store.turn_end(self.sessions.id(), prompt_id).ok().flatten()?;
        end.continuation = true;
        end.session_id = Some(self.sessions.id().clone());
        Some(end)
    }
}
