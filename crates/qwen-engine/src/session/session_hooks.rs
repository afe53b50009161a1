//! Hooks of the session itself: start, user prompt, end.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, PromptId, TurnStart};
use serde_json::Value;

use super::Session;
use crate::hooks::{HookEvent, HookRequest, Ruling, hook_stop};
use crate::{Cancel, Emitter, QuestionOrigin, Stop};

/// How long hooks may delay the end of a session.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// The hooks' verdict on a prompt.
#[derive(Default)]
pub(super) struct PromptReview {
    /// Additional context for the model.
    pub context: Option<String>,
    /// Why the prompt was blocked.
    pub objection: Option<Stop>,
}

/// Why the prompt is blocked by `ruling` of the hooks for `event`.
fn objection(event: HookEvent, ruling: &Ruling) -> Option<Stop> {
    if let Some(why) = &ruling.stop {
        return Some(hook_stop(event, why));
    }
    let why = ruling.block.as_ref()?;
    let message = format!("a {} hook blocked the prompt: {why}", event.name());
    let error = ErrorInfo::new(ErrorKind::Input, "prompt_blocked", message);
    Some(Stop { status: EndStatus::Error, error: Some(error) })
}

impl Session {
    /// Runs the prompt hooks, after the session-start hooks if the session has not started yet.
    pub(super) async fn review_prompt(
        &mut self,
        start: &TurnStart,
        emit: &Emitter,
        cancel: &Cancel,
    ) -> PromptReview {
        if cancel.is_stopped() {
            return PromptReview::default();
        }
        let mut context = Vec::new();
        if !self.greeted {
            self.greeted = true;
            let source = if self.turns > 1 || !self.history.is_empty() { "resume" } else { "startup" };
            let fields = vec![("source", source.into()), ("model", (*start.model).into())];
            let event = HookEvent::SessionStart;
            let ruling = self.fire(event, &start.prompt_id, source, fields, emit, cancel).await;
            context.extend(ruling.labelled_context(event));
            if let Some(objection) = objection(event, &ruling) {
                // The session did not start, so its hooks run again with the next turn.
                self.greeted = false;
                return PromptReview { context: None, objection: Some(objection) };
            }
        }
        let event = HookEvent::UserPromptSubmit;
        let fields = vec![("prompt", (*start.message).into())];
        let ruling = self.fire(event, &start.prompt_id, "", fields, emit, cancel).await;
        context.extend(ruling.labelled_context(event));
        let objection = objection(event, &ruling);
        PromptReview { context: (!context.is_empty()).then(|| context.join("\n")), objection }
    }

    /// Runs the session-end hooks with a reason: `exit`, `clear`, `prompt_input_exit`, `other`. Their time is
    /// bounded by `SHUTDOWN_LIMIT`.
    pub async fn end(&mut self, reason: &str, emit: &Emitter) {
        self.log_unsent_prompts();
        if !std::mem::take(&mut self.greeted) {
            return;
        }
        let prompt_id = PromptId::of_turn(&self.context.id, self.turns);
        let cancel = Cancel::default();
        let fields = vec![("reason", reason.into())];
        let session_end = self.fire(HookEvent::SessionEnd, &prompt_id, reason, fields, emit, &cancel);
        // Their answers have no effect at this point.
        let _ = tokio::time::timeout(SHUTDOWN_LIMIT, session_end).await;
    }

    pub(super) async fn fire(
        &self,
        event: HookEvent,
        prompt_id: &PromptId,
        target: &str,
        fields: Vec<(&'static str, Value)>,
        emit: &Emitter,
        cancel: &Cancel,
    ) -> Ruling {
        if !self.context.process.hooks.listens(event) {
            return Ruling::default();
        }
        let origin = QuestionOrigin {
            session_id: self.context.id.clone(),
            prompt_id: prompt_id.clone(),
            parent: None,
            agent: "".into(),
        };
        let request = HookRequest {
            event,
            origin: &origin,
            permission_mode: self.context.process.permissions.mode(),
            resources: &self.context.resources,
            host: self.context.process.host.as_ref(),
            emit,
            cancel,
            call: None,
            target,
            fields,
        };
        self.context.process.hooks.fire(request).await
    }
}
