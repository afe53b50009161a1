//! The order in which the calls of one message take effect: calls that only read may overlap, a call that can
//! change something runs alone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use qwen_events::{EARLIER_CALLS, ToolCall, ToolKind, ToolResult};
use tokio::sync::Notify;

use crate::TOOLS;

/// The maximum length of a command, path or URL in a note, in characters.
const MAX_SUBJECT: usize = 80;

/// The progress of the calls of one message.
pub struct CallOrder {
    state: Mutex<OrderState>,
    changed: Notify,
}

struct OrderState {
    phases: Vec<Phase>,
    /// Calls that did not take effect, with their position.
    missing: Vec<(usize, String)>,
    /// Calls that ended in an earlier process and did not take effect.
    missing_before: Vec<String>,
    /// True if a call waits for an answer that a later process receives: no later call may start.
    is_held: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Whether it only reads is not yet decided, or it can change something.
    Exclusive,
    /// It runs and only reads.
    Reading,
    Ended,
}

/// Why a call did not take effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Failed,
    Refused,
    /// An earlier process ended while it ran.
    Interrupted,
}

impl CallOrder {
    /// The order of `count` calls. `ended` are results of the same message from an earlier process.
    pub fn new(count: usize, ended: &[ToolResult]) -> Self {
        let failed_edit = |result: &&ToolResult| {
            let kind = TOOLS.find(&result.name).map(|declaration| declaration.kind);
            result.is_error && kind.is_some_and(is_file_change)
        };
        let missing_before =
            ended.iter().filter(failed_edit).map(|result| describe(&result.name, None, Missing::Failed));
        let state = OrderState {
            phases: vec![Phase::Exclusive; count],
            missing: Vec::new(),
            missing_before: missing_before.collect(),
            is_held: false,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    /// The place of the call with this index. The call has ended when its place is dropped.
    pub fn place(&self, index: usize) -> CallPlace<'_> {
        CallPlace { order: self, index }
    }

    fn lock(&self) -> MutexGuard<'_, OrderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one call in the order of its message.
pub struct CallPlace<'a> {
    order: &'a CallOrder,
    index: usize,
}

impl CallPlace<'_> {
    /// Waits until every earlier call has ended or is known to be read-only.
    pub(super) async fn wait_for_changes(&self) {
        self.wait_until(|phase| phase != Phase::Exclusive).await;
    }

    /// Waits until every earlier call has ended.
    pub(super) async fn wait_for_earlier(&self) {
        self.wait_until(|phase| phase == Phase::Ended).await;
    }

    async fn wait_until(&self, is_passed: impl Fn(Phase) -> bool) {
        loop {
            let changed = self.order.changed.notified();
            if self.order.lock().phases[..self.index].iter().all(|phase| is_passed(*phase)) {
                return;
            }
            changed.await;
        }
    }

    /// True if an earlier call still runs.
    pub(super) fn overlaps(&self) -> bool {
        self.order.lock().phases[..self.index].iter().any(|phase| *phase != Phase::Ended)
    }

    /// Lets later calls that only read run concurrently with this one.
    pub(super) fn start_reading(&self) {
        self.set_phase(Phase::Reading);
    }

    /// Keeps later calls from starting in this process.
    pub(super) fn hold_later_calls(&self) {
        self.order.lock().is_held = true;
    }

    /// True if an earlier call waits for an answer that a later process receives.
    pub(super) fn is_held(&self) -> bool {
        self.order.lock().is_held
    }

    /// Records that the call did not take effect; `subject` is its command, path or URL.
    pub(super) fn note_missing(&self, call: &ToolCall, subject: Option<&str>, why: Missing) {
        let description = describe(&call.name, subject, why);
        self.order.lock().missing.push((self.index, description));
    }

    /// The line about earlier calls of the message that did not take effect.
    pub(super) fn missing_note(&self) -> Option<String> {
        let state = self.order.lock();
        let earlier = state.missing.iter().filter(|(index, _)| *index < self.index).map(|(_, text)| text);
        let mut named: Vec<(&str, usize)> = Vec::new();
        for text in state.missing_before.iter().chain(earlier) {
            match named.iter_mut().find(|(known, _)| known == text) {
                Some((_, times)) => *times += 1,
                None => named.push((text, 1)),
            }
        }
        let named: Vec<String> = named.into_iter().map(|(text, times)| repeated(text, times)).collect();
        (!named.is_empty()).then(|| format!("{EARLIER_CALLS}{}.", named.join("; ")))
    }

