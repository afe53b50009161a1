//! `/copy`

use qwen_events::{Part, Role};
use serde_json::json;

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "copy",
    aliases: &[],
    description: "Copy the last result or code snippet to clipboard.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

/// Only the host has a clipboard, so the text is returned to it.
fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let answers =
        cx.history.unwrap_or_default().iter().rev().filter(|message| message.role == Role::Assistant);
    let text = answers.flat_map(|message| &message.parts).find_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    match text {
        Some(text) => CommandOutcome::dialog("copy", &json!({"text": &**text})),
        None => CommandOutcome::error("There is no answer to copy yet."),
    }
}
