//! Suggestions for what is being typed: those that need a look at the disk are found beside everything else.

use std::time::Duration;

use qwen_engine::commands::hint;
use qwen_events::{Body, HintRequest, HintTrigger, PromptId};
use tokio::task::AbortHandle;

use super::serve::Worker;

/// How long a hint waits for the resources of an MCP server.
const PATIENCE: Duration = Duration::from_millis(300);

/// Suggestions that are being looked for.
pub(super) struct Search {
    prompt_id: Option<PromptId>,
    task: AbortHandle,
}

impl Worker {
    /// Answers a request for suggestions: at once, or as soon as the files were looked at.
    pub(super) async fn hint(&mut self, request: HintRequest) {
        let session_id = self.addressed(request.session_id.as_deref());
        if request.trigger == HintTrigger::Slash {
            let result = hint(&request, &self.parts.commands, &self.config.cwd, &[], &session_id);
            self.emit.emit(Body::HintResult(Box::new(result))).await;
            return;
        }
        let prompt_id = request.prompt_id.clone();
        let (commands, cwd, emit) = (self.parts.commands.clone(), self.config.cwd.clone(), self.emit.clone());
        let servers = self.parts.mcp.clone();
        let search = tokio::spawn(async move {
            let resources = servers.resources(PATIENCE).await;
            let found =
                tokio::task::spawn_blocking(move || hint(&request, &commands, &cwd, &resources, &session_id))
                    .await;
            if let Ok(result) = found {
                emit.emit(Body::HintResult(Box::new(result))).await;
            }
        });
        self.searches.retain(|search| !search.task.is_finished());
        self.searches.push(Search { prompt_id, task: search.abort_handle() });
    }

    /// Takes back a request for suggestions, or all of them. One that was answered already is none any more.
    pub(super) fn hint_cancel(&mut self, prompt_id: Option<&PromptId>) {
        self.searches.retain(|search| {
            let meant = prompt_id.is_none() || search.prompt_id.as_ref() == prompt_id;
            if meant {
                search.task.abort();
            }
            !meant
        });
    }
}
