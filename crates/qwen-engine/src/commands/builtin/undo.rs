//! `/undo`

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "undo",
    aliases: &[],
    description: "Remove the last turn from the conversation, and restore the files that it changed.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    if cx.history.is_none_or(<[_]>::is_empty) {
        return CommandOutcome::info("There is nothing to undo.");
    }
    CommandOutcome::info("The last turn was removed from the conversation.").then(CommandAction::Undo)
}
