//! The end of a turn: time limit, notice and result.

use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, Finish, PromptId, SessionEvent, TurnEnd};

use crate::budget::Sums;
use crate::react::ReactState;
use crate::{Budget, Cancel, Stop};

/// Runs `work` and cancels it when its time is up. The work then still ends by itself, in the regular way.
pub(crate) async fn within<T>(budget: &Budget, cancel: &Cancel, work: impl Future<Output = T>) -> T {
    let Some(limit) = budget.limits().wall_time else { return work.await };
    if limit.is_zero() {
        // A timer is not exact enough for a limit of zero.
        cancel.stop(budget.out_of_time(limit));
    }
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => done,
        () = tokio::time::sleep(limit) => {
            cancel.stop(budget.out_of_time(limit));
            work.await
        }
    }
}

/// The session notice for a turn that ends with `status`.
pub(super) fn notice(status: EndStatus) -> Option<SessionEvent> {
    match status {
        EndStatus::Done => Some(SessionEvent::Finished),
        // Signals and open questions interrupt a turn; only a user cancels it.
        EndStatus::Cancelled => Some(SessionEvent::Cancelled),
        _ => None,
    }
}

/// The end of a turn that never started because of `stop`.
pub fn unstarted_turn_end(prompt_id: PromptId, stop: Stop) -> TurnEnd {
    turn_end(prompt_id, Some(stop), ReactState::default(), Sums::default())
}

/// The error of a turn whose last answer the model or its provider refused to give: it is not done.
fn refused_answer() -> ErrorInfo {
    let message = "the model refused to answer, or its provider's filter stopped the answer; change the prompt, or \
                   start a new session";
    ErrorInfo::new(ErrorKind::Model, "content_filter", message)
}

pub(super) fn turn_end(prompt_id: PromptId, stop: Option<Stop>, state: ReactState, sums: Sums) -> TurnEnd {
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let (status, error) = match stop {
        Some(stop) => (stop.status, stop.error),
        None if state.finish == Some(Finish::ContentFilter) => (EndStatus::Error, Some(refused_answer())),
        None => (EndStatus::Done, None),
    };
    TurnEnd {
        error,
        reply: state.reply,
        finish: match state.finish {
            Some(finish) if finish != Finish::ToolCalls => finish,
            _ => Finish::Stop,
        },
        usage: sums.usage,
        cost_usd: sums.by_model.iter().map(|m| m.cost_usd).sum(),
        usage_by_model: sums.by_model,
        usage_by_agent: sums.by_agent,
        duration_ms: millis(sums.duration),
        api_duration_ms: millis(sums.waiting_for_model),
        model_calls: sums.model_calls,
        tool_calls: sums.tool_calls,
        denials: state.denials,
        ..TurnEnd::new(prompt_id, status)
    }
}
