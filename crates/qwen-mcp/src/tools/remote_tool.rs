//! A tool of a server, as it was offered to the model.

use std::fmt::Write;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Channel, Json, ToolSpec, TraceContext};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::McpError;
use crate::connection::Connection;
use crate::error::{CANCELLED, HEADER_MISMATCH, PROTOCOL, SESSION_EXPIRED, TOOL_CHANGED};
use crate::peer::CallLimits;
use crate::request::Request;
use crate::server::Server;
use crate::tools::catalogue::{Definition, Fingerprint};
use crate::tools::mirrored;
use crate::tools::result::{self, CallResult, TextSink};

/// Receives what a server reports while a call runs. The call waits while the receiver is slow.
pub trait ProgressSink: Send + Sync {
    fn progress(&self, channel: Channel, text: Box<str>) -> BoxFuture<'_, ()>;
}

/// The context of a call.
#[derive(Clone, Copy)]
pub struct RemoteCallContext<'a> {
    /// Fires when the call must end.
    pub cancel: &'a CancellationToken,
    /// Receives the server's progress reports.
    pub progress: &'a dyn ProgressSink,
    /// The trace context that is sent to the server.
    pub trace: Option<&'a TraceContext>,
}

#[derive(Clone)]
pub struct RemoteTool {
    server: Arc<Server>,
    definition: Definition,
}

impl RemoteTool {
    pub(crate) fn new(server: Arc<Server>, definition: Definition) -> Self {
        Self { server, definition }
    }

    /// True if the configuration wants its schema in every request.
    pub fn is_always_loaded(&self) -> bool {
        self.server.config.always_load
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.definition.fingerprint
    }

    /// The specification for the model, with the full name `mcp__SERVER__TOOL`.
    pub fn spec(&self) -> &ToolSpec {
        &self.definition.spec
    }

    /// The name of the server that offers it.
    pub fn server(&self) -> &Arc<str> {
        &self.server.name
    }

    /// Its name on the server.
    pub fn name(&self) -> &Arc<str> {
        &self.definition.name
    }

    /// The name that users are shown.
    pub fn title(&self) -> &Arc<str> {
        &self.definition.title
    }

    /// Calls the tool. The text of the result goes to `out`, which is unchanged if an error is returned.
    pub async fn call(
        &self,
        arguments: &Json,
        cx: RemoteCallContext<'_>,
        out: &mut dyn TextSink,
    ) -> Result<CallResult, McpError> {
        let done = match self.attempt(arguments, cx, out).await {
            // The server did not process the call, so it can be repeated in a new session.
            Err(error) if error.code == SESSION_EXPIRED => self.attempt(arguments, cx, out).await,
            // Nor here. If the tool's schema asks for other headers now, it is a different tool.
            Err(error) if error.code == HEADER_MISMATCH => {
                if let Some(up) = self.server.connected() {
                    up.peer.inbox().tools_have_changed();
                }
                self.attempt(arguments, cx, out).await
            }
            done => done,
        };
        let mut notes = String::new();
        for tampered in self.server.take_tampering() {
            let _ = write!(notes, "\n[The MCP server `{}`: {tampered}]", self.server.name);
        }
        match done {
            Ok(result) => {
                if !notes.is_empty() {
                    out.append(&notes);
                }
                Ok(result)
            }
            Err(error) => Err(McpError { message: format!("{}{notes}", error.message), ..error }),
        }
    }

    async fn attempt(
        &self,
        arguments: &Json,
        cx: RemoteCallContext<'_>,
        out: &mut dyn TextSink,
    ) -> Result<CallResult, McpError> {
        let name = &self.definition.name;
        let up = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => return Err(McpError::new(CANCELLED, "The call was cancelled.")),
            up = self.ready() => up?,
        };
        let limits = CallLimits {
            limit: Some(self.server.call_limit()),
            cancel: Some(cx.cancel),
            output: Some(cx.progress),
        };
        let members = format!(r#""name":{},"arguments":{}"#, Value::from(&**name), arguments.as_str());
        let mut request = Request::new("tools/call", members).naming(name);
        request.headers = mirrored::headers(&self.definition.mirrored, arguments.as_str());
        request.trace = cx.trace;
        let watched = self.server.watch_call();
        let answer = up.peer.request(&request, &limits).await;
        if let Some(watched) = watched {
            self.server.add_tampered(watched.end());
        }
        let answer = answer?;
        result::call_result(&answer, out).ok_or_else(|| {
            let words =
                format!("The MCP server `{}` returned a result that cannot be read.", self.server.name);
            McpError::new(PROTOCOL, words)
        })
    }

    /// Returns the connection, after checking that the tool's definition is the one that was offered.
    async fn ready(&self) -> Result<Arc<Connection>, McpError> {
        let up = self.server.connection().await?;
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
