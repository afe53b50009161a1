//! The streamable HTTP transport. A message is a POST; its response is the body, as one JSON value or as an
//! event stream. Unsolicited messages arrive on a separate event stream, if the server offers one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use qwen_http::{Client, ClientConfig, HttpRequest, Response, ResponseBody, sse, without_secrets};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::McpError;
use crate::error::{DIED, HEADER_MISMATCH, PROTOCOL, REFUSED, SESSION_EXPIRED, START_FAILED};
use crate::tools::visible::visible;
use crate::transport::inbox::{Inbox, MAX_MESSAGE};
use crate::transport::message;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const EITHER: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// The error code of a server that misses headers which repeat arguments.
const MISSING_HEADERS: i64 = -32020;
/// How much of an error page is read (bytes) and shown (characters).
const ERROR_PAGE: usize = 8_000;
const ERROR_SHOWN: usize = 300;
/// How often in a row the stream of unsolicited messages is reopened when it ends early.
const REOPENINGS: u32 = 3;
/// A stream that lives this long did not end early.
const LASTING: Duration = Duration::from_secs(10);
/// Delay before reopening.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// Time limit for the last request to a server.
const SHUTDOWN_LIMIT: Duration = Duration::from_millis(500);

/// The connection to one server.
pub(crate) struct Http {
    endpoint: Arc<Endpoint>,
    listening: Mutex<Option<AbortHandle>>,
}

struct Endpoint {
    server: Arc<str>,
    client: Client,
    url: Arc<str>,
    headers: HeaderMap,
    /// Headers with the session id and the negotiated protocol version.
    agreed: Mutex<HeaderMap>,
}

impl Http {
    /// Prepares a connection to `url` without sending anything.
    pub(crate) fn new(
        server: Arc<str>,
        url: &str,
        headers: &[(String, String)],
        config: ClientConfig,
    ) -> Result<Self, McpError> {
        let mut given = HeaderMap::new();
        for (name, value) in headers {
            let wrong = || {
                let words = format!(
                    "The MCP server `{server}` cannot be reached: `{}` is not an HTTP header.",
                    name.escape_debug()
                );
                McpError::new(START_FAILED, words)
            };
            let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            given.append(name, value);
        }
        let endpoint = Endpoint {
            server,
            client: Client::new(config),
            url: url.into(),
            headers: given,
            agreed: Mutex::default(),
        };
        Ok(Self { endpoint: Arc::new(endpoint), listening: Mutex::new(None) })
    }

    /// Sends a message and processes the whole response.
    pub(crate) async fn exchange(
        &self,
        message: String,
        headers: HeaderMap,
        inbox: &Inbox,
    ) -> Result<(), McpError> {
        let response = self.endpoint.post(message, headers).await?;
        self.endpoint.process_response(response, inbox).await
    }

    /// Sends a message that has no response.
    pub(crate) async fn send(&self, message: String) -> Result<(), McpError> {
        self.endpoint.post(message, HeaderMap::new()).await.map(drop)
    }

    /// Sends a message that has no response, without waiting for completion.
    pub(crate) fn send_soon(&self, message: String) {
        let endpoint = self.endpoint.clone();
        tokio::spawn(async move {
            // No caller waits for the result, so errors are ignored.
            let _ = tokio::time::timeout(SHUTDOWN_LIMIT, endpoint.post(message, HeaderMap::new())).await;
        });
    }

    /// All further requests name this version.
    pub(crate) fn set_version(&self, version: &str) {
        if let Ok(version) = HeaderValue::try_from(version) {
            self.endpoint.agreed().insert(VERSION, version);
        }
    }

    /// Starts listening for unsolicited messages.
    pub(crate) fn listen(&self, inbox: Arc<Inbox>) {
        let mut request = HttpRequest::get(self.endpoint.url.clone());
        request.headers.insert(ACCEPT, EVENTS);
        self.follow_stream(request, inbox);
    }

