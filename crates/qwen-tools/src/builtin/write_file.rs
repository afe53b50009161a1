//! `write_file`: makes a file, or replaces all that is in it.

use qwen_events::{Confirmation, ToolCall, ToolSpec};

use super::change::Site;
use super::spec;
use crate::content::with_crlf;
use crate::refusal::Refusal;
use crate::{Arguments, Outcome, Tool, ToolCx, ToolFuture};

const DESCRIPTION: &str = "Makes a file with the given content, with the directories above it, or replaces all of an \
existing one. To change a part of a file use edit. A file that was changed by something else since you last read it is \
not overwritten.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"file_path":{"type":"string","description":"The file, absolute or relative to the workspace."},
"content":{"type":"string","description":"All that will be in the file."}},
"required":["file_path","content"]}"#;

/// The tool.
pub(super) struct WriteFile {
    spec: ToolSpec,
}

impl WriteFile {
    pub(super) fn new() -> Self {
        Self { spec: spec("write_file", DESCRIPTION, SCHEMA) }
    }
}

impl Tool for WriteFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn confirmation(&self, call: &ToolCall, cx: &ToolCx) -> Option<Confirmation> {
        let (site, after) = prepare(call, cx).ok()?;
        Some(Confirmation::Edit(site.diff(&after)))
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call, cx).unwrap_or_else(Outcome::from)))
    }
}

fn prepare(call: &ToolCall, cx: &ToolCx) -> Result<(Site, String), Refusal> {
    let arguments = Arguments::of(call)?;
    let path = arguments.sound_text("file_path")?;
    let content = arguments.text("content")?;
    let site = Site::open(path, cx)?;
    // A model writes LF; a file whose lines all end with CR and LF keeps to that.
    let after = if site.is_crlf() { with_crlf(content) } else { content.to_owned() };
    Ok((site, after))
}

fn run(call: &ToolCall, cx: &ToolCx) -> Result<Outcome, Refusal> {
    let (site, after) = prepare(call, cx)?;
    let done = if site.before.is_some() { "Replaced the content of" } else { "Made" };
    let said = format!("{done} {}", site.shown.display());
    site.change(&after, &said, cx)
}
