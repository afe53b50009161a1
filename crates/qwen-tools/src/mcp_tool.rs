//! Adapts the tools of MCP servers to the registry.

use std::pin::Pin;
use std::sync::Arc;

use qwen_events::{Channel, Confirmation, ToolCall, ToolDeclaration, ToolKind, ToolSpec};
use qwen_mcp::{ProgressSink, RemoteCallContext, RemoteTool, Servers, TextSink};
use qwen_redact::Redactor;

use crate::output::transcript::Transcript;
use crate::{CallContext, Outcome, OutputSink, SessionResources, Tool, ToolFuture};

/// The tools of all connected servers, for the registry of a turn.
pub fn mcp_tools(servers: &Servers) -> impl Iterator<Item = Arc<dyn Tool>> {
    servers.tools().into_iter().map(|tool| Arc::new(McpTool(tool)) as Arc<dyn Tool>)
}

struct McpTool(RemoteTool);

/// The declaration of every MCP tool. A server's own annotations grant nothing.
const DECLARATION: ToolDeclaration = ToolDeclaration::new("mcp__*", ToolKind::Mcp, "", &[]);

/// Text for the model, with secrets redacted.
struct Clean<'a> {
    transcript: Transcript<'a>,
    redactor: &'a Redactor,
}

impl TextSink for Clean<'_> {
    fn append(&mut self, piece: &str) {
        self.transcript.push(&self.redactor.redact(piece));
    }
}

struct Progress<'a>(&'a dyn OutputSink);

impl ProgressSink for Progress<'_> {
    fn progress<'a>(
        &'a self,
        channel: Channel,
        text: Box<str>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.0.output(channel, text)
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        Some(&DECLARATION)
    }

    fn is_deferrable(&self) -> bool {
        !self.0.is_always_loaded()
    }

    fn confirmation(&self, _: &ToolCall, _: &CallContext) -> Option<Confirmation> {
        Some(Confirmation::Mcp {
            server: self.0.server().clone(),
            tool: self.0.name().clone(),
            display: self.0.title().clone(),
        })
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let mut out = Clean {
                transcript: Transcript::new(SessionResources::RESULT_LIMIT, &cx.session.scratch, "mcp"),
                redactor: &cx.session.redactor,
            };
            let progress = Progress(cx.output.as_ref());
            let context =
                RemoteCallContext { cancel: &cx.cancel, progress: &progress, trace: cx.trace.as_ref() };
            match self.0.call(&call.arguments, context, &mut out).await {
                Ok(result) => {
                    let (text, file) = out.transcript.finish();
                    Outcome {
                        text,
                        media: result.media,
                        error_code: result.is_error.then_some("mcp_tool_error"),
                        output_file: file.map(|file| file.to_string_lossy().into()),
                        ..Outcome::default()
                    }
                }
                Err(error) => Outcome {
                    cancelled: error.is_cancelled(),
                    // The server's stderr may contain secrets that the server was given.
                    ..Outcome::failure(error.code, cx.session.redactor.redact(&error.message))
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use qwen_sandbox::Scratch;

    use super::*;

    #[test]
    fn long_results_are_cut_and_kept_without_the_secrets_in_them() {
        let (scratch, redactor) = (Scratch::temporary(), Redactor::new(["a-long-secret-value"]));
        let mut out = Clean { transcript: Transcript::new(100, &scratch, "mcp"), redactor: &redactor };
        out.append("a-long-secret-value");
        out.append(&"x".repeat(1000));
        let (text, file) = out.transcript.finish();
        let kept = std::fs::read_to_string(file.unwrap()).unwrap();
        assert!(text.contains("left out here"), "{text}");
        assert!(kept.ends_with(&"x".repeat(1000)) && !kept.contains("secret"), "{kept}");
    }
}