    /// Sends a request whose response is a stream of notifications.
    pub(crate) fn subscribe(&self, message: String, headers: HeaderMap, inbox: Arc<Inbox>) {
        let mut request = HttpRequest::post(self.endpoint.url.clone(), message);
        request.headers = headers;
        request.headers.insert(ACCEPT, EITHER);
        request.headers.insert(CONTENT_TYPE, JSON);
        self.follow_stream(request, inbox);
    }

    fn follow_stream(&self, request: HttpRequest, inbox: Arc<Inbox>) {
        let endpoint = self.endpoint.clone();
        let task = tokio::spawn(async move { endpoint.listen(&request, &inbox).await });
        *self.listening.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.abort_handle());
    }

    /// Ends the session on the server.
    pub(crate) async fn close(&self) {
        self.stop_listening();
        if self.endpoint.agreed().contains_key(SESSION) {
            let mut request = HttpRequest::get(self.endpoint.url.clone());
            request.method = Method::DELETE;
            request.headers = self.endpoint.headers();
            // The server may ignore this.
            let _ = tokio::time::timeout(SHUTDOWN_LIMIT, self.endpoint.client.send(request)).await;
        }
    }

    fn stop_listening(&self) {
        if let Some(task) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.stop_listening();
    }
}

impl Endpoint {
    async fn post(&self, message: String, headers: HeaderMap) -> Result<Response, McpError> {
        let mut request = HttpRequest::post(self.url.clone(), message);
        request.headers = self.headers();
        request.headers.extend(headers);
        request.headers.insert(ACCEPT, EITHER);
        request.headers.insert(CONTENT_TYPE, JSON);
        let response = self.client.send(request).await.map_err(|error| self.failed(&error))?;
        if let Some(session) = response.headers.get(SESSION) {
            self.agreed().insert(SESSION, session.clone());
        }
        if response.status.is_success() { Ok(response) } else { Err(self.refused(response).await) }
    }

    async fn process_response(&self, mut response: Response, inbox: &Inbox) -> Result<(), McpError> {
        match kind(&response.headers) {
            _ if response.status == StatusCode::ACCEPTED || response.status == StatusCode::NO_CONTENT => {
                Ok(())
            }
            Kind::Json => {
                let bytes = self.read(&mut response.body, MAX_MESSAGE).await?;
                let replies = inbox.receive(&bytes).await?;
                self.reply(replies).await
            }
            Kind::Events => self.follow(response.body, inbox).await,
            Kind::Other(found) => Err(McpError::new(
                PROTOCOL,
                format!(
                    "The MCP server `{}` answered with the content type `{found}`, which is not MCP. Is {} the right address?",
                    self.server,
                    without_secrets(&self.url)
                ),
            )),
        }
    }

