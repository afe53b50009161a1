//! `/compress`

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "compress",
    aliases: &["summarize", "compact"],
    description: "Compresses the context by replacing it with a summary.",
    argument_hint: "[what matters]",
    subcommands: &[],
    live: false,
    run,
};

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    if cx.history.is_none_or(<[_]>::is_empty) {
        return CommandOutcome::info("There is nothing to compress yet.");
    }
    CommandOutcome::info("The conversation is being compressed.")
        .then(CommandAction::Compress(call.args.into()))
}
