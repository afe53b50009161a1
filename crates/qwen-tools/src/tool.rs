//! What a tool is.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use qwen_events::{Channel, Confirmation, Display, Media, ToolCall, ToolDeclaration, ToolSpec, TraceContext};
use tokio_util::sync::CancellationToken;

use crate::Workbench;
use qwen_permissions::GitHardening;

/// Something an agent can do.
pub trait Tool: Send + Sync {
    /// How the model is told about it.
    fn spec(&self) -> &ToolSpec;

    /// What it declares about itself. A tool that declares nothing never runs without approval.
    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        None
    }

    /// What a person is shown when asked about a call, where that is more than its name and arguments.
    fn confirmation(&self, _call: &ToolCall, _cx: &ToolCx) -> Option<Confirmation> {
        None
    }

    /// Runs one call. The future ends promptly after `cx.cancel` fires, with nothing of the call left running.
    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a>;
}

/// A running call.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Where a tool says what it writes while it runs. Waits while the reader is slow.
pub trait OutputSink: Send + Sync {
    /// Says a piece of output.
    fn output<'a>(
        &'a self,
        channel: Channel,
        text: Box<str>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

    /// Says what people are shown now.
    fn display<'a>(&'a self, display: Display) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// Where output goes that nobody waits for: what came of the call says it all.
pub struct Unheard;

impl OutputSink for Unheard {
    fn output<'a>(&'a self, _: Channel, _: Box<str>) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }

    fn display<'a>(&'a self, _: Display) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }
}

/// What a running call may use.
pub struct ToolCx {
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Directories that file tools may touch besides the working directory.
    pub extra_roots: Arc<[PathBuf]>,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
    /// Where output goes.
    pub output: Arc<dyn OutputSink>,
    /// What the calls of the session share.
    pub bench: Arc<Workbench>,
    /// Run commands where they can write nothing: the call was let through because it only reads.
    pub read_only: bool,
    /// Run git with the repository's executable settings switched off: the call was let through because it only looks.
    pub harden_git: Option<GitHardening>,
    /// Where in a trace the call is, where traces are made: commands are told, so that what they trace belongs to it.
    pub trace: Option<TraceContext>,
}

/// How a call went.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The text for the model.
    pub text: String,
    /// Images for the model.
    pub media: Vec<Media>,
    /// What people are shown, where it is more than the text.
    pub display: Option<Display>,
    /// A stable word for what went wrong; none means success.
    pub error_code: Option<&'static str>,
    /// It was cancelled.
    pub cancelled: bool,
    /// Where the whole output is kept, when the text was cut.
    pub output_file: Option<Arc<str>>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// A command failed in the read-only sandbox, as it seems for want of write access or network.
    pub needs_write_access: bool,
}

impl Outcome {
    /// A success with a text for the model.
    pub fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A failure with a stable code and words that help the model to do better.
    pub fn failure(code: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), error_code: Some(code), ..Self::default() }
    }
}
