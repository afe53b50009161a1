//! `/stats`

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "stats",
    aliases: &["cost", "usage"],
    description: "Show the session's usage.",
    argument_hint: "",
    subcommands: &[],
    live: true,
    run,
};

fn run(_: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let spent = &cx.spent;
    CommandOutcome::info(format!(
        "Session {}\nModel: {}\nModel calls: {}\nTool calls: {}\nTokens: {} read ({} from cache), {} written",
        cx.session_id,
        cx.model,
        spent.requests,
        spent.tool_calls,
        spent.prompt_tokens,
        spent.cached_tokens,
        spent.completion_tokens,
    ))
}
