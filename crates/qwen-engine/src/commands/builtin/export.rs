//! `/export`

use std::fmt::Write;

use qwen_events::{Message, Part, Role};
use qwen_tools::workspace::Workspace;

use super::{Builtin, Call, CommandContext, CommandOutcome};
pub(super) const COMMAND: Builtin = Builtin {
    name: "export",
    aliases: &[],
    description: "Show the conversation as Markdown, or write it to a file.",
    argument_hint: "[file]",
    subcommands: &[],
    live: false,
    run,
};

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let text = markdown(cx.history.unwrap_or_default());
    if call.args.is_empty() {
        return CommandOutcome::say(text);
    }
    let written = Workspace::new(cx.cwd, &[])
        .and_then(|workspace| workspace.target(call.args))
        .and_then(|target| target.write(text.as_bytes()));
    match written {
        Ok(_) => CommandOutcome::say(format!("The conversation is in {}.", call.args)),
        Err(error) => {
            CommandOutcome::fail(format!("The conversation could not be written to {}: {error}", call.args))
        }
    }
}

fn markdown(messages: &[Message]) -> String {
    let mut text = String::from("# Conversation\n");
    for message in messages {
        let who = match message.role {
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::Tool => "Tools",
        };
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n## {who}\n");
        for part in &message.parts {
            let _ = match part {
                Part::Text(words) => write!(text, "\n{words}\n"),
                Part::Thought { .. } => Ok(()),
                Part::Media(media) => write!(text, "\n({})\n", media.mime_type),
                Part::Call(call) => write!(text, "\n`{}` {}\n", call.name, call.arguments.as_str()),
                Part::Result(result) => write!(text, "\n`{}`:\n\n{}\n", result.name, indented(&result.text)),
            };
        }
    }
    text
}

/// An indented block, which no text can end early.
fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
