//! `/mcp`

use super::{Builtin, Call, CommandCx, Done, listed};
/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "mcp",
    aliases: &[],
    description: "List the MCP servers and their tools.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    let servers = cx.mcp_servers.iter().map(|server| {
        let prefix = format!("mcp__{}__", server.name);
        let tools: Vec<&str> = cx.tools.iter().filter_map(|tool| tool.name.strip_prefix(&*prefix)).collect();
        let about = if tools.is_empty() {
            server.status.to_string()
        } else {
            format!("{}; {}", server.status, tools.join(", "))
        };
        (&*server.name, about)
    });
    listed("The MCP servers:", "No MCP server is configured.", servers)
}
