//! `/clear`

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "clear",
    aliases: &["reset", "new"],
    description: "Clear the screen and conversation history.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    CommandOutcome::info("The conversation is cleared.").then(CommandAction::Clear)
}
