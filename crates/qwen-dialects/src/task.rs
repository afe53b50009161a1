//! Background tasks, for the dialects that report them as a notice about the session. A sub-agent that its
//! call waits for is reported as that call.

use qwen_events::{TaskEvent, TaskStatus, TaskUpdate};

/// The name of the notice and its text; none if there is nothing to report.
pub(crate) fn notice(event: &TaskEvent) -> Option<(&'static str, String)> {
    let task = event.task.as_ref();
    let notice = |name, words| Some((name, words)).filter(|_| task.background);
    match &event.news {
        TaskUpdate::Started => notice(
            "TaskStarted",
            format!("The task {} continues in the background: {}", task.id, task.description),
        ),
        TaskUpdate::Progress { .. } => None,
        TaskUpdate::Ended(end) => {
            let status = if end.status == TaskStatus::Stopped { "killed" } else { end.status.name() };
            notice("TaskUpdated", format!("The task {} is {status}: {}", task.id, end.summary))
        }
    }
}
