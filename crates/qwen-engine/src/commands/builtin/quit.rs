//! `/quit`

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "quit",
    aliases: &["exit"],
    description: "End the session.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    CommandOutcome::info("Goodbye.").then(CommandAction::Quit)
}
