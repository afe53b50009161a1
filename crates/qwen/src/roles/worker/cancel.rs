//! `control/cancel`: the running turn ends, or a prompt that waits is withdrawn.

use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_engine::{Stop, unstarted_turn_end};
use qwen_events::{Body, CancelResult, PromptId};

use super::serve::{Running, Worker};

impl Worker {
    /// Whether a request means another session than `held`, which the host knows by its name.
    fn means_another(&self, named: Option<&str>, held: &str) -> bool {
        let claude = self.config.dialect == Dialect::Claude;
        self.named && !claude && named.is_some_and(|name| name != held)
    }

    /// Ends the running turn, or withdraws a queued prompt.
    pub(super) async fn cancel(
        &mut self,
        session_id: Option<Arc<str>>,
        wanted: Option<PromptId>,
        reason: Arc<str>,
        request_id: Option<Arc<str>>,
        running: Option<Running<'_>>,
    ) {
        let elsewhere = self.means_another(session_id.as_deref(), self.session_id.as_str());
        let hit = running
            .filter(|_| !elsewhere)
            .filter(|turn| wanted.as_ref().is_none_or(|id| id == turn.prompt_id));
        let beside = running.is_none() && wanted.is_none() && !elsewhere && self.stop_agents();
        let addressed = self.addressed(session_id.as_deref());
        let queued = wanted.as_ref().filter(|_| hit.is_none()).and_then(|id| {
            self.queue.iter().position(|queued| {
                let session = queued.prompt.session_id.as_deref();
                !queued.withdrawn
                    && queued.prompt.prompt_id.as_ref() == Some(id)
                    && (!elsewhere || session.is_none_or(|name| name == addressed.as_str()))
            })
        });
        let message = match (&hit, &queued) {
            (Some(_), _) => "the turn is being cancelled",
            (None, Some(_)) => "the queued prompt is withdrawn",
            (None, None) if beside => "the sub-agents in the background are being ended",
            (None, None) if elsewhere => "the session that is named has nothing to cancel in this worker",
            (None, None) if running.is_some() => "there is no turn and no queued prompt of that prompt_id",
            (None, None) => "there is nothing to cancel",
        };
        let cancelled = hit.is_some() || queued.is_some() || beside;
        let over = queued.and_then(|at| self.withdraw(at, running));
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
        if let Some(prompt_id) = over {
            let end = unstarted_turn_end(prompt_id, Stop::cancelled());
            self.emit.aside().emit(Body::TurnEnd(Box::new(end))).await;
        }
    }

    /// Withdraws a prompt that waits. Returns its name where its end can be told at once; otherwise its turn comes, and
    /// ends before it begins. Lines of the qwen dialect name their turn, so that an end can stand amidst another turn of
    /// the session; the other dialects tell turns apart by their order.
    fn withdraw(&mut self, at: usize, running: Option<Running<'_>>) -> Option<PromptId> {
        let held = self.session_id.as_str();
        let queued = self.queue.get_mut(at)?;
        let is_here = queued.prompt.session_id.as_deref().is_none_or(|name| name == held);
        if running.is_some() && is_here && self.config.dialect == Dialect::Qwen {
            return self.queue.remove(at).and_then(|queued| queued.prompt.prompt_id);
        }
        queued.withdrawn = true;
        None
    }
}
