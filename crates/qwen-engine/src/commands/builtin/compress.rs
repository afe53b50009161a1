//! `/compress`

use super::{Builtin, Call, CommandCx, Done};
use crate::commands::Action;
/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "compress",
    aliases: &["summarize", "compact"],
    description: "Compresses the context by replacing it with a summary.",
    argument_hint: "[what matters]",
    subcommands: &[],
    live: false,
    run,
};

fn run(call: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    if cx.history.is_none_or(<[_]>::is_empty) {
        return Done::say("There is nothing to compress yet.");
    }
    Done::say("The conversation is being compressed.").then(Action::Compress(call.args.into()))
}