    fn set_phase(&self, phase: Phase) {
        self.order.lock().phases[self.index] = phase;
        self.order.changed.notify_waiters();
    }
}

impl Drop for CallPlace<'_> {
    fn drop(&mut self) {
        self.set_phase(Phase::Ended);
    }
}

/// True if a failed call of this kind has changed nothing.
pub(super) fn is_file_change(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Edit | ToolKind::Memory => true,
        ToolKind::Read
        | ToolKind::Execute
        | ToolKind::Fetch
        | ToolKind::Mcp
        | ToolKind::Session
        | ToolKind::Ask
        | ToolKind::ExitPlan
        | ToolKind::Undeclared => false,
    }
}

/// True if a call of this kind that was not run may have been meant to change something outside the session.
pub(super) fn would_change(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Edit | ToolKind::Memory | ToolKind::Execute | ToolKind::Mcp | ToolKind::Undeclared => true,
        ToolKind::Read | ToolKind::Fetch | ToolKind::Session | ToolKind::Ask | ToolKind::ExitPlan => false,
    }
}

/// Adds to a clause how many calls of the message it describes.
fn repeated(clause: &str, times: usize) -> String {
    match clause.strip_suffix(')') {
        Some(clause) if times > 1 => format!("{clause}, {times} times)"),
        _ => clause.to_owned(),
    }
}

/// One clause on one line: the call and why it did not take effect.
fn describe(name: &str, subject: Option<&str>, why: Missing) -> String {
    let subject = subject.map(|subject| {
        let line: String = subject.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut shown: String = line.chars().take(MAX_SUBJECT).collect();
        if shown.len() < line.len() {
            shown.push('…');
        }
        format!(" `{shown}`")
    });
    let why = match why {
        Missing::Failed => "did not happen (it failed)",
        Missing::Refused => "did not happen (it was refused)",
        Missing::Interrupted => "was interrupted and may have happened only in part",
    };
    format!("{name}{} {why}", subject.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::task::Poll;

    use super::*;
    use qwen_events::{CallId, Json};

    /// True if `future` is not ready yet.
    async fn is_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx).is_pending())).await
    }

    fn call(name: &str) -> ToolCall {
        ToolCall::new(CallId::new("c"), name.into(), Json::empty_object())
    }

    #[tokio::test]
    async fn readers_overlap_and_a_change_waits_for_all_of_them() {
        let order = CallOrder::new(3, &[]);
        let [first, second, third] = [0, 1, 2].map(|index| order.place(index));
        first.wait_for_changes().await;
        first.start_reading();
        second.wait_for_changes().await;
        assert!(second.overlaps());
        {
            let mut waiting = std::pin::pin!(second.wait_for_earlier());
            assert!(is_pending(&mut waiting).await);
            drop(first);
            waiting.await;
        }
        let mut waiting = std::pin::pin!(third.wait_for_changes());
        assert!(is_pending(&mut waiting).await, "the second can change something");
        drop(second);
        waiting.await;
    }

    #[test]
    fn a_note_is_one_line_and_names_only_earlier_calls() {
        let order = CallOrder::new(3, &[]);
        let [first, second, third] = [0, 1, 2].map(|index| order.place(index));
        second.note_missing(&call("run_shell_command"), Some("cat <<E\nx\nE"), Missing::Refused);
        assert_eq!(first.missing_note(), None);
        assert_eq!(second.missing_note(), None);
        third.note_missing(&call("edit"), None, Missing::Failed);
        let note = third.missing_note().unwrap_or_default();
        let refused =
            "Note: earlier in this message, run_shell_command `cat <<E x E` did not happen (it was refused).";
        assert_eq!(note, refused);
    }

    #[test]
    fn calls_that_look_the_same_are_named_once() {
        let order = CallOrder::new(4, &[]);
        for index in 0..3 {
            order.place(index).note_missing(&call("edit"), Some("a"), Missing::Failed);
        }
        let note = order.place(3).missing_note().unwrap_or_default();
        assert_eq!(note, "Note: earlier in this message, edit `a` did not happen (it failed, 3 times).");
    }
}
