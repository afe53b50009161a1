//! The in-flight tool calls of a turn: those that run, and host-tool calls that wait for the host's answer.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::{Activity, CallId, ErrorInfo, ErrorKind, ToolCall, ToolResult};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// The in-flight calls of a turn, shared by the code that runs, observes or answers them.
#[derive(Default)]
pub struct InFlightCalls {
    state: Mutex<CallTable>,
    changed: Notify,
}

#[derive(Default)]
struct CallTable {
    in_turn: bool,
    /// True while the host can answer host-tool calls.
    host_attached: bool,
    running: Vec<(CallId, Arc<str>)>,
    waiting: Vec<Waiting>,
    /// Calls that readers know of but that do not wait yet.
    expected: Vec<CallId>,
    early_answers: Vec<ToolResult>,
    answered: HashSet<CallId>,
}

struct Waiting {
    call: Arc<ToolCall>,
    answer: oneshot::Sender<ToolResult>,
}

impl InFlightCalls {
    /// Declares that the host can answer host-tool calls.
    pub fn attach_host(&self) {
        self.lock().host_attached = true;
    }

    /// True while the host can answer host-tool calls.
    pub(crate) fn is_host_attached(&self) -> bool {
        self.lock().host_attached
    }

    /// Delivers the host's answer to the call that waits for it. Fails for an unknown call and for a second
    /// answer.
    pub fn answer(&self, result: ToolResult) -> Result<(), ErrorInfo> {
        let mut state = self.lock();
        let id = result.call_id.clone();
        if let Some(at) = state.waiting.iter().position(|waiting| waiting.call.id == id) {
            let waiting = state.waiting.swap_remove(at);
            state.answered.insert(id);
            // The call may have been abandoned at this moment; then the answer is dropped.
            let _ = waiting.answer.send(result);
            return Ok(());
        }
        if let Some(at) = state.expected.iter().position(|expected| *expected == id) {
            state.expected.swap_remove(at);
            state.answered.insert(id);
            state.early_answers.push(result);
            return Ok(());
        }
        let message = if state.answered.contains(&id) {
            format!("the call '{id}' was answered before; this answer changes nothing")
        } else {
            format!("no call '{id}' waits for an answer of the host")
        };
        Err(ErrorInfo::new(ErrorKind::Input, "unknown_tool_call", message).with_param("tool_call_id"))
    }

    /// Announces that these host-tool calls are about to wait. A fast host may answer before they do.
    pub(crate) fn expect_host_answers(&self, calls: impl IntoIterator<Item = CallId>) {
        self.lock().expected.extend(calls);
    }

    pub(crate) fn begin_turn(&self) {
        self.lock().in_turn = true;
    }

    /// True if a turn is running.
    pub fn is_in_turn(&self) -> bool {
        self.lock().in_turn
    }

    /// Ends the turn: its calls can no longer be answered.
    pub(crate) fn end_turn(&self) {
        let mut state = self.lock();
        state.in_turn = false;
        state.expected.clear();
        state.early_answers.clear();
        state.answered.clear();
    }

    /// True if a call waits for the host's answer.
    pub fn awaits_host_answer(&self, id: &CallId) -> bool {
        let state = self.lock();
        state.waiting.iter().any(|waiting| waiting.call.id == *id) || state.expected.contains(id)
    }

    /// True if the turn makes no progress until the host answers.
    pub fn is_paused(&self) -> bool {
        self.lock().is_paused()
    }

    /// Resolves once the turn makes no progress until the host answers.
    pub async fn paused(&self) {
        loop {
            let changed = self.changed.notified();
            if self.is_paused() {
                return;
            }
            changed.await;
        }
    }

    /// The current activity of the running turn.
    pub fn activity(&self) -> Activity {
        let state = self.lock();
        let running = state.running.first().map(|(_, name)| Activity::Tool(name.clone()));
        let waiting = || state.waiting.first().map(|waiting| Activity::Waiting(waiting.call.name.clone()));
        running.or_else(waiting).unwrap_or(Activity::Thinking)
    }

    /// Marks a tool as running until the returned guard is dropped.
    pub(crate) fn track_running(&self, call: &ToolCall) -> RunningCall<'_> {
        self.lock().running.push((call.id.clone(), call.name.clone()));
        RunningCall { in_flight: self, id: call.id.clone() }
    }

    /// Waits for the host's answer to `call`; `None` if the turn must end first or no host is attached.
    pub(crate) async fn wait_for_answer(
        &self,
        call: &Arc<ToolCall>,
        cancel: &CancellationToken,
    ) -> Option<ToolResult> {
        let receiver = {
            let mut state = self.lock();
            if let Some(at) = state.early_answers.iter().position(|result| result.call_id == call.id) {
                return Some(state.early_answers.swap_remove(at));
            }
            if !state.host_attached {
                return None;
            }
            state.expected.retain(|expected| *expected != call.id);
            let (sender, receiver) = oneshot::channel();
            state.waiting.push(Waiting { call: call.clone(), answer: sender });
            receiver
        };
        self.changed.notify_waiters();
        let answer = tokio::select! {
            biased;
            answer = receiver => answer.ok(),
            () = cancel.cancelled() => None,
        };
        self.lock().waiting.retain(|waiting| waiting.call.id != call.id);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, CallTable> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallTable {
    fn is_paused(&self) -> bool {
        self.running.is_empty() && !self.waiting.is_empty()
    }
}

/// Marks a tool as running until dropped.
pub(crate) struct RunningCall<'a> {
    in_flight: &'a InFlightCalls,
    id: CallId,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.in_flight.lock().running.retain(|(id, _)| *id != self.id);
        self.in_flight.changed.notify_waiters();
    }
}
