//! A server inside the host: each message goes over the control channel and returns its response.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{ErrorInfo, Json};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::McpError;
use crate::error::{DIED, PROTOCOL};
use crate::transport::inbox::Inbox;

/// The response of a server inside the host, or the reason why there is none.
pub type HostAnswer<'a> = BoxFuture<'a, Result<Json, ErrorInfo>>;

/// The connection to the servers inside the host.
pub trait HostLink: Send + Sync {
    /// Sends a JSON-RPC message to the server with the name `to` and returns its response: the JSON-RPC
    /// message itself, or an object with it as `mcp_response`. After `cancel` fires the response is no longer
    /// awaited.
    fn message<'a>(&'a self, to: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a>;
}

/// The connection to one server inside the host.
pub(crate) struct HostWire {
    server: Arc<str>,
    link: Arc<dyn HostLink>,
}

impl HostWire {
    pub(crate) fn new(server: Arc<str>, link: Arc<dyn HostLink>) -> Self {
        Self { server, link }
    }

    /// Sends a message and processes its response. If this future is dropped earlier, the host is notified.
    pub(crate) async fn exchange(&self, message: String, inbox: &Arc<Inbox>) -> Result<(), McpError> {
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        // A separate task, because the request to the host is withdrawn only if the future runs to its end.
        let task = tokio::spawn(deliver(self.server.clone(), self.link.clone(), message, cancel));
        let answer = task.await.unwrap_or_else(|error| {
            Err(McpError::new(DIED, format!("The MCP server `{}` was not reached: {error}.", self.server)))
        });
        guard.disarm();
        let json = answer?;
        // A response cannot be a request from the server, so there is nothing to reply to.
        inbox.receive(json_rpc(json.as_str()).as_bytes()).await?;
        Ok(())
    }

    /// Sends a message and ignores its response.
    pub(crate) fn send_soon(&self, message: String) {
        tokio::spawn(deliver(self.server.clone(), self.link.clone(), message, CancellationToken::new()));
    }
}

async fn deliver(
    server: Arc<str>,
    link: Arc<dyn HostLink>,
    message: String,
    cancel: CancellationToken,
) -> Result<Json, McpError> {
    link.message(&server, Json::trusted(message), &cancel).await.map_err(|error| {
        let code = if error.code == "control_timeout" { crate::error::TIMEOUT } else { PROTOCOL };
        McpError::new(code, format!("The MCP server `{server}` in the host did not answer: {error}."))
    })
}

/// Extracts the JSON-RPC message from the host's response.
fn json_rpc(answer: &str) -> &str {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        mcp_response: &'a RawValue,
    }
    serde_json::from_str::<Wrapped<'_>>(answer).map_or(answer, |wrapped| wrapped.mcp_response.get())
}
