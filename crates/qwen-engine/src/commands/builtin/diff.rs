//! `/diff`

use qwen_events::{ArgumentRole, Part, ToolKind, ToolResult};
use serde_json::Value;

use super::{Builtin, Call, CommandContext, CommandOutcome, render_list};
use crate::TOOLS;
pub(super) const COMMAND: Builtin = Builtin {
    name: "diff",
    aliases: &[],
    description: "List the files that were changed in this conversation.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let parts = || cx.history.unwrap_or_default().iter().flat_map(|message| &message.parts);
    let failed: Vec<&ToolResult> = parts()
        .filter_map(|part| match part {
            Part::Result(result) if result.is_error => Some(result),
            _ => None,
        })
        .collect();
    let mut files: Vec<(String, usize)> = Vec::new();
    for part in parts() {
        let Part::Call(call) = part else { continue };
        let Some(tool) = TOOLS.find(&call.name).filter(|tool| tool.kind == ToolKind::Edit) else { continue };
        if failed.iter().any(|result| result.call_id == call.id) {
            continue;
        }
        let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let named = tool.with_role(ArgumentRole::Path).find_map(|path| arguments[path.name].as_str());
        let Some(path) = named else { continue };
        match files.iter_mut().find(|(known, _)| known == path) {
            Some((_, count)) => *count += 1,
            None => files.push((path.to_owned(), 1)),
        }
    }
    let lines = files.iter().map(|(path, count)| {
        (
            path.as_str(),
            if *count == 1 { "changed once".to_owned() } else { format!("changed {count} times") },
        )
    });
    render_list("Changed in this conversation:", "No file was changed in this conversation.", lines)
}
