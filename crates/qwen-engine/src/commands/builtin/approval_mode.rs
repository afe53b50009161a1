//! `/approval-mode`

use qwen_permissions::Mode;

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
pub(super) const COMMAND: Builtin = Builtin {
    name: "approval-mode",
    aliases: &[],
    description: "Show or change the approval mode.",
    argument_hint: "[plan|default|auto-edit|yolo]",
    subcommands: &[],
    live: true,
    run,
};

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    if call.args.is_empty() {
        return CommandOutcome::info(format!(
            "The approval mode is '{}'. The modes are plan, default, auto-edit and yolo.",
            cx.mode
        ));
    }
    match Mode::parse(call.args) {
        Some(mode) => CommandOutcome::info(format!("The approval mode is now '{}'.", mode.name()))
            .then(CommandAction::SetMode(mode.name().into())),
        None => CommandOutcome::error(format!(
            "'{}' is not an approval mode. The modes are plan, default, auto-edit and yolo.",
            call.args
        )),
    }
}