    /// Processes an event stream until it ends.
    async fn follow(&self, mut body: ResponseBody, inbox: &Inbox) -> Result<(), McpError> {
        let mut events = sse::SseReader::with_limit(MAX_MESSAGE);
        loop {
            let ended = match body.data().await {
                Some(Ok(bytes)) => {
                    events.push(&bytes);
                    false
                }
                Some(Err(error)) => return Err(self.failed(&error)),
                None => {
                    events.end();
                    true
                }
            };
            loop {
                let message = match events.next_event() {
                    Ok(Some(event)) if event.data.is_empty() => continue,
                    Ok(Some(event)) => event.data.as_bytes(),
                    Ok(None) => break,
                    Err(error) => {
                        return Err(McpError::new(
                            PROTOCOL,
                            format!(
                                "The MCP server `{}` sent a message that cannot be read: {error}.",
                                self.server
                            ),
                        ));
                    }
                };
                let replies = inbox.receive(message).await?;
                self.reply(replies).await?;
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Sends a request for a stream of unsolicited messages and follows it, until the server does not offer
    /// the stream any more.
    async fn listen(&self, asking: &HttpRequest, inbox: &Inbox) {
        let mut attempts = 0;
        while attempts <= REOPENINGS {
            let opened = Instant::now();
            let mut request = asking.clone();
            request.headers.extend(self.headers());
            match self.client.send(request).await {
                Ok(response)
                    if response.status.is_success() && matches!(kind(&response.headers), Kind::Events) =>
                {
                    if let Err(error) = self.follow(response.body, inbox).await
                        && error.code != DIED
                    {
                        inbox.close(&error);
                        return;
                    }
                }
                Ok(_) => return,
                Err(_) => {}
            }
            attempts = if opened.elapsed() > LASTING { 0 } else { attempts + 1 };
            tokio::time::sleep(REOPEN_AFTER).await;
        }
    }

    async fn reply(&self, replies: Vec<String>) -> Result<(), McpError> {
        for reply in replies {
            // Dropping the response closes its connection; its body is not needed.
            drop(self.post(reply, HeaderMap::new()).await?);
        }
        Ok(())
    }

    async fn read(&self, body: &mut ResponseBody, limit: usize) -> Result<Vec<u8>, McpError> {
        let mut all = Vec::new();
        while let Some(piece) = body.data().await {
            all.extend_from_slice(&piece.map_err(|error| self.failed(&error))?);
            if all.len() > limit {
                return Err(McpError::new(
                    PROTOCOL,
                    format!(
                        "The MCP server `{}` sent a message of more than {} MiB.",
                        self.server,
                        limit >> 20
                    ),
                ));
            }
        }
        Ok(all)
    }

    /// Converts an unsuccessful status into an error.
    async fn refused(&self, mut response: Response) -> McpError {
        let status = response.status;
        if status == StatusCode::NOT_FOUND && self.agreed().remove(SESSION).is_some() {
            return McpError::new(
                SESSION_EXPIRED,
                format!("The MCP server `{}` has ended the session.", self.server),
            );
        }
        let mut page = Vec::new();
        while page.len() < ERROR_PAGE
            && let Some(Ok(piece)) = response.body.data().await
        {
            page.extend_from_slice(&piece);
        }
        page.truncate(ERROR_PAGE);
        if let Some((code, words)) = message::read_error(&page) {
            let kind = if code == Some(MISSING_HEADERS) { HEADER_MISMATCH } else { REFUSED };
            let words = format!("The MCP server `{}` answered {status} with an error: {words}.", self.server);
            return McpError::new(kind, words);
        }
        let words = visible(String::from_utf8_lossy(&page).trim(), ERROR_SHOWN).text;
        let hint = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => " Put its credentials into `headers`.",
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
                " Is that its streamable HTTP address? The old transport `sse` is not supported."
            }
            status if status.is_redirection() => {
                " Redirects are not followed; give the address that it leads to."
            }
            _ => "",
        };
        let detail = if words.is_empty() { String::new() } else { format!(": {words}") };
        McpError::new(
            REFUSED,
            format!(
                "The MCP server `{}` at {} answered {status}{detail}.{hint}",
                self.server,
                without_secrets(&self.url)
            ),
        )
    }

    fn failed(&self, error: &qwen_http::Error) -> McpError {
        let remedy = match error {
            qwen_http::Error::AddressRefused { .. } => {
                " A workspace's servers are reached at private addresses only if your own setting \
                 tools.webFetch.allowPrivateHosts lists them."
            }
            _ => "",
        };
        McpError::new(DIED, format!("The MCP server `{}` cannot be reached: {error}.{remedy}", self.server))
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.extend(self.agreed().clone());
        headers
    }

    fn agreed(&self) -> std::sync::MutexGuard<'_, HeaderMap> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Kind {
    Json,
    Events,
    Other(String),
}

fn kind(headers: &HeaderMap) -> Kind {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/json" => Kind::Json,
        "text/event-stream" => Kind::Events,
        other => Kind::Other(other.to_owned()),
    }
}
