//! `/settings`

use serde_json::json;

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "settings",
    aliases: &[],
    description: "Show the effective settings.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let settings = json!({
        "session_id": cx.session_id.as_str(),
        "cwd": cx.cwd.to_string_lossy(),
        "model": &*cx.model,
        "approval_mode": cx.mode,
        "tools": cx.tools.len(),
        "agents": cx.agents.len(),
        "mcp_servers": cx.mcp_servers.len(),
        "hooks": cx.hooks.hooks().len(),
    });
    CommandOutcome::dialog("settings", &settings)
}
