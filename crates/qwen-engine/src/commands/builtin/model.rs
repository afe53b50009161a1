//! `/model`

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "model",
    aliases: &[],
    description: "Show or change the model.",
    argument_hint: "[name|default]",
    subcommands: &[],
    live: true,
    run,
};

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    match call.args {
        "" => CommandOutcome::info(format!("The model is '{}'.", cx.model)),
        "default" => CommandOutcome::info("The model is the configured one again.")
            .then(CommandAction::SwitchModel(None)),
        name => CommandOutcome::info(format!("The model is now '{name}'."))
            .then(CommandAction::SwitchModel(Some(name.into()))),
    }
}
