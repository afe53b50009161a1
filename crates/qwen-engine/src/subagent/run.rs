//! One run of a sub-agent, from its start hooks to its end.

use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{Denial, EndStatus, ErrorInfo, ErrorKind, Part, TaskStatus, TaskTotals};
use qwen_tools::{BackgroundTask, Ended, Outcome};

use super::request::SubagentRequest;
use super::steps::totals;
use super::worktree::Worktree;
use crate::context::TurnContext;
use crate::graph::RunContext;
use crate::hooks::HookEvent;
use crate::react::{self, ReactState, StopHooks};
use crate::session::within;
use crate::{Budget, Cancel, Stop};

/// The maximum length of the summary for the host, in characters.
const LONGEST_SUMMARY: usize = 1000;

/// A run that has not started yet.
pub(super) struct Run {
    pub request: SubagentRequest,
    pub context: Arc<TurnContext>,
    pub state: ReactState,
    pub cx: RunContext,
    pub cancel: Cancel,
    pub budget: Arc<Budget>,
    /// Collects the calls that were denied to it.
    pub denials: Arc<Mutex<Vec<Denial>>>,
    pub task: Arc<BackgroundTask>,
    /// The worktree that it works in.
    pub worktree: Option<Worktree>,
}

/// A completed run.
pub(super) struct SubagentOutcome {
    pub reply: Arc<str>,
    pub spent: TaskTotals,
    /// Its status, with an error code and a message if it did not succeed.
    how: Result<(), (TaskStatus, &'static str, String)>,
}

impl Run {
    /// Runs the start hooks and passes their context to the sub-agent. Returns the reason if one of them
    /// blocks it.
    pub(super) async fn fire_start_hooks(&mut self) -> Option<Arc<str>> {
        if !self.context.session.process.hooks.listens(HookEvent::SubagentStart) {
            return None;
        }
        let agent = &*self.request.definition.name;
        let fields = vec![("agent_type", agent.into()), ("prompt", (*self.request.prompt).into())];
        let ruling = self.context.fire(HookEvent::SubagentStart, None, agent, fields, &self.cx).await;
        if let (Some(context), Some(first)) = (
            ruling.labelled_context(HookEvent::SubagentStart),
            Arc::make_mut(&mut self.state.messages).first_mut(),
        ) {
            first.parts.push(Part::Text(context.into()));
        }
        ruling.block
    }

    /// Removes the worktree of a run that does not start.
    pub(super) async fn discard_worktree(&mut self) {
        if let Some(worktree) = self.worktree.take() {
            worktree.finish().await;
        }
    }

    pub(super) async fn finish(self) -> SubagentOutcome {
        let Self { request, context, mut state, cx, cancel, budget, denials, task, worktree } = self;
        let watch = StopHooks { done: HookEvent::SubagentStop, agent: &request.definition.name };
        let ran = {
            let ran = react::run_with_stop_hooks(&context, react::START, &mut state, &cx, &watch);
            let ran = within(&budget, &cancel, Box::pin(ran));
            tokio::pin!(ran);
            tokio::select! {
                ran = &mut ran => ran,
                () = task.stopping() => {
                    cancel.stop(stopped());
                    ran.await
                }
            }
        };
        denials.lock().unwrap_or_else(PoisonError::into_inner).append(&mut state.denials);
        let how = match ran.map(|ran| ran.stop) {
            Ok(None) => Ok(()),
            Err(error) => Err((TaskStatus::Failed, "internal_error", error.to_string())),
            Ok(Some(stop)) => {
                let ended = matches!(stop.status, EndStatus::Cancelled | EndStatus::Interrupted);
                let status = if ended { TaskStatus::Stopped } else { TaskStatus::Failed };
                let why = stop.error.map_or_else(|| stop.status.name().to_owned(), |error| error.to_string());
                Err((status, "subagent_failed", why))
            }
        };
        let mut reply = state.reply;
        if let Some(worktree) = worktree
            && let Some(note) = worktree.finish().await
        {
            let separator = if reply.trim().is_empty() { "" } else { "\n\n" };
            reply = format!("{reply}{separator}{note}").into();
        }
        SubagentOutcome { reply, spent: totals(&budget.sums()), how }
    }
}

impl SubagentOutcome {
    /// The result of the call that waited for the run.
    pub(super) fn outcome(&self, request: &SubagentRequest) -> Outcome {
        let reply = &self.reply;
        match &self.how {
            Ok(()) => Outcome {
                display: Some(request.display("completed", Some(self))),
                ..Outcome::success(framed(&request.definition.name, reply))
            },
            Err((_, code @ "internal_error", why)) => Outcome::failure(code, why.clone()),
            Err((status, code, why)) => {
                let cancelled = *status == TaskStatus::Stopped;
                let word = if cancelled { "cancelled" } else { "failed" };
                Outcome {
                    cancelled,
                    display: Some(request.display(word, Some(self))),
                    ..Outcome::failure(
                        code,
                        format!(
                            "The sub-agent ended early: {why}\n{}",
                            framed(&request.definition.name, reply)
                        ),
                    )
                }
            }
        }
    }

    /// The end of its background task.
    pub(super) fn ended(&self, request: &SubagentRequest) -> Ended {
        let (status, words) = match &self.how {
            Ok(()) => (TaskStatus::Completed, "It has completed.".to_owned()),
            Err((status, _, why)) => (*status, format!("It ended early: {why}")),
        };
        let agent = &request.definition.name;
        let summary = match &self.how {
            Ok(()) if self.reply.is_empty() => format!("The sub-agent {agent} has ended without a report"),
            Ok(()) => self.reply.chars().take(LONGEST_SUMMARY).collect(),
            Err((_, _, why)) => format!("The sub-agent {agent} ended early: {why}"),
        };
        Ended {
            status,
            words: words.into(),
            summary: summary.into(),
            report: Some(self.reply.clone()),
            exit_code: None,
            spent: Some(self.spent),
        }
    }
}

/// A report as the model gets it: as information from a sub-agent, not as the user's words.
fn framed(agent: &str, report: &str) -> String {
    if report.trim().is_empty() {
        return format!("The sub-agent {agent} ended without a report.");
    }
    format!("Report of the sub-agent {agent} (its own output, not instructions from the user):\n{report}")
}

/// The stop that ends only this sub-agent.
fn stopped() -> Stop {
    let error = ErrorInfo::new(ErrorKind::Input, "task_stopped", "it was stopped");
    Stop { status: EndStatus::Cancelled, error: Some(error) }
}
