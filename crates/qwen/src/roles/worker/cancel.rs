//! `control/cancel`: ends the running turn, or withdraws a queued prompt.

use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_engine::{Stop, unstarted_turn_end};
use qwen_events::{Body, CancelResult, Prompt, PromptId, TurnEnd};

use super::worker::{RunningTurn, Worker};

impl Worker {
    /// Ends the running turn, or withdraws a queued prompt.
    pub(super) async fn cancel(
        &mut self,
        session_id: Option<Arc<str>>,
        wanted: Option<PromptId>,
        reason: Arc<str>,
        request_id: Option<Arc<str>>,
        running: Option<RunningTurn<'_>>,
    ) {
        let dialect = self.process.config.stream.dialect;
        if let Some(prompt_id) = &wanted {
            self.withdraw_steering(prompt_id);
        }
        let elsewhere = self.sessions.is_other(session_id.as_deref(), dialect);
        let hit = running
            .filter(|_| !elsewhere)
            .filter(|turn| wanted.as_ref().is_none_or(|id| id == turn.prompt_id));
        let in_background = running.is_none() && wanted.is_none() && !elsewhere && self.stop_agents();
        let addressed = self.sessions.addressed(session_id.as_deref());
        let session = elsewhere.then_some(addressed.as_str());
        let queued = wanted.as_ref().filter(|_| hit.is_none()).and_then(|id| self.queue.find(id, session));
        let message = match (&hit, &queued) {
            (Some(_), _) => "the turn is being cancelled",
            (None, Some(_)) => "the queued prompt is withdrawn",
            (None, None) if in_background => "the sub-agents in the background are being ended",
            (None, None) if elsewhere => "the session that is named has nothing to cancel in this worker",
            (None, None) if running.is_some() => "there is no turn and no queued prompt with that prompt_id",
            (None, None) => "there is nothing to cancel",
        };
        let cancelled = hit.is_some() || queued.is_some() || in_background;
        // Lines of the qwen dialect name their turn, so the end of a prompt may appear in the middle of
        // another turn of the session. The other dialects identify turns by their order.
        let held = self.sessions.id().as_str();
        let at_once = |prompt: &Prompt| {
            let is_here = prompt.session_id.as_deref().is_none_or(|name| name == held);
            running.is_some() && is_here && dialect == Dialect::Qwen
        };
        let ended = queued.and_then(|position| self.queue.withdraw(position, at_once));
        let result = CancelResult {
            session_id: addressed,
            prompt_id: hit.map(|turn| turn.prompt_id.clone()).or(wanted),
            cancelled,
            message: message.into(),
            reason,
            request_id,
        };
        if let Some(turn) = hit {
            turn.cancel.stop(Stop::cancelled());
        }
        self.emit.emit(Body::CancelResult(Box::new(result))).await;
        if let Some(prompt_id) = ended {
            // The running turn may not have announced the session yet.
            let session_id = Some(self.sessions.id().clone());
            let end = TurnEnd { session_id, ..unstarted_turn_end(prompt_id, Stop::cancelled()) };
            self.emit.unredacted().emit(Body::TurnEnd(Box::new(end))).await;
        }
    }
}
