//! `/memory`

use super::{Builtin, Call, CommandCx, Done, listed};
/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "memory",
    aliases: &[],
    description: "Show the memory files that the agent is told.",
    argument_hint: "",
    subcommands: &[("show", "List the memory files in force.")],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    let files = cx.memory_files.iter().map(|(path, bytes)| (&**path, format!("{bytes} bytes")));
    listed("The memory files:", "There is no memory file. QWEN.md or AGENTS.md would be one.", files)
}
