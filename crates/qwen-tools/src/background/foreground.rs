//! Calls that wait for their command, and requests to move it to the background.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::CallId;
use tokio_util::sync::CancellationToken;

type Waiting = Arc<Mutex<Vec<(CallId, CancellationToken)>>>;

/// The calls of a session that wait for a command.
#[derive(Default)]
pub(super) struct ForegroundCalls {
    waiting: Waiting,
}

/// A call that waits for its command. Dropping it ends the wait.
pub(crate) struct ForegroundCall {
    id: CallId,
    moved: CancellationToken,
    waiting: Waiting,
}

impl ForegroundCalls {
    pub(super) fn begin(&self, call: &CallId) -> ForegroundCall {
        let moved = CancellationToken::new();
        lock(&self.waiting).push((call.clone(), moved.clone()));
        ForegroundCall { id: call.clone(), moved, waiting: self.waiting.clone() }
    }

    /// Requests that one call, or all, move their command to the background. Returns how many were asked.
    pub(super) fn move_away(&self, call: Option<&CallId>) -> usize {
        let waiting = lock(&self.waiting);
        let named = waiting.iter().filter(|(id, _)| call.is_none_or(|call| call == id));
        named.map(|(_, moved)| moved.cancel()).count()
    }
}

impl ForegroundCall {
    /// Waits for the request to move the command to the background.
    pub(crate) async fn moved(&self) {
        self.moved.cancelled().await;
    }
}

impl Drop for ForegroundCall {
    fn drop(&mut self) {
        lock(&self.waiting).retain(|(id, _)| *id != self.id);
    }
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, Vec<(CallId, CancellationToken)>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
