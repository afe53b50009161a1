//! Slash commands in a worker: queued like prompts, or run during a turn if they need no conversation.

use std::pin::pin;
use std::sync::Arc;

use qwen_engine::{Cancel, Session};
use qwen_events::{CommandCall, Prompt, PromptId, PromptOrigin};
use tokio::sync::mpsc;

use super::Incoming;
use super::worker::{Flow, RunningTurn, Worker};
use crate::session::slash::{self, CommandRun, HostMessage, NextStep};

/// What happens after a command.
pub(super) enum AfterCommand {
    /// A turn with this prompt.
    Turn(Arc<str>),
    /// A turn that consists of this shell command.
    TypedCommand(Arc<str>),
    Done(Flow),
}

impl Worker {
    /// The command that a prompt contains.
    pub(super) fn command_in(&self, prompt: &Prompt) -> Option<CommandCall> {
        let typed = prompt.origin == PromptOrigin::User && !prompt.verbatim;
        slash::command(&self.process, &prompt.parts, prompt.command.as_ref()).filter(|_| typed)
    }

    /// Runs a command in its session while input is still being read.
    pub(super) async fn run_command(
        &mut self,
        call: CommandCall,
        message: HostMessage,
        session: &mut Session,
        prompt_id: &PromptId,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> AfterCommand {
        let cancel = Cancel::default();
        let session_id = session.context().id.clone();
        let (process, emit) = (self.process.clone(), self.emit.clone());
        let run = CommandRun {
            process: &process,
            session: Some(session),
            session_id: session_id.clone(),
            prompt_id: prompt_id.clone(),
            message,
            spent: self.usage.totals(),
            emit: &emit,
            cancel: &cancel,
        };
        let work = pin!(run.begin(call).finish());
        let running = RunningTurn { prompt_id, cancel: &cancel, is_turn: false };
        let (next, leaving) = self.while_reading_input(work, running, incoming, &|| ()).await;
        if let Some(code) = leaving {
            return AfterCommand::Done(Flow::Exit(code));
        }
        match next {
            NextStep::Turn(words) => AfterCommand::Turn(words),
            NextStep::TypedCommand(command) => AfterCommand::TypedCommand(command),
            NextStep::Quit => AfterCommand::Done(Flow::Exit(0)),
            NextStep::Over { .. } => AfterCommand::Done(Flow::Continue),
            NextStep::Switch(other) => {
                self.sessions.replace(*other);
                AfterCommand::Done(Flow::Continue)
            }
        }
    }

    /// Runs a command that needs no conversation while a turn uses the conversation.
    pub(super) async fn run_live_command(&mut self, call: CommandCall, prompt_id: Option<PromptId>) {
        let prompt_id =
            prompt_id.unwrap_or_else(|| PromptId::new(format!("{}########command", self.sessions.id())));
        let run = CommandRun {
            process: &self.process,
            session: None,
            session_id: self.sessions.id().clone(),
            prompt_id,
            message: HostMessage::default(),
            spent: self.usage.totals(),
            emit: &self.emit,
            cancel: &Cancel::default(),
        };
        run.run(call).await;
    }
}
