//! `/permissions`

use serde_json::json;

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "permissions",
    aliases: &[],
    description: "Show the approval mode and the permission rules.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    CommandOutcome::dialog("permissions", &json!({"mode": cx.mode, "rules": cx.rules}))
}
