//! Replacing what was said by a summary of it, at the user's wish or near the end of the window.

use qwen_events::{Body, ErrorInfo, HistoryChange, Message, PromptId, SessionEvent};

use super::{RewindReport, Session};
use crate::hooks::HookEvent;
use crate::{Budget, Cancel, Emitter, compaction};

impl Session {
    /// Replaces the conversation by a summary that the model writes; `wish` says what matters in it. Returns how
    /// many tokens the conversation took before, and takes now.
    pub async fn compress(
        &mut self,
        wish: &str,
        emit: &Emitter,
        cancel: &Cancel,
    ) -> Result<(u64, u64), ErrorInfo> {
        self.close_interrupted();
        let budget = Budget::new(self.setup.limits.clone(), self.model_calls).after_cost(self.cost_usd);
        let prompt_id = PromptId::of_turn(&self.setup.id, self.turns.max(1));
        let history = std::mem::take(&mut self.history);
        let emit = self.emitter(emit);
        let before = self.context_tokens.max(compaction::estimate(&history));
        let replaced = self.summary_of(&history, "manual", wish, &prompt_id, &budget, &emit, cancel).await;
        self.model_calls += budget.sums().model_calls;
        match replaced {
            Ok(messages) => {
                let sizes = (before, self.context_tokens);
                self.replace_history(messages);
                Ok(sizes)
            }
            Err(error) => {
                self.history = history;
                Err(error)
            }
        }
    }

    /// Replaces all but the last of `messages` when the window is nearly full. Where that fails, readers are told and
    /// the turn goes on as it is: the model's own answer says better what is wrong.
    pub(super) async fn make_room(
        &mut self,
        messages: &mut Vec<Message>,
        prompt_id: &PromptId,
        budget: &Budget,
        emit: &Emitter,
        cancel: &Cancel,
    ) {
        // A process that took up the session counts for itself until the model does.
        let filled = match self.context_tokens {
            0 => compaction::estimate(messages),
            counted => {
                let prompt =
                    messages.last().map_or(0, |last| compaction::estimate(std::slice::from_ref(last)));
                counted.saturating_add(prompt)
            }
        };
        if messages.len() < 3 || !self.setup.window.is_nearly_full(filled) {
            return;
        }
        let Some(prompt) = messages.pop() else { return };
        match self.summary_of(messages, "auto", "", prompt_id, budget, emit, cancel).await {
            Ok(mut replacement) => {
                replacement.push(prompt);
                emit.emit(Body::History(Box::new(HistoryChange::Replaced(replacement.clone())))).await;
                self.forget_places();
                *messages = replacement;
            }
            Err(error) => {
                messages.push(prompt);
                if !cancel.is_stopped() {
                    emit.emit(Body::Error(Box::new(error))).await;
                }
            }
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one place where a summary is asked for, in two situations"
    )]
    async fn summary_of(
        &mut self,
        messages: &[Message],
        trigger: &str,
        wish: &str,
        prompt_id: &PromptId,
        budget: &Budget,
        emit: &Emitter,
        cancel: &Cancel,
    ) -> Result<Vec<Message>, ErrorInfo> {
        let fields = vec![("trigger", trigger.into()), ("custom_instructions", wish.into())];
        let ruling = self.fire(HookEvent::PreCompact, prompt_id, trigger, fields, emit, cancel).await;
        if let Some(why) = ruling.block.or(ruling.stop) {
            return Err(compaction::blocked(&why));
        }
        let before = self.context_tokens.max(compaction::estimate(messages));
        let model = self.setup.model.clone();
        let name = self.setup.overrides.model();
        let most = self.setup.window.most_read(messages);
        let asked = compaction::SubagentRequest { messages, wish, most, caller: None };
        let summary = compaction::summarize(model.as_ref(), name, asked, budget, cancel).await?;
        let replacement = compaction::replacement(&summary);
        let after = compaction::estimate(&replacement);
        self.context_tokens = after;
        self.context_estimated = true;
        let notice = SessionEvent::Compressed { original_tokens: before, new_tokens: after };
        emit.emit(Body::Session(Box::new(notice))).await;
        Ok(replacement)
    }

    /// Takes the last turn out of the conversation, and puts the files that it changed back, where they were kept.
    /// Returns what became of them; none where nothing was kept.
    pub fn undo(&mut self) -> Option<RewindReport> {
        use qwen_events::Role;
        self.close_interrupted();
        let (prompt, at) = self.order.pop().unzip();
        let rewound = prompt.and_then(|prompt| self.rewind(prompt.as_str(), false).ok());
        // Within a turn there may be words that are the user's in form only.
        let is_user = |at: &usize| self.history.get(*at).is_some_and(|message| message.role == Role::User);
        let last = || self.history.iter().rposition(|message| message.role == Role::User);
        let begins = at.flatten().filter(is_user).or_else(last).unwrap_or(0);
        let kept = self.history[..begins].to_vec();
        let places = self.order.clone();
        self.replace_history(kept);
        // What is left of the conversation is where it was.
        self.order = places;
        rewound
    }
}
