//! `/shell`

use qwen_events::CommandResultBody;

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;

pub(super) const COMMAND: Builtin = Builtin {
    name: "shell",
    aliases: &[],
    description: "Run a shell command and add its output to the conversation.",
    argument_hint: "COMMAND",
    subcommands: &[],
    live: false,
    run,
};

fn run(call: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    if call.args.is_empty() {
        return CommandOutcome::error("Name the command: /shell COMMAND.");
    }
    let body = CommandResultBody::SubmitPrompt { content: format!("!{}", call.args).into() };
    CommandOutcome { body, action: Some(CommandAction::TypedCommand(call.args.into())) }
}
