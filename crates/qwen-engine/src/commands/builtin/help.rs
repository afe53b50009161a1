//! `/help`

use super::{Builtin, Call, CommandContext, CommandOutcome, find, render_list};
pub(super) const COMMAND: Builtin = Builtin {
    name: "help",
    aliases: &["?"],
    description: "List the commands, or explain one.",
    argument_hint: "[command]",
    subcommands: &[],
    live: true,
    run,
};

fn run(call: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    let wanted = call.args.trim_start_matches('/');
    if let Some(command) = find(wanted).filter(|_| !wanted.is_empty()) {
        let title = format!("/{} {}\n{}", command.name, command.argument_hint, command.description);
        let subs = command.subcommands.iter().map(|(name, about)| (*name, (*about).to_owned()));
        return render_list(&title, &title, subs);
    }
    let all = call.commands.list();
    let commands = all.iter().map(|command| {
        let about = match &*command.argument_hint {
            "" => command.description.to_string(),
            hint => format!("{} ({hint})", command.description),
        };
        (&*command.name, about)
    });
    render_list("Commands, typed with a / in front; @path puts a file into the prompt:", "", commands)
}
