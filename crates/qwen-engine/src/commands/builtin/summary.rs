//! `/summary`

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "summary",
    aliases: &[],
    description: "Summarize the conversation so far.",
    argument_hint: "[what matters most]",
    subcommands: &[],
    live: false,
    run,
};

const PROMPT: &str = "Summarize our conversation so far in Markdown, with these headings: Overall Goal, Key Knowledge, \
Recent Actions, Current Plan. Mention the files that matter by name. Use no tools.";

fn run(call: &Call<'_>, _: &CommandContext<'_>) -> CommandOutcome {
    if call.args.is_empty() {
        return CommandOutcome::submit(PROMPT);
    }
    CommandOutcome::submit(format!("{PROMPT}\nPay special attention to: {}", call.args))
}
