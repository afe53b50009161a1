//! Commands in a worker: in their turn, or beside one where they need no conversation.

use std::sync::Arc;

use qwen_engine::commands::SessionTotals;
use qwen_engine::{Cancel, Session};
use qwen_events::{CommandCall, Prompt, PromptId, PromptOrigin};
use tokio::sync::mpsc;

use super::Incoming;
use super::serve::{Flow, Running, Worker};
use crate::session::slash::{self, Desk, Next};

/// What follows a command.
pub(super) enum After {
    /// A turn with these words.
    Turn(Arc<str>),
    /// Nothing more.
    Over(Flow),
}

impl Worker {
    /// The command that a prompt is.
    pub(super) fn command_in(&self, prompt: &Prompt) -> Option<CommandCall> {
        let typed = prompt.origin == PromptOrigin::User && !prompt.verbatim;
        slash::command(&self.parts, &prompt.parts, prompt.command.as_ref()).filter(|_| typed)
    }

    /// Runs a command in its session, while input goes on being read.
    pub(super) async fn command(
        &mut self,
        call: CommandCall,
        session: &mut Session,
        prompt_id: &PromptId,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> After {
        let cancel = Cancel::default();
        let session_id = session.setup().id.clone();
        let (parts, emit) = (self.parts.clone(), self.emit.clone());
        let desk = Desk {
            config: &self.config,
            parts: &parts,
            session: Some(session),
            session_id: session_id.clone(),
            prompt_id: prompt_id.clone(),
            spent: self.spent(),
            emit: &emit,
            cancel: &cancel,
        };
        let work = desk.begin(call).finish();
        let running = Running { prompt_id, cancel: &cancel };
        let (next, leaving) = self.beside_input(work, running, incoming, &|| ()).await;
        if let Some(code) = leaving {
            return After::Over(Flow::Exit(code));
        }
        match next {
            Next::Turn(words) => After::Turn(words),
            Next::Quit => After::Over(Flow::Exit(0)),
            Next::Over { .. } => After::Over(Flow::On),
            Next::Switch(other) => {
                let id = other.setup().id.clone();
                self.hold(*other, id);
                After::Over(Flow::On)
            }
        }
    }

    /// Runs a command that needs no conversation while a turn has it.
    pub(super) async fn command_beside_turn(&mut self, call: CommandCall, prompt_id: Option<PromptId>) {
        let prompt_id =
            prompt_id.unwrap_or_else(|| PromptId::new(format!("{}########command", self.session_id)));
        let desk = Desk {
            config: &self.config,
            parts: &self.parts,
            session: None,
            session_id: self.session_id.clone(),
            prompt_id,
            spent: self.spent(),
            emit: &self.emit,
            cancel: &Cancel::default(),
        };
        desk.run(call).await;
    }

    fn spent(&self) -> SessionTotals {
        SessionTotals {
            requests: self.sums.requests,
            tool_calls: self.sums.tool_calls,
            prompt_tokens: self.sums.prompt_tokens,
            completion_tokens: self.sums.completion_tokens,
            cached_tokens: self.sums.cached_tokens,
        }
    }
}
