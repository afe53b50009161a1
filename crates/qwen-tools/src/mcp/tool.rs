//! A tool of a server, for the registry.

use std::sync::Arc;

use qwen_events::{Confirmation, ToolCall, ToolSpec, TraceContext};
use serde_json::{Value, json};

use super::McpError;
use super::catalogue::{Definition, Fingerprint};
use super::error::{CANCELLED, PROTOCOL, SESSION_EXPIRED, TOOL_CHANGED};
use super::peer::Patience;
use super::result;
use super::server::Server;
use super::up::Up;
use crate::{Outcome, Tool, ToolCx, ToolFuture};

/// A tool of a server.
pub(super) struct McpTool {
    server: Arc<Server>,
    definition: Definition,
}

impl McpTool {
    pub(super) fn new(server: Arc<Server>, definition: Definition) -> Self {
        Self { server, definition }
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        self.definition.fingerprint
    }

    async fn call(&self, call: &ToolCall, cx: &ToolCx) -> Result<Outcome, McpError> {
        match self.attempt(call, cx).await {
            // The server has not looked at the call, so that it can be made again in a new session.
            Err(error) if error.code == SESSION_EXPIRED => self.attempt(call, cx).await,
            done => done,
        }
    }

    async fn attempt(&self, call: &ToolCall, cx: &ToolCx) -> Result<Outcome, McpError> {
        let name = &self.definition.name;
        let up = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(McpError::new(CANCELLED, "The call was cancelled.")),
            up = self.ready() => up?,
        };
        let patience = Patience {
            limit: Some(self.server.call_limit()),
            cancel: Some(&cx.cancel),
            output: Some(cx.output.as_ref()),
        };
        let params = |id: u64| {
            format!(
                r#"{{"name":{},"arguments":{},"_meta":{}}}"#,
                Value::from(&**name),
                call.arguments.as_str(),
                meta(id, cx.trace.as_ref())
            )
        };
        let answer = up.peer.request("tools/call", params, &patience).await?;
        result::outcome(&answer, &cx.bench).ok_or_else(|| {
            let words =
                format!("The MCP server `{}` gave back a result that cannot be read.", self.server.name);
            McpError::new(PROTOCOL, words)
        })
    }

    /// The connection, on which the tool is still what it was when it was offered.
    async fn ready(&self) -> Result<Arc<Up>, McpError> {
        let up = self.server.up().await?;
        up.refresh().await?;
        match up.catalogue().get(&self.definition.name) {
            Some(now) if now.fingerprint == self.definition.fingerprint => Ok(up),
            _ => Err(McpError::new(
                TOOL_CHANGED,
                format!(
                    "The call was not made: the MCP server `{}` has changed or withdrawn the tool `{}` since it was \
                     offered. If it still exists it is offered anew in the next turn.",
                    self.server.name, self.definition.name
                ),
            )),
        }
    }
}

/// What a server is told about a call: how to name its progress, and where in a trace its work belongs.
fn meta(id: u64, trace: Option<&TraceContext>) -> Value {
    let mut meta = json!({ "progressToken": id });
    if let Some(trace) = trace {
        meta["traceparent"] = (*trace.traceparent).into();
        if let Some(state) = &trace.tracestate {
            meta["tracestate"] = (**state).into();
        }
    }
    meta
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    fn confirmation(&self, _: &ToolCall, _: &ToolCx) -> Option<Confirmation> {
        Some(Confirmation::Mcp {
            server: self.server.name.clone(),
            tool: self.definition.name.clone(),
            display: self.definition.title.clone(),
        })
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(async move {
            self.call(call, cx).await.unwrap_or_else(|error| Outcome {
                cancelled: error.code == CANCELLED,
                // Its last words may hold what the server was given.
                ..Outcome::failure(error.code, cx.bench.redactor.redact(&error.message))
            })
        })
    }
}
