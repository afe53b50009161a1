//! Compaction: replacing the conversation by a summary, on request or when the window is nearly full.

use qwen_events::{Body, ErrorInfo, ErrorKind, HistoryChange, Message, PromptId, Role, SessionEvent};
use qwen_mcp::RemoteTool;
use serde_json::Value;

use super::{RewindReport, Session, WindowFill};
use crate::hooks::HookEvent;
use crate::{Budget, Cancel, Emitter, compaction};

impl Session {
    /// Replaces the conversation by a summary that the model writes; `wish` states what to focus on. Returns
    /// the conversation's size in tokens before and after.
    pub async fn compress(
        &mut self,
        wish: &str,
        emit: &Emitter,
        cancel: &Cancel,
    ) -> Result<(u64, u64), ErrorInfo> {
        self.close_interrupted();
        let budget = self.new_budget();
        let prompt_id = PromptId::of_turn(&self.context.id, self.turns.max(1));
        let history = std::mem::take(&mut self.history);
        let emit = self.emitter(emit);
        let before = self.window_fill.tokens.max(self.estimate_call(&history));
        let replaced = self.summary_of(&history, "manual", wish, &prompt_id, &budget, &emit, cancel).await;
        self.spending.model_calls += budget.sums().model_calls;
        match replaced {
            Ok(messages) => {
                let after = self.estimate_call(&messages);
                self.replace_history(messages);
                Ok((before, after))
            }
            Err(error) => {
                self.history = history;
                Err(error)
            }
        }
    }

    /// Replaces all but the last of `messages` when the window is nearly full. If that fails, readers are
    /// notified and the turn continues unchanged: the model's own error is more precise.
    pub(super) async fn make_room(
        &mut self,
        messages: &mut Vec<Message>,
        prompt_id: &PromptId,
        budget: &Budget,
        emit: &Emitter,
        cancel: &Cancel,
    ) {
        // A process that resumed the session estimates until the model reports a count.
        let filled = match self.window_fill.tokens {
            0 => compaction::estimate(messages),
            counted => {
                let prompt =
                    messages.last().map_or(0, |last| compaction::estimate(std::slice::from_ref(last)));
                counted.saturating_add(prompt)
            }
        };
        if messages.len() < 3 || !self.context.window.is_nearly_full(filled) {
            return;
        }
        let Some(prompt) = messages.pop() else { return };
        match self.summary_of(messages, "auto", "", prompt_id, budget, emit, cancel).await {
            Ok(mut replacement) => {
                replacement.push(prompt);
                emit.emit(Body::History(Box::new(HistoryChange::Replaced(replacement.clone())))).await;
                self.forget_turn_starts();
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
        let instructions = if wish.is_empty() { Value::Null } else { wish.into() };
        let fields = vec![("trigger", trigger.into()), ("custom_instructions", instructions)];
        let ruling = self.fire(HookEvent::PreCompact, prompt_id, trigger, fields, emit, cancel).await;
        if let Some(why) = ruling.block.or(ruling.stop) {
            return Err(compaction::blocked(&why));
        }
        let before = self.window_fill.tokens.max(self.estimate_call(messages));
        let model = self.context.model.clone();
        let name = self.context.process.overrides.model();
        let most = self.context.window.most_read(messages);
        let asked = compaction::SubagentRequest { messages, wish, most, caller: None };
        let summary = compaction::summarize(model.as_ref(), name, asked, budget, cancel).await?;
        let replacement = compaction::replacement(&summary);
        self.estimate_fill(&replacement);
        let after = self.estimate_call(&replacement);
        self.situation.fold_changes();
        let manual = trigger == "manual";
        let notice = SessionEvent::Compressed { original_tokens: before, new_tokens: after, manual };
        emit.emit(Body::Session(Box::new(notice))).await;
        Ok(replacement)
    }

    /// Estimates the tokens of a model call with these messages.
    pub(super) fn estimate_call(&self, messages: &[Message]) -> u64 {
        compaction::estimate(messages).saturating_add(self.estimate_fixed_part())
    }

    /// Estimates the tokens of the system prompt and the tools.
    pub(super) fn estimate_fixed_part(&self) -> u64 {
        let context = &self.context;
        let from_servers = context.process.mcp.tools();
        let own = context.base_tools.specs();
        let tools = own.iter().chain(from_servers.iter().map(RemoteTool::spec));
        compaction::estimate_fixed_part(&context.base_system_prompt, tools)
    }

    /// Sets the window's fill level for a conversation that no model call has counted.
    pub(super) fn estimate_fill(&mut self, messages: &[Message]) {
        let fixed_part = self.estimate_fixed_part();
        self.window_fill =
            WindowFill { tokens: compaction::estimate(messages), is_estimated: true, fixed_part };
    }

    /// Removes the last turn from the conversation and restores the files that it changed, if they were
    /// backed up. Returns what was restored; `None` without backups. Fails if the conversation before the turn
    /// is not known.
    pub fn undo(&mut self) -> Result<Option<RewindReport>, ErrorInfo> {
        self.close_interrupted();
        let Some((prompt, begins)) = self.order.last().cloned() else {
            // A conversation that was given as a whole has no turns, only messages.
            let last = self.history.iter().rposition(|message| message.role == Role::User);
            let remaining = self.history[..last.unwrap_or(0)].to_vec();
            self.replace_history(remaining);
            return Ok(None);
        };
        let is_stored = self.log.as_ref().is_some_and(|log| log.location().0.is_some());
        if begins.is_none() && !is_stored {
            let message = "The turn cannot be undone: the conversation was compressed since, and this session is not stored.";
            return Err(ErrorInfo::new(ErrorKind::Input, "not_kept", message));
        }
        self.remember_for_redo(&prompt, true);
        let rewound = self.rewind(prompt.as_str(), false).ok();
        self.rewind_conversation(&prompt)?;
        Ok(rewound)
    }
}
