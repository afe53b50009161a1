//! `/tools`

use super::{Builtin, Call, CommandContext, CommandOutcome, first_sentence, render_list};
pub(super) const COMMAND: Builtin = Builtin {
    name: "tools",
    aliases: &[],
    description: "List the tools.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let tools = cx.tools.iter().map(|tool| (&*tool.name, first_sentence(&tool.description)));
    render_list("The tools:", "There are no tools.", tools)
}
