//! One connection to a server, over any transport.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot::error::TryRecvError;
use tokio_util::sync::CancellationToken;

use super::McpError;
use super::error::{CANCELLED, DIED, FLOOD, PROTOCOL, SESSION_EXPIRED, TIMEOUT};
use super::transport::host::HostWire;
use super::transport::http::Http;
use super::transport::inbox::{Answer, Inbox, News};
use super::transport::message;
use super::transport::stdio::Stdio;
use crate::ProgressSink;

/// The transport of a connection.
pub(super) enum Wire {
    Stdio(Stdio),
    Http(Http),
    Host(HostWire),
}

/// One connection.
pub(super) struct Peer {
    server: Arc<str>,
    wire: Wire,
    inbox: Arc<Inbox>,
}

/// How long to wait for a response, and where progress goes.
pub(super) struct CallLimits<'a> {
    /// `None` if the caller bounds the wait.
    pub limit: Option<Duration>,
    pub cancel: Option<&'a CancellationToken>,
    /// Receives progress reports about the request.
    pub output: Option<&'a dyn ProgressSink>,
}

impl CallLimits<'_> {
    /// Waits up to `limit`, without cancellation or progress.
    pub(super) fn of(limit: Duration) -> Self {
        Self { limit: Some(limit), cancel: None, output: None }
    }

    /// Waits without a limit.
    pub(super) fn endless() -> Self {
        Self { limit: None, cancel: None, output: None }
    }

    /// Completes when the time limit is reached, and returns the limit.
    async fn exhausted(&self) -> Duration {
        match self.limit {
            Some(limit) => {
                tokio::time::sleep(limit).await;
                limit
            }
            None => std::future::pending().await,
        }
    }

    async fn cancelled(&self) {
        match self.cancel {
            Some(cancel) => cancel.cancelled().await,
            None => std::future::pending().await,
        }
    }

    async fn pass_on(&self, (channel, text): News) {
        if let Some(output) = self.output {
            output.progress(channel, text).await;
        }
    }
}

impl Peer {
    pub(super) fn new(server: Arc<str>, wire: Wire, inbox: Arc<Inbox>) -> Self {
        Self { server, wire, inbox }
    }

    /// The error that closed the connection, if it is closed.
    pub(super) fn closed(&self) -> Option<McpError> {
        self.inbox.closed()
    }

    pub(super) fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Sends a request and waits for its response. `params` is built from the request's id, which is also its
    /// progress token.
    pub(super) async fn request(
        &self,
        method: &str,
        params: impl FnOnce(u64) -> String,
        limits: &CallLimits<'_>,
    ) -> Result<Box<RawValue>, McpError> {
        let mut ticket = self.inbox.expect(limits.output.is_some())?;
        let id = ticket.id;
        let mut exchange = pin!(self.exchange(message::request(id, method, &params(id))));
        let mut sent = false;
        let mut stop = pin!(async {
            tokio::select! {
                biased;
                () = limits.cancelled() => McpError::new(CANCELLED, "The call was cancelled."),
                limit = limits.exhausted() => McpError::new(TIMEOUT, format!(
                    "The MCP server `{}` did not answer within {} ms (the tool time-out, its `timeout`).",
                    self.server,
                    limit.as_millis(),
                )),
            }
        });
        let answer = loop {
            let news = tokio::select! {
                biased;
                error = &mut stop => {
                    self.take_back(id, method, &error);
                    return Err(error);
                }
                Some(news) = ticket.news.recv() => news,
                answer = &mut ticket.answer => break answer.unwrap_or_else(|_| Err(self.gone())),
                done = &mut exchange, if !sent => {
                    done.inspect_err(|error| self.note(error))?;
                    sent = true;
                    if !matches!(self.wire, Wire::Stdio(_)) {
                        break self.answer_by_now(ticket.answer.try_recv());
                    }
                    continue;
                }
            };
            // A slow reader slows the server down, but must not prevent ending the call.
            tokio::select! {
                biased;
                error = &mut stop => {
                    self.take_back(id, method, &error);
                    return Err(error);
                }
                () = limits.pass_on(news) => {}
            }
        };
        while let Ok(news) = ticket.news.try_recv() {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                () = limits.pass_on(news) => {}
            }
        }
        answer
    }

    /// Sends a notification, ordered before anything that is sent later.
    pub(super) async fn notify(&self, method: &str) -> Result<(), McpError> {
        let message = message::notification(method, None);
        match &self.wire {
            Wire::Stdio(stdio) => stdio.send(message).await,
            Wire::Http(http) => http.send(message).await,
            Wire::Host(host) => {
                // The channel preserves the order, and the host's response to a notification carries no
                // information.
                host.send_soon(message);
                Ok(())
            }
        }
    }

    /// Called once both sides have negotiated a version.
    pub(super) fn agreed(&self, version: &str) {
        if let Wire::Http(http) = &self.wire {
            http.agreed(version, self.inbox.clone());
        }
    }

    /// Closes the connection and waits until the server has ended.
    pub(super) async fn close(&self) {
        self.inbox.close(&McpError::new(DIED, format!("The MCP server `{}` was switched off.", self.server)));
        match &self.wire {
            Wire::Stdio(stdio) => stdio.close().await,
            Wire::Http(http) => http.close().await,
            Wire::Host(_) => {}
        }
    }

    async fn exchange(&self, message: String) -> Result<(), McpError> {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.send(message).await,
            Wire::Http(http) => http.exchange(message, &self.inbox).await,
            Wire::Host(host) => host.exchange(message, &self.inbox).await,
        }
    }

    fn send_soon(&self, message: String) {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.try_send(message),
            Wire::Http(http) => http.send_soon(message),
            Wire::Host(host) => host.send_soon(message),
        }
    }

    /// Notifies the server that a request was cancelled. `initialize` cannot be cancelled.
    fn take_back(&self, id: u64, method: &str, error: &McpError) {
        if method != "initialize" {
            let reason = if error.code == CANCELLED { "cancelled" } else { "timed out" };
            self.send_soon(message::cancelled(id, reason));
        }
    }

    /// Returns the response of a completed exchange.
    fn answer_by_now(&self, received: Result<Answer, TryRecvError>) -> Answer {
        received.unwrap_or_else(|_| {
            Err(McpError::new(
                PROTOCOL,
                format!("The MCP server `{}` ended its response without an answer.", self.server),
            ))
        })
    }

    /// Closes the connection if this error makes it unusable.
    fn note(&self, error: &McpError) {
        if matches!(error.code, SESSION_EXPIRED | FLOOD) {
            self.inbox.close(error);
        }
    }

    fn gone(&self) -> McpError {
        self.closed()
            .unwrap_or_else(|| McpError::new(DIED, format!("The MCP server `{}` has ended.", self.server)))
    }
}
