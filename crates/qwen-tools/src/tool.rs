//! The [`Tool`] trait and the types of a call.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use qwen_events::{Channel, Confirmation, Display, Media, ToolCall, ToolDeclaration, ToolSpec, TraceContext};
use tokio_util::sync::CancellationToken;

use crate::SessionResources;
use qwen_permissions::GitHardening;

pub trait Tool: Send + Sync {
    /// The name, description and schema for the model.
    fn spec(&self) -> &ToolSpec;

    /// The static declaration. A tool without one never runs without approval.
    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        None
    }

    /// What a permission request shows besides the tool's name and arguments.
    fn confirmation(&self, _call: &ToolCall, _cx: &CallContext) -> Option<Confirmation> {
        None
    }

    /// True if the call changes nothing: it may run concurrently with other such calls of its message.
    fn only_reads(&self, _call: &ToolCall) -> bool {
        self.declaration().is_some_and(|declaration| declaration.kind.only_reads())
    }

    /// True if requests may list it by name only until it is needed.
    fn is_deferrable(&self) -> bool {
        false
    }

    /// Returns the failure of a call that cannot succeed, before permission for it is requested.
    fn check(&self, _call: &ToolCall, _cx: &CallContext) -> Option<Outcome> {
        None
    }

    /// Runs one call. The future ends promptly after `cx.cancel` fires, with nothing of the call left
    /// running.
    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a>;
}

pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

/// Receives a tool's output while it runs. Its futures wait while the reader is slow.
pub trait OutputSink: Send + Sync {
    /// Sends a piece of output.
    fn output<'a>(
        &'a self,
        channel: Channel,
        text: Box<str>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

    /// Replaces what users are shown for the call.
    fn display<'a>(&'a self, display: Display) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// Discards streamed output, for callers that need only the outcome.
pub struct DiscardedOutput;

impl OutputSink for DiscardedOutput {
    fn output<'a>(&'a self, _: Channel, _: Box<str>) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }

    fn display<'a>(&'a self, _: Display) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(std::future::ready(()))
    }
}

/// The context of one call.
pub struct CallContext {
    pub session: Arc<SessionResources>,
    /// The session's additional directories, and those that an approval added for this call.
    pub granted_roots: Arc<[PathBuf]>,
    /// Fires when the call must end.
    pub cancel: CancellationToken,
    pub output: Arc<dyn OutputSink>,
    /// Run commands in the read-only sandbox: the call was allowed because it only reads.
    pub read_only: bool,
    /// Run git with the repository's executable settings switched off: the call was allowed because it only
    /// reads.
    pub harden_git: Option<GitHardening>,
    /// A `cd` of the command applies to the next command too: the call is the main agent's.
    pub carries_directory: bool,
    /// Trace context of the call, if tracing is on. Commands receive it, so that their spans become children
    /// of the call.
    pub trace: Option<TraceContext>,
}

impl CallContext {
    /// The context of a call that gets no more access than the session has.
    pub fn new(
        session: Arc<SessionResources>,
        cancel: CancellationToken,
        output: Arc<dyn OutputSink>,
    ) -> Self {
        let granted_roots = session.extra_roots.clone();
        Self {
            session,
            granted_roots,
            cancel,
            output,
            read_only: false,
            harden_git: None,
            carries_directory: false,
            trace: None,
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The text for the model.
    pub text: String,
    /// Images for the model.
    pub media: Vec<Media>,
    /// What users are shown, if it differs from the text.
    pub display: Option<Display>,
    /// A stable error code; `None` means success.
    pub error_code: Option<&'static str>,
    pub cancelled: bool,
    /// The file with the full output, if the text was cut.
    pub output_file: Option<Arc<str>>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// True if the text names tools or arguments of ours and contains no other text.
    pub mentions_tools: bool,
    /// True if a command failed in the read-only sandbox, apparently because it needs write or network
    /// access.
    pub needs_write_access: bool,
}

impl Outcome {
    /// A success with a text for the model.
    pub fn success(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A failure with a stable code and a message that helps the model to correct the call.
    pub fn failure(code: &'static str, text: impl Into<String>) -> Self {
        Self { text: text.into(), error_code: Some(code), ..Self::default() }
    }
}
