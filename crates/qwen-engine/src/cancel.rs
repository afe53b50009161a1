//! Ends a turn early and records the cause.

use std::sync::{Arc, OnceLock};

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, ToolCall};
use tokio_util::sync::CancellationToken;

/// The error code of a turn whose calls wait for answers.
const ANSWERS_NEEDED: &str = "answers_needed";

/// Why a turn ends before the agent is done.
#[derive(Debug, Clone, PartialEq)]
pub struct Stop {
    /// The status that the turn's end reports.
    pub status: EndStatus,
    /// What went wrong or which limit was reached.
    pub error: Option<ErrorInfo>,
}

impl Stop {
    /// The user or the host cancelled the turn.
    pub fn cancelled() -> Self {
        Self { status: EndStatus::Cancelled, error: None }
    }

    /// Calls wait for answers that a later process receives.
    pub fn deferred(calls: &[Arc<ToolCall>]) -> Self {
        let named: Vec<String> = calls.iter().map(|call| format!("{} ({})", call.id, call.name)).collect();
        let message = format!(
            "{} wait{} for an answer: continue with --resume and --answer CALL=allow or CALL=deny for each",
            named.join(", "),
            if calls.len() == 1 { "s" } else { "" }
        );
        let error = ErrorInfo::new(ErrorKind::Input, ANSWERS_NEEDED, message);
        Self { status: EndStatus::Interrupted, error: Some(error) }
    }

    /// A hook postponed the turn's call: the turn is over, and the next one decides about the call.
    pub(crate) fn postponed() -> Self {
        Self::done()
    }

    /// The turn has done what it was for, without a final answer.
    pub(crate) fn done() -> Self {
        Self { status: EndStatus::Done, error: None }
    }

    /// True if a later process may continue the run.
    pub(crate) fn is_deferred(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.code == ANSWERS_NEEDED)
    }

    /// The host no longer lets this process have effects.
    pub(crate) fn refused(error: ErrorInfo) -> Self {
        Self { status: EndStatus::Interrupted, error: Some(error) }
    }

    pub fn failed(error: ErrorInfo) -> Self {
        Self { status: EndStatus::Error, error: Some(error) }
    }
}

/// Ends a turn. The first cause given is the one reported.
#[derive(Clone, Default)]
pub struct Cancel {
    token: CancellationToken,
    cause: Arc<OnceLock<Stop>>,
    /// SearchEnding the parent ends this too.
    parent: Option<Arc<Cancel>>,
}

impl Cancel {
    /// A narrower scope that ends with this one, and can end before it.
    pub fn child(&self) -> Self {
        let token = self.token.child_token();
        Self { token, cause: Arc::default(), parent: Some(Arc::new(self.clone())) }
    }

    /// Ends the turn because of `stop`.
    pub fn stop(&self, stop: Stop) {
        // A second cause has no effect: the turn is already ending.
        let _ = self.cause.set(stop);
        self.token.cancel();
    }

    /// Resolves once the turn must end.
    pub async fn stopped(&self) -> Stop {
        self.token.cancelled().await;
        self.cause()
    }

    /// True if the turn must end.
    pub fn is_stopped(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The cause; only meaningful once stopped.
    pub fn cause(&self) -> Stop {
        match (self.cause.get(), &self.parent) {
            (Some(cause), _) => cause.clone(),
            (None, Some(parent)) => parent.cause(),
            (None, None) => Stop::cancelled(),
        }
    }

    /// The cancellation token, for tools.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}
