//! `/memory`

use qwen_events::{CallId, Json, ToolCall};

use super::{Builtin, Call, CommandContext, CommandOutcome, render_list};
use crate::commands::CommandAction;

pub(super) const COMMAND: Builtin = Builtin {
    name: "memory",
    aliases: &[],
    description: "Show the memory files that the agent reads, or add something to them.",
    argument_hint: "[show|add TEXT]",
    subcommands: &[
        ("show", "List the memory files in use."),
        ("add", "Remember a fact for later sessions, wherever they are."),
    ],
    live: false,
    run,
};

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    match call.sub {
        Some("add") if call.args.is_empty() => {
            CommandOutcome::error("The text is missing: /memory add TEXT.")
        }
        Some("add") => {
            let arguments = Json::trusted(serde_json::json!({"fact": call.args}).to_string());
            let id = CallId::new("command");
            let call = ToolCall::new(id, "save_memory".into(), arguments);
            CommandOutcome::info("Adding it to the memory file.").then(CommandAction::Run(call))
        }
        None | Some("show") if call.args.is_empty() => {
            let files = cx.memory_files.iter().map(|(path, bytes)| (&**path, format!("{bytes} bytes")));
            render_list("The memory files:", "There is no memory file. Create QWEN.md or AGENTS.md.", files)
        }
        Some(_) | None => CommandOutcome::error("Choose one: /memory show or /memory add TEXT."),
    }
}
