//! `/tools`

use super::{Builtin, Call, CommandCx, Done, first_sentence, listed};
/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "tools",
    aliases: &[],
    description: "List the tools.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    let tools = cx.tools.iter().map(|tool| (&*tool.name, first_sentence(&tool.description)));
    listed("The tools:", "There are no tools.", tools)
}
