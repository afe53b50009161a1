//! Dispatches messages from a server: responses to the waiting requests, progress reports to their calls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use qwen_events::Channel;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::McpError;
use crate::error::{FLOOD, REFUSED};
use crate::tools::visible::visible;
use crate::transport::message::{self, Incoming};
use crate::transport::meter::Meter;

/// The longest message of a server, in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;
/// Longest progress report that is forwarded, in characters.
const MAX_PROGRESS_CHARS: usize = 4_000;
/// How many progress reports are queued for a slow reader before reading from the server stops.
const MAX_QUEUED_PROGRESS: usize = 16;
/// How many characters of an invalid line are stored.
const MAX_INVALID_CHARS: usize = 200;

/// A response: the result as JSON.
pub(crate) type Answer = Result<Box<RawValue>, McpError>;
/// A progress report or log line that a server sends during a call.
pub(crate) type CallProgress = (Channel, Box<str>);

/// The receiving side of one connection.
pub(crate) struct Inbox {
    server: Arc<str>,
    state: Mutex<State>,
    tools_changed: AtomicBool,
    /// True if the server uses the stateless revision.
    stateless: AtomicBool,
}

struct State {
    next_id: u64,
    waiting: BTreeMap<u64, Waiting>,
    closed: Option<McpError>,
    meter: Meter,
    invalid_line: Option<String>,
}

struct Waiting {
    answer: oneshot::Sender<Answer>,
    progress: Option<mpsc::Sender<CallProgress>>,
}

/// A pending request. Dropping it stops waiting for the response.
pub(crate) struct Ticket<'a> {
    inbox: &'a Inbox,
    pub id: u64,
    pub answer: oneshot::Receiver<Answer>,
    pub progress: mpsc::Receiver<CallProgress>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.inbox.state().waiting.remove(&self.id);
    }
}

impl Inbox {
    pub(crate) fn new(server: Arc<str>) -> Self {
        let state = State {
            next_id: 0,
            waiting: BTreeMap::new(),
            closed: None,
            meter: Meter::new(Instant::now()),
            invalid_line: None,
        };
        Self {
            server,
            state: Mutex::new(state),
            tools_changed: AtomicBool::new(false),
            stateless: AtomicBool::new(false),
        }
    }

