//! `/mcp`

use super::{Builtin, Call, CommandContext, CommandOutcome, render_list};
pub(super) const COMMAND: Builtin = Builtin {
    name: "mcp",
    aliases: &[],
    description: "List the MCP servers and their tools.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let servers = cx.mcp_servers.iter().map(|server| {
        let mut about = format!("{} ({})", server.status.name(), server.transport);
        if let Some(error) = &server.error {
            about.push_str(&format!("; {error}"));
        }
        if !server.tools.is_empty() {
            let tools: Vec<&str> = server.tools.iter().map(|tool| &*tool.name).collect();
            about.push_str(&format!("; {}", tools.join(", ")));
        }
        for warning in &server.warnings {
            about.push_str(&format!("; {warning}"));
        }
        (&*server.name, about)
    });
    render_list("The MCP servers:", "No MCP server is configured.", servers)
}
