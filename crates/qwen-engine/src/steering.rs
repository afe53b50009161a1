//! Prompts that join a running turn instead of waiting for its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use qwen_events::{
    Body, ErrorInfo, ErrorKind, HistoryChange, Message, Part, Prompt, PromptId, Role, SessionEvent,
};

use crate::context::TurnContext;
use crate::graph::RunContext;
use crate::hooks::HookEvent;
use crate::redact::hide_secrets;

/// A prompt for the running turn.
#[derive(Debug)]
pub struct SteeringPrompt {
    /// The id that the prompt is reported under.
    pub prompt_id: PromptId,
    /// The prompt. If the turn no longer accepts it, it is returned and runs in a separate turn.
    pub prompt: Prompt,
    /// Files and images that the prompt refers to.
    pub attachments: Vec<Part>,
}

/// The prompts that wait for the next model call of the running turn. The worker offers them; the main agent
/// takes them.
#[derive(Default)]
pub struct SteeringQueue(Mutex<State>);

#[derive(Default)]
struct State {
    /// The running turn will check the queue again.
    open: bool,
    waiting: Vec<SteeringPrompt>,
    /// The prompts that joined the turn.
    delivered: Vec<PromptId>,
}

impl SteeringQueue {
    /// Offers a prompt to the running turn; returns it if no turn accepts prompts now.
    pub fn offer(&self, prompt: SteeringPrompt) -> Result<(), Box<SteeringPrompt>> {
        let mut state = self.lock();
        if !state.open {
            return Err(Box::new(prompt));
        }
        state.waiting.push(prompt);
        Ok(())
    }

    /// Withdraws a prompt that no model call has seen yet.
    pub fn withdraw(&self, prompt_id: &PromptId) -> Option<SteeringPrompt> {
        let mut state = self.lock();
        let at = state.waiting.iter().position(|waiting| waiting.prompt_id == *prompt_id)?;
        Some(state.waiting.remove(at))
    }

    /// The prompts that did not join the last turn before it ended. Called between turns.
    pub fn take_undelivered(&self) -> Vec<SteeringPrompt> {
        std::mem::take(&mut self.lock().waiting)
    }

    /// Starts a turn that accepts prompts.
    pub(crate) fn open(&self) {
        self.lock().open = true;
    }

    /// Ends the turn. Returns the ids of the prompts that joined it.
    pub(crate) fn close(&self) -> Vec<PromptId> {
        let mut state = self.lock();
        state.open = false;
        std::mem::take(&mut state.delivered)
    }

    /// Takes all waiting prompts. With `last`, closes the queue if it is empty: the check and the closing are
    /// one step, so that a finished turn never accepts a prompt.
    fn take(&self, last: bool) -> Vec<SteeringPrompt> {
        let mut state = self.lock();
        if last && state.waiting.is_empty() {
            state.open = false;
        }
        let taken = std::mem::take(&mut state.waiting);
        state.delivered.extend(taken.iter().map(|prompt| prompt.prompt_id.clone()));
        taken
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages that join the conversation before the next model call, reported and logged. `last` means that
/// the turn ends if there are none.
pub(crate) async fn deliver(turn: &TurnContext, last: bool, cx: &RunContext) -> Vec<Message> {
    let mut messages = Vec::new();
    if turn.origin.parent.is_some() || cx.cancel.is_stopped() {
        return messages;
    }
    for steering in turn.session.process.overrides.steering().take(last) {
        let mut prompt = steering.prompt;
        let words: String = prompt.parts.iter().filter_map(Part::as_text).collect();
        let fields = vec![("prompt", words.into())];
        let ruling = turn.fire(HookEvent::UserPromptSubmit, None, "", fields, cx).await;
        if let Some(why) = ruling.block.as_ref().or(ruling.stop.as_ref()) {
            let message =
                format!("a UserPromptSubmit hook blocked the prompt '{}': {why}", steering.prompt_id);
            let error = ErrorInfo::new(ErrorKind::Input, "prompt_blocked", message)
                .with_param("prompt_id")
                .for_prompt(None, Some(steering.prompt_id.clone()));
            cx.emit.emit(Body::Error(Box::new(error))).await;
            continue;
        }
        let mut attachments = steering.attachments;
        hide_secrets(&mut attachments, &turn.session.resources.redactor);
        prompt.parts.append(&mut attachments);
        let context = ruling.labelled_context(HookEvent::UserPromptSubmit);
        prompt.parts.extend(context.map(|context| Part::Text(context.into())));
        let message = Message { role: Role::User, parts: prompt.parts };
        let (prompt_id, message_uuid) = (steering.prompt_id, prompt.uuid);
        let steered = SessionEvent::Steered { prompt_id, message_uuid };
        cx.emit.emit(Body::Session(Box::new(steered))).await;
        cx.emit.emit(Body::History(Box::new(HistoryChange::Added(vec![message.clone()])))).await;
        messages.push(message);
    }
    messages
}
