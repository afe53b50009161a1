//! Converts what a prompt refers to into model input: reads MCP resources and redacts secrets.

use std::time::Duration;

use qwen_events::{Body, CallId, ConsoleLevel, Json, LogScope, Media, MediaSource, Part, ToolCall, Verdict};
use qwen_mcp::{McpError, ResourceContents};

use super::Session;
use crate::commands::at::{MAX_FILE, MAX_IMAGE, ResourceName};
use crate::redact::hide_secrets;
use crate::{Cancel, Emitter};

/// The timeout for reading one resource, including its server's start.
const TIME_LIMIT: Duration = Duration::from_secs(30);

impl Session {
    /// Reads the resources that a prompt refers to. Failures are reported to the user and to the model.
    pub(super) async fn read_resources(
        &self,
        wanted: &[ResourceName],
        emit: &Emitter,
        cancel: &Cancel,
    ) -> Vec<Part> {
        let mut parts = Vec::new();
        for name in wanted {
            let shown = format!("{}:{}", name.server, name.uri);
            match self.read_resource(name, cancel).await {
                Ok(contents) => parts.extend(shown_to_model(&shown, contents)),
                Err(_) if cancel.is_stopped() => break,
                Err(problem) => {
                    let text = format!("The resource {shown} was not read: {problem}");
                    let body = Body::Console {
                        level: ConsoleLevel::Warn,
                        scope: LogScope::System,
                        text: text.as_str().into(),
                    };
                    emit.emit(body).await;
                    parts.push(Part::Text(format!("\n{text}\n").into()));
                }
            }
        }
        parts
    }

    async fn read_resource(&self, name: &ResourceName, cancel: &Cancel) -> Result<ResourceContents, String> {
        // The user requested it, so no permission question is asked. Deny rules still apply.
        let call = ToolCall::new(
            CallId::new("@"),
            format!("mcp__{}__read_resource", name.server).into(),
            Json::empty_object(),
        );
        let decision = self.context.process.permissions.judge(&call, None).decision;
        if let (Verdict::Deny, Some(rule)) = (decision.verdict, &decision.rule) {
            return Err(format!("the rule {rule} forbids it"));
        }
        let mut problem = String::new();
        for uri in name.spellings() {
            let reading = self.context.process.mcp.read_resource(&name.server, uri, cancel.token());
            match tokio::time::timeout(TIME_LIMIT, reading).await {
                Ok(Ok(contents)) => return Ok(contents),
                // Of two spellings the first is what the user typed, so its error is reported.
                Ok(Err(McpError { message, .. })) if problem.is_empty() => problem = message,
                Ok(Err(_)) => {}
                Err(_) => return Err(format!("it took longer than {} s", TIME_LIMIT.as_secs())),
            }
        }
        Err(problem)
    }

    /// Redacts secrets, because the model's server is a third party.
    pub(super) fn hide_secrets(&self, parts: &mut [Part]) {
        hide_secrets(parts, &self.context.resources.redactor);
    }
}

/// Converts a resource into prompt parts, within the size limits for files.
fn shown_to_model(shown: &str, contents: ResourceContents) -> Vec<Part> {
    let ResourceContents { mut text, media } = contents;
    let mut parts = Vec::new();
    let whole = text.len();
    let limit = usize::try_from(MAX_FILE).unwrap_or(usize::MAX);
    if !text.is_empty() || media.is_empty() {
        let mut cut = String::new();
        if whole > limit {
            let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            text.truncate(end);
            cut = format!("\n(cut after {end} of {whole} bytes)");
        }
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let text = format!("\n--- the resource {shown} ---\n{text}{end}--- end of {shown} ---{cut}\n");
        parts.push(Part::Text(text.into()));
    }
    for image in media {
        if is_too_large(&image) {
            parts.push(Part::Text(format!("An image of {shown} is too large to be shown here.").into()));
        } else {
            parts.push(Part::Text(format!("An image of {shown}:").into()));
            parts.push(Part::Media(image));
        }
    }
    parts
}

fn is_too_large(image: &Media) -> bool {
    // Four base64 characters encode three bytes.
    match &image.source {
        MediaSource::Base64(data) => u64::try_from(data.len()).unwrap_or(u64::MAX) / 4 * 3 > MAX_IMAGE,
        MediaSource::Url(_) => false,
    }
}
