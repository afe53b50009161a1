//! The life of a task in the background, for the dialects that tell it as a notice about the session. A sub-agent that its
//! call waits for is that call, which they tell already.

use qwen_events::{TaskEvent, TaskStatus, TaskUpdate};

/// The name of the notice and its words; none where there is nothing to tell.
pub(crate) fn notice(event: &TaskEvent) -> Option<(&'static str, String)> {
    let task = event.task.as_ref();
    let told = |name, words| Some((name, words)).filter(|_| task.background);
    match &event.news {
        TaskUpdate::Started => told(
            "TaskStarted",
            format!("The task {} goes on in the background: {}", task.id, task.description),
        ),
        TaskUpdate::Progress { .. } => None,
        TaskUpdate::Ended(end) => {
            let status = if end.status == TaskStatus::Stopped { "killed" } else { end.status.name() };
            told("TaskUpdated", format!("The task {} is {status}: {}", task.id, end.summary))
        }
    }
}
