//! A server that lives in the host: its messages travel over the control channel, each with its answer.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{ErrorInfo, Json};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::McpError;
use super::error::{DIED, PROTOCOL};
use super::inbox::Inbox;

/// The way to the servers that live in the host.
pub trait HostLink: Send + Sync {
    /// Sends a JSON-RPC message to a server and brings back its answer: the JSON-RPC message itself, or the object that
    /// holds it as `mcp_response`. When `cancel` fires nobody waits for it any more.
    fn message<'a>(
        &'a self,
        server: &'a str,
        message: Json,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Json, ErrorInfo>>;
}

/// The way to one of them.
pub(super) struct HostWire {
    server: Arc<str>,
    link: Arc<dyn HostLink>,
}

impl HostWire {
    pub(super) fn new(server: Arc<str>, link: Arc<dyn HostLink>) -> Self {
        Self { server, link }
    }

    /// Sends a message and takes in its answer. Where this is dropped before, the host is told.
    pub(super) async fn exchange(&self, message: String, inbox: &Arc<Inbox>) -> Result<(), McpError> {
        let cancel = CancellationToken::new();
        let guard = cancel.clone().drop_guard();
        // A task of its own, because the host takes its question back only if it is let to finish.
        let task = tokio::spawn(deliver(self.server.clone(), self.link.clone(), message, cancel));
        let answer = task.await.unwrap_or_else(|error| {
            Err(McpError::new(DIED, format!("The MCP server `{}` was not reached: {error}.", self.server)))
        });
        guard.disarm();
        let json = answer?;
        // What a server asks of us cannot be an answer, so there is nothing to reply to.
        inbox.receive(json_rpc(json.as_str()).as_bytes()).await?;
        Ok(())
    }

    /// Sends a message whose answer does not matter.
    pub(super) fn send_soon(&self, message: String) {
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
        let code = if error.code == "control_timeout" { super::error::TIMEOUT } else { PROTOCOL };
        McpError::new(code, format!("The MCP server `{server}` in the host did not answer: {error}."))
    })
}

/// The JSON-RPC message in what the host answered.
fn json_rpc(answer: &str) -> &str {
    #[derive(Deserialize)]
    struct Wrapped<'a> {
        #[serde(borrow)]
        mcp_response: &'a RawValue,
    }
    serde_json::from_str::<Wrapped<'_>>(answer).map_or(answer, |wrapped| wrapped.mcp_response.get())
}
