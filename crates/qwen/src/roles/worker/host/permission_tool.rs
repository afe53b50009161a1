//! An MCP tool that answers permission questions (`--permission-prompt-tool mcp__SERVER__TOOL`).

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use qwen_events::{CallId, ErrorInfo, ErrorKind, Json, ToolCall};
use qwen_mcp::Servers;
use qwen_tools::{CallContext, DiscardedOutput, SessionResources, mcp_tools};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

/// The tool that answers permission questions.
pub struct PermissionTool {
    name: Arc<str>,
    /// Weak, because the servers hold the host, which holds this value.
    servers: Weak<Servers>,
    cwd: PathBuf,
}

impl PermissionTool {
    /// The tool `name` of one of the `servers`.
    pub fn new(name: Arc<str>, servers: &Arc<Servers>, cwd: PathBuf) -> Self {
        Self { name, servers: Arc::downgrade(servers), cwd }
    }

    /// Asks about a call. The tool returns its answer as JSON text.
    pub async fn ask(&self, call: &ToolCall, cancel: &CancellationToken) -> Result<Json, ErrorInfo> {
        let failed = |why: String| {
            let message = format!("the tool {} that answers permission questions {why}", self.name);
            ErrorInfo::new(ErrorKind::Input, "permission_tool_failed", message)
        };
        let servers = self.servers.upgrade();
        let tool = servers.and_then(|servers| mcp_tools(&servers).find(|tool| tool.spec().name == self.name));
        let tool = tool.ok_or_else(|| failed("is not there".to_owned()))?;
        let input = RawValue::from_string(call.arguments.as_str().to_owned());
        let input = input.map_err(|error| failed(format!("cannot be asked: {error}")))?;
        let arguments = serde_json::to_string(&PermissionRequest {
            tool_name: &call.name,
            input: &input,
            tool_use_id: call.id.as_str(),
        });
        let question = ToolCall::new(
            CallId::new(format!("{}-permission", call.id.as_str())),
            self.name.clone(),
            Json::trusted(arguments.map_err(|error| failed(format!("cannot be asked: {error}")))?),
        );
        let resources = SessionResources::with_own_environment(self.cwd.clone());
        let cx = CallContext::new(Arc::new(resources), cancel.clone(), Arc::new(DiscardedOutput));
        let outcome = tool.run(&question, &cx).await;
        if outcome.error_code.is_some() || outcome.cancelled {
            return Err(failed(format!("failed: {}", outcome.text)));
        }
        let answer: Box<RawValue> = serde_json::from_str(outcome.text.trim())
            .map_err(|_| failed("did not answer with JSON such as {\"behavior\":\"allow\"}".to_owned()))?;
        Ok(Json::trusted(answer.get().to_owned()))
    }
}

/// The arguments of the tool.
#[derive(serde::Serialize)]
struct PermissionRequest<'a> {
    tool_name: &'a str,
    input: &'a RawValue,
    tool_use_id: &'a str,
}
