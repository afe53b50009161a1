//! `/redo`

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;

pub(super) const COMMAND: Builtin = Builtin {
    name: "redo",
    aliases: &[],
    description: "Bring back what the last /undo or /rewind removed: the conversation and the files.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    CommandOutcome::info("").then(CommandAction::Redo)
}
