//! Ending commands and sub-agents in the background at the host's wish.

use std::sync::Arc;

use qwen_events::Json;

use super::control::unknown;
use super::serve::{Flow, Worker};

impl Worker {
    /// Ends a task. The answer does not wait for its end, which is told when it is there.
    pub(super) async fn stop_task(&self, request_id: Arc<str>, nested: bool, id: &str) -> Flow {
        let Some(task) = self.bench.upgrade().and_then(|bench| bench.tasks.get(id)) else {
            self.reply(request_id, nested, Err(unknown("task", id))).await;
            return Flow::On;
        };
        self.reply(request_id, nested, Ok(Json::empty_object())).await;
        task.stop();
        Flow::On
    }

    /// Ends the sub-agents that work between two turns, where there are any.
    pub(super) fn stop_agents(&self) -> bool {
        self.bench.upgrade().is_some_and(|bench| bench.tasks.stop_agents())
    }
}
