//! The stdio transport: a child program with one message per line on standard input and output. One task owns
//! it; when the task ends, the program and all its descendants end.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use memchr::memchr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::McpError;
use crate::error::{DIED, PROTOCOL, START_FAILED};
use crate::tools::visible::visible;
use crate::transport::inbox::{Inbox, MAX_MESSAGE};
use qwen_sandbox::ProcessSandbox;
use qwen_sandbox::process::{Exit, ProcessSpec, Running, Stdin, spawn};

/// The default capacity of a pipe, in bytes.
const BUFFER: usize = 64 * 1024;
/// An empty buffer with more capacity than this is freed.
const MAX_RETAINED_CAPACITY: usize = 1 << 20;
/// How many messages are queued for a server that does not read.
const WAITING: usize = 64;
/// Time between closing a server's input, which asks it to end, and killing it.
const GRACE: Duration = Duration::from_millis(300);
/// How many bytes of standard error are stored.
const REMEMBERED: usize = 2_000;

pub(crate) struct Stdio {
    server: Arc<str>,
    outgoing: mpsc::Sender<String>,
    ending: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Stdio {
    /// Starts the program. The sandbox is held while it runs.
    pub(crate) async fn start(
        mut spec: ProcessSpec,
        sandbox: Option<ProcessSandbox>,
        server: Arc<str>,
        inbox: Arc<Inbox>,
    ) -> Result<Self, McpError> {
        spec.stdin = Stdin::Pipe;
        // Looked for before the start, because a server that ends at once may already be gone.
        let line = std::iter::once(&spec.program).chain(&spec.args).filter_map(|word| word.to_str());
        let hidden = sandbox.as_ref().and_then(|sandbox| sandbox.explain_hidden(line));
        let running = spawn(spec).await.map_err(|error| {
            let why = hidden.as_ref().map_or_else(|| error.to_string(), Clone::clone);
            McpError::new(START_FAILED, format!("The MCP server `{server}` could not be started: {why}."))
        })?;
        let (outgoing, messages) = mpsc::channel(WAITING);
        let ending = CancellationToken::new();
        let (replies, stop) = (outgoing.clone(), ending.clone());
        let task =
            ServerTask { server: server.clone(), inbox, replies, ending: stop, hidden, _inside: sandbox };
        let task = tokio::spawn(task.run(running, messages));
        Ok(Self { server, outgoing, ending, task: Mutex::new(Some(task)) })
    }

    /// Sends a message to the server.
    pub(crate) async fn send(&self, message: String) -> Result<(), McpError> {
        self.outgoing
            .send(message)
            .await
            .map_err(|_| McpError::new(DIED, format!("The MCP server `{}` has ended.", self.server)))
    }

    /// Sends a message if the queue has room now.
    pub(crate) fn try_send(&self, message: String) {
        // A server that has stopped reading cannot receive messages.
        let _ = self.outgoing.try_send(message);
    }

    /// Ends the server and waits until all its processes have ended.
    pub(crate) async fn close(&self) {
        self.ending.cancel();
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            // The task ends by itself; its result carries no information.
            let _ = task.await;
        }
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Drops the running program, which kills it.
            task.abort();
        }
    }
}

/// The state of a server's task.
struct ServerTask {
    server: Arc<str>,
    inbox: Arc<Inbox>,
    replies: mpsc::Sender<String>,
    ending: CancellationToken,
    /// A file of its command line that the sandbox hides.
    hidden: Option<String>,
    _inside: Option<ProcessSandbox>,
}

