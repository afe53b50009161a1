//! Ending commands in the background at the host's wish.

use std::sync::Arc;

use qwen_events::{Body, Json, SessionEvent};

use super::control::unknown;
use super::serve::{Flow, Worker};

impl Worker {
    /// Ends a command in the background. The answer does not wait for its end, and a notice tells when it is gone.
    pub(super) async fn stop_task(&self, request_id: Arc<str>, nested: bool, id: &str) -> Flow {
        let Some(task) = self.bench.upgrade().and_then(|bench| bench.tasks.get(id)) else {
            self.reply(request_id, nested, Err(unknown("task", id))).await;
            return Flow::On;
        };
        self.reply(request_id, nested, Ok(Json::empty_object())).await;
        let (emit, task_id) = (self.emit.clone(), Arc::from(id));
        tokio::spawn(async move {
            task.lock().await.end().await;
            emit.emit(Body::Session(Box::new(SessionEvent::TaskUpdated { task_id, status: "killed" }))).await;
        });
        Flow::On
    }
}
