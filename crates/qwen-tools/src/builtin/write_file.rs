//! `write_file`: creates a file or replaces its content.

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, Confirmation, ToolCall, ToolDeclaration, ToolKind,
};

use super::change::{self, ChangedFile, PlannedChange, Precondition};
use crate::declared::{DeclaredTool, tool_input};
use crate::output::content::with_crlf;
use crate::refusal::Refusal;
use crate::{CallContext, Outcome, ToolFuture};

const DESCRIPTION: &str = "Creates a file with the given content, and its parent directories if needed, or replaces \
the whole content of an existing file that you have read. To change part of a file use the tool edit. A file that has \
changed since you last saw it, or that you have not read, is not overwritten.";

pub(super) struct WriteFile;

tool_input! {
    struct Input {
        file_path: String = Argument::new(ArgumentValue::NonBlankText, "The file, absolute or relative to the workspace.").role(ArgumentRole::Path),
        content: String = Argument::new(ArgumentValue::Text, "The complete content of the file."),
    }
}

impl DeclaredTool for WriteFile {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("write_file", ToolKind::Edit, DESCRIPTION, Input::ARGUMENTS)
            .claude(&[ClaudeTool::with_name("Write")]);

    fn confirmation(call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        change::confirmation(plan, call, cx)
    }

    fn check(call: &ToolCall, cx: &CallContext) -> Option<Outcome> {
        change::check(plan, Self::DECLARATION, call, cx)
    }

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        change::apply(plan, call, cx)
    }
}

/// Computes the new content and the message for the model.
fn plan(call: &ToolCall, cx: &CallContext) -> Result<PlannedChange, Refusal> {
    let (Input { file_path, content }, _) = Input::parse(call)?;
    let file = ChangedFile::open(&file_path, Precondition::Read, cx)?;
    // Models write LF; a file whose lines all end with CRLF keeps CRLF.
    let after = if file.is_crlf() { with_crlf(&content) } else { content };
    let done = if file.before.is_some() { "Replaced the content of" } else { "Created" };
    let summary = format!("{done} {}", file.shown.display());
    Ok(PlannedChange { file, after, summary })
}
