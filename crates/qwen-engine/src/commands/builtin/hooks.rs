//! `/hooks`

use super::{Builtin, Call, CommandContext, CommandOutcome, render_list};
use crate::hooks::HookAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "hooks",
    aliases: &[],
    description: "List the hooks.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let hooks = cx.hooks.hooks();
    let lines = hooks.iter().map(|hook| {
        let what = match &hook.action {
            HookAction::Command(line) => format!("runs '{line}'"),
            HookAction::Http { url, .. } => format!("posts to {}", url.split('?').next().unwrap_or_default()),
            HookAction::Host(_) => "calls the host".to_owned(),
        };
        (hook.event.name(), format!("{what}, for {}", hook.matcher.as_deref().unwrap_or("all")))
    });
    render_list("The hooks:", "There are no hooks.", lines)
}