    /// Registers a pending request, and a progress channel if `wants_progress` is set.
    pub(crate) fn expect(&self, wants_progress: bool) -> Result<Ticket<'_>, McpError> {
        let mut state = self.state();
        if let Some(error) = &state.closed {
            return Err(error.clone());
        }
        let id = state.next_id;
        state.next_id += 1;
        let (answer_sender, answer) = oneshot::channel();
        let (progress_sender, progress) = mpsc::channel(MAX_QUEUED_PROGRESS);
        state.waiting.insert(
            id,
            Waiting { answer: answer_sender, progress: wants_progress.then_some(progress_sender) },
        );
        Ok(Ticket { inbox: self, id, answer, progress })
    }

    /// Processes one message. Returns the replies to send. Waits while the reader of progress reports is
    /// slow. After an error nothing more is read from the server.
    pub(crate) async fn receive(&self, bytes: &[u8]) -> Result<Vec<String>, McpError> {
        let mut replies = Vec::new();
        let Some(messages) = message::read(bytes) else {
            self.note_invalid_line(bytes);
            self.count(bytes.len())?;
            return Ok(replies);
        };
        for one in messages {
            match one {
                Incoming::Answer { id, result } => {
                    let waiting = self.state().waiting.remove(&id);
                    let Some(waiting) = waiting else {
                        // Most likely a late response, which is harmless.
                        self.count(bytes.len())?;
                        continue;
                    };
                    let answer = result.map(ToOwned::to_owned).map_err(|words| {
                        McpError::new(
                            REFUSED,
                            format!("The MCP server `{}` answered with an error: {words}.", self.server),
                        )
                    });
                    // The requester may have just stopped waiting.
                    let _ = waiting.answer.send(answer);
                }
                Incoming::Request { id, method } => {
                    self.count(bytes.len())?;
                    // A stateless server sends no requests and reads no responses.
                    if !self.is_stateless() {
                        replies.push(message::answer(id, &method));
                    }
                }
                Incoming::Notification { method, params } => {
                    self.count(bytes.len())?;
                    self.notice(&method, params).await;
                }
            }
        }
        Ok(replies)
    }

    /// Fails all pending requests: no more messages will arrive.
    pub(crate) fn close(&self, error: &McpError) {
        let mut state = self.state();
        state.closed.get_or_insert_with(|| error.clone());
        for (_, waiting) in std::mem::take(&mut state.waiting) {
            let _ = waiting.answer.send(Err(error.clone()));
        }
    }

    /// The error that closed the connection, if it is closed.
    pub(crate) fn closed(&self) -> Option<McpError> {
        self.state().closed.clone()
    }

    /// True if the server reported that its tools changed.
    pub(crate) fn have_tools_changed(&self) -> bool {
        self.tools_changed.load(Ordering::Relaxed)
    }

    /// Like [`Inbox::have_tools_changed`], but clears the flag.
    pub(crate) fn take_tools_changed(&self) -> bool {
        self.tools_changed.swap(false, Ordering::Relaxed)
    }

    /// Marks the tool list as outdated.
    pub(crate) fn tools_have_changed(&self) {
        self.tools_changed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.stateless.load(Ordering::Relaxed)
    }

    pub(crate) fn set_stateless(&self) {
        self.stateless.store(true, Ordering::Relaxed);
    }

    /// The first invalid line, for the error about a server that never completed `initialize`.
    pub(crate) fn invalid_line(&self) -> Option<String> {
        self.state().invalid_line.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_invalid_line(&self, bytes: &[u8]) {
        let mut state = self.state();
        if state.invalid_line.is_none() {
            let start = &bytes[..bytes.len().min(MAX_INVALID_CHARS * 4)];
            let shown = visible(&String::from_utf8_lossy(start), MAX_INVALID_CHARS).text;
            state.invalid_line = Some(shown.trim().to_owned()).filter(|shown| !shown.is_empty());
        }
    }

    fn count(&self, bytes: usize) -> Result<(), McpError> {
        if self.state().meter.count(bytes, Instant::now()) {
            return Ok(());
        }
        Err(McpError::new(
            FLOOD,
            format!(
                "The MCP server `{}` sent a flood of messages that were not requested and was disconnected.",
                self.server
            ),
        ))
    }

    async fn notice(&self, method: &str, params: Option<&RawValue>) {
        match (method, params) {
            ("notifications/tools/list_changed", _) => self.tools_have_changed(),
            ("notifications/progress", Some(params)) => {
                if let Ok(progress) = serde_json::from_str::<Progress>(params.get()) {
                    let reader = progress.token.as_u64().and_then(|id| self.reader_of(Some(id)));
                    pass_on(reader, Channel::Stdout, &progress.text()).await;
                }
            }
            ("notifications/message", Some(params)) => {
                if let Ok(log) = serde_json::from_str::<Log>(params.get()) {
                    // A log line does not name its call; the oldest pending one is the most likely.
                    pass_on(self.reader_of(None), Channel::Stderr, &log.text()).await;
                }
            }
            _ => {}
        }
    }

    fn reader_of(&self, id: Option<u64>) -> Option<mpsc::Sender<CallProgress>> {
        let state = self.state();
        match id {
            Some(id) => state.waiting.get(&id).and_then(|waiting| waiting.progress.clone()),
            None => state.waiting.values().find_map(|waiting| waiting.progress.clone()),
        }
    }
}

async fn pass_on(reader: Option<mpsc::Sender<CallProgress>>, channel: Channel, text: &str) {
    if let Some(reader) = reader {
        let mut shown = visible(text, MAX_PROGRESS_CHARS).text;
        shown.push('\n');
        // The call may have ended in the meantime.
        let _ = reader.send((channel, shown.into())).await;
    }
}

#[derive(Deserialize)]
struct Progress {
    #[serde(rename = "progressToken")]
    token: Value,
    #[serde(rename = "progress", default)]
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl Progress {
    fn text(&self) -> String {
        let amount = match self.total {
            Some(total) => format!("{}/{total}", self.done),
            None => self.done.to_string(),
        };
        match &self.message {
            Some(message) => format!("[{amount}] {message}"),
            None => format!("[{amount}]"),
        }
    }
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    level: String,
    logger: Option<String>,
    #[serde(default)]
    data: Value,
}

impl Log {
    fn text(&self) -> String {
        let level = if self.level.is_empty() { "log" } else { &self.level };
        let data = self.data.as_str().map_or_else(|| self.data.to_string(), str::to_owned);
        match &self.logger {
            Some(logger) => format!("{level}: {logger}: {data}"),
            None => format!("{level}: {data}"),
        }
    }
}
