//! `/agents`

use super::{Builtin, Call, CommandContext, CommandOutcome, first_sentence, render_list};
pub(super) const COMMAND: Builtin = Builtin {
    name: "agents",
    aliases: &[],
    description: "List the sub-agents that can be started.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let agents = cx.agents.iter().map(|agent| (&*agent.name, first_sentence(&agent.description)));
    render_list("The sub-agents:", "There are no sub-agents.", agents)
}
