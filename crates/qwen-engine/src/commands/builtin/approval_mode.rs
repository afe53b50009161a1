//! `/approval-mode`

use qwen_permissions::Mode;

use super::{Builtin, Call, CommandCx, Done};
use crate::commands::Action;
/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "approval-mode",
    aliases: &[],
    description: "Show or change the approval mode.",
    argument_hint: "[plan|default|auto-edit|yolo]",
    subcommands: &[],
    live: true,
    run,
};

fn run(call: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    if call.args.is_empty() {
        return Done::say(format!(
            "The approval mode is '{}'. The modes are plan, default, auto-edit and yolo.",
            cx.mode
        ));
    }
    match Mode::parse(call.args) {
        Some(mode) => Done::say(format!("The approval mode is now '{}'.", mode.name()))
            .then(Action::SetMode(mode.name().into())),
        None => Done::fail(format!(
            "'{}' is no approval mode. The modes are plan, default, auto-edit and yolo.",
            call.args
        )),
    }
}
