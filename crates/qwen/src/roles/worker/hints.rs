//! Completions for the text being typed. Searches on disk or on an MCP server run in a separate task.

use std::sync::Arc;
use std::time::Duration;

use qwen_engine::Emitter;
use qwen_engine::commands::{PathIndex, hint};
use qwen_events::{Body, ControlReply, HintRequest, HintTrigger, Json, PromptId, SessionId};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::session::ProcessContext;

/// How long a hint waits for the resources of an MCP server.
const RESOURCE_TIMEOUT: Duration = Duration::from_millis(300);

/// The hint requests in progress.
#[derive(Default)]
pub(super) struct HintSearches {
    searches: Vec<HintSearch>,
    index: PathIndex,
}

struct HintSearch {
    prompt_id: Option<PromptId>,
    task: AbortHandle,
}

impl HintSearches {
    /// Answers a request immediately, or when the search is complete.
    pub async fn answer(
        &mut self,
        request: HintRequest,
        session_id: SessionId,
        process: &ProcessContext,
        emit: &Emitter,
    ) {
        let cwd = &process.config.workspace.cwd;
        if request.trigger == HintTrigger::Slash {
            let result = hint(&request, &process.commands, &self.index, cwd, &[], &session_id);
            emit.emit(Body::HintResult(Box::new(result))).await;
            return;
        }
        let prompt_id = request.prompt_id.clone();
        let (commands, cwd, servers) = (process.commands.clone(), cwd.clone(), process.services.mcp.clone());
        let (emit, index) = (emit.clone(), self.index.clone());
        let search = tokio::spawn(async move {
            let resources = servers.resources(RESOURCE_TIMEOUT).await;
            let found = tokio::task::spawn_blocking(move || {
                hint(&request, &commands, &index, &cwd, &resources, &session_id)
            })
            .await;
            if let Ok(result) = found {
                emit.emit(Body::HintResult(Box::new(result))).await;
            }
        });
        self.searches.retain(|search| !search.task.is_finished());
        self.searches.push(HintSearch { prompt_id, task: search.abort_handle() });
    }

    /// Answers a control request for files whose paths match what was typed, when the search is complete.
    pub fn suggest_files(
        &mut self,
        typed: &str,
        request_id: Arc<str>,
        nested: bool,
        process: &ProcessContext,
        emit: &Emitter,
    ) {
        let request = HintRequest {
            session_id: None,
            prompt_id: None,
            trigger: HintTrigger::At,
            text: format!("@{typed}").into(),
            cursor: None,
            cwd: None,
        };
        let (commands, index, emit) = (process.commands.clone(), self.index.clone(), emit.clone());
        let (cwd, session_id) = (process.config.workspace.cwd.clone(), process.config.session.id.clone());
        tokio::spawn(async move {
            let shown = json!(cwd.to_string_lossy());
            let found = tokio::task::spawn_blocking(move || {
                hint(&request, &commands, &index, &cwd, &[], &session_id)
            })
            .await;
            let paths = found.map(|result| result.suggestions).unwrap_or_default();
            let paths: Vec<Value> = paths.iter().map(|found| json!({"path": &*found.value})).collect();
            let answer = json!({"suggestions": paths, "cwd": shown});
            let result = Ok(Json::trusted(answer.to_string()));
            emit.emit(Body::ControlReply(Box::new(ControlReply { request_id, nested, result }))).await;
        });
    }

    /// Cancels the request of that prompt, or all requests. Answered requests are not affected.
    pub fn cancel(&mut self, prompt_id: Option<&PromptId>) {
        self.searches.retain(|search| {
            let matches = prompt_id.is_none() || search.prompt_id.as_ref() == prompt_id;
            if matches {
                search.task.abort();
            }
            !matches
        });
    }
}
