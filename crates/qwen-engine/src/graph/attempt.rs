//! Retries, timeouts and error handling of nodes.

use std::future::Future;
use std::time::Duration;

use qwen_events::{Body, EndStatus, ErrorInfo, ErrorKind, SessionEvent, Timeout};

use super::build::NodeEntry;
use super::{Next, RunContext, State, Step};
use crate::{Cancel, Stop};

/// How often a node is retried after a transient error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts after the first.
    pub attempts: u32,
    /// The pause before the next attempt; it doubles each time.
    pub pause: Duration,
}

/// Runs a node until it succeeds, fails permanently, or has no attempts left. Limits and cancellation are not
/// errors, and an error that a retry cannot fix is final immediately.
pub(super) async fn attempt<S: State>(placed: &NodeEntry<S>, state: &S, cx: &RunContext) -> Step<S::Delta> {
    let retry = placed.retry.unwrap_or(Retry { attempts: 0, pause: Duration::ZERO });
    let mut attempt = 0;
    loop {
        let step = timed(placed, state, cx).await;
        let Some(error) = passing(&step.next).filter(|_| attempt < retry.attempts) else { return step };
        let pause = retry.pause.saturating_mul(1 << attempt.min(16));
        attempt += 1;
        let again = SessionEvent::Retry {
            attempt,
            max_retries: retry.attempts,
            delay_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            status: error.status,
            error: error.message.clone(),
        };
        cx.emit.emit(Body::Session(Box::new(again))).await;
        tokio::select! {
            biased;
            // A cancelled run reports the cancellation, not the earlier error.
            stop = cx.cancel.stopped() => return Step { delta: step.delta, next: Next::Stop(stop) },
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The error of a step, if it is transient.
fn passing(next: &Next) -> Option<&ErrorInfo> {
    match next {
        Next::Stop(Stop { status: EndStatus::Error, error: Some(error) }) if error.retryable => Some(error),
        _ => None,
    }
}

/// Runs a node once. On a timeout it gets a stop signal, and still ends by itself in the regular way.
async fn timed<S: State>(placed: &NodeEntry<S>, state: &S, cx: &RunContext) -> Step<S::Delta> {
    let Some(limit) = placed.timeout else { return placed.node.run(state, cx).await };
    let inner = RunContext { cancel: cx.cancel.child(), ..cx.clone() };
    let mut step =
        within(limit, &inner.cancel, timeout(placed.name, limit), placed.node.run(state, &inner)).await;
    // The timeout is the reported cause, regardless of how the node reacted to the stop.
    if inner.cancel.is_stopped() && !cx.cancel.is_stopped() && matches!(step.next, Next::Stop(_)) {
        step.next = Next::Stop(inner.cancel.cause());
    }
    step
}

/// Runs `work`, and stops it for `cause` when its time is up. The work still ends by itself.
pub async fn within<T>(limit: Duration, cancel: &Cancel, cause: Stop, work: impl Future<Output = T>) -> T {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => done,
        () = tokio::time::sleep(limit) => {
            cancel.stop(cause);
            work.await
        }
    }
}

fn timeout(name: &str, limit: Duration) -> Stop {
    let message = format!("the node '{name}' took longer than its {} s", limit.as_secs_f64());
    let mut error = ErrorInfo::new(ErrorKind::Timeout(Timeout::Node), "node_timeout", message);
    error.retryable = true;
    Stop::failed(error)
}
