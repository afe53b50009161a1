//! MCP on lines: one message a line, in both directions.

use std::rc::Rc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc;

use super::AgentServer;
use super::message::{McpMessage, parse};
use super::peer::Peer;

/// The lines of a client, without their line breaks, and the lines for it, with them.
pub struct McpLines {
    pub incoming: mpsc::Receiver<Vec<u8>>,
    pub outgoing: mpsc::Sender<Vec<u8>>,
}

/// How long requests may take to end after the client has gone.
const END_LIMIT: Duration = Duration::from_secs(1);

/// How many messages may wait for the client.
const QUEUED: usize = 16;

/// Serves until the client's lines end; what it started is cancelled then.
pub async fn serve_lines(server: Rc<AgentServer>, lines: McpLines) {
    let McpLines { mut incoming, outgoing } = lines;
    let peer = Rc::new(Peer::default());
    let (out, mut messages) = mpsc::channel::<Value>(QUEUED);
    let writing = tokio::task::spawn_local(async move {
        while let Some(message) = messages.recv().await {
            if outgoing.send(format!("{message}\n").into_bytes()).await.is_err() {
                return;
            }
        }
    });
    while let Some(line) = incoming.recv().await {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match parse(&line) {
            Ok(McpMessage::Request(request)) => {
                let (server, peer, out) = (server.clone(), peer.clone(), out.clone());
                tokio::task::spawn_local(async move { server.serve(&peer, request, &out).await });
            }
            Ok(message) => AgentServer::note(&peer, message),
            Err(response) => {
                // A client that is gone ends the lines.
                let _ = out.send(response).await;
            }
        }
    }
    peer.cancel_all();
    drop(out);
    // The responses to requests that had ended are written; a request that is still starting is not waited for.
    let _ = tokio::time::timeout(END_LIMIT, writing).await;
}
