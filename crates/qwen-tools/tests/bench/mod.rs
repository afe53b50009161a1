//! A workspace with real files, and calls made in it.
#![allow(dead_code, unused_imports, reason = "each test file uses its own part of it")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[path = "../../../qwen-sandbox/tests/presence/mod.rs"]
mod presence;

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

pub use presence::{alive, wait_until_gone};
use qwen_events::{CallId, Channel, Confirmation, Display, Json, ToolCall};
use qwen_tools::{CallContext, Outcome, OutputSink, Registry, SessionResources};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// A workspace of its own, with the built-in tools.
pub struct Bench {
    pub directory: tempfile::TempDir,
    pub cx: CallContext,
    pub sink: Arc<Sink>,
    registry: Registry,
}

/// Remembers what was streamed, and says when something new was. May hold whoever writes to it.
pub struct Sink {
    pieces: Mutex<Vec<(Channel, String)>>,
    pub news: Notify,
    open: watch::Sender<bool>,
}

impl Sink {
    pub fn hold(&self) {
        self.open.send_replace(false);
    }

    pub fn release(&self) {
        self.open.send_replace(true);
    }
}

impl OutputSink for Sink {
    fn output<'a>(
        &'a self,
        channel: Channel,
        text: Box<str>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.pieces.lock().unwrap().push((channel, text.into()));
        self.news.notify_one();
        let mut open = self.open.subscribe();
        Box::pin(async move {
            open.wait_for(|open| *open).await.unwrap();
        })
    }

    fn display<'a>(&'a self, _: Display) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut SessionResources)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sink =
            Arc::new(Sink { pieces: Mutex::default(), news: Notify::new(), open: watch::channel(true).0 });
        let cwd = directory.path().canonicalize().unwrap();
        let mut resources = SessionResources::with_own_environment(cwd);
        change(&mut resources);
        let cx = CallContext::new(Arc::new(resources), CancellationToken::new(), sink.clone());
        Self { directory, cx, sink, registry: Registry::builtin() }
    }

    pub fn path(&self) -> &Path {
        &self.cx.cwd
    }

    pub async fn call(&self, tool: &str, arguments: serde_json::Value) -> Outcome {
        self.registry.get(tool).unwrap().run(&call(tool, &arguments), &self.cx).await
    }

    pub fn confirmation(&self, tool: &str, arguments: &serde_json::Value) -> Option<Confirmation> {
        self.registry.get(tool).unwrap().confirmation(&call(tool, arguments), &self.cx)
    }

    pub async fn shell(&self, command: &str) -> Outcome {
        self.call("run_shell_command", serde_json::json!({ "command": command })).await
    }

    /// A task that cancels the call when it has written something.
    pub fn cancel_at_first_output(&self) -> tokio::task::JoinHandle<()> {
        let (cancel, sink) = (self.cx.cancel.clone(), self.sink.clone());
        tokio::spawn(async move {
            sink.news.notified().await;
            cancel.cancel();
        })
    }

    pub fn streamed(&self, channel: Channel) -> String {
        let pieces = self.sink.pieces.lock().unwrap();
        pieces.iter().filter(|(of, _)| *of == channel).map(|(_, text)| text.as_str()).collect()
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub fn fifo(&self, name: &str) {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, self.path().join(name), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
    }

    /// What is written into a FIFO, once it is.
    pub async fn read_when_written(&self, name: &str) -> String {
        let path = self.path().join(name);
        tokio::task::spawn_blocking(move || std::fs::read_to_string(path).unwrap()).await.unwrap()
    }

    pub fn number_in(&self, name: &str) -> i32 {
        self.read(name).trim().parse().unwrap()
    }
}

fn call(tool: &str, arguments: &serde_json::Value) -> ToolCall {
    ToolCall::new(CallId::new("call-1"), tool.into(), Json::trusted(arguments.to_string()))
}
