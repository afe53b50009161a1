//! Progress reports about the steps of a sub-agent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use qwen_events::{TaskTotals, TaskUpdate};
use qwen_tools::BackgroundTask;

use crate::Budget;
use crate::budget::Sums;

/// The minimum time between two reports: they are meant for people.
const PAUSE: Duration = Duration::from_millis(500);

/// Reports the steps of one sub-agent.
pub(crate) struct Steps {
    task: Arc<BackgroundTask>,
    last_report: Mutex<Option<Instant>>,
}

impl Steps {
    pub(super) fn for_task(task: Arc<BackgroundTask>) -> Self {
        Self { task, last_report: Mutex::new(None) }
    }

    /// Reports a step of the agent; `tool` is the last tool that it uses.
    pub(crate) async fn report(&self, budget: &Budget, tool: Option<&Arc<str>>) {
        let now = Instant::now();
        {
            let mut last_report = self.last_report.lock().unwrap_or_else(PoisonError::into_inner);
            if last_report.is_some_and(|before| now.duration_since(before) < PAUSE) {
                return;
            }
            *last_report = Some(now);
        }
        let spent = totals(&budget.sums());
        self.task.notify(TaskUpdate::Progress { spent, last_tool: tool.cloned() }).await;
    }
}

/// The totals of a sub-agent, in the form its task reports them.
pub(super) fn totals(sums: &Sums) -> TaskTotals {
    TaskTotals {
        tokens: sums.usage.total(),
        tool_calls: sums.tool_calls,
        duration_ms: u64::try_from(sums.duration.as_millis()).unwrap_or(u64::MAX),
    }
}
