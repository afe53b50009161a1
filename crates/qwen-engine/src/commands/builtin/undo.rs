//! `/undo`

use super::{Builtin, Call, CommandCx, Done};
use crate::commands::Action;
/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "undo",
    aliases: &[],
    description: "Take the last turn out of the conversation, and put back the files that it changed.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    if cx.history.is_none_or(<[_]>::is_empty) {
        return Done::say("There is nothing to undo.");
    }
    Done::say("The last turn is taken out of the conversation.").then(Action::Undo)
}
