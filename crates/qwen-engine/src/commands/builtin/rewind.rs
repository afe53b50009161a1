//! `/rewind`

use qwen_events::PromptId;

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::{CommandAction, RewindRequest, RewindScope};

pub(super) const COMMAND: Builtin = Builtin {
    name: "rewind",
    aliases: &[],
    description: "Go back to an earlier prompt: the conversation, the files or both. Without a scope, a preview.",
    argument_hint: "[PROMPT [conversation|files|both]]",
    subcommands: &[],
    live: false,
    run,
};

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    if cx.store.is_none() {
        return CommandOutcome::error(
            "Sessions are not stored in this run, so there is nothing to go back to.",
        );
    }
    let mut words = call.args.split_whitespace();
    let request = match (words.next(), words.next(), words.next()) {
        (None, ..) => RewindRequest::List,
        (Some(prompt), None, _) => RewindRequest::Preview(PromptId::new(prompt)),
        (Some(prompt), Some(scope), None) => match RewindScope::parse(scope) {
            Some(scope) => RewindRequest::Rewind(PromptId::new(prompt), scope),
            None => return unknown(),
        },
        _ => return unknown(),
    };
    CommandOutcome::info("").then(CommandAction::Rewind(request))
}

fn unknown() -> CommandOutcome {
    CommandOutcome::error("Name what to restore: /rewind PROMPT conversation, files or both.")
}