impl ServerTask {
    async fn run(self, mut running: Running, messages: mpsc::Receiver<String>) {
        let mut stderr = StderrTail { pipe: running.stderr.take(), last: VecDeque::new() };
        let stopped = {
            let stdout = running.stdout.take();
            let mut write_messages = pin!(write_messages(running.stdin.take(), messages));
            tokio::select! {
                biased;
                () = self.ending.cancelled() => None,
                stopped = self.listen(stdout) => Some(stopped),
                () = &mut write_messages => None,
                () = stderr.follow() => None,
            }
        };
        // Its input is closed by now, which asks the server to end.
        let exit = tokio::time::timeout(GRACE, running.wait()).await.ok();
        if exit.is_none() {
            running.terminate();
            running.wait().await;
        }
        let error = match stopped {
            None => McpError::new(DIED, format!("The MCP server `{}` was switched off.", self.server)),
            Some(Err(error)) => error,
            Some(Ok(())) => {
                stderr.read_rest().await;
                let hidden = self
                    .hidden
                    .iter()
                    .map(|hidden| format!(" Probable cause: {hidden}."))
                    .collect::<String>();
                McpError::new(
                    DIED,
                    format!("The MCP server `{}` {}.{hidden}{}", self.server, ended(exit), stderr.describe()),
                )
            }
        };
        self.inbox.close(&error);
    }

    /// Processes the server's messages until its output ends.
    async fn listen(&self, stdout: Option<pipe::Receiver>) -> Result<(), McpError> {
        let Some(mut stdout) = stdout else { return Ok(()) };
        let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER);
        let mut searched = 0;
        loop {
            buffer.reserve(BUFFER);
            match stdout.read_buf(&mut buffer).await {
                Ok(n) if n > 0 => {}
                Ok(_) | Err(_) => return Ok(()),
            }
            let mut start = 0;
            while let Some(at) = memchr(b'\n', &buffer[searched..]) {
                let end = searched + at;
                let line = &buffer[start..end];
                if !line.iter().all(u8::is_ascii_whitespace) {
                    for reply in
                        self.inbox.receive(line).await.inspect_err(|error| self.inbox.close(error))?
                    {
                        // If the server sends requests without reading, its replies are dropped.
                        let _ = self.replies.try_send(reply);
                    }
                }
                start = end + 1;
                searched = start;
            }
            buffer.drain(..start);
            searched = buffer.len();
            if buffer.len() > MAX_MESSAGE {
                let error = McpError::new(
                    PROTOCOL,
                    format!(
                        "The MCP server `{}` sent a message of more than {} MiB and was disconnected.",
                        self.server,
                        MAX_MESSAGE >> 20
                    ),
                );
                self.inbox.close(&error);
                return Err(error);
            }
            if buffer.is_empty() && buffer.capacity() > MAX_RETAINED_CAPACITY {
                buffer = Vec::with_capacity(BUFFER);
            }
        }
    }
}

/// Writes messages for as long as the server reads them. Never returns, because a server may stop reading and
/// still send messages.
async fn write_messages(stdin: Option<pipe::Sender>, mut messages: mpsc::Receiver<String>) {
    if let Some(mut stdin) = stdin {
        while let Some(mut message) = messages.recv().await {
            message.push('\n');
            if stdin.write_all(message.as_bytes()).await.is_err() {
                break;
            }
        }
    }
    std::future::pending::<()>().await;
}

/// The server's standard error. Its last part explains why the server ended.
struct StderrTail {
    pipe: Option<pipe::Receiver>,
    last: VecDeque<u8>,
}

impl StderrTail {
    /// Reads without end. Safe to drop at any time.
    async fn follow(&mut self) {
        self.read().await;
        std::future::pending::<()>().await;
    }

    /// Reads the remaining output of a server that has ended.
    async fn read_rest(&mut self) {
        // A process outside our control may hold the descriptor.
        let _ = tokio::time::timeout(GRACE, self.read()).await;
    }

    async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 4096];
        while let Ok(n) = pipe.read(&mut buffer).await {
            if n == 0 {
                break;
            }
            self.last.extend(&buffer[..n]);
            let over = self.last.len().saturating_sub(REMEMBERED);
            self.last.drain(..over);
        }
        self.pipe = None;
    }

    fn describe(&mut self) -> String {
        let text = String::from_utf8_lossy(self.last.make_contiguous()).trim().to_owned();
        if text.is_empty() {
            String::new()
        } else {
            format!(" It last wrote: {}", visible(&text, REMEMBERED).text)
        }
    }
}

fn ended(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Code(code)) => format!("ended with exit code {code}"),
        Some(Exit::Signal(signal)) => format!("was killed by signal {signal}"),
        Some(Exit::Lost) | None => "closed its output".to_owned(),
    }
}
