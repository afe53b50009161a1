//! One connection to a server, over any transport.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::oneshot::error::TryRecvError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::McpError;
use super::error::{CANCELLED, DIED, FLOOD, PROTOCOL, REFUSED, SESSION_EXPIRED, TIMEOUT};
use super::request::{Request, ResultKind, STATELESS, result_kind};
use super::tools::visible::visible;
use super::transport::host::HostWire;
use super::transport::http::Http;
use super::transport::inbox::{Answer, CallProgress, Inbox};
use super::transport::message;
use super::transport::stdio::Stdio;
use crate::ProgressSink;

/// How often a request is repeated because the server asks for it.
const REPETITIONS: usize = 8;
/// Longest list of methods that is shown, in characters.
const LONGEST_LIST: usize = 200;

/// The transport of a connection.
pub(super) enum Wire {
    Stdio(Stdio),
    Http(Http),
    Host(HostWire),
}

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
    pub(super) fn with_limit(limit: Duration) -> Self {
        Self { limit: Some(limit), cancel: None, output: None }
    }

    /// Waits without a limit.
    pub(super) fn endless() -> Self {
        Self { limit: None, cancel: None, output: None }
    }

    /// Completes when the time limit of a request that was started then is reached, and returns the limit.
    async fn exhausted(&self, started: Instant) -> Duration {
        match self.limit {
            Some(limit) => {
                tokio::time::sleep_until(started + limit).await;
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

    async fn pass_on(&self, (channel, text): CallProgress) {
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

    /// Sends a request and waits for its complete result.
    pub(super) async fn request(
        &self,
        request: &Request<'_>,
        limits: &CallLimits<'_>,
    ) -> Result<Box<RawValue>, McpError> {
        let started = Instant::now();
        let mut state = None;
        for _ in 0..REPETITIONS {
            let answer = self.attempt(request, state.as_deref(), limits, started).await?;
            if !self.inbox.is_stateless() {
                return Ok(answer);
            }
            match result_kind(&answer) {
                ResultKind::Complete => return Ok(answer),
                ResultKind::Repeat(given) => state = given,
                ResultKind::Questions(methods) => {
                    let methods = visible(&methods.join(", "), LONGEST_LIST).text;
                    return Err(McpError::new(
                        REFUSED,
                        format!(
                            "The MCP server `{}` asks for {methods} first. Servers may neither question the user nor use \
                             the model.",
                            self.server
                        ),
                    ));
                }
                ResultKind::Unknown(kind) => {
                    let kind = visible(&kind, LONGEST_LIST).text;
                    let words =
                        format!("The MCP server `{}` gave back a result of the kind `{kind}`.", self.server);
                    return Err(McpError::new(PROTOCOL, words));
                }
            }
        }
        let words =
            format!("The MCP server `{}` asked {REPETITIONS} times to repeat the request.", self.server);
        Err(McpError::new(PROTOCOL, words))
    }

    /// Sends a request once. Its id is also its progress token.
    async fn attempt(
        &self,
        request: &Request<'_>,
        state: Option<&RawValue>,
        limits: &CallLimits<'_>,
        started: Instant,
    ) -> Result<Box<RawValue>, McpError> {
        let mut ticket = self.inbox.expect(limits.output.is_some())?;
        let (id, method) = (ticket.id, request.method);
        let mut exchange =
            pin!(self.exchange(self.message(id, request, state, limits.output.is_some()), request));
        let mut sent = false;
        let mut stop = pin!(async {
            tokio::select! {
                biased;
                () = limits.cancelled() => McpError::new(CANCELLED, "The call was cancelled."),
                limit = limits.exhausted(started) => McpError::new(TIMEOUT, format!(
                    "The MCP server `{}` did not answer within {} ms (the tool time-out, its `timeout`).",
                    self.server,
                    limit.as_millis(),
                )),
            }
        });
        let answer = loop {
            let progress = tokio::select! {
                biased;
                error = &mut stop => {
                    self.withdraw_request(id, method, &error);
                    return Err(error);
                }
                Some(progress) = ticket.progress.recv() => progress,
                answer = &mut ticket.answer => break answer.unwrap_or_else(|_| Err(self.ended_error())),
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
                    self.withdraw_request(id, method, &error);
                    return Err(error);
                }
                () = limits.pass_on(progress) => {}
            }
        };
        while let Ok(progress) = ticket.progress.try_recv() {
            tokio::select! {
                biased;
                _ = &mut stop => break,
                () = limits.pass_on(progress) => {}
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

    /// Called once both sides have negotiated a version with a handshake.
    pub(super) fn agreed(&self, version: &str) {
        if let Wire::Http(http) = &self.wire {
            http.set_version(version);
            http.listen(self.inbox.clone());
        }
    }

    /// From now on every request carries the protocol version.
    pub(super) fn set_stateless(&self) {
        self.inbox.set_stateless();
        if let Wire::Http(http) = &self.wire {
            http.set_version(STATELESS);
        }
    }

    /// True if arguments can be repeated in headers.
    pub(super) fn has_headers(&self) -> bool {
        matches!(self.wire, Wire::Http(_)) && self.inbox.is_stateless()
    }

    /// Asks a stateless server to report changes of its tools.
    pub(super) async fn subscribe(&self) -> Result<(), McpError> {
        let request =
            Request::new("subscriptions/listen", r#""notifications":{"toolsListChanged":true}"#.to_owned());
        // The response arrives when the subscription ends and is ignored.
        let id = self.inbox.expect(false)?.id;
        let message = self.message(id, &request, None, false);
        match &self.wire {
            Wire::Stdio(stdio) => stdio.send(message).await?,
            Wire::Http(http) => http.subscribe(message, request.stateless_headers(), self.inbox.clone()),
            // The host would have to hold the request open.
            Wire::Host(_) => {}
        }
        Ok(())
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

    fn message(
        &self,
        id: u64,
        request: &Request<'_>,
        state: Option<&RawValue>,
        has_progress: bool,
    ) -> String {
        let meta = request.meta(has_progress.then_some(id), self.inbox.is_stateless());
        message::request(id, request.method, &request.params(meta, state))
    }

    async fn exchange(&self, message: String, request: &Request<'_>) -> Result<(), McpError> {
        match &self.wire {
            Wire::Stdio(stdio) => stdio.send(message).await,
            Wire::Http(http) => {
                let headers = self.inbox.is_stateless().then(|| request.stateless_headers());
                http.exchange(message, headers.unwrap_or_default(), &self.inbox).await
            }
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

    /// Notifies the server that a request was cancelled. `initialize` cannot be cancelled, and to a stateless
    /// server over HTTP the closed connection has the same meaning.
    fn withdraw_request(&self, id: u64, method: &str, error: &McpError) {
        if method != "initialize" && !self.has_headers() {
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

    fn ended_error(&self) -> McpError {
        self.closed()
            .unwrap_or_else(|| McpError::new(DIED, format!("The MCP server `{}` has ended.", self.server)))
    }
}
