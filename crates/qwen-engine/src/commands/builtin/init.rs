//! `/init`

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "init",
    aliases: &[],
    description: "Look at the project and write a QWEN.md for it.",
    argument_hint: "",
    subcommands: &[],
    live: false,
    run,
};

fn run(_: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    CommandOutcome::submit(
        "Look at this project and write a file QWEN.md at its root for agents that will work on it. Say what the \
         project is, how it is laid out, how it is built, tested and checked (with the exact commands), and which \
         conventions its code follows. Read the files that tell this instead of guessing. Keep it short. If there is a \
         QWEN.md already, improve it.",
    )
}
