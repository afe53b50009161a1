//! `write_file`: creates a file or replaces its content.

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, ClaudeTool, Confirmation, ToolCall, ToolDeclaration, ToolKind,
};

use super::change::Site;
use crate::declared::{DeclaredTool, tool_input};
use crate::output::content::with_crlf;
use crate::refusal::Refusal;
use crate::{CallContext, Outcome, ToolFuture};

const DESCRIPTION: &str = "Makes a file with the given content, with the directories above it, or replaces all of an \
existing one. To change a part of a file use edit. A file that was changed by something else since you last read it is \
not overwritten.";

pub(super) struct WriteFile;

tool_input! {
    struct Input {
        file_path: String = Argument::new(ArgumentValue::NonBlankText, "The file, absolute or relative to the workspace.").role(ArgumentRole::Path),
        content: String = Argument::new(ArgumentValue::Text, "All that will be in the file."),
    }
}

impl DeclaredTool for WriteFile {
    const DECLARATION: &'static ToolDeclaration = &ToolDeclaration {
        name: "write_file",
        aliases: &[],
        kind: ToolKind::Edit,
        description: DESCRIPTION,
        arguments: Input::ARGUMENTS,
        claude: &[ClaudeTool::named("Write")],
    };

    fn confirmation(call: &ToolCall, cx: &CallContext) -> Option<Confirmation> {
        let (site, after) = prepare(call, cx).ok()?;
        Some(Confirmation::Edit(site.diff(&after)))
    }

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call, cx).unwrap_or_else(Outcome::from)))
    }
}

fn prepare(call: &ToolCall, cx: &CallContext) -> Result<(Site, String), Refusal> {
    let (Input { file_path, content }, _) = Input::parse(call)?;
    let site = Site::open(&file_path, cx)?;
    // Models write LF; a file whose lines all end with CRLF keeps CRLF.
    let after = if site.is_crlf() { with_crlf(&content) } else { content };
    Ok((site, after))
}

fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (site, after) = prepare(call, cx)?;
    let done = if site.before.is_some() { "Replaced the content of" } else { "Made" };
    let said = format!("{done} {}", site.shown.display());
    site.change(&after, &said, cx)
}
