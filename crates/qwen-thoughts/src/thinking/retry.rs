//! Timeout and retries of a thought.

use std::time::Duration;

use qwen_events::{Body, ErrorInfo, ErrorKind, SessionEvent, Timeout};

use super::runner::{ThoughtFailure, ThoughtRequest, ThoughtRunner};
use qwen_engine::Stop;
use qwen_engine::graph::{RunContext, within};

/// The pause before the first retry; it doubles each time.
const PAUSE: Duration = Duration::from_millis(500);

impl ThoughtRunner {
    /// Asks the model, with retries after transient failures, and returns its final answer.
    pub async fn ask(&self, ask: ThoughtRequest<'_>, cx: &RunContext) -> Result<String, ThoughtFailure> {
        let mut attempt = 0;
        loop {
            let failed = match self.timed(&ask, cx).await {
                Err(ThoughtFailure::Thought(error)) if error.retryable && attempt < self.retries => error,
                answered => return answered,
            };
            let pause = PAUSE.saturating_mul(1 << attempt.min(16));
            attempt += 1;
            let again = SessionEvent::Retry {
                attempt: u32::try_from(attempt).unwrap_or(u32::MAX),
                max_retries: u32::try_from(self.retries).unwrap_or(u32::MAX),
                delay_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                status: failed.status,
                error: format!("the thought '{}': {}", ask.thought, failed.message).into(),
            };
            cx.emit.emit(Body::Session(Box::new(again))).await;
            tokio::select! {
                biased;
                stop = cx.cancel.stopped() => return Err(ThoughtFailure::Run(stop)),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Asks once. On a timeout the thought is stopped, and only this thought fails.
    async fn timed(&self, ask: &ThoughtRequest<'_>, cx: &RunContext) -> Result<String, ThoughtFailure> {
        let Some(limit) = self.timeout else { return self.attempt(ask, cx).await };
        let inner = RunContext { cancel: cx.cancel.child(), ..cx.clone() };
        let error = too_long(ask.thought, limit);
        let work = self.attempt(ask, &inner);
        match within(limit, &inner.cancel, Stop::failed(error.clone()), work).await {
            Err(ThoughtFailure::Run(_)) if inner.cancel.is_stopped() && !cx.cancel.is_stopped() => {
                Err(ThoughtFailure::Thought(error))
            }
            answered => answered,
        }
    }
}

fn too_long(thought: &str, limit: Duration) -> ErrorInfo {
    let message =
        format!("the thought '{thought}' took longer than its {} s (--thought-timeout)", limit.as_secs_f64());
    let mut error = ErrorInfo::new(ErrorKind::Timeout(Timeout::Node), "node_timeout", message);
    error.retryable = true;
    error
}
